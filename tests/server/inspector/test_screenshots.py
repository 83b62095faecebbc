"""Pictures for the docs: `EUNOE_SCREENSHOTS=1 pytest tests/server/inspector/test_screenshots.py` writes them."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from tests.support.inspector_page import SAMPLE, Inspector
from tests.support.live_server import LiveServer

from eunoe.server.config import ServerConfig

pytestmark = pytest.mark.skipif("EUNOE_SCREENSHOTS" not in os.environ, reason="writes into docs/images when asked to")

_IMAGES = Path(__file__).parents[3] / "docs" / "images"
_QUESTION = "How much did mending the sail cost?"
_VIEWS = {
    "learned": {"span": "all"},
    "search": {"q": _QUESTION},
    "scope": {"scope": SAMPLE},
    "summaries": {"scope": SAMPLE, "new": "2"},
    "graph": {"scope": SAMPLE},
    "context": {"scope": SAMPLE, "message": _QUESTION},
}
_TALK = "session=monday/user=mira"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """The sample with the encoder of the package, and something that waits for review."""
    path = tmp_path_factory.mktemp("screenshots") / "memory.db"
    server = LiveServer(ServerConfig(target=str(path), llm="none", port=0))
    try:
        server.call("POST", "/inspector/sample", {}, key=server.owner)
        for scope in (_TALK, "user=mira"):
            server.call("PATCH", "/v1/streams", {"scope": scope, "settings": {"review": "all"}}, key=server.owner)
        said = ["I'm allergic to wasp stings and I live in Lisbon.", "Please always give lengths in millimetres."]
        server.call("POST", "/v1/messages", {"scope": _TALK, "messages": said}, key=server.owner)
        server.call("POST", "/v1/form", {"scope": _TALK}, key=server.owner)
        yield server
    finally:
        server.stop()


@pytest.mark.parametrize(("theme", "views"), [("light", _VIEWS), ("dark", ("learned", "search"))])
def test_pictures_of_the_views(browser: Browser, shown: LiveServer, theme: str, views: Collection[str]) -> None:
    page = browser.new_page(
        viewport={"width": 1200, "height": 760},
        color_scheme=theme,
        reduced_motion="reduce",  # type: ignore[arg-type]
    )
    inspector = Inspector(page, shown).enter()
    for view in views:
        _show(inspector, view, _VIEWS[view])
        if view == "graph":
            page.locator(".entity", has_text="Henrike").dispatch_event("click")
            page.locator(".passages h2", has_text="Henrike").wait_for()
        if view == "learned":
            page.keyboard.press("j")
        page.screenshot(path=_IMAGES / f"inspector-{view}-{theme}.png")
    page.close()


def test_a_picture_of_a_phone(browser: Browser, shown: LiveServer) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 760}, color_scheme="light", reduced_motion="reduce")
    _show(Inspector(page, shown).enter(), "search", _VIEWS["search"])
    page.screenshot(path=_IMAGES / "inspector-phone.png")
    page.close()


def _show(inspector: Inspector, view: str, params: dict[str, str]) -> None:
    page: Page = inspector.go(view, **params).page
    page.locator(".memory, .hit, .entity, .context-text").first.wait_for()
    page.wait_for_load_state("networkidle")
