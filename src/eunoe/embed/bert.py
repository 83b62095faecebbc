"""A BERT encoder with mean pooling as an ONNX graph, its weights handed over beside it."""

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

Weights = dict[str, NDArray[Any]]

# ONNX keeps smaller tensors inside the graph, where its shape inference can see them.
_INLINE_BYTES = 1024


def build(weights: Weights, layers: int, heads: int) -> tuple[bytes, Weights]:
    """The serialised graph (ids, mask -> mean) and the tensors its external initialisers name."""
    graph = _Graph(weights)
    hidden = graph.embeddings()
    for layer in range(layers):
        hidden = graph.block(f"encoder.layer.{layer}.", hidden, heads)
    graph.mean(hidden)
    return graph.serialise(), graph.external


class _Graph:
    def __init__(self, weights: Weights) -> None:
        self._onnx: Any = import_module("onnx")
        self._helper: Any = import_module("onnx.helper")
        self._weights = weights
        self._dim = weights["embeddings.word_embeddings.weight"].shape[1]
        self._nodes: list[Any] = []
        self._constants: Weights = {}
        self.external: Weights = {}

    def embeddings(self) -> str:
        words = self._op("Gather", self._weight("embeddings.word_embeddings.weight"), "ids")
        kind = self._const("kind", self._weights["embeddings.token_type_embeddings.weight"][0])
        summed = self._op("Add", self._op("Add", words, kind), self._positions())
        return self._norm(summed, "embeddings.LayerNorm")

    def block(self, at: str, hidden: str, heads: int) -> str:
        attended = self._attention(at + "attention.", hidden, heads)
        hidden = self._norm(self._op("Add", attended, hidden), at + "attention.output.LayerNorm")
        wide = self._op("Gelu", self._linear(hidden, at + "intermediate.dense"))
        narrow = self._linear(wide, at + "output.dense")
        return self._norm(self._op("Add", narrow, hidden), at + "output.LayerNorm")

    def mean(self, hidden: str) -> None:
        axis = self._const("axis1", np.array([1]))
        mask = self._op("Unsqueeze", "mask", self._const("axis2", np.array([2])))
        total = self._op("ReduceSum", self._op("Mul", hidden, mask), axis, keepdims=0)
        count = self._op("ReduceSum", "mask", axis, keepdims=1)
        self._op("Div", total, count, out="mean")

    def serialise(self) -> bytes:
        info, kinds = self._helper.make_tensor_value_info, self._onnx.TensorProto
        inputs = [info("ids", kinds.INT64, ["b", "s"]), info("mask", kinds.FLOAT, ["b", "s"])]
        outputs = [info("mean", kinds.FLOAT, ["b", self._dim])]
        tensors = [self._tensor(name, value) for name, value in self._constants.items()]
        graph = self._helper.make_graph(self._nodes, "bert", inputs, outputs, tensors)
        opset = self._helper.make_opsetid("", 20)
        model = self._helper.make_model(graph, opset_imports=[opset], ir_version=9)
        return bytes(model.SerializeToString())

    def _positions(self) -> str:
        # A plain Slice: onnxruntime's fusion of position lookups by Gather gets these wrong.
        table = self._weight("embeddings.position_embeddings.weight")
        zero = self._const("zero", np.array([0]))
        return self._op("Slice", table, zero, self._op("Shape", "ids", start=1, end=2), zero)

    def _attention(self, at: str, hidden: str, heads: int) -> str:
        query = self._heads(hidden, at + "self.query", heads, [0, 2, 1, 3])
        key = self._heads(hidden, at + "self.key", heads, [0, 2, 3, 1])
        value = self._heads(hidden, at + "self.value", heads, [0, 2, 1, 3])
        scale = self._const("scale", np.array((self._dim // heads) ** -0.5, np.float32))
        scores = self._op("Mul", self._op("MatMul", query, key), scale)
        shares = self._op("Softmax", self._op("Add", scores, self._padding()), axis=-1)
        mixed = self._op("Transpose", self._op("MatMul", shares, value), perm=[0, 2, 1, 3])
        joined = self._op("Reshape", mixed, self._const("join", np.array([0, 0, self._dim])))
        return self._linear(joined, at + "output.dense")

    def _padding(self) -> str:
        """0 where a token is, a very low score where padding is; one node for all layers."""
        if not any(node.output[0] == "padding" for node in self._nodes):
            mask = self._op("Unsqueeze", "mask", self._const("axes12", np.array([1, 2])))
            below = self._op("Sub", mask, self._const("one", np.array(1, np.float32)))
            self._op("Mul", below, self._const("low", np.array(1e9, np.float32)), out="padding")
        return "padding"

    def _heads(self, hidden: str, at: str, heads: int, perm: list[int]) -> str:
        shape = self._const("split", np.array([0, 0, heads, self._dim // heads]))
        return self._op("Transpose", self._op("Reshape", self._linear(hidden, at), shape), perm=perm)

    def _linear(self, hidden: str, at: str) -> str:
        turned = self._const(at + ".weight", self._weights[at + ".weight"].T)
        return self._op("Add", self._op("MatMul", hidden, turned), self._weight(at + ".bias"))

    def _norm(self, hidden: str, at: str) -> str:
        scale, shift = self._weight(at + ".weight"), self._weight(at + ".bias")
        return self._op("LayerNormalization", hidden, scale, shift, axis=-1, epsilon=1e-12)

    def _weight(self, name: str) -> str:
        return self._const(name, self._weights[name])

    def _const(self, name: str, value: NDArray[Any]) -> str:
        self._constants.setdefault(name, np.ascontiguousarray(value).reshape(value.shape))
        return name

    def _op(self, kind: str, *inputs: str, out: str | None = None, **attributes: Any) -> str:
        out = out or f"n{len(self._nodes)}"
        self._nodes.append(self._helper.make_node(kind, inputs, [out], **attributes))
        return out

    def _tensor(self, name: str, value: NDArray[Any]) -> Any:
        if value.nbytes <= _INLINE_BYTES:
            return self._onnx.numpy_helper.from_array(value, name)
        self.external[name] = value
        tensor = self._onnx.TensorProto(name=name, dims=value.shape)
        tensor.data_type = self._helper.np_dtype_to_tensor_dtype(value.dtype)
        tensor.data_location = self._onnx.TensorProto.EXTERNAL
        # onnxruntime asks for a place even when the value is handed over in memory.
        tensor.external_data.add(key="location", value="memory")
        return tensor
