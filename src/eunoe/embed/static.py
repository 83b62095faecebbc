"""Static word vectors out of the wordllama wheel: small, quick, nothing to download."""

import threading
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eunoe.embed.contract import Vectors, clean, unit
from eunoe.errors import EmbedderError

DIM = 256

_INSTALL = "pip install --force-reinstall wordllama"
# The tokenizer's memory grows with its input, so a long text goes through in pieces.
_PIECE_CHARS = 8192
# Above this many tokens a text is summed over its distinct tokens, of which there are at most 32,000.
_LONG = 4096
# Tokens looked up at once: 16 MB of vectors.
_BATCH_TOKENS = 1 << 14

_loaded: "_Table | None" = None
_loading = threading.Lock()


class Static:
    """The mean of the vectors of a text's tokens, scaled to unit length."""

    name = "wordllama-256"
    dim = DIM

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Rows for texts, in their order; blank texts give zero rows."""
        table = _table()
        rows = np.zeros((len(texts), DIM), np.float32)
        for where, ids in _batches(table, texts):
            rows[where] = table.sums(ids)
        return unit(rows, self.name)

    def embed_query(self, text: str) -> Vectors:
        """The row of one text."""
        row: Vectors = self.embed([text])[0]
        return row


class _Table:
    def __init__(self, folder: Path) -> None:
        files = folder / "weights" / "l2_supercat_256.safetensors"
        weights = import_module("safetensors.numpy").load_file(files)["embedding.weight"]
        self._vectors: Vectors = weights.astype(np.float32)
        names = folder / "tokenizers" / "l2_supercat_tokenizer_config.json"
        self._tokenizer: Any = import_module("tokenizers").Tokenizer.from_file(str(names))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def tokens(self, text: str) -> list[int]:
        """Token ids of a text; none when it is blank."""
        # One by one: a batch call starts threads that complain on stderr when the process forks.
        encode = self._tokenizer.encode
        return [i for piece in _pieces(clean(text)) for i in encode(piece, add_special_tokens=False).ids]

    def sums(self, ids: list[list[int]]) -> Vectors:
        """The sum of the vectors of each list; a list's sum does not depend on its neighbours."""
        if len(ids) == 1 and len(ids[0]) > _LONG:
            distinct, counts = np.unique(ids[0], return_counts=True)
            total: Vectors = (self._vectors[distinct] * counts[:, None].astype(np.float32)).sum(axis=0)
            return total[None]
        starts = np.cumsum([0, *map(len, ids[:-1])])
        flat: NDArray[np.intp] = np.fromiter((i for row in ids for i in row), np.intp)
        return np.add.reduceat(self._vectors[flat], starts, axis=0)


def _batches(table: _Table, texts: Sequence[str]) -> Iterator[tuple[list[int], list[list[int]]]]:
    """Positions and tokens of the texts that have any, in groups of a bounded number of tokens."""
    where: list[int] = []
    ids: list[list[int]] = []
    size = 0
    for position, text in enumerate(texts):
        tokens = table.tokens(text)
        if len(tokens) > _LONG:
            yield [position], [tokens]
        elif tokens:
            where.append(position)
            ids.append(tokens)
            size += len(tokens)
        if size > _BATCH_TOKENS:
            yield where, ids
            where, ids, size = [], [], 0
    if ids:
        yield where, ids


def _pieces(text: str) -> Iterator[str]:
    """The text in pieces cut at spaces where there are any; blank ones are left out."""
    start = 0
    while start < len(text):
        end = start + _PIECE_CHARS
        cut = text.rfind(" ", start + 1, end) if end < len(text) else -1
        end = cut if cut > 0 else end
        if not text[start:end].isspace():
            # The tokenizer puts a space before what it reads; the one at the cut would be a second.
            yield text[start + 1 : end] if start and text[start] == " " else text[start:end]
        start = end


def _table() -> _Table:
    global _loaded
    with _loading:
        if _loaded is None:
            try:
                _loaded = _Table(_folder())
            except Exception as error:
                raise EmbedderError(f"Static vectors cannot be loaded ({error}); try: {_INSTALL}") from error
        return _loaded


def _folder() -> Path:
    """Where the vectors lie. Read straight from there: importing wordllama sets up the root logger."""
    spec = find_spec("wordllama")
    places = spec.submodule_search_locations if spec else None
    if not places:
        raise EmbedderError("wordllama is not installed")
    return Path(places[0])
