"""What becomes of a proposal: kept, merged with what is known, or put in the place of what is no longer true."""

from __future__ import annotations

from collections.abc import Sequence

from eunoe.form.proposal import Proposal
from eunoe.form.turns import Turn
from eunoe.ledger.vectors import Vectors
from eunoe.model.scope import Scope
from eunoe.model.stream import FormReport, Target
from eunoe.store.contract import Store


def settle(
    store: Store,
    conversation: Scope,
    target: Target,
    proposals: Sequence[Proposal],
    turns: Sequence[Turn],
    near: dict[str, list[str]],
    vectors: Vectors,
    now: int,
) -> FormReport:
    """Writes the proposals of one stream, inside the step that finishes the work."""
    raise NotImplementedError
