"""The reranker: reads a question and a text together and says how well the one answers the other."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from eunoe.embed.contract import Vectors
from eunoe.embed.encoder import FOLDER, Encoder
from eunoe.embed.transformer import Network, session


class Reranker(Network):
    """Slower by far than comparing vectors and better at it: for the best few that something else has found."""

    name = "eunoe-reranker-1"
    _longest = 128
    _cure = Encoder._cure

    def scores(self, question: str, texts: Sequence[str]) -> Vectors:
        """A number for each text, the higher the better it answers the question."""
        model = self._model()
        return self._run([model.pair(question, text) for text in texts], np.zeros(len(texts), np.float32))

    def _open(self) -> tuple[Path, Any]:
        return FOLDER / "tokenizer.json", session(str(FOLDER / "reranker.onnx"))
