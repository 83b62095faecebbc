"""The reranker: reads a question and a text together and says how well the one answers the other."""

from collections.abc import Sequence
from hashlib import file_digest
from pathlib import Path
from typing import Any, Final

import numpy as np

from eunoe.embed.contract import Vectors
from eunoe.embed.encoder import FOLDER, Encoder
from eunoe.embed.transformer import Network, session
from eunoe.errors import EmbedderError

ENCODER: Final = "ce7567552cd50274450f6b0cd67a5f4aa19c0cedf8e7f0916748466a5d693eb1"
"""SHA-256 of the encoder's file whose word table it was exported with. With another one it would read other words."""

# More than it reads; spares the tokenizer the rest of a very long question, which is read once for each text.
_MAX_ASKED = 1000


class CrossEncoder(Network):
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
        with (FOLDER / "encoder.onnx").open("rb") as file:
            if file_digest(file, "sha256").hexdigest() != ENCODER:
                raise EmbedderError("encoder.onnx is not the file that it shares its word table with")
        return FOLDER / "tokenizer.json", session(str(FOLDER / "reranker.onnx"))
