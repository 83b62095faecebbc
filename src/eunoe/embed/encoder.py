"""The encoder made for memory: trained on conversations, shipped inside the package, run in onnxruntime."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from eunoe.embed.static import Static
from eunoe.embed.transformer import Transformer, session
from eunoe.errors import EmbedderError

FOLDER = Path(__file__).parent / "model"

_INSTALL = "pip install --force-reinstall eunoe"


class Encoder(Transformer):
    """Finds the turn that answers a question. Worth waiting for behind a reply, not in front of it."""

    name = "eunoe-1"
    is_slow = True
    _cure = f"reinstall it: {_INSTALL}"

    def __init__(self, threads: int | None = None) -> None:
        super().__init__(threads)
        if not (FOLDER / "encoder.onnx").is_file():
            raise EmbedderError(f"The encoder's file is not in {FOLDER}: {_INSTALL}")

    def near(self, words: Sequence[str]) -> list[tuple[tuple[str, float], ...]]:
        """For each folded word, others of like meaning with how alike they are, the best first: by the static table,
        which knows words apart."""
        return self._words.near(words)

    @cached_property
    def _words(self) -> Static:
        return Static()

    def _open(self) -> tuple[Path, Any]:
        return FOLDER / "tokenizer.json", session(str(FOLDER / "encoder.onnx"))
