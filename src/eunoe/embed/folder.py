"""Encoders out of a local folder, as sentence-transformers and ONNX exports lay it out."""

import json
import mmap
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from hashlib import file_digest, sha256
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eunoe.embed.contract import Vectors, to_unit_vectors
from eunoe.embed.encoder import BATCH_TOKENS, Transformer, open_session, read_tokenizer
from eunoe.embed.word_vectors import is_word, similar_words
from eunoe.errors import EmbedderError
from eunoe.files import write_file
from eunoe.model.arguments import show
from eunoe.store.location import default_path
from eunoe.text.normalize import replace_surrogates

TOKENIZER: Final = "tokenizer.json"

_SUBFOLDER: Final = "onnx"
_SUFFIX: Final = ".onnx"
_GRAPHS: Final = ("model.onnx", f"{_SUBFOLDER}/model.onnx")
"""Where exports put the graph; the first that is there is taken."""
_OTHER_WEIGHTS: Final = ("model.safetensors", "pytorch_model.bin", "tf_model.h5", "model.safetensors.index.json")
_OTHER_TOKENIZERS: Final = ("sentencepiece.bpe.model", "spiece.model", "tokenizer.model", "vocab.txt", "vocab.json")
_EXPORT: Final = "export it with `optimum-cli export onnx --model MODEL --task feature-extraction FOLDER`"
_LFS_POINTER: Final = b"version https://git-lfs"
_LOCATION: Final = b"\n\x08location\x12"
"""How a serialised graph begins the name of a file that holds weights; the name's length follows, then the name."""


class ModelFiles(NamedTuple):
    """Where the parts of a model lie."""

    folder: Path
    graph: Path
    tokenizer: Path


def parse_path(text: str) -> Path:
    """Return the absolute path that a user means; `~` is their home."""
    try:
        if not text.strip() or "\0" in text:
            raise ValueError("no folder can have that name")
        return Path(os.path.abspath(Path(text).expanduser()))
    except (ValueError, RuntimeError) as error:
        raise EmbedderError(f'"folder:PATH" needs the path of a model\'s folder, not {show(text)}: {error}') from None


def find_files(text: str) -> ModelFiles:
    """Find the graph and the tokenizer under a path: that of a folder, or of one of its .onnx files."""
    path = parse_path(text)
    try:
        graph = _find_graph(path)
        folder = _find_folder(graph)
        return ModelFiles(folder, graph, _find_tokenizer(folder, graph))
    except OSError as error:  # a folder above it is closed, or the name is too long
        raise unreadable(path, error) from error


def read_json(path: Path) -> Any:
    """Return what a file says; an empty mapping if there is none."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise unreadable(path, error) from error


def read_object(path: Path) -> dict[str, Any]:
    """Return what a file with a JSON object says; an empty one if there is no file."""
    found = read_json(path)
    if not isinstance(found, dict):
        raise unreadable(path, "it holds no JSON object")
    return found


def unreadable(path: Path, reason: object) -> EmbedderError:
    """Say that a file cannot be read, and why: onnxruntime and tokenizers speak of a line or an operator alone."""
    text = " ".join(str(reason).split()) or type(reason).__name__
    with suppress(OSError), path.open("rb") as file:
        if file.read(len(_LFS_POINTER)) == _LFS_POINTER:
            text = "it is only a pointer of Git LFS; fetch the file itself with `git lfs pull`"
    return EmbedderError(f"{path} cannot be read: {text}")


def find_weights(graph: Path) -> list[Path]:
    """Return the files that a graph keeps its weights in, where they are not inside it."""
    try:
        names = sorted(set(_locations(graph)))
    except (OSError, ValueError) as error:
        raise unreadable(graph, "it is empty" if isinstance(error, ValueError) else error) from error
    files = []
    for name in names:
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise EmbedderError(f"{graph} names weights outside its folder ({show(name)}): export it anew")
        if not (graph.parent / name).is_file():
            raise EmbedderError(f"{graph.parent / name} is missing: {graph.name} keeps its weights there; copy it too")
        files.append(graph.parent / name)
    return files


def _locations(graph: Path) -> Iterator[str]:
    with graph.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at = data.find(_LOCATION)
        while at >= 0:
            start = at + len(_LOCATION) + 1
            size = data[start - 1]
            if size > 127:  # the length takes two bytes, seven bits each
                size, start = size & 127 | data[start] << 7, start + 1
            yield data[start : start + size].decode(errors="replace")
            at = data.find(_LOCATION, start)


def _find_graph(path: Path) -> Path:
    if path.suffix == _SUFFIX and path.is_file():
        return path
    if path.is_dir():
        return next((path / name for name in _GRAPHS if (path / name).is_file()), None) or _find_only(path)
    if path.exists():
        raise EmbedderError(f"{path} is a file: name the folder of a model, or a file that ends in {_SUFFIX}")
    raise EmbedderError(
        f'there is no folder {path}: if the model was moved, open the store with embedder="folder:NEW PATH"'
    )


def _find_only(folder: Path) -> Path:
    """The only graph, whatever its name, such as `onnx/model_quantized.onnx`."""
    graphs = sorted(path for place in (folder, folder / _SUBFOLDER) for path in place.glob(f"*{_SUFFIX}"))
    if len(graphs) == 1:
        return graphs[0]
    if graphs:
        names = ", ".join(path.relative_to(folder).as_posix() for path in graphs)
        raise EmbedderError(f"{folder} has several models ({names}): name one of the files, as in folder:{graphs[0]}")
    others = [name for name in _OTHER_WEIGHTS if (folder / name).is_file()]
    reason = f" ({others[0]} is not for onnxruntime)" if others else ""
    raise EmbedderError(f"{folder} has no model.onnx and no {_GRAPHS[1]}{reason}: {_EXPORT}")


def _find_folder(graph: Path) -> Path:
    """Where a graph's config files lie: beside it, or one level up."""
    above = graph.parent.parent
    is_model = any((above / name).is_file() for name in (TOKENIZER, "modules.json", "config.json"))
    return above if graph.parent.name == _SUBFOLDER and is_model else graph.parent


def _find_tokenizer(folder: Path, graph: Path) -> Path:
    for place in (folder, graph.parent):
        if (place / TOKENIZER).is_file():
            return place / TOKENIZER
    others = [name for name in _OTHER_TOKENIZERS if (folder / name).is_file()]
    reason = f" ({others[0]} alone is not enough)" if others else ""
    cure = "copy it there, or make it with transformers: AutoTokenizer.from_pretrained(MODEL).save_pretrained(FOLDER)"
    raise EmbedderError(f"{folder / TOKENIZER} is missing{reason}: {cure}")


Layer = Callable[[Vectors], Vectors]

MODULES: Final = "modules.json"
_WEIGHTS: Final = "model.safetensors"
_MIN_LENGTH: Final = 1e-12
_ACTIVATIONS: Final[Mapping[str, Layer]] = {
    "Identity": lambda rows: rows,
    "Tanh": np.tanh,
    "ReLU": lambda rows: np.maximum(rows, 0),
    "Sigmoid": lambda rows: np.reciprocal(1 + np.exp(-rows)),
}


class Step(NamedTuple):
    """A step of the model, and the folder that describes it."""

    kind: str
    folder: Path
    listed_in: Path

    @property
    def files(self) -> list[Path]:
        """What its outcome depends on."""
        names = ("config.json", _WEIGHTS) if self.kind == "Dense" else ()
        return [self.folder / name for name in names if (self.folder / name).is_file()]


@dataclass(frozen=True, slots=True, eq=False)
class Dense:
    """A linear layer and the function after it."""

    weight: Vectors
    bias: Vectors | None
    activation: Layer

    def __call__(self, rows: Vectors) -> Vectors:
        # Not by one product: that may round differently from one number of rows to another.
        product = np.stack([self.weight @ row for row in rows])
        return self.activation(product if self.bias is None else product + self.bias)


def normalize(rows: Vectors) -> Vectors:
    """Scale rows to unit length."""
    scaled: Vectors = rows / np.maximum(np.sqrt(np.vecdot(rows, rows)), _MIN_LENGTH)[:, None]
    return scaled


def read_steps(folder: Path) -> tuple[Step, ...]:
    """Return the steps in order; none if the folder does not list them."""
    path = folder / MODULES
    modules = read_json(path) or []
    try:
        steps = [(str(module["type"]).rpartition(".")[2], Path(module.get("path") or "")) for module in modules]
    except (TypeError, KeyError, AttributeError):
        raise unreadable(path, 'it should be a list of objects with "type" and "path"') from None
    if any(place.is_absolute() or ".." in place.parts or "\0" in str(place) for _, place in steps):
        raise unreadable(path, "it leads out of the folder")
    return tuple(Step(kind, folder / place, path) for kind, place in steps)


def read_layers(steps: Sequence[Step]) -> list[Layer]:
    """Return what a vector goes through after pooling."""
    layers: list[Layer] = []
    for step in steps:
        if step.kind == "Normalize":
            layers.append(normalize)
        elif step.kind == "Dense":
            layers.append(_read_dense(step.folder))
        elif step.kind not in ("Transformer", "Pooling", "Dropout"):
            raise EmbedderError(
                f"{step.listed_in} names a step {step.kind}, which cannot be done here: export the whole "
                "model with `optimum-cli export onnx --library sentence_transformers`, so that its graph gives "
                "sentence_embedding"
            )
    return layers


def _read_dense(folder: Path) -> Dense:
    config, weights = folder / "config.json", folder / _WEIGHTS
    if not weights.is_file():
        raise EmbedderError(f"{weights} is missing: save the model with safetensors, or export it as a whole")
    stated = read_object(config)
    activation = str(stated.get("activation_function", "Tanh")).rpartition(".")[2]
    is_plain = stated.get("module_input_name") in (None, "sentence_embedding") and not stated.get("use_residual")
    if activation not in _ACTIVATIONS or not is_plain:
        raise EmbedderError(f"{config} describes a layer that cannot be done here: {show(stated)}")
    try:
        tensors = import_module("safetensors.numpy").load_file(weights)
        weight, bias = tensors["linear.weight"].astype(np.float32), tensors.get("linear.bias")
    except Exception as error:
        raise unreadable(weights, error) from error
    return Dense(weight, None if bias is None else bias.astype(np.float32), _ACTIVATIONS[activation])


def pool(states: Vectors, modes: Sequence[str], skip: int = 0) -> Vectors:
    """Make one vector for each text, several modes side by side; `skip` tokens at the start are left out.

    The states have the shape (texts, tokens, dimensions). All texts are equally long.

    >>> pool(np.array([[[1, 4], [3, 0]]], np.float32), ["mean", "max"]).tolist()
    [[2.0, 2.0, 3.0, 4.0]]
    """
    places = np.arange(skip + 1, states.shape[1] + 1, dtype=np.float32)
    return np.concatenate([POOLINGS[mode](states[:, skip:], places) for mode in modes], axis=1)


POOLINGS: Final[Mapping[str, Callable[[Vectors, Vectors], Vectors]]] = {
    "cls": lambda states, places: states[:, 0],
    "max": lambda states, places: states.max(axis=1),
    "mean": lambda states, places: states.mean(axis=1),
    "mean_sqrt_len_tokens": lambda states, places: states.sum(axis=1) / np.sqrt(np.float32(len(places))),
    "weightedmean": lambda states, places: (states * places[:, None]).sum(axis=1) / places.sum(),
    "lasttoken": lambda states, places: states[:, -1],
}
"""Modes by the names that sentence-transformers has for them, in the order in which it puts them side by side."""


_DEFAULT_MAX_TOKENS: Final = 512
_HUGE_TOKENS: Final = 1_000_000
"""Tokenizers say 10^30 where they mean that there is no limit."""
_OFFSET_FAMILIES: Final = frozenset(
    {"roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "mpnet", "longformer", "data2vec-text", "xmod"}
)
"""Architectures whose positions begin after the number of the padding token."""
_MODES: Final = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
_QUESTION_PROMPTS: Final = ("query", "retrieval.query", "web_search_query", "s2p_query", "search_query")
_TEXT_PROMPTS: Final = ("document", "passage", "corpus", "retrieval.passage", "search_document")
_E5: Final = re.compile(r"(?:^|[^a-z0-9])e5(?:[^a-z0-9]|$)", re.IGNORECASE)
_E5_PROMPTS: Final = ("query: ", "passage: ")
_E5_INSTRUCT_PROMPTS: Final = (
    "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: ",
    "",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """How a text becomes a vector, beside the graph and the tokenizer."""

    label: str
    """What the model is called in its own files."""
    max_tokens: int
    question_prompt: str
    text_prompt: str
    is_lower_case: bool
    """Whether texts are put into lower case first."""
    first_position: int
    modes: tuple[str, ...]
    skips_prompt: bool
    """Whether the prompt's tokens are left out when the states are pooled."""
    steps: tuple[Step, ...]

    @property
    def text(self) -> str:
        """All that the vectors depend on, beside files."""
        kinds = tuple(step.kind for step in self.steps)
        prompts = (self.question_prompt, self.text_prompt, self.skips_prompt)
        return repr((prompts, self.max_tokens, self.is_lower_case, self.first_position, self.modes, kinds))


def read_config(folder: Path) -> ModelConfig:
    """Read the config files of a folder; what none of them says is as sentence-transformers has it."""
    model = read_object(folder / "config.json")
    steps = read_steps(folder)
    pooling = next((step.folder for step in steps if step.kind == "Pooling"), folder / "1_Pooling") / "config.json"
    first_position = _first_position(folder, model)
    question_prompt, text_prompt = _read_prompts(folder, model)
    return ModelConfig(
        label=_label(model),
        max_tokens=_read_max_tokens(folder, model, first_position),
        question_prompt=question_prompt,
        text_prompt=text_prompt,
        is_lower_case=read_object(_lengths_file(folder)).get("do_lower_case") is True,
        first_position=first_position,
        modes=_read_modes(pooling),
        skips_prompt=read_object(pooling).get("include_prompt") is False,
        steps=steps,
    )


def _read_modes(path: Path) -> tuple[str, ...]:
    stated = read_object(path)
    named = stated.get("pooling_mode")
    modes = [mode for key, mode in _MODES.items() if stated.get(key) is True]
    if named is not None:
        modes = named if isinstance(named, list) else [named]
    for mode in modes:
        if not isinstance(mode, str) or mode not in POOLINGS:
            raise EmbedderError(f"{path}: the pooling {show(mode)} is unknown; known: {', '.join(POOLINGS)}")
    return tuple(modes) or ("mean",)


def _read_max_tokens(folder: Path, model: Mapping[str, Any], first_position: int) -> int:
    lengths, tokenizer = _lengths_file(folder), folder / "tokenizer_config.json"
    positions = _number(folder / "config.json", model, "max_position_embeddings")
    limits = (
        _number(lengths, read_object(lengths), "max_seq_length"),
        _number(tokenizer, read_object(tokenizer), "model_max_length"),
        positions,
        _DEFAULT_MAX_TOKENS,
    )
    limit = next(filter(None, limits))
    return min(limit, max(1, positions - first_position)) if positions else limit


def _lengths_file(folder: Path) -> Path:
    """`sentence_bert_config.json`; in older models its name has that of their architecture."""
    return next(iter(sorted(folder.glob("sentence_*_config.json"))), folder / "sentence_bert_config.json")


def _number(path: Path, stated: Mapping[str, Any], key: str) -> int:
    """A number of tokens; 0 if none is stated, or none that limits anything."""
    value = stated.get(key)
    if value is None or (isinstance(value, (int, float)) and value > _HUGE_TOKENS):
        return 0
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 1:
        raise EmbedderError(f"{path}: {key} must be a number of tokens, not {show(value)}")
    return int(value)


def _first_position(folder: Path, model: Mapping[str, Any]) -> int:
    if str(model.get("model_type")) not in _OFFSET_FAMILIES:
        return 0
    padding = model.get("pad_token_id", 1)
    if not isinstance(padding, int):
        raise EmbedderError(f"{folder / 'config.json'}: pad_token_id must be a number, not {show(padding)}")
    return padding + 1


def _read_prompts(folder: Path, model: Mapping[str, Any]) -> tuple[str, str]:
    """What is put before questions and before texts."""
    path = folder / "config_sentence_transformers.json"
    stated = read_object(path)
    prompts = stated.get("prompts") or {}
    if not isinstance(prompts, dict) or not all(isinstance(prompt, str) for prompt in prompts.values()):
        raise EmbedderError(f"{path}: prompts must be an object of texts")
    default = prompts.get(str(stated.get("default_prompt_name")), "")
    question, text = (
        next((prompts[name] for name in names if name in prompts), default)
        for names in (_QUESTION_PROMPTS, _TEXT_PROMPTS)
    )
    if question or text:
        return question, text
    # A family's own prompts, though its files do not say so. In the cache of huggingface_hub the model's name stands
    # two levels up.
    real = folder.resolve()
    repository = [real.parent.parent.name] if real.parent.name == "snapshots" else []
    name = next(filter(_E5.search, [str(model.get("_name_or_path") or ""), folder.name, real.name, *repository]), "")
    if not name:
        return "", ""
    return _E5_INSTRUCT_PROMPTS if "instruct" in name.lower() else _E5_PROMPTS


def _label(model: Mapping[str, Any]) -> str:
    """Not the folder's name: a model stays the same when its folder is renamed."""
    name = str(model.get("_name_or_path") or "").replace("\\", "/").rstrip("/").rpartition("/")[2]
    name = name or str(model.get("model_type") or "")
    return re.sub(r"[^\w.-]+", "-", name, flags=re.ASCII).strip("-.")[:60] or "encoder"


_NAME_DIGITS: Final = 12

FileState = tuple[str, int, int, int, int]
"""Path, size, times of the last changes, and inode: they differ once a file was written or replaced."""


class Content(NamedTuple):
    """The files of a model as they were read."""

    digest: str
    states: list[FileState]

    @property
    def is_current(self) -> bool:
        """Whether all files are still as they were."""
        return self.states == [_state(Path(state[0])) for state in self.states]


def read_content(files: Sequence[Path]) -> Content:
    """Read all files."""
    states = [_state(path) for path in files]
    total = sha256()
    for path in files:
        try:
            with path.open("rb") as file:
                total.update(file_digest(file, "sha256").digest())
        except OSError as error:
            raise unreadable(path, error) from error
    return Content(total.hexdigest(), states)


def model_name(label: str, content: str, config: str) -> str:
    """Return the name of a model: equal names, comparable vectors.

    >>> model_name("e5-small", "content", "config")
    'e5-small-3b18ff849780'
    """
    return f"{label}-{sha256(f'{content} {config}'.encode()).hexdigest()[:_NAME_DIGITS]}"


def read_cache(files: Sequence[Path]) -> Content | None:
    """Return what was read before of a model whose first file is its graph; None if any file is new or has changed."""
    try:
        entry = json.loads(_cache_path(files[0]).read_text(encoding="utf-8"))
        content = Content(str(entry["digest"]), [tuple(state) for state in entry["states"]])
        is_same = {str(path) for path in files} <= {state[0] for state in content.states} and content.is_current
    except Exception:  # whatever stands there: the files are read anew
        return None
    return content if is_same else None


def write_cache(graph: Path, content: Content) -> None:
    """Keep what was read; where that cannot be, nothing happens."""
    path = _cache_path(graph)
    with suppress(OSError):
        write_file(path, json.dumps(content._asdict()).encode(), sync=False)


def _state(path: Path) -> FileState:
    try:
        stat = path.stat()
    except OSError as error:
        raise unreadable(path, error) from error
    return str(path), stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino


def _cache_path(graph: Path) -> Path:
    return default_path().with_name("models") / f"{sha256(os.fsencode(graph)).hexdigest()[:32]}.json"


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
_EXPORT_GRAPH: Final = "export it with `optimum-cli export onnx --task feature-extraction`"
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
            raise EmbedderError(f"{self._path} fails: {' '.join(str(error).split())[:300]}") from error
        if given.ndim == 3:
            given = pool(given[:, : ids.shape[1]].astype(np.float32), self._config.modes, skip)
            for layer in self._layers:
                given = layer(given)
        if given.ndim != 2 or len(given) != len(ids):
            raise EmbedderError(
                f"{self._path} gives an array of shape {given.shape} for {len(ids)} texts: {_EXPORT_GRAPH}"
            )
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
                f"{_EXPORT_GRAPH}"
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
        raise EmbedderError(f"{self._path} gives {', '.join(outputs)}, but no last_hidden_state: {_EXPORT_GRAPH}")

    def _probe(self, vocabulary: int) -> tuple[int, bool]:
        """Run it for two made-up texts. What quantises its inputs as it goes lets a text depend on those beside it."""
        ids = np.random.default_rng(1).integers(0, max(1, vocabulary // 2), (2, _PROBE_TOKENS))
        ids = ids[:, : self.fixed_tokens or _PROBE_TOKENS]
        if self._fixed_rows > 1:
            raise EmbedderError(
                f"{self._path} takes {self._fixed_rows} texts at a time, neither more nor less: {_EXPORT_GRAPH}"
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


_MIN_CHARACTERS: Final = 1 << 15
_CHARACTERS_PER_TOKEN: Final = 16
"""Far more than a token has; spares the tokenizer the rest of a very long text."""
_WORD: Final = 5
"""A token that no tokenizer pads with: some models count their positions by the others alone."""
_CHECK_TOKENS: Final = 512
"""A longer text takes seconds and gigabytes with some models that could read it."""


class FolderEncoder(Transformer):
    """Sentence vectors of a model that lies in a folder. It is loaded at first use, and once when it is new here."""

    is_slow = True
    _load_hint = "fetch or export its files anew"
    similar_words = staticmethod(similar_words)
    is_word = staticmethod(is_word)

    def __init__(self, path: str, threads: int | None = None) -> None:
        super().__init__(threads)
        self._files = find_files(path)
        self._config = config = read_config(self._files.folder)
        self._max_tokens = config.max_tokens
        files = [self._files.graph, self._files.tokenizer, *(file for step in config.steps for file in step.files)]
        content = read_cache(files)
        self._content = content or read_content([*files, *find_weights(self._files.graph)])
        self.name = model_name(config.label, self._content.digest, config.text)
        if content is None:
            self._check()
            write_cache(self._files.graph, self._content)

    def _check(self) -> None:
        """Run it once: what is wrong with a model that is new here is said at once, not when a text comes."""
        graph: Graph = self._load().session
        # Of the graph: another encoder of the same model may have opened it.
        length = min(self._max_tokens, graph.fixed_tokens or _CHECK_TOKENS, _CHECK_TOKENS)
        try:
            graph.vectors(np.full((1, length), _WORD, np.int64))
        except EmbedderError as error:
            cure = f"put a lower max_seq_length into {self._files.folder / 'sentence_bert_config.json'}"
            raise EmbedderError(f"{error}; it cannot take {length} tokens: {cure}") from error

    def embed(self, texts: Sequence[str]) -> Vectors:
        return self._embed(texts, self._config.text_prompt)

    def embed_query(self, text: str) -> Vectors:
        row: Vectors = self._embed([text], self._config.question_prompt)[0]
        return row

    def _embed(self, texts: Sequence[str], prompt: str) -> Vectors:
        model = self._load()
        graph: Graph = model.session
        # How many tokens every text has before and after its own.
        marks = model.tokenizer.encode(prompt.rstrip()).special_tokens_mask
        after = next((place for place, mark in enumerate(reversed(marks)) if not mark), len(marks))
        before = len(marks) - after
        ids = [self._text_ids(prompt, text, before + after) for text in texts]
        rows = np.zeros((len(texts), graph.dimensions), np.float32)
        infer = partial(graph.vectors, skip=before if prompt and self._config.skips_prompt else 0)
        return self._run_batches(ids, rows, infer, 1 if graph.is_alone else BATCH_TOKENS)

    def _text_ids(self, prompt: str, text: str, common: int) -> list[int]:
        """The token ids of a text behind a prompt; none if the tokenizer knows less than half of it."""
        model = self._load()
        readable = replace_surrogates(text.strip()[: max(_MIN_CHARACTERS, _CHARACTERS_PER_TOKEN * self._max_tokens)])
        readable = readable.lower() if self._config.is_lower_case else readable
        ids: list[int] = model.tokenizer.encode(prompt + readable).ids if readable else []
        return ids if 2 * ids.count(model.unknown) < len(ids) - common else []

    def _open(self) -> tuple[Any, Any]:
        if not self._content.is_current:
            raise EmbedderError(f"the model in {self._files.folder} has changed since it was opened: open it again")
        try:
            tokenizer = read_tokenizer(self._files.tokenizer)
        except Exception as error:
            raise unreadable(self._files.tokenizer, error) from error
        graph = Graph(self._files.graph, self._config, tokenizer.get_vocab_size())
        self._max_tokens = min(self._max_tokens, graph.fixed_tokens or self._max_tokens)
        return tokenizer, graph
