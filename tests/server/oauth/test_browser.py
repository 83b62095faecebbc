"""A real browser goes through the pages: it obeys the content policy and says where its forms come from."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.sync_api import Page, sync_playwright
from tests.server.oauth.conftest import App, Person
from tests.support.live_server import LiveServer


class _Callback(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>back</title><p>back")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def callback() -> Iterator[str]:
    """Where an application waits for the answer."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Callback)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/callback"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def page() -> Iterator[Page]:
    chromium = os.environ.get("EUNOE_CHROMIUM") or shutil.which("chromium")
    if not chromium:
        pytest.skip("needs Debian's chromium: make setup installs it")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=("--headless", "--no-sandbox"))
        page = browser.new_page()
        page.set_default_timeout(15_000)
        yield page
        browser.close()


def test_a_person_lets_an_application_in(server: LiveServer, person: Person, callback: str, page: Page) -> None:
    complaints: list[str] = []
    page.on("console", lambda message: message.type == "error" and complaints.append(message.text))
    app = App(server, redirect=callback).register("Assistant")
    page.goto(f"{server.origin}/oauth/authorize?{urlencode(app.query)}")
    page.get_by_label("Your key").fill(person.key)
    page.get_by_role("button", name="Go on").click()
    assert page.get_by_text("user=anna").is_visible()
    page.get_by_label("add and change memories").uncheck()
    page.get_by_role("button", name="Allow").click()
    page.wait_for_url(f"{callback}?*")
    answer = {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}
    assert app.redeem(answer["code"]).json["scope"] == "read"
    assert complaints == []
    assert page.evaluate("document.referrer") == ""
