"""Embedders: where vectors come from. Each is imported, and its model loaded, when it is first used."""

from typing import Any, Final

from eunoe.embed.contract import Embedder, Vectors
from eunoe.errors import EmbedderError
from eunoe.model.arguments import show

PREFIX: Final = "folder:"
"""What the spec of such an encoder begins with; the path follows."""


def is_folder_spec(spec: object) -> bool:
    """Whether a setting names a folder."""
    return isinstance(spec, str) and spec.startswith(PREFIX)


def absolute_spec(spec: str) -> str:
    """Return a spec that means the same in every working directory."""
    if not is_folder_spec(spec):
        return spec
    from eunoe.embed.folder import parse_path

    return f"{PREFIX}{parse_path(spec.removeprefix(PREFIX))}"


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
    if spec in ("static", "wordllama"):
        from eunoe.embed.word_vectors import StaticEmbedder

        return StaticEmbedder()
    if spec == "minilm":
        from eunoe.embed.encoder import MiniLM

        return MiniLM()
    if spec.startswith("openai:"):
        from eunoe.embed.adapters import from_spec

        return from_spec(spec.removeprefix("openai:"))
    if is_folder_spec(spec):
        from eunoe.embed.folder import FolderEncoder

        return FolderEncoder(spec.removeprefix(PREFIX))
    return None
