"""Embedders: where vectors come from. `load` turns a setting into one; heavy modules wait for first use."""

from typing import Any

from eunoe.embed.contract import Embedder, Vectors
from eunoe.errors import EmbedderError

__all__ = ["CHOICES", "DEFAULT", "Embedder", "Vectors", "load"]

DEFAULT = "eunoe"
CHOICES = (
    '"none"',
    '"eunoe"',
    '"static"',
    '"minilm"',
    '"openai:MODEL"',
    '"openai:MODEL@http://host:port/v1"',
    "an Embedder",
    "a function from texts to vectors",
    "a LangChain embeddings object",
)


def load(spec: Any = DEFAULT) -> Embedder | None:
    """The embedder a setting names, or None for no embedder at all."""
    if spec is None or spec == "none":
        return None
    return _named(spec) if isinstance(spec, str) else _given(spec)


def _named(spec: str) -> Embedder:
    kind, colon, rest = spec.partition(":")
    if spec in ("eunoe", "eunoe-1"):
        from eunoe.embed.encoder import Encoder

        return Encoder()
    if spec in ("static", "wordllama"):
        from eunoe.embed.static import Static

        return Static()
    if spec == "minilm":
        from eunoe.embed.minilm import MiniLM

        return MiniLM()
    if kind == "openai" and colon:
        from eunoe.embed.openai import from_spec

        return from_spec(rest)
    raise _unknown(spec)


def _given(spec: Any) -> Embedder:
    from eunoe.embed.adapters import adapt

    embedder = adapt(spec)
    if embedder is None:
        raise _unknown(spec)
    return embedder


def _unknown(spec: object) -> EmbedderError:
    shown = repr(spec) if isinstance(spec, str) else f"an object of type {type(spec).__name__}"
    return EmbedderError(f"{shown} is not an embedder; choose one of: {', '.join(CHOICES)}")
