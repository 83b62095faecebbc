"""A real browser that looks at a started server.

The browser holds the event loop of its thread, so it ends with this folder: other tests have loops of their own.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright
from tests.support.inspector_page import Inspector
from tests.support.live_server import LiveServer

from eunoe.server.config import ServerConfig

_ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    chromium = os.environ.get("EUNOE_CHROMIUM") or shutil.which("chromium")
    if not chromium:
        pytest.skip("needs Debian's chromium: make setup installs it")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=_ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """One server for the tests of this folder, with the sample in its store."""
    server = LiveServer(_config(tmp_path_factory.mktemp("inspector")))
    try:
        loaded = server.call("POST", "/inspector/sample", {}, key=server.owner)
        assert loaded.status == 200, loaded.content
        yield server
    finally:
        server.stop()


@pytest.fixture
def empty_server(tmp_path: Path) -> Iterator[LiveServer]:
    server = LiveServer(_config(tmp_path))
    yield server
    server.stop()


def _config(folder: Path, **settings: Any) -> ServerConfig:
    return ServerConfig(target=str(folder / "memory.db"), embedder="none", llm="none", port=0, **settings)


OpenPage = Callable[..., Page]


@pytest.fixture
def open_page(browser: Browser) -> Iterator[OpenPage]:
    """Opens pages that must not complain: no error in the console, no fault, nothing that the content policy stops."""
    contexts: list[BrowserContext] = []
    complaints: list[list[str]] = []

    def begin(**options: Any) -> Page:
        contexts.append(browser.new_context(**options))
        page = contexts[-1].new_page()
        complaints.append(_note_complaints(page))
        page.complaints = complaints[-1]  # type: ignore[attr-defined]
        return page

    yield begin
    for context in contexts:
        context.close()
    assert not any(complaints)


@pytest.fixture(scope="package")
def person(browser: Browser, live: LiveServer) -> Iterator[BrowserContext]:
    """Somebody who has followed the printed link of the shared server."""
    context = browser.new_context(viewport={"width": 1280, "height": 860})
    page = context.new_page()
    Inspector(page, live).enter()
    page.close()
    yield context
    context.close()


@pytest.fixture
def inspector(live: LiveServer, person: BrowserContext) -> Iterator[Inspector]:
    """A page of the shared server that must not complain, as if it were opened for the first time."""
    page = person.new_page()
    complaints = _note_complaints(page)
    page.goto(f"{live.origin}/static/icon.svg")
    page.evaluate("localStorage.clear()")
    page.goto(live.origin)
    page.locator("main#main h1").wait_for()
    yield Inspector(page, live)
    page.close()
    assert complaints == []


@pytest.fixture
def own_inspector(live: LiveServer, open_page: OpenPage) -> Inspector:
    """The same in a browser context of its own, whose clock and session may be changed."""
    return Inspector(open_page(), live).enter()


def _note_complaints(page: Page) -> list[str]:
    complaints: list[str] = []
    page.set_default_timeout(15_000)
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    return complaints
