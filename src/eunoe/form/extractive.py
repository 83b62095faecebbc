"""Extraction without a language model: sentences that say something worth keeping, in their own words."""

from __future__ import annotations

from collections.abc import Sequence

from eunoe.form.proposal import Proposal
from eunoe.form.turns import Turn
from eunoe.model.stream import Target


def propose(targets: Sequence[Target], turns: Sequence[Turn]) -> list[Proposal]:
    """What the turns offer to each target, within its limits."""
    raise NotImplementedError
