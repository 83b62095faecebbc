"""Transformers in onnxruntime: what all models share that come as a graph and a tokenizer."""

import os
import threading
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from eunoe.embed.contract import Vectors, unit
from eunoe.errors import EmbedderError
from eunoe.text.normalize import replace_surrogates

DIM = 384
MAX_TOKENS = 256

# Far more than 256 tokens need; spares the tokenizer the rest of a very long text.
_MAX_CHARS = 1 << 15
# Larger batches fall out of a core's cache.
_BATCH_TOKENS = 512
# Below this, a second thread takes longer to start than it saves.
_MANY_TOKENS = 1024
_MAX_THREADS = 8

_loaded: dict[tuple[int, str], "_Model"] = {}
_loading = threading.Lock()


def _loading_anew() -> None:
    """A thread that was loading when the process forked did not come along, and would hold the lock for ever."""
    global _loading
    _loading = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_loading_anew)


class Network(ABC):
    """A graph that gives something for each row of token ids. Loads at first use, once for a process."""

    name: ClassVar[str]
    _longest: ClassVar[int] = MAX_TOKENS

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads or min(_MAX_THREADS, _cores())

    @abstractmethod
    def _open(self) -> tuple[Path, Any]:
        """The path of the tokenizer, and the session."""

    @property
    @abstractmethod
    def _cure(self) -> str:
        """What to do when it cannot be loaded."""

    def _run(self, ids: list[list[int]], rows: Vectors) -> Vectors:
        """What the graph gives for each row of ids is put into `rows`; empty ones leave theirs as it is."""
        model = self._model()

        def fill(batch: list[int]) -> None:
            rows[batch] = model.run([ids[place] for place in batch])

        _each(fill, list(_batches(ids)), self._threads if sum(map(len, ids)) >= _MANY_TOKENS else 1)
        return rows

    def _model(self) -> "_Model":
        # By process id: what another thread was doing inside it when the process forked would stay undone.
        key = (os.getpid(), self.name)
        if key not in _loaded:
            with _loading:
                if key not in _loaded:
                    _loaded[key] = self._load()
        return _loaded[key]

    def _load(self) -> "_Model":
        try:
            return _Model(*self._open(), self._longest)
        except Exception as error:
            raise EmbedderError(f"{self.name} cannot be loaded ({error}); {self._cure}") from error


class Transformer(Network):
    """384-dimensional sentence vectors, from a graph that gives the mean state; reads the first 256 tokens of a
    text."""

    dim = DIM

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Rows for texts, in their order; blank texts give zero rows."""
        model = self._model()
        ids = [model.tokens(text) for text in texts]
        return unit(self._run(ids, np.zeros((len(ids), DIM), np.float32)), self.name)

    def embed_query(self, text: str) -> Vectors:
        """The row of one text."""
        row: Vectors = self.embed([text])[0]
        return row


class _Model:
    def __init__(self, tokenizer: Path, session: Any, longest: int) -> None:
        self._tokenizer = import_module("tokenizers").Tokenizer.from_file(str(tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(longest)
        self._unknown: int = self._tokenizer.token_to_id("[UNK]")
        self._session = session

    def tokens(self, text: str) -> list[int]:
        """Token ids with the two end marks; empty when there is nothing between them, or mostly what the model does not
        know: emoji, or a script that it never learned, would all look alike to it."""
        # One by one: a batch call starts threads that complain on stderr when the process forks.
        ids: list[int] = self._tokenizer.encode(_short(text)).ids
        return ids if 2 * ids.count(self._unknown) < len(ids) - 2 else []

    def pair(self, text: str, other: str) -> list[int]:
        """Token ids of two texts with marks around them; what is too long loses its end, the longer text first."""
        ids: list[int] = self._tokenizer.encode(_short(text), _short(other)).ids
        return ids

    def run(self, ids: list[list[int]]) -> Vectors:
        rows: Vectors = self._session.run(None, {"ids": np.array(ids, np.int64)})[0]
        return rows


def _short(text: str) -> str:
    return replace_surrogates(text.lstrip()[:_MAX_CHARS])


def session(model: Any, tensors: dict[str, Any] | None = None) -> Any:
    """A session of one thread: batches side by side in threads of ours use all cores better than threads inside a
    matrix this small, and a question alone is answered as fast without."""
    ort = import_module("onnxruntime")
    ort.disable_telemetry_events()  # some builds have it on
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # The graph is fused as it is. What the optimiser would do loads slower and lets sums depend on the batch.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    if tensors:
        values = [ort.OrtValue.ortvalue_from_numpy(value) for value in tensors.values()]
        options.add_external_initializers(list(tensors), values)
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _each(work: Callable[[list[int]], None], batches: list[list[int]], threads: int) -> None:
    if threads == 1 or len(batches) < 2:
        for batch in batches:
            work(batch)
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="eunoe-embed") as pool:
        list(pool.map(work, batches))


def _batches(ids: list[list[int]]) -> Iterator[list[int]]:
    """Places of the non-empty texts, longest first, in groups of one length and a bounded number of tokens."""
    lengths: dict[int, list[int]] = defaultdict(list)
    for place, tokens in enumerate(ids):
        lengths[len(tokens)].append(place)
    lengths.pop(0, None)
    for length in sorted(lengths, reverse=True):
        places, size = lengths[length], max(1, _BATCH_TOKENS // length)
        yield from (places[start : start + size] for start in range(0, len(places), size))


def _cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
