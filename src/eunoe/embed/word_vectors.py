"""Static word vectors out of the wordllama wheel: an embedder that is small and quick, and words of like meaning."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from eunoe.embed.contract import Vectors
from eunoe.errors import EmbedderError
from eunoe.text.languages import ENGLISH, is_stop_word
from eunoe.text.normalize import fold, replace_surrogates

SimilarWords = tuple[tuple[str, float], ...]
"""Words with how alike they are, above 0 and below 1, the best first."""

_DIMENSIONS: Final = 256
_INSTALL: Final = "pip install --force-reinstall wordllama"
_PIECE_CHARACTERS: Final = 8192
"""The tokenizer's memory grows with its input, so a long text goes through in pieces."""
_TEXTS_BEFORE_WIDENING: Final = 2000
"""The table comes in half precision. To widen it takes as long as this many texts gain by it."""
_SPACE: Final = "\u2581"
"""What a token begins with that begins a word."""

_WORD_DIMENSIONS: Final = 128
"""The first half of a vector is enough to compare words, and quicker."""
_MIN_COSINE: Final = 0.3
"""Below it words have next to nothing in common."""
_MAX_SIMILAR_WORDS: Final = 64
_MAX_CACHED_WORDS: Final = 20_000


def scale_rows(rows: NDArray[Any]) -> Vectors:
    """Scale rows of our own models to unit length; zero rows stay zero."""
    wide: Vectors = rows.astype(np.float32, copy=False)
    scaled: Vectors = wide / np.maximum(np.sqrt(np.vecdot(wide, wide)), 1e-9)[..., None]
    return scaled


def similar_words(words: Sequence[str]) -> list[SimilarWords]:
    """Return for each folded word others of like meaning."""
    return _load_table().words.similar_words(words)


def is_word(word: str) -> bool:
    """Whether a folded word is a common one."""
    return _load_table().words.has(word)


class StaticEmbedder:
    """The mean of the vectors of a text's tokens, scaled to unit length."""

    name = "wordllama-256"
    languages = ("English",)
    similar_words = staticmethod(similar_words)
    is_word = staticmethod(is_word)

    def __init__(self) -> None:
        _folder()

    def embed(self, texts: Sequence[str]) -> Vectors:
        table = _load_table()
        rows = np.zeros((len(texts), _DIMENSIONS), np.float32)
        for position, text in enumerate(texts):
            rows[position] = table.sum_vectors(text)
        return scale_rows(rows)

    def embed_query(self, text: str) -> Vectors:
        row: Vectors = self.embed([text])[0]
        return row


class WordVectors:
    """Words of like meaning, "shingles" for "illness"; `vector` gives a word without a row of the table a vector."""

    def __init__(self, rows: Mapping[str, int], table: NDArray[Any], vector: Callable[[str], Vectors]) -> None:
        self._words = sorted(word for word in rows if _can_be_similar(word))
        self._vector = vector
        self._places = {word: place for place, word in enumerate(self._words)}
        self._table = scale_rows(table[:, :_WORD_DIMENSIONS].take([rows[word] for word in self._words], axis=0))
        self._cache: dict[str, SimilarWords] = {}

    def has(self, word: str) -> bool:
        return word in self._places

    def similar_words(self, words: Sequence[str]) -> list[SimilarWords]:
        similar = {word: self._cache.get(word) for word in words}
        missing = {word: self._search(word) for word, others in similar.items() if others is None}
        if missing:
            if len(self._cache) > _MAX_CACHED_WORDS:
                self._cache = {}
            self._cache.update(missing)
        return [similar[word] or missing.get(word, ()) for word in words]

    def _search(self, word: str) -> SimilarWords:
        own = self._places.get(word)
        vector = scale_rows(self._vector(word)[:_WORD_DIMENSIONS]) if own is None else self._table[own]
        # Not a matrix product: that may round differently from one shape to another, and starts threads.
        cosines = np.vecdot(self._table, vector)
        places = np.flatnonzero(cosines > _MIN_COSINE)
        places = places[np.argsort(-cosines[places], kind="stable")][:_MAX_SIMILAR_WORDS]
        fits = np.minimum((cosines[places] - _MIN_COSINE) / (1 - _MIN_COSINE), 0.99)
        pairs = zip(places.tolist(), fits.tolist(), strict=True)
        return tuple((self._words[place], fit) for place, fit in pairs if place != own)


class _Table:
    """The vectors of all tokens, and the tokenizer."""

    def __init__(self, folder: Path) -> None:
        weights = folder / "weights" / "l2_supercat_256.safetensors"
        self._vectors: NDArray[np.float16 | np.float32]
        self._vectors = import_module("safetensors.numpy").load_file(weights)["embedding.weight"]
        self._texts_read = 0
        config = folder / "tokenizers" / "l2_supercat_tokenizer_config.json"
        self._tokenizer: Any = import_module("tokenizers").Tokenizer.from_file(str(config))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def sum_vectors(self, text: str) -> Vectors:
        """The sum of the vectors of a text's tokens; zero when it is blank."""
        self._texts_read += 1
        if self._texts_read == _TEXTS_BEFORE_WIDENING:
            self._vectors = self._vectors.astype(np.float32)
        total = np.zeros(_DIMENSIONS, np.float32)
        for piece in _pieces(replace_surrogates(text)):
            # One by one: a batch call starts threads that complain on stderr when the process forks.
            ids = self._tokenizer.encode(piece, add_special_tokens=False).ids
            total += self._vectors.take(ids, axis=0, mode="clip").astype(np.float32, copy=False).sum(axis=0)
        return total

    @cached_property
    def words(self) -> WordVectors:
        """The words that are one token: in lower case, or as they are where the table has no such."""
        tokens = [(name[1:], number) for name, number in self._tokenizer.get_vocab().items() if name[0] == _SPACE]
        rows = {name: number for name, number in tokens if name.islower()}
        for number, name in sorted((number, name.lower()) for name, number in tokens if name.lower() not in rows):
            rows.setdefault(name, number)
        return WordVectors(rows, self._vectors, self.sum_vectors)


_loaded: _Table | None = None
_loading = threading.Lock()


def _load_table() -> _Table:
    global _loaded
    with _loading:
        if _loaded is None:
            folder = _folder()
            try:
                _loaded = _Table(folder)
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


def _pieces(text: str) -> Iterator[str]:
    """The text in pieces cut at spaces where there are any; blank ones are left out."""
    start = 0
    while start < len(text):
        end = start + _PIECE_CHARACTERS
        cut = text.rfind(" ", start + 1, end) if end < len(text) else -1
        end = cut if cut > 0 else end
        if not text[start:end].isspace():
            # The tokenizer puts a space before what it reads; the one at the cut would be a second.
            yield text[start + 1 : end] if start and text[start] == " " else text[start:end]
        start = end


def _can_be_similar(word: str) -> bool:
    return len(word) > 2 and word.isalpha() and word == fold(word) and not is_stop_word(word, ENGLISH)
