"""The part shared by embedders whose rows come from elsewhere and are not trusted."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from eunoe.embed.contract import Vectors, unit
from eunoe.errors import EmbedderError
from eunoe.text.normalize import replace_surrogates


class Checked(ABC):
    """Cleans texts, keeps blank ones back, checks count, dimensions and numbers, scales to unit length."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._dim: int | None = None

    @abstractmethod
    def _rows(self, texts: list[str]) -> Any:
        """Rows for texts, none of them blank, as the source gives them."""

    @abstractmethod
    def _query_row(self, text: str) -> Any:
        """The row of one question, not blank, as the source gives it."""

    @property
    def dim(self) -> int:
        """Dimensions of the rows; asks the source once when nothing was embedded yet."""
        if self._dim is None:
            self._check(self._rows(["."]), 1)
        assert self._dim is not None
        return self._dim

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Rows for texts, in their order; blank texts give zero rows."""
        filled = [i for i, text in enumerate(texts) if text.strip()]
        checked = (
            self._check(self._rows([replace_surrogates(texts[i]) for i in filled]), len(filled)) if filled else None
        )
        rows = np.zeros((len(texts), self.dim), np.float32)
        if checked is not None:
            rows[filled] = checked
        return rows

    def embed_query(self, text: str) -> Vectors:
        """The row of one question."""
        if not text.strip():
            return np.zeros(self.dim, np.float32)
        row: Vectors = self._check([self._query_row(replace_surrogates(text))], 1)[0]
        return row

    def _check(self, given: Any, count: int) -> Vectors:
        rows = unit(given, self.name)
        if len(rows) != count:
            raise EmbedderError(f"{self.name} gave {len(rows)} vectors for {count} texts")
        self._dim = self._dim or rows.shape[1]
        if not self._dim or rows.shape[1] != self._dim:
            due = f"{self._dim} as before" if self._dim else "at least 1"
            raise EmbedderError(f"{self.name} gave vectors of {rows.shape[1]} dimensions; due: {due}")
        return rows
