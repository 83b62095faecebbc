"""Static word vectors out of the wordllama wheel: small, quick, nothing to download."""

import threading
from collections.abc import Iterator, Sequence
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eunoe.embed.contract import Vectors, unit
from eunoe.errors import EmbedderError
from eunoe.text.normalize import replace_surrogates

if TYPE_CHECKING:
    from eunoe.embed.words import WordVectors

DIM = 256

_INSTALL = "pip install --force-reinstall wordllama"
# The tokenizer's memory grows with its input, so a long text goes through in pieces.
_PIECE_CHARS = 8192
_SPACE = "\u2581"
# The table comes in half precision. To widen it takes as long as this many texts gain by it.
_MANY = 2000

_loaded: "_Table | None" = None
_loading = threading.Lock()


class Static:
    """The mean of the vectors of a text's tokens, scaled to unit length."""

    name = "wordllama-256"
    dim = DIM

    def __init__(self) -> None:
        _folder()

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Rows for texts, in their order; blank texts give zero rows."""
        table = _table()
        rows = np.zeros((len(texts), DIM), np.float32)
        for position, text in enumerate(texts):
            rows[position] = table.total(text)
        return unit(rows, self.name)

    def embed_query(self, text: str) -> Vectors:
        """The row of one text."""
        row: Vectors = self.embed([text])[0]
        return row

    def near(self, words: Sequence[str]) -> list[tuple[tuple[str, float], ...]]:
        """For each folded word, others of like meaning with how alike they are, the best first."""
        return _table().words.near(words)


class _Table:
    def __init__(self, folder: Path) -> None:
        files = folder / "weights" / "l2_supercat_256.safetensors"
        self._vectors: NDArray[np.float16 | np.float32]
        self._vectors = import_module("safetensors.numpy").load_file(files)["embedding.weight"]
        self._read = 0
        names = folder / "tokenizers" / "l2_supercat_tokenizer_config.json"
        self._tokenizer: Any = import_module("tokenizers").Tokenizer.from_file(str(names))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def total(self, text: str) -> Vectors:
        """The sum of the vectors of a text's tokens; zero when it is blank."""
        self._read += 1
        if self._read == _MANY:
            self._vectors = self._vectors.astype(np.float32)
        total = np.zeros(DIM, np.float32)
        for piece in _pieces(replace_surrogates(text)):
            # One by one: a batch call starts threads that complain on stderr when the process forks.
            ids = self._tokenizer.encode(piece, add_special_tokens=False).ids
            total += self._vectors.take(ids, axis=0, mode="clip").astype(np.float32, copy=False).sum(axis=0)
        return total

    @cached_property
    def words(self) -> "WordVectors":
        """The words that are one token: in lower case, or as they are where the table has no such."""
        from eunoe.embed.words import WordVectors

        tokens = [(name[1:], number) for name, number in self._tokenizer.get_vocab().items() if name[0] == _SPACE]
        rows = {name: number for name, number in tokens if name.islower()}
        cased = sorted((number, name.lower()) for name, number in tokens if name.lower() not in rows)
        for number, name in cased:
            rows.setdefault(name, number)
        return WordVectors(rows, self._vectors, self.total)


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
        raise EmbedderError("Static vectors need wordllama: pip install wordllama")
    return Path(places[0])
