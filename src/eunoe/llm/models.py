"""The models of one memory: a slow and a fast one, those that streams name, and what all of them take."""

from __future__ import annotations

from typing import Any

from eunoe.llm.contract import Llm
from eunoe.store.books import UsageRow


class Models:
    """Every model of one memory, counted, with bounded retries and a limit on calls at once."""

    def __init__(self, llm: Any = "auto", fast: Any = None) -> None:
        self.slow: Llm | None = None
        self.fast: Llm | None = None

    @property
    def names(self) -> str:
        """For `status`: what the models are called."""
        return ", ".join(dict.fromkeys(model.name for model in (self.slow, self.fast) if model))

    def named(self, spec: str) -> Llm | None:
        """The model that a stream's settings name; the slow one if they name none."""
        return self.slow

    def drain(self) -> list[UsageRow]:
        """What calls took since the last time."""
        return []
