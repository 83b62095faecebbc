"""Embedders: where vectors come from. Each is imported, and its model loaded, when it is first used."""

from typing import Any, Final

from eunoe.embed.contract import Embedder, Vectors
from eunoe.embed.folder import PREFIX, is_folder_spec
from eunoe.embed.replaced_models import check_not_replaced
from eunoe.errors import EmbedderError
from eunoe.model.arguments import show

__all__ = ["DEFAULT_EMBEDDER", "Embedder", "Vectors", "load_embedder"]

DEFAULT_EMBEDDER: Final = "eunoe"
_CHOICES: Final = (
    '"none", "eunoe", "static", "minilm", "folder:PATH", "openai:MODEL", "openai:MODEL@http://host:port/v1", '
    "an Embedder, a function from texts to vectors, a LangChain embeddings object"
)


def load_embedder(spec: Any = DEFAULT_EMBEDDER) -> Embedder | None:
    """Load the embedder that a setting names; None for no embedder at all."""
    if spec is None or spec == "none":
        return None
    embedder = _load_named(spec) if isinstance(spec, str) else _adapt(spec)
    if embedder is None:
        shown = show(spec) if isinstance(spec, str) else f"an object of type {type(spec).__name__}"
        raise EmbedderError(f"{shown} is not an embedder; choose one of: {_CHOICES}")
    return embedder


def _adapt(given: Any) -> Embedder | None:
    from eunoe.embed.adapters import adapt

    return adapt(given)


def _load_named(spec: str) -> Embedder | None:
    if spec.partition("-")[0] == DEFAULT_EMBEDDER:
        from eunoe.embed.encoder import Encoder

        if spec in (DEFAULT_EMBEDDER, Encoder.name):
            return Encoder()
        check_not_replaced(spec)
    if spec in ("static", "wordllama"):
        from eunoe.embed.word_vectors import StaticEmbedder

        return StaticEmbedder()
    if spec == "minilm":
        from eunoe.embed.minilm import MiniLM

        return MiniLM()
    if spec.startswith("openai:"):
        from eunoe.embed.openai import from_spec

        return from_spec(spec.removeprefix("openai:"))
    if is_folder_spec(spec):
        from eunoe.embed.folder.encoder import FolderEncoder

        return FolderEncoder(spec.removeprefix(PREFIX))
    return None
