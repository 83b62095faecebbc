"""Any OpenAI-compatible /embeddings endpoint, with the standard library alone."""

import json
import os
from collections.abc import Iterator
from typing import Any

from eunoe.embed.checked import Checked
from eunoe.errors import EmbedderError
from eunoe.net.endpoint import Endpoint, Failed, is_plain_url, is_visible_ascii

BASE_URL = "https://api.openai.com/v1"

_PATH = "/embeddings"
_BATCH_TEXTS = 128
_BATCH_CHARS = 200_000
# A question is asked while someone waits, and is answered without vectors when this fails.
_QUERY_ATTEMPTS = 2


class OpenAI(Checked):
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
        super().__init__(f"openai:{model}")
        self._model = model
        self._attempts = attempts
        self._max_chars = max_chars
        base = _checked_base(base_url or os.environ.get("OPENAI_BASE_URL") or BASE_URL)
        key = _checked_key(api_key or os.environ.get("OPENAI_API_KEY") or "")
        if not key and base.startswith(BASE_URL):
            raise EmbedderError("api.openai.com needs a key: set OPENAI_API_KEY or pass api_key")
        bearer = {"Authorization": f"Bearer {key}"} if key else {}
        self._server = Endpoint(base, bearer, key=key, timeout=timeout)

    def _rows(self, texts: list[str]) -> list[Any]:
        cut = [self._cut(text) for text in texts]
        return [row for batch in _batches(cut) for row in self._batch(batch, self._attempts)]

    def _query_row(self, text: str) -> Any:
        return self._batch([self._cut(text)], min(self._attempts, _QUERY_ATTEMPTS))[0]

    def _cut(self, text: str) -> str:
        return text.lstrip()[: self._max_chars]

    def _batch(self, texts: list[str], attempts: int) -> list[Any]:
        answer = self._ask({"model": self._model, "input": texts}, attempts)
        try:
            return _in_order(json.loads(answer)["data"], len(texts))
        except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
            shown = f"{self._server.base}{_PATH} gave no embeddings for {len(texts)} texts"
            raise EmbedderError(f"{shown}: {self._server.shown(answer)}") from error

    def _ask(self, body: Any, attempts: int) -> bytes:
        try:
            return self._server.ask(_PATH, body, attempts)
        except Failed as trouble:
            raise EmbedderError(str(trouble)) from trouble


def from_spec(rest: str) -> OpenAI:
    """MODEL or MODEL@URL."""
    model, at, url = rest.partition("@http")
    if "@" in model:
        raise EmbedderError(f'"openai:{rest}": the address after @ must begin with http:// or https://')
    return OpenAI(model, base_url="http" + url if at else None)


def _checked_base(base: str) -> str:
    if not is_plain_url(base):
        raise EmbedderError("base_url must look like http://host:port/v1, with no user, password or query")
    return base


def _checked_key(key: str) -> str:
    key = key.strip()
    if not is_visible_ascii(key):
        raise EmbedderError("The API key has characters that no key has; check OPENAI_API_KEY or api_key")
    return key


def _batches(texts: list[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and (len(batch) == _BATCH_TEXTS or size + len(text) > _BATCH_CHARS):
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
