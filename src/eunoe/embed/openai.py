"""Any OpenAI-compatible /embeddings endpoint, with the standard library alone."""

import json
import os
from collections.abc import Iterator
from typing import Any, Final

from eunoe.embed.adapters import CheckedEmbedder
from eunoe.errors import EmbedderError
from eunoe.net.endpoint import Endpoint, EndpointError, check_base_url, find_key

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
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._server = Endpoint(base, headers, key=key, timeout=timeout, max_answer_bytes=_MAX_ANSWER_BYTES)

    def _embed_texts(self, texts: list[str]) -> list[Any]:
        starts = [text.lstrip()[: self._max_characters] for text in texts]
        return [row for batch in _batches(starts) for row in self._request(batch, self._attempts)]

    def _embed_question(self, text: str) -> Any:
        return self._request([text.lstrip()[: self._max_characters]], min(self._attempts, _QUERY_ATTEMPTS))[0]

    def _request(self, texts: list[str], attempts: int) -> list[Any]:
        try:
            answer = self._server.request(_PATH, {"model": self._model, "input": texts}, attempts)
        except EndpointError as error:
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
