"""Embedders out of what a user already has: a function, a LangChain object, an Embedder of their own."""

import inspect
import json
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from eunoe.embed.contract import Embedder, Vectors, known_languages, to_unit_vectors
from eunoe.embed.encoder import SentenceEncoder
from eunoe.embed.word_vectors import StaticEmbedder
from eunoe.errors import EmbedderError
from eunoe.model.arguments import own_name
from eunoe.net.http import HttpClient, HttpError, Retry, check_base_url, find_key
from eunoe.text.normalize import replace_surrogates

_LANGCHAIN_MODEL_ATTRIBUTES: Final = ("model", "model_name", "model_id", "deployment", "repo_id")
_WHY_A_NAME: Final = "by which vectors of different models are kept apart"


class CheckedEmbedder:
    """An embedder whose vectors come from elsewhere: blank texts are kept back, and what it gives is checked."""

    def __init__(
        self,
        name: str,
        embed: Callable[[list[str]], Any],
        embed_query: Callable[[str], Any] | None = None,
        is_slow: bool = False,
        languages: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.is_slow = is_slow
        self.languages = languages
        self._embed = embed
        self._embed_query = embed_query
        self._dimensions = 0

    def embed(self, texts: Sequence[str]) -> Vectors:
        filled = [place for place, text in enumerate(texts) if text.strip()]
        contents = [replace_surrogates(texts[place]) for place in filled]
        if filled:
            given = self._check(lambda: self._embed(contents), len(contents))
        elif not self._dimensions:  # asked once, to learn how long its vectors are
            given = self._check(lambda: self._embed(["."]), 1)
        rows = np.zeros((len(texts), self._dimensions), np.float32)
        if filled:
            rows[filled] = given
        return rows

    def embed_query(self, text: str) -> Vectors:
        embed_query = self._embed_query
        if embed_query is None or not text.strip():
            rows = self.embed([text])
        else:
            rows = self._check(lambda: [embed_query(replace_surrogates(text))], 1)
        row: Vectors = rows[0]
        return row

    def _check(self, embed: Callable[[], Any], count: int) -> Vectors:
        try:
            given = embed()
        except EmbedderError:
            raise
        except Exception as error:
            raise EmbedderError(f"{self.name} failed: {type(error).__name__}: {error}") from error
        rows = to_unit_vectors(given, self.name)
        if len(rows) != count:
            raise EmbedderError(f"{self.name} gave {len(rows)} vectors for {count} texts")
        self._dimensions = self._dimensions or rows.shape[1]
        if not self._dimensions or rows.shape[1] != self._dimensions:
            due = f"{self._dimensions} as before" if self._dimensions else "at least 1"
            raise EmbedderError(f"{self.name} gave vectors of {rows.shape[1]} dimensions; due: {due}")
        return rows


def adapt(given: Any) -> Embedder | None:
    """Make an embedder of an object; None if it cannot be one."""
    if isinstance(given, (CheckedEmbedder, SentenceEncoder, StaticEmbedder)):
        return given
    if isinstance(given, type):
        return None
    name, is_embedder = own_name(given), _has(given, "embed", "embed_query")
    if is_embedder and name:
        is_slow = getattr(given, "is_slow", False) is True
        return CheckedEmbedder(name, given.embed, given.embed_query, is_slow, known_languages(given))
    if _has(given, "embed_documents", "embed_query"):
        return _from_langchain(given)
    if is_embedder:
        raise EmbedderError(f"The embedder of type {type(given).__name__} needs a `name`, {_WHY_A_NAME}")
    return from_callable(given) if callable(given) else None


def from_callable(function: Callable[[list[str]], Any], name: str = "") -> CheckedEmbedder:
    """Make an embedder of a function of texts; `name` says which vector space it fills."""
    if inspect.iscoroutinefunction(function):
        raise EmbedderError("An embedding function must be a plain one, not async")
    name = name or own_name(function)
    if not name and inspect.isfunction(function) and function.__name__ != "<lambda>":
        name = f"{function.__module__}.{function.__qualname__}"
    if not name:
        cure = 'eunoe.embed.adapters.from_callable(function, name="my-model-1")'
        raise EmbedderError(f"This embedding function needs a name, {_WHY_A_NAME}: {cure}")
    return CheckedEmbedder(name, function)


def _from_langchain(embeddings: Any) -> CheckedEmbedder:
    names = (getattr(embeddings, attribute, None) for attribute in _LANGCHAIN_MODEL_ATTRIBUTES)
    suffix = next((f":{name}" for name in names if isinstance(name, str) and name), "")
    name = own_name(embeddings) or f"langchain:{type(embeddings).__name__}{suffix}"
    return CheckedEmbedder(name, embeddings.embed_documents, embeddings.embed_query)


def _has(given: Any, *methods: str) -> bool:
    return all(callable(getattr(given, method, None)) for method in methods)


_PUBLIC_URL: Final = "https://api.openai.com/v1"
_PATH: Final = "/embeddings"
_BATCH_TEXTS: Final = 128
_BATCH_CHARACTERS: Final = 200_000
_MAX_ANSWER_BYTES: Final = 64 * 1024 * 1024
"""Of a whole batch, with vectors of 16,000 numbers."""
_QUERY_ATTEMPTS: Final = 2
"""A question is asked while someone waits, and is answered without vectors when this fails."""


class OpenAIEmbedder(CheckedEmbedder):
    """Vectors of a model behind an endpoint; reads the first `max_chars` characters of a text."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 30.0,
        attempts: int = 5,
        max_chars: int = 8000,
    ) -> None:
        if not model.strip():
            raise EmbedderError('The model is missing: write "openai:MODEL" or "openai:MODEL@http://host:port/v1"')
        super().__init__(f"openai:{model}", self._embed_texts, self._embed_question)
        self._model = model
        self._attempts = attempts
        self._max_characters = max_chars
        base = check_base_url(base_url or os.environ.get("OPENAI_BASE_URL") or _PUBLIC_URL, EmbedderError)
        key = find_key(api_key, "OPENAI_API_KEY", EmbedderError)
        if not key and base == _PUBLIC_URL:
            raise EmbedderError("api.openai.com needs a key: set OPENAI_API_KEY or pass api_key")
        headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
        self._server = HttpClient(
            base,
            headers=headers,
            secret=key,
            timeout=timeout,
            retry=Retry(attempts),
            max_answer_bytes=_MAX_ANSWER_BYTES,
        )

    def _embed_texts(self, texts: list[str]) -> list[Any]:
        starts = [text.lstrip()[: self._max_characters] for text in texts]
        return [row for batch in _batches(starts) for row in self._request(batch, self._attempts)]

    def _embed_question(self, text: str) -> Any:
        return self._request([text.lstrip()[: self._max_characters]], min(self._attempts, _QUERY_ATTEMPTS))[0]

    def _request(self, texts: list[str], attempts: int) -> list[Any]:
        try:
            body = json.dumps({"model": self._model, "input": texts}).encode()
            answer = self._server.request("POST", _PATH, body, attempts=attempts)
        except HttpError as error:
            raise EmbedderError(str(error)) from error
        try:
            return _in_order(json.loads(answer)["data"], len(texts))
        except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
            failure = f"{self._server.base}{_PATH} gave no embeddings for {len(texts)} texts"
            raise EmbedderError(f"{failure}: {self._server.excerpt(answer)}") from error


def from_spec(rest: str) -> OpenAIEmbedder:
    """Make an embedder from MODEL or MODEL@URL."""
    model, at, url = rest.partition("@http")
    if "@" in model:
        raise EmbedderError(f'"openai:{rest}": the address after @ must begin with http:// or https://')
    return OpenAIEmbedder(model, base_url="http" + url if at else None)


def _batches(texts: list[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and (len(batch) == _BATCH_TEXTS or size + len(text) > _BATCH_CHARACTERS):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    yield batch


def _in_order(items: list[dict[str, Any]], count: int) -> list[Any]:
    """Embeddings by their index, or as they come where the server numbers none."""
    order = [item.get("index", place) for place, item in enumerate(items)]
    if sorted(order) != list(range(count)):
        raise ValueError("not one embedding for each text")
    rows = dict(zip(order, (item["embedding"] for item in items), strict=True))
    return [rows[place] for place in range(count)]
