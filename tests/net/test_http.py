"""The HTTP client: what is repeated and how soon, what is refused, and what no error shows."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.llm.model_server import HttpReply, ModelServer, hangs, says, serve

from eunoe.errors import LlmError
from eunoe.net import http
from eunoe.net.http import HttpClient, HttpError, Retry, check_base_url

MAX_BYTES = 4_194_304


def good(server: ModelServer, body: dict[str, Any]) -> HttpReply:
    return 200, b"fine", {}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.delenv("http_proxy", raising=False)
    with serve(good) as server:
        yield server


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between attempts, taken down instead of slept through."""
    taken: list[float] = []
    monkeypatch.setattr(http, "_sleep", taken.append)
    return taken


def ask(server: ModelServer, timeout: float = 120.0, attempts: int = 4, within: float = 1e6) -> bytes:
    client = HttpClient(server.url, secret="sk-1", timeout=timeout, retry=Retry(attempts), max_answer_bytes=MAX_BYTES)
    return client.request("POST", "/x", json.dumps({"key": "sk-1"}).encode(), within=within)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 529])
def test_passing_trouble_is_retried_with_growing_pauses(status: int, server: ModelServer, waits: list[float]) -> None:
    server.script = [says(status)] * 3
    assert ask(server) == b"fine"
    assert waits == [0.5, 1.0, 2.0]


@pytest.mark.parametrize(("header", "wait"), [("7", 7), ("30", 30), ("Wed, 21 Oct 2015", 0.5), ("-3", 0.5)])
def test_the_pause_a_server_asks_for_is_kept(header: str, wait: float, server: ModelServer, waits: list[float]) -> None:
    server.script = [says(429, Retry_After=header)]
    ask(server)
    assert waits == [wait]


@pytest.mark.parametrize(("header", "timeout"), [("31", 120), ("9999", 120), ("3", 2), ("9" * 400, 2)])
def test_a_longer_pause_than_an_answer_may_take_is_not_kept(
    header: str, timeout: float, server: ModelServer, waits: list[float]
) -> None:
    server.script = [says(429, Retry_After=header)] * 9
    with pytest.raises(HttpError, match="answered 429"):
        ask(server, timeout)
    assert waits == []


@pytest.mark.parametrize("headers", [{}, {"Content_Encoding": "gzip"}, {"Content_Length": "400000000"}])
def test_an_answer_without_end_is_left(headers: dict[str, str], server: ModelServer, waits: list[float]) -> None:
    server.script = [says(200, b" " * 5_000_000, **headers)] * 9
    with pytest.raises(HttpError, match="answered more than 4,194,304 bytes"):
        ask(server)
    assert (len(server.requests), waits) == (1, [])


def test_retries_end(server: ModelServer) -> None:
    server.script = [says(503, "overloaded")] * 99
    with pytest.raises(HttpError, match='answered 503: "overloaded"'):
        ask(server)
    assert len(server.requests) == 4


def test_who_has_no_patience_is_answered_at_once(server: ModelServer, waits: list[float]) -> None:
    server.script = [says(503)] * 99
    with pytest.raises(HttpError, match="answered 503"):
        ask(server, within=0.4)
    assert (len(server.requests), waits) == (1, [])


@pytest.mark.parametrize("status", [301, 302, 400, 401, 403, 404, 413, 422])
def test_a_refusal_is_not_retried_and_no_redirect_is_followed(status: int, server: ModelServer) -> None:
    server.script = [says(status, "no", Location=server.url + "/elsewhere")]
    with pytest.raises(HttpError, match=f'answered {status}: "no"') as caught:
        ask(server)
    assert (caught.value.status, caught.value.retry_after, len(server.requests)) == (status, None, 1)


def test_a_refusal_that_breaks_off_is_still_a_refusal(server: ModelServer) -> None:
    server.script = [says(400, b"no length", Transfer_Encoding="chunked")]
    with pytest.raises(HttpError, match=r"answered 400: \(the answer broke off\)"):
        ask(server)


def test_nobody_there_is_told(server: ModelServer, waits: list[float]) -> None:
    server.shutdown()
    server.server_close()
    with pytest.raises(HttpError, match="cannot be reached: ConnectionRefusedError") as caught:
        ask(server)
    assert (caught.value.is_connected, len(waits)) == (False, 3)


def test_a_silent_server_is_left(server: ModelServer, waits: list[float]) -> None:
    server.script = [hangs] * 2
    with pytest.raises(HttpError, match=r"cannot be reached: .*[Tt]ime"):
        ask(server, timeout=0.05, attempts=2)
    assert waits == [0.5]


def test_an_answer_that_comes_drop_by_drop_is_left(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.count(0, 121)
    monkeypatch.setattr(http, "_clock", lambda: next(ticks))
    with pytest.raises(HttpError, match="no whole answer in time"):
        ask(server)


def test_an_answer_that_breaks_off_is_retried(server: ModelServer, waits: list[float]) -> None:
    server.script = [says(200, b'{"data"', Content_Length="1000")]
    assert ask(server) == b"fine"
    assert waits == [0.5]


@pytest.mark.parametrize("status", [400, 503])
def test_a_secret_repeated_by_the_server_is_not_shown(status: int, server: ModelServer) -> None:
    server.script = [says(status, "your key sk-1 is wrong")] * 9
    with pytest.raises(HttpError, match=r"your key \[key\] is wrong") as caught:
        ask(server)
    assert "sk-1" not in caught.value.refusal


def test_an_address_that_was_checked_is_the_one_that_is_called(server: ModelServer) -> None:
    port = server.server_address[1]
    client = HttpClient(f"http://webhook.invalid:{port}", resolve=lambda host, port: "127.0.0.1")
    with client.open("POST", "/hook", b"{}", headers={"Content-Type": "application/json"}) as answer:
        assert answer.read() == b"fine"
    assert server.headers[0]["host"] == f"webhook.invalid:{port}"


def test_a_proxy_that_the_environment_names_is_asked(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv("http_proxy", server.root.replace("http://", "http://anna:secret@"))
    assert HttpClient("http://models.invalid/v1").request("POST", "/x", b"{}") == b"fine"
    assert server.requests[0]["path"] == "http://models.invalid:80/v1/x"
    assert server.headers[0]["proxy-authorization"].startswith("Basic ")


@pytest.mark.parametrize(
    "url",
    [
        *("localhost:80", "file:///etc/passwd", "http://", "http://h:port", "http://h:0", "http://u:secret@h/v1"),
        *("http://h/a b", "http://h/\n", "http://a..b/v1", "http://[::1/v1", "http://h/\xe9", "http://h/v1?x=1"),
    ],
)
def test_a_malformed_address_is_refused_without_being_shown(url: str) -> None:
    with pytest.raises(LlmError, match="base_url must look like") as caught:
        check_base_url(url, LlmError)
    assert "secret" not in str(caught.value)
