"""The models in the package, run in onnxruntime: the encoder, made for memory, and the reranker beside it."""

import os
import threading
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import file_digest
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eunoe.embed.contract import Vectors
from eunoe.embed.word_vectors import is_word, scale_rows, similar_words
from eunoe.errors import EmbedderError
from eunoe.net.telemetry import turn_telemetry_off
from eunoe.text.normalize import fingerprint, replace_surrogates

FOLDER = Path(__file__).parent / "model"

_INSTALL: Final = "pip install --force-reinstall eunoe"
_DIMENSIONS: Final = 384
MEANS_DIMENSIONS: Final = 4 * _DIMENSIONS
"""Of the layer means: those after layers 4, 6, 8 and 10, side by side."""
_MAX_RECENT_TEXTS: Final = 512
"""Whose layer means are kept, in 1.5 MB: as many as a conversation has between two formings."""
_MAX_CHARACTERS: Final = 1 << 15
"""Far more than 256 tokens need; spares the tokenizer the rest of a very long text."""
_MAX_QUESTION_CHARACTERS: Final = 1000
"""More than the reranker reads; a question is read once for each text."""
BATCH_TOKENS: Final = 512
"""Larger batches fall out of a core's cache."""
_MIN_TOKENS_FOR_THREADS: Final = 1024
"""Below this, a second thread takes longer to start than it saves."""
_MAX_THREADS: Final = 8
_UNKNOWN_TOKENS: Final = ("[UNK]", "<unk>")
ENCODER_SHA256: Final = "1779d8cfe28c4ae8da2740ceecc5a5256e10123fa3618ce2fe05ef2b2c768838"
"""Of the encoder's file that the reranker takes its words and first layers from. The kind model was trained with it."""


class _Loaded(NamedTuple):
    tokenizer: Any
    unknown: int
    """The id of tokens that the model does not know."""
    session: Any


_loaded: dict[tuple[int, str], _Loaded] = {}
_locks: dict[int, threading.Lock] = {}
"""By process id: what another thread was doing when the process forked would stay undone."""


class Transformer(ABC):
    """A graph in onnxruntime and its tokenizer. Loaded at first use, once for a process."""

    name: str
    _max_tokens: int = 256
    _load_hint: ClassVar[str] = f"reinstall it: {_INSTALL}"
    """What to do when it cannot be loaded."""

    def __init__(self, threads: int | None = None) -> None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self._threads = threads or min(_MAX_THREADS, cores)

    @abstractmethod
    def _open(self) -> tuple[Any, Any]:
        """Return the tokenizer and the session. What is wrong raises an EmbedderError if that says what to do."""

    def _load(self) -> _Loaded:
        key = (os.getpid(), self.name)
        if key not in _loaded:
            with _locks.setdefault(os.getpid(), threading.Lock()):
                if key not in _loaded:
                    try:
                        tokenizer, session = self._open()
                        tokenizer.no_padding()
                        tokenizer.enable_truncation(self._max_tokens)
                    except EmbedderError:
                        raise
                    except Exception as error:
                        raise EmbedderError(f"{self.name} cannot be loaded ({error}); {self._load_hint}") from error
                    _loaded[key] = _Loaded(tokenizer, _unknown_id(tokenizer), session)
        return _loaded[key]

    def _token_ids(self, *texts: str) -> list[int]:
        """The token ids of a text or of a pair, with end marks.

        None for a text that is empty or mostly unknown: emoji and scripts that the model never learned look all alike.
        """
        model = self._load()
        readable = (replace_surrogates(text.lstrip()[:_MAX_CHARACTERS]) for text in texts)
        # One by one: a batch call starts threads that complain on stderr when the process forks.
        ids: list[int] = model.tokenizer.encode(*readable).ids
        return ids if len(texts) == 2 or 2 * ids.count(model.unknown) < len(ids) - 2 else []

    def _run(self, ids: Sequence[list[int]], rows: Vectors, output: str) -> Vectors:
        """Put an output of the graph for each row of ids into `rows`; empty ones leave theirs as it is."""
        session = self._load().session
        return self._run_batches(ids, rows, lambda matrix: session.run([output], {"ids": matrix})[0])

    def _run_batches(
        self,
        ids: Sequence[list[int]],
        rows: Vectors,
        infer: Callable[[NDArray[np.int64]], Vectors],
        batch_tokens: int = BATCH_TOKENS,
    ) -> Vectors:
        def run_batch(places: list[int]) -> None:
            rows[places] = infer(np.array([ids[place] for place in places], np.int64))

        batches = list(_batches(ids, batch_tokens))
        if self._threads == 1 or len(batches) < 2 or sum(map(len, ids)) < _MIN_TOKENS_FOR_THREADS:
            for batch in batches:
                run_batch(batch)
        else:
            with ThreadPoolExecutor(self._threads, thread_name_prefix="eunoe-embed") as pool:
                list(pool.map(run_batch, batches))
        return rows


class SentenceEncoder(Transformer):
    """Sentence vectors from a graph that gives the mean state; reads the first 256 tokens of a text."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        rows = np.zeros((len(texts), _DIMENSIONS), np.float32)
        return scale_rows(self._run([self._token_ids(text) for text in texts], rows, "mean"))

    def embed_query(self, text: str) -> Vectors:
        row: Vectors = self.embed([text])[0]
        return row


class Encoder(SentenceEncoder):
    """Finds the turn that answers a question. Trained on conversations."""

    name = "eunoe-2"
    is_slow = True
    languages = ("English",)
    similar_words = staticmethod(similar_words)
    """By the static vectors: they know words apart."""
    is_word = staticmethod(is_word)

    def __init__(self, threads: int | None = None) -> None:
        super().__init__(threads)
        if not (FOLDER / "encoder.onnx").is_file():
            raise EmbedderError(f"The encoder's file is not in {FOLDER}: {_INSTALL}")
        self._recent: dict[bytes, NDArray[np.float16]] = {}
        """The layer means of the texts that were embedded last, by fingerprint."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        return self.embed_with_means(texts)[0]

    def embed_query(self, text: str) -> Vectors:
        row: Vectors = super().embed([text])[0]
        return row

    def embed_with_means(self, texts: Sequence[str]) -> tuple[Vectors, Vectors]:
        """The vectors of texts and their layer means, by which kinds of turns are told apart, in one run.

        A text with nothing to embed has rows of zeros.
        """
        session, recent = self._load().session, self._recent
        rows = np.zeros((len(texts), _DIMENSIONS + MEANS_DIMENSIONS), np.float32)
        ids = [self._token_ids(text) for text in texts]
        self._run_batches(ids, rows, lambda matrix: np.hstack(session.run(["mean", "layer_means"], {"ids": matrix})))
        # Half precision always, so that a text is judged alike whether its means were kept or not.
        vectors, means = scale_rows(rows[:, :_DIMENSIONS].copy()), rows[:, _DIMENSIONS:].astype(np.float16)
        for text, row in zip(texts[-_MAX_RECENT_TEXTS:], means[-_MAX_RECENT_TEXTS:], strict=True):
            recent[_recent_key(text)] = row.copy()
        for key in list(recent)[:-_MAX_RECENT_TEXTS]:
            recent.pop(key, None)
        return vectors, means.astype(np.float32)

    def layer_means(self, texts: Sequence[str]) -> Vectors:
        """The layer means of texts. Those that were embedded just now are not run again."""
        recent = self._recent
        known = {text: recent.get(_recent_key(text)) for text in texts}
        missing = [text for text, row in known.items() if row is None]
        made = dict(zip(missing, self.embed_with_means(missing)[1], strict=True)) if missing else {}
        rows = [made[text] if row is None else row for text in texts for row in [known[text]]]
        return np.array(rows, np.float32).reshape(len(texts), MEANS_DIMENSIONS)

    def clear_recent(self) -> None:
        """Drop the layer means that are kept: what they were made of may be forgotten now."""
        self._recent = {}  # another one: what is being embedded at this moment is not kept either

    def _open(self) -> tuple[Any, Any]:
        return read_tokenizer(FOLDER / "tokenizer.json"), open_session(str(FOLDER / "encoder.onnx"))


class CrossEncoder(Transformer):
    """The reranker: reads a question and a text together. Slower by far than comparing vectors and better at it."""

    name = "eunoe-reranker-2"
    _max_tokens = 128

    def scores(self, question: str, texts: Sequence[str]) -> Vectors:
        """A number for each text, the higher the better it answers; the same for all if the question is unreadable."""
        rows = np.zeros(len(texts), np.float32)
        question = question[:_MAX_QUESTION_CHARACTERS]
        if not self._token_ids(question):
            return rows
        return self._run([self._token_ids(question, text) for text in texts], rows, "score")

    def _open(self) -> tuple[Any, Any]:
        with (FOLDER / "encoder.onnx").open("rb") as file:
            if file_digest(file, "sha256").hexdigest() != ENCODER_SHA256:
                raise ValueError("encoder.onnx is not the file that it takes its words and first layers from")
        return read_tokenizer(FOLDER / "tokenizer.json"), open_session(str(FOLDER / "reranker.onnx"))


def _recent_key(text: str) -> bytes:
    return fingerprint(replace_surrogates(text))


def _unknown_id(tokenizer: Any) -> int:
    ids = map(tokenizer.token_to_id, _UNKNOWN_TOKENS)
    return next((id for id in ids if id is not None), -1)


def read_tokenizer(path: Path) -> Any:
    return import_module("tokenizers").Tokenizer.from_file(str(path))


def open_session(model: Any, tensors: dict[str, Any] | None = None, optimise: bool = False) -> Any:
    """A session of one thread: batches in threads of ours use all cores better than threads inside a small matrix.

    Our own graphs are fused as they are. What the optimiser would do loads slower and lets sums depend on the batch.
    """
    turn_telemetry_off()  # once more: the host may have set its environment anew since Eunoe was imported
    ort = import_module("onnxruntime")
    ort.disable_telemetry_events()  # the host may have loaded it before Eunoe
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4  # what goes wrong is raised
    if not optimise:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    if tensors:
        values = [ort.OrtValue.ortvalue_from_numpy(value) for value in tensors.values()]
        options.add_external_initializers(list(tensors), values)
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _batches(ids: Sequence[list[int]], batch_tokens: int) -> Iterator[list[int]]:
    """Places of the non-empty rows, longest first, in groups of one length and a bounded number of tokens."""
    lengths: dict[int, list[int]] = defaultdict(list)
    for place, tokens in enumerate(ids):
        lengths[len(tokens)].append(place)
    lengths.pop(0, None)
    for length in sorted(lengths, reverse=True):
        places, size = lengths[length], max(1, batch_tokens // length)
        yield from (places[start : start + size] for start in range(0, len(places), size))
