"""The files of a model's folder: which there are, and what to do about one that is missing."""

import json
import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from eunoe.errors import EmbedderError
from eunoe.model.arguments import show

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
    text = " ".join(str(reason).split())
    return EmbedderError(f"{path} cannot be read: {_pointer_hint(path) or text or type(reason).__name__}")


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
        return _find_usual(path) or _find_only(path)
    if path.exists():
        raise EmbedderError(f"{path} is a file: name the folder of a model, or a file that ends in {_SUFFIX}")
    raise EmbedderError(
        f'there is no folder {path}: if the model was moved, open the store with embedder="folder:NEW PATH"'
    )


def _find_usual(folder: Path) -> Path | None:
    return next((folder / name for name in _GRAPHS if (folder / name).is_file()), None)


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


def _pointer_hint(path: Path) -> str:
    try:
        with path.open("rb") as file:
            is_pointer = file.read(len(_LFS_POINTER)) == _LFS_POINTER
    except OSError:
        return ""
    return "it is only a pointer of Git LFS; fetch the file itself with `git lfs pull`" if is_pointer else ""
