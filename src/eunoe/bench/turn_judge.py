"""The engine's own judgement of single turns: what each holds, and how sure it is that this is worth keeping."""

from collections.abc import Callable, Sequence

from eunoe.memory import Memory
from eunoe.model.message import Message

KeepScores = Callable[[Sequence[Message]], Sequence[float]]
"""Gives each turn of a session, in order, a number that is the higher the more it is worth keeping."""


def load_keep_scores(memory: Memory) -> KeepScores | None:
    """What ranks turns of a memory; None where nothing does."""
    return None
