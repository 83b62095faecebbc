"""Summaries without a language model: the sentences that matter most, within a number of words."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from eunoe.model.atom import Atom


def summarise(previous: str, observations: Sequence[Atom], max_words: int, now: datetime) -> str:
    """The sentences of the old summary and the observations, the most valuable first to be kept."""
    raise NotImplementedError
