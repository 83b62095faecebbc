"""The graph of a model in onnxruntime: token ids in, one vector for each text out."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from eunoe.embed.contract import Vectors, to_unit_vectors
from eunoe.embed.encoder import open_session
from eunoe.embed.folder.files import unreadable
from eunoe.embed.folder.layers import read_layers
from eunoe.embed.folder.model_config import ModelConfig
from eunoe.embed.folder.pooling import pool
from eunoe.errors import EmbedderError

Ids = NDArray[np.int64]

_INPUTS: Final = ("input_ids", "attention_mask", "token_type_ids", "position_ids")
_TEXT_OUTPUTS: Final = ("sentence_embedding", "sentence_embeddings")
"""Names of an output that is the vector of a text already."""
_TOKEN_OUTPUTS: Final = ("last_hidden_state", "token_embeddings", "hidden_states", "output_0")
_TYPES: Final[Mapping[str, type[np.generic]]] = {
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(bool)": np.bool_,
}
_EXPORT: Final = "export it with `optimum-cli export onnx --task feature-extraction`"
_PROBE_TOKENS: Final = 8
_MAX_NOISE: Final = 1e-4
"""What a vector may differ by when it is made beside another."""


class Graph:
    """Gives unit vectors for texts of equal length."""

    def __init__(self, path: Path, config: ModelConfig, vocabulary: int) -> None:
        self._path = path
        self._config = config
        self._session = _open(path)
        self._types = self._read_inputs()
        shape = next(node.shape for node in self._session.get_inputs() if node.name == "input_ids")
        self._fixed_rows, self.fixed_tokens = (size if isinstance(size, int) else 0 for size in (*shape, 0, 0)[:2])
        self._output = self._choose_output()
        self._layers: Sequence[Callable[[Vectors], Vectors]] = ()
        if self._output not in _TEXT_OUTPUTS:
            self._layers = read_layers(config.steps)
        self.dimensions, self.is_alone = self._probe(vocabulary)
        """How long its vectors are, and whether it must be given one text at a time."""

    def vectors(self, ids: Ids, skip: int = 0) -> Vectors:
        """Make the vectors of texts; their first `skip` tokens are read but not pooled."""
        feed = {name: self._input(name, ids).astype(kind) for name, kind in self._types.items()}
        try:
            given = self._session.run([self._output], feed)[0]
        except Exception as error:
            raise EmbedderError(f"{self._path} fails: {_one_line(error)}") from error
        if given.ndim == 3:
            given = pool(given[:, : ids.shape[1]].astype(np.float32), self._config.modes, skip)
            for layer in self._layers:
                given = layer(given)
        if given.ndim != 2 or len(given) != len(ids):
            raise EmbedderError(f"{self._path} gives an array of shape {given.shape} for {len(ids)} texts: {_EXPORT}")
        return to_unit_vectors(given, str(self._path))

    def _input(self, name: str, ids: Ids) -> NDArray[Any]:
        count, length = ids.shape
        if name == "position_ids":
            row = np.arange(max(length, self.fixed_tokens)) + self._config.first_position
            return np.broadcast_to(row, (count, len(row)))
        values = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}[name]
        return np.pad(values, ((0, 0), (0, max(0, self.fixed_tokens - length))))

    def _read_inputs(self) -> dict[str, type[np.generic]]:
        types = {node.name: _TYPES.get(node.type) for node in self._session.get_inputs()}
        odd = [name for name, kind in types.items() if name not in _INPUTS or kind is None]
        if odd or "input_ids" not in types:
            raise EmbedderError(
                f"{self._path} takes {', '.join(types)}; known inputs are {', '.join(_INPUTS)}, input_ids among them: "
                f"{_EXPORT}"
            )
        return {name: kind for name, kind in types.items() if kind}

    def _choose_output(self) -> str:
        outputs: dict[str, int] = {node.name: len(node.shape) for node in self._session.get_outputs()}
        for name in (*_TEXT_OUTPUTS, *_TOKEN_OUTPUTS):
            if name in outputs:
                return name
        states = [name for name, rank in outputs.items() if rank == 3 and name != "logits"]
        others = [name for name in outputs if name not in ("logits", "pooler_output")]
        if len(states) == 1 or len(others) == 1:
            return (states or others)[0]
        raise EmbedderError(f"{self._path} gives {', '.join(outputs)}, but no last_hidden_state: {_EXPORT}")

    def _probe(self, vocabulary: int) -> tuple[int, bool]:
        """Run it for two made-up texts. What quantises its inputs as it goes lets a text depend on those beside it."""
        ids = np.random.default_rng(1).integers(0, max(1, vocabulary // 2), (2, _PROBE_TOKENS))
        ids = ids[:, : self.fixed_tokens or _PROBE_TOKENS]
        if self._fixed_rows > 1:
            raise EmbedderError(
                f"{self._path} takes {self._fixed_rows} texts at a time, neither more nor less: {_EXPORT}"
            )
        alone = np.concatenate([self.vectors(row[None]) for row in ids])
        is_alone = self._fixed_rows == 1 or np.abs(self.vectors(ids) - alone).max() > _MAX_NOISE
        return alone.shape[1], bool(is_alone)


def _open(path: Path) -> Any:
    try:
        return open_session(str(path), optimise=True)
    except Exception as error:
        failure = error
    try:  # the optimiser cannot cope with every graph, above all in half precision
        return open_session(str(path))
    except Exception:
        raise unreadable(path, failure) from failure


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
