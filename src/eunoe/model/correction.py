"""What somebody said by hand about what was learned, or should have been."""

from dataclasses import dataclass
from datetime import datetime

from eunoe.model.choices import Verdict
from eunoe.model.scope import Scope
from eunoe.model.validation import shorten

CORRECTION = "correction"
"""The label of the archived atom that a correction is kept as, and the field of its metadata."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """Sentences that are worth keeping, are not, or are of another kind. It counts for those that are like them."""

    id: str
    verdict: Verdict
    sentences: tuple[str, ...]
    source: tuple[str, ...]
    """Ids of the messages and memories that were corrected. It is forgotten with them."""
    scope: Scope
    """The stream that it counts in: a user's own, and with it all conversations of that user."""
    recorded: datetime
    changed: tuple[str, ...] = ()
    """Ids of the memories that came, were closed or were archived by it at once; empty where corrections are listed."""

    def __repr__(self) -> str:
        return f"Correction({self.verdict!r}, {shorten(' '.join(self.sentences))!r}, id={self.id!r})"
