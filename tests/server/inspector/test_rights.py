"""The page offers what the key allows, and says nothing of what it cannot see."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from playwright.sync_api import Page, expect
from tests.support.live_server import LiveServer

_FOR_ALL = ("learned", "search", "scope", "timeline", "summaries", "graph", "context", "jobs", "live")


@pytest.mark.parametrize(
    ("rights", "views", "actions"),
    [
        (["read"], [], ["Open"]),
        (["read", "write"], ["dryrun"], ["Correct", "Pin", "Open"]),
        (["read", "forget"], [], ["Forget", "Open"]),
        (["read", "admin"], ["keys", "audit"], ["Open"]),
    ],
)
def test_a_tenant_is_offered_what_its_key_allows(
    live: LiveServer, open_page, rights: list[str], views: list[str], actions: list[str]
) -> None:
    page = _enter(live, open_page(), "rights", rights)
    named = page.locator("#navigation a").evaluate_all("links => links.map((link) => link.dataset.view)")
    assert set(named) == {*_FOR_ALL, *views}
    page.goto(f"{live.origin}/#/learned?span=all")
    row = page.locator(".memory", has_text="Offered to each.")
    expect(row).to_be_visible()
    expect(row.locator(".actions button")).to_have_text(actions)
    row.get_by_role("button", name="Open").click()
    drawer = page.get_by_role("dialog")
    expect(drawer.get_by_text("Where it comes from")).to_be_visible()
    offered = {name.rstrip("…") for name in drawer.locator(".actions button").all_inner_texts()}
    judging = {"Worth keeping", "Not worth keeping"} if "write" in rights else set()
    assert offered == set(actions) - {"Open"} | judging


def test_keys_of_the_keyboard_do_no_more_than_the_key(live: LiveServer, open_page) -> None:
    page = _enter(live, open_page(), "rights", ["read"])
    page.goto(f"{live.origin}/#/learned?span=all")
    row = page.locator(".memory", has_text="Offered to each.")
    expect(row).to_be_visible()
    for key in ("j", "x", "e", "p"):
        page.keyboard.press(key)
    expect(row).to_be_visible()
    expect(page.locator(".toast, .editor")).to_have_count(0)


def test_a_view_for_others_says_so(live: LiveServer, open_page) -> None:
    page = _enter(live, open_page(), "rights", ["read", "write", "forget", "admin"])
    for view in ("calls", "backup"):
        page.goto(f"{live.origin}/#/{view}")
        expect(page.get_by_text("Your key does not allow this")).to_be_visible()
        expect(page.get_by_text("No calls yet")).to_have_count(0)
        expect(page.get_by_text("on disk")).to_have_count(0)


def test_an_empty_tenant_is_told_of_its_key_alone(live: LiveServer, open_page) -> None:
    page = _enter(live, open_page(), "vacant", ["read", "write"], items=())
    expect(page.get_by_text("This memory is empty")).to_be_visible()
    expect(page.get_by_text("Bearer YOUR_KEY")).to_be_visible()
    expect(page.get_by_text("memory.token")).to_have_count(0)
    expect(page.get_by_text("eunoe mcp")).to_have_count(0)
    reader = _enter(live, open_page(), "vacant", ["read"], items=())
    expect(reader.get_by_text("Your key may not write")).to_be_visible()


def test_the_owner_is_told_where_the_token_lies(empty_server: LiveServer, open_page) -> None:
    page = _follow(empty_server, open_page(), empty_server.owner)
    path = empty_server.services.files.token
    expect(page.get_by_text(f"Bearer $(cat '{path}')")).to_be_visible()
    for tenant in ("acme", ""):
        _, text = empty_server.services.keys.create("admin", tenant=tenant, rights=["read", "admin"])
        assert empty_server.call("GET", "/inspector/token-file", key=text).status == 403


def _enter(
    live: LiveServer, page: Page, tenant: str, rights: Sequence[str], items: Sequence[str] = ("Offered to each.",)
) -> Page:
    if items:
        _, writer = live.services.keys.create("writer", tenant=tenant)
        told = {"scope": "user=rights", "items": [{"id": "offered", "text": text} for text in items]}
        assert live.call("POST", "/v1/memories", told, key=writer).status == 200
    _, text = live.services.keys.create("looker", tenant=tenant, rights=list(rights))
    return _follow(live, page, text)


def _follow(live: LiveServer, page: Page, token: str) -> Page:
    page.goto(f"{live.origin}/#token={token}")
    page.locator("main#main h1").wait_for()
    return page
