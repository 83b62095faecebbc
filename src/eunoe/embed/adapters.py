"""Embedders out of what a user already has: a function, a LangChain object, an Embedder of their own."""

import inspect
from collections.abc import Callable
from typing import Any

from eunoe.embed.checked import Checked
from eunoe.embed.contract import Embedder
from eunoe.embed.static import Static
from eunoe.embed.transformer import Transformer
from eunoe.errors import EmbedderError

_MODEL_ATTRIBUTES = ("model", "model_name", "model_id", "deployment", "repo_id")
_WHY = "by which vectors of different models are kept apart"


class Adapted(Checked):
    """An embedder around two callables, whose failures become EmbedderError."""

    def __init__(
        self,
        name: str,
        documents: Callable[[list[str]], Any],
        query: Callable[[str], Any] | None = None,
    ) -> None:
        super().__init__(name)
        self.is_slow = False
        self._documents = documents
        self._query = query

    def _rows(self, texts: list[str]) -> Any:
        return self._call(self._documents, texts)

    def _query_row(self, text: str) -> Any:
        if self._query is not None:
            return self._call(self._query, text)
        return self._check(self._rows([text]), 1)[0]

    def _call(self, function: Callable[[Any], Any], argument: Any) -> Any:
        try:
            return function(argument)
        except EmbedderError:
            raise
        except Exception as error:
            raise EmbedderError(f"{self.name} failed: {type(error).__name__}: {error}") from error


def adapt(given: Any) -> Embedder | None:
    """The embedder an object makes, or None when it makes none."""
    if isinstance(given, (Checked, Static, Transformer)):
        return given
    if isinstance(given, type):
        return None
    if _has(given, "embed", "embed_query") and _own_name(given):
        return _own(given)
    if _has(given, "embed_documents", "embed_query"):
        return from_langchain(given)
    if _has(given, "embed", "embed_query"):
        raise EmbedderError(f"The embedder of type {type(given).__name__} needs a `name`, {_WHY}")
    return from_callable(given) if callable(given) else None


def _own(given: Any) -> Adapted:
    own = Adapted(_own_name(given), given.embed, given.embed_query)
    own.is_slow = getattr(given, "is_slow", False) is True
    return own


def from_callable(function: Callable[[list[str]], Any], name: str | None = None) -> Adapted:
    """An embedder from a function of texts; `name` says which vector space it fills."""
    if inspect.iscoroutinefunction(function):
        raise EmbedderError("An embedding function must be a plain one, not async")
    return Adapted(name or _own_name(function) or _function_name(function), function)


def from_langchain(embeddings: Any, name: str | None = None) -> Adapted:
    """An embedder from any object with embed_documents and embed_query."""
    documents, query = embeddings.embed_documents, embeddings.embed_query
    return Adapted(name or _own_name(embeddings) or _langchain_name(embeddings), documents, query)


def _has(given: Any, *methods: str) -> bool:
    return all(callable(getattr(given, method, None)) for method in methods)


def _own_name(given: Any) -> str:
    name = getattr(given, "name", None)
    return name.strip() if isinstance(name, str) else ""


def _function_name(function: Any) -> str:
    if inspect.isfunction(function) and function.__name__ != "<lambda>":
        return f"{function.__module__}.{function.__qualname__}"
    cure = 'eunoe.embed.adapters.from_callable(function, name="my-model-1")'
    raise EmbedderError(f"This embedding function needs a name, {_WHY}: {cure}")


def _langchain_name(embeddings: Any) -> str:
    models = (getattr(embeddings, attribute, None) for attribute in _MODEL_ATTRIBUTES)
    model = next((model for model in models if isinstance(model, str) and model), None)
    return ":".join(["langchain", type(embeddings).__name__, *([model] if model else [])])
