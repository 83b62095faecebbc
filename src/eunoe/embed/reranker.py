"""The reranker: reads a question and a text together and says how well the one answers the other."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from eunoe.embed.contract import Vectors
from eunoe.embed.encoder import FOLDER, Encoder
from eunoe.embed.transformer import Network, session

# More than it reads; spares the tokenizer the rest of a very long question, which is read once for each text.
_MAX_ASKED = 1000


class Reranker(Network):
    """Slower by far than comparing vectors and better at it: for the best few that something else has found."""

    name = "eunoe-reranker-1"
    _longest = 128
    _cure = Encoder._cure

    def scores(self, question: str, texts: Sequence[str]) -> Vectors:
        """A number for each text, the higher the better it answers the question; the same for all if it cannot read
        the question."""
        model = self._model()
        rows = np.zeros(len(texts), np.float32)
        asked = question[:_MAX_ASKED]
        return self._run([model.pair(asked, text) for text in texts], rows) if model.tokens(asked) else rows

    def _open(self) -> tuple[Path, Any]:
        return FOLDER / "tokenizer.json", session(str(FOLDER / "reranker.onnx"))
