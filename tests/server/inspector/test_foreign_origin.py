"""A page on another origin can neither read nor write, nor show the inspector in a frame."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import BrowserContext, Page, expect
from tests.support.live_server import LiveServer

_PAGE = b"<!doctype html><title>elsewhere</title><body><p>elsewhere"
_TRY = """async ([url, options]) => {
  try { const answer = await fetch(url, options); return [answer.type, answer.status, await answer.text()]; }
  catch (error) { return ["refused", 0, ""]; }
}"""


class _Elsewhere(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(_PAGE)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[str]:
    """Another port of the same host: the same site, for which cookies count, and another origin."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Elsewhere)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def stranger(person: BrowserContext, elsewhere: str) -> Iterator[Page]:
    """A foreign page in the browser of somebody who is logged in."""
    page = person.new_page()
    page.goto(elsewhere)
    yield page
    page.close()


@pytest.mark.parametrize("path", ["/v1/status", "/v1/recent", "/session", "/inspector/scopes", "/static/api.js"])
def test_it_cannot_read(stranger: Page, live: LiveServer, path: str) -> None:
    for options in ({"credentials": "include"}, {"credentials": "include", "mode": "no-cors"}):
        kind, status, text = stranger.evaluate(_TRY, [live.origin + path, options])
        assert (kind, status, text) in (("refused", 0, ""), ("opaque", 0, ""))


@pytest.mark.parametrize("kind", ["application/json", "text/plain"])
def test_it_cannot_write(stranger: Page, live: LiveServer, kind: str) -> None:
    body = '{"scope": "user=victim", "items": ["Planted."]}'
    options = {"method": "POST", "credentials": "include", "headers": {"Content-Type": kind}, "body": body}
    for mode in ("cors", "no-cors"):
        stranger.evaluate(_TRY, [live.origin + "/v1/memories", options | {"mode": mode}])
    found = live.call("GET", "/v1/memories?scope=user%3Dvictim", key=live.owner)
    assert found.json["items"] == []


def test_it_cannot_send_a_form(stranger: Page, live: LiveServer) -> None:
    before = live.call("GET", "/v1/status", key=live.owner).json["scopes"]
    stranger.evaluate(
        """(url) => { const form = document.createElement("form"); form.method = "post"; form.action = url;
        document.body.append(form); form.submit(); }""",
        live.origin + "/inspector/sample",
    )
    stranger.wait_for_url(live.origin + "/inspector/sample")
    assert "403" in stranger.content() or "foreign" in stranger.content()
    assert live.call("GET", "/v1/status", key=live.owner).json["scopes"] == before


def test_it_cannot_frame_the_inspector(stranger: Page, live: LiveServer) -> None:
    stranger.evaluate(
        "(url) => { const frame = document.createElement('iframe'); frame.src = url; document.body.append(frame); }",
        live.origin,
    )
    frame = stranger.frame_locator("iframe")
    expect(frame.locator("#app")).to_have_count(0)
    stranger.wait_for_function("document.querySelector('iframe').contentDocument === null")
