"""Embedders: where vectors come from. Models and heavy libraries are loaded at first use."""

from typing import Any, Final

from eunoe.embed.adapters import adapt
from eunoe.embed.contract import Embedder, Vectors
from eunoe.embed.encoder import Encoder
from eunoe.embed.minilm import MiniLM
from eunoe.embed.word_vectors import StaticEmbedder
from eunoe.errors import EmbedderError

__all__ = ["DEFAULT_EMBEDDER", "Embedder", "Vectors", "load_embedder"]

DEFAULT_EMBEDDER: Final = "eunoe"
_CHOICES: Final = (
    '"none", "eunoe", "static", "minilm", "openai:MODEL", "openai:MODEL@http://host:port/v1", an Embedder, '
    "a function from texts to vectors, a LangChain embeddings object"
)


def load_embedder(spec: Any = DEFAULT_EMBEDDER) -> Embedder | None:
    """Load the embedder that a setting names; None for no embedder at all."""
    if spec is None or spec == "none":
        return None
    embedder: Embedder | None = None
    if not isinstance(spec, str):
        embedder = adapt(spec)
    elif spec in ("eunoe", "eunoe-1"):
        embedder = Encoder()
    elif spec in ("static", "wordllama"):
        embedder = StaticEmbedder()
    elif spec == "minilm":
        embedder = MiniLM()
    elif spec.startswith("openai:"):
        from eunoe.embed.openai import from_spec  # urllib takes longer to import than all the rest

        embedder = from_spec(spec.removeprefix("openai:"))
    if embedder is None:
        shown = repr(spec) if isinstance(spec, str) else f"an object of type {type(spec).__name__}"
        raise EmbedderError(f"{shown} is not an embedder; choose one of: {_CHOICES}")
    return embedder
