"""Extraction by a language model: one call for all streams, its answer checked, repaired or asked for again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from eunoe.form.proposal import Known, Proposal
from eunoe.form.turns import Turn
from eunoe.llm.contract import Llm
from eunoe.model.stream import Target


def propose(
    llm: Llm, targets: Sequence[Target], turns: Sequence[Turn], known: Sequence[Known], now: datetime
) -> list[Proposal]:
    """What the model offers; LlmError if no answer of it can be used."""
    raise NotImplementedError
