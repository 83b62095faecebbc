"""The inspector as a person uses it: where things stand on the page."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import Locator, Page, expect
from tests.support.live_server import LiveServer

SAMPLE = "agent=pilot/user=sample"


class Inspector:
    """A page of one server."""

    def __init__(self, page: Page, server: LiveServer) -> None:
        self.page = page
        self.server = server

    def enter(self) -> Inspector:
        """Follow the printed link."""
        self.page.goto(f"{self.server.origin}/#token={self.server.owner}")
        self.page.locator("main#main h1").wait_for()
        return self

    def go(self, view: str, **params: str) -> Inspector:
        """Go to a view; what was there before must be gone."""
        self.page.evaluate("document.querySelector('.view')?.remove()")
        self.page.goto(f"{self.server.origin}/#/{view}?{urlencode(params)}")
        self.page.locator(f".view-{view} h1").wait_for()
        return self

    def remember(self, scope: str, *items: str | dict[str, Any]) -> list[str]:
        answer = self.server.call("POST", "/v1/memories", {"scope": scope, "items": list(items)}, key=self.server.owner)
        assert answer.status == 200, answer.content
        return [receipt["id"] for receipt in answer.json["receipts"]]

    def read(self, path: str, **query: str) -> Any:
        answer = self.server.call("GET", f"{path}?{urlencode(query)}", key=self.server.owner)
        return answer.json

    def row(self, text: str) -> Locator:
        """The memory with this text in a list."""
        return self.page.locator(".memory", has_text=text)

    def notice(self, text: str) -> None:
        """Wait for a short notice."""
        expect(self.page.locator(".toast", has_text=text).first).to_be_visible()

    def shows(self, text: str) -> None:
        expect(self.page.locator("main").get_by_text(text).first).to_be_visible()

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)
