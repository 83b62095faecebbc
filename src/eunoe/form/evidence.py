"""Whether texts bear out what is claimed: by names, by numbers and by content words."""

from collections.abc import Sequence
from typing import Final

from eunoe.form.content_words import covered_share, names_and_numbers

_MIN_SHARE: Final = 0.5
"""Share of a claim's content words that the sources must have."""


def is_borne_out(claim: str, sources: Sequence[str]) -> bool:
    """Return whether the sources together say what is claimed: all its names and numbers, and enough of its words."""
    known = frozenset[str]().union(*map(names_and_numbers, sources))
    return names_and_numbers(claim) <= known and covered_share(claim, sources) >= _MIN_SHARE
