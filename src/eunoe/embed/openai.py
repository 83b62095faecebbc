"""Any OpenAI-compatible /embeddings endpoint, with the standard library alone."""

import http.client
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from eunoe.embed.checked import Checked
from eunoe.errors import EmbedderError

BASE_URL = "https://api.openai.com/v1"

_BATCH_TEXTS = 128
_BATCH_CHARS = 200_000
# A question is asked while someone waits, and is answered without vectors when this fails.
_QUERY_ATTEMPTS = 2
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 30.0
_RETRIED = (408, 429)

_sleep, _clock = time.sleep, time.monotonic


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
        self._url = _endpoint(base_url or os.environ.get("OPENAI_BASE_URL") or BASE_URL)
        self._key = _checked_key(api_key or os.environ.get("OPENAI_API_KEY") or "")
        self._timeout = timeout
        self._attempts = attempts
        self._max_chars = max_chars
        if not self._key and self._url.startswith(BASE_URL):
            raise EmbedderError("api.openai.com needs a key: set OPENAI_API_KEY or pass api_key")

    def _rows(self, texts: list[str]) -> list[Any]:
        cut = [self._cut(text) for text in texts]
        return [row for batch in _batches(cut) for row in self._batch(batch, self._attempts)]

    def _query_row(self, text: str) -> Any:
        return self._batch([self._cut(text)], min(self._attempts, _QUERY_ATTEMPTS))[0]

    def _cut(self, text: str) -> str:
        return text.lstrip()[: self._max_chars]

    def _batch(self, texts: list[str], attempts: int) -> list[Any]:
        answer = self._ask(json.dumps({"model": self._model, "input": texts}).encode(), attempts)
        try:
            return _in_order(json.loads(answer)["data"], len(texts))
        except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
            shown = self._shown(answer)
            raise EmbedderError(f"{self._url} gave no embeddings for {len(texts)} texts: {shown}") from error

    def _ask(self, body: bytes, attempts: int) -> bytes:
        wait = _FIRST_WAIT
        for _ in range(attempts - 1):
            try:
                return self._post(body)
            except _TryAgain as trouble:
                _sleep(min(max(wait, trouble.wait), _LONGEST_WAIT))
                wait *= 2
        return self._post(body)

    def _post(self, body: bytes) -> bytes:
        try:
            return self._answer(urllib.request.Request(self._url, body, self._headers()))
        except urllib.error.HTTPError as error:
            with error:
                raise self._refusal(error) from None
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise _TryAgain(f"{self._url} cannot be reached: {type(reason).__name__}: {reason}") from error

    def _headers(self) -> dict[str, str]:
        bearer = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        return {"Content-Type": "application/json", **bearer}

    def _answer(self, request: urllib.request.Request) -> bytes:
        """The whole answer, within the time limit even when it comes drop by drop."""
        deadline = _clock() + self._timeout
        parts = []
        with _opener.open(request, timeout=self._timeout) as response:
            while part := response.read1():
                parts.append(part)
                if _clock() > deadline:
                    raise TimeoutError(f"no whole answer within {self._timeout} s")
            if response.length:
                raise http.client.IncompleteRead(b"", response.length)
        return b"".join(parts)

    def _refusal(self, error: urllib.error.HTTPError) -> EmbedderError:
        message = f"{self._url} answered {error.code}: {self._shown(_body(error))}"
        if error.code in _RETRIED or error.code >= 500:
            return _TryAgain(message, _seconds(error.headers.get("Retry-After")))
        return EmbedderError(message)

    def _shown(self, answer: bytes) -> str:
        """The start of an answer, without the key, which some servers repeat."""
        text = answer.decode(errors="replace")
        return " ".join((text.replace(self._key, "[key]") if self._key else text)[:300].split())


class _TryAgain(EmbedderError):
    def __init__(self, message: str, wait: float = 0.0) -> None:
        super().__init__(message)
        self.wait = wait


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Redirects are refused: following one would hand the key to another host."""

    def redirect_request(self, *_: Any) -> None:
        return None


_opener = urllib.request.build_opener(_NoRedirect)


def from_spec(rest: str) -> OpenAI:
    """MODEL or MODEL@URL."""
    model, at, url = rest.partition("@http")
    if "@" in model:
        raise EmbedderError(f'"openai:{rest}": the address after @ must begin with http:// or https://')
    return OpenAI(model, base_url="http" + url if at else None)


def _endpoint(base: str) -> str:
    if not _is_plain_url(base):
        raise EmbedderError("base_url must look like http://host:port/v1, with no user, password or query")
    return base.rstrip("/") + "/embeddings"


def _is_plain_url(base: str) -> bool:
    try:
        parts = urlsplit(base)
        host = (parts.hostname or "").encode("idna")
        plain = parts.port != 0 and not (parts.username or parts.password or parts.query or parts.fragment)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(host) and plain and _is_visible_ascii(base)


def _checked_key(key: str) -> str:
    key = key.strip()
    if not _is_visible_ascii(key):
        raise EmbedderError("The API key has characters that no key has; check OPENAI_API_KEY or api_key")
    return key


def _is_visible_ascii(text: str) -> bool:
    return text.isascii() and text.isprintable() and " " not in text


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


def _body(error: urllib.error.HTTPError) -> bytes:
    try:
        return error.read(10_000)
    except (OSError, http.client.HTTPException):
        return b"(the answer broke off)"


def _seconds(header: str | None) -> float:
    """Retry-After in seconds; its date form and nonsense count as none."""
    return float(header) if header and header.isdecimal() and header.isascii() else 0.0
