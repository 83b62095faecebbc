"""A BERT encoder as an ONNX graph of onnxruntime's own fused operators.

Texts go through it in batches of one length: without a mask or padding, and no vector depends on the batch.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Weights = dict[str, NDArray[Any]]

GELU_FLOOR: Final = -0.17
"""Nothing that comes out of a GELU lies below this."""

_MAX_INLINE_BYTES: Final = 1024
"""ONNX keeps smaller tensors inside the graph, where its shape inference can see them."""
_FUSED_OPERATORS: Final = "com.microsoft"
_ATTENTION_INPUTS: Final = ("self.query", "self.key", "self.value")


class BertGraph:
    """Takes shape call by call: `hidden_states`, then heads (`mean`, `layer_means`, `score`), then `serialise`."""

    def __init__(self, weights: Weights, heads: int) -> None:
        self._onnx: Any = import_module("onnx")
        self._helper: Any = import_module("onnx.helper")
        self._weights = weights
        self._heads = heads
        self._dim = weights["embeddings.word_embeddings.weight"].shape[1]
        self.layers = len({name.split(".")[2] for name in weights if name.startswith("encoder.layer.")})
        self._nodes: list[Any] = []
        self._outputs: list[Any] = []
        self._states: list[str] = []
        """The state after each layer."""
        self._constants: Weights = {}
        self.external: Weights = {}
        """The tensors that a serialised graph names as its external initialisers."""

    def hidden_states(self) -> str:
        """Add all layers; return the state of every token after the last."""
        kinds = self._weights["embeddings.token_type_embeddings.weight"]
        # All tokens are of the first kind, also those of a pair.
        words = self._op("Add", self._words(), self._const("kind of tokens", kinds[0]))
        table = self._weight("embeddings.position_embeddings.weight")
        zero = self._const("zero", np.array([0]))
        positions = self._op("Slice", table, zero, self._op("Shape", "ids", start=1, end=2), zero)
        state = self._norm(self._op("Add", words, positions), "embeddings.LayerNorm")
        for layer in range(self.layers):
            state = self._block(f"encoder.layer.{layer}.", state)
            self._states.append(state)
        return state

    def mean(self, state: str) -> None:
        """Give the mean state of each text as `mean`."""
        self._output("mean", self._mean(state), [self._dim])

    def layer_means(self, layers: Sequence[int]) -> None:
        """Give the mean states after so many layers, one after the other, as `layer_means`."""
        means = [self._mean(self._states[count - 1]) for count in layers]
        self._output("layer_means", self._op("Concat", *means, axis=1), [self._dim * len(means)])

    def score(self, state: str) -> None:
        """Give one number for each text as `score`: a linear layer on the mean state, in single precision."""
        mean = self._mean(state)
        weight = self._const("classifier.weight", self._weights["classifier.weight"].T)
        number = self._op("Add", self._op("MatMul", mean, weight), self._weight("classifier.bias"))
        self._output("score", self._op("Squeeze", number, self._const("axis1", np.array([1]))), [])

    def serialise(self) -> bytes:
        kind = self._onnx.TensorProto.INT64
        inputs = [self._helper.make_tensor_value_info("ids", kind, ["b", "s"])]
        tensors = [self._tensor(name, value) for name, value in self._constants.items()]
        graph = self._helper.make_graph(self._nodes, "bert", inputs, self._outputs, tensors)
        opsets = [self._helper.make_opsetid("", 20), self._helper.make_opsetid(_FUSED_OPERATORS, 1)]
        model = self._helper.make_model(graph, opset_imports=opsets, ir_version=9)
        return bytes(model.SerializeToString(deterministic=True))

    def _words(self) -> str:
        return self._op("Gather", self._weight("embeddings.word_embeddings.weight"), "ids")

    def _linear(self, state: str, *names: str, floor: float | None = None) -> tuple[str, str]:
        """Multiply a state with layers side by side; return the product and the bias that is due to it.

        `floor` is what no number of the state lies below, where that is known.
        """
        turned = np.concatenate([self._weights[f"{name}.weight"].T for name in names], axis=1)
        bias = np.concatenate([self._weights[f"{name}.bias"] for name in names])
        product = self._op("MatMul", state, self._const("+".join(names) + ".weight", turned))
        return product, self._const("+".join(names) + ".bias", bias)

    def _block(self, at: str, state: str) -> str:
        mixed, bias = self._linear(self._attention(f"{at}attention.", state), f"{at}attention.output.dense")
        state = self._add_and_norm(mixed, state, f"{at}attention.output.LayerNorm", bias)
        wide = self._fused_op("BiasGelu", *self._linear(state, f"{at}intermediate.dense"))
        narrow, bias = self._linear(wide, f"{at}output.dense", floor=GELU_FLOOR)
        return self._add_and_norm(narrow, state, f"{at}output.LayerNorm", bias)

    def _attention(self, at: str, state: str) -> str:
        product, bias = self._linear(state, *(at + name for name in _ATTENTION_INPUTS))
        outs = [f"{at}{name}" for name in _ATTENTION_INPUTS]
        sizes = self._const("three", np.array([self._dim] * 3))
        self._nodes.append(self._helper.make_node("Split", [product, sizes], outs, axis=-1))
        return self._fused_op("MultiHeadAttention", *outs, bias, num_heads=self._heads)

    def _add_and_norm(self, added: str, state: str, at: str, bias: str) -> str:
        # Not by the fused operator: it takes twice as long as the three.
        return self._norm(self._op("Add", self._op("Add", added, bias), state), at)

    def _norm(self, state: str, at: str) -> str:
        scale, shift = self._weight(f"{at}.weight"), self._weight(f"{at}.bias")
        return self._op("LayerNormalization", state, scale, shift, axis=-1, epsilon=1e-12)

    def _mean(self, state: str) -> str:
        # Turned first: each number is then summed in the same order, however many texts there are.
        turned = self._op("Transpose", state, perm=[0, 2, 1])
        return self._op("ReduceMean", turned, self._const("axis2", np.array([2])), keepdims=0)

    def _output(self, name: str, value: str, shape: list[int]) -> None:
        self._op("Identity", value, out=name)
        kind = self._onnx.TensorProto.FLOAT
        self._outputs.append(self._helper.make_tensor_value_info(name, kind, ["b", *shape]))

    def _weight(self, name: str) -> str:
        return self._const(name, self._weights[name])

    def _const(self, name: str, value: NDArray[Any]) -> str:
        self._constants.setdefault(name, np.ascontiguousarray(value).reshape(value.shape))
        return name

    def _fused_op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        return self._op(kind, *inputs, domain=_FUSED_OPERATORS, **attributes)

    def _op(self, kind: str, *inputs: str, out: str | None = None, **attributes: Any) -> str:
        out = out or f"n{len(self._nodes)}"
        self._nodes.append(self._helper.make_node(kind, inputs, [out], **attributes))
        return out

    def _tensor(self, name: str, value: NDArray[Any]) -> Any:
        if value.nbytes <= _MAX_INLINE_BYTES:
            return self._onnx.numpy_helper.from_array(value, name)
        self.external[name] = value
        tensor = self._onnx.TensorProto(name=name, dims=value.shape)
        tensor.data_type = self._helper.np_dtype_to_tensor_dtype(value.dtype)
        tensor.data_location = self._onnx.TensorProto.EXTERNAL
        # onnxruntime asks for a place even when the value is handed over in memory.
        tensor.external_data.add(key="location", value="memory")
        return tensor
