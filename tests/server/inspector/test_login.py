"""Who gets into the inspector, what they may do there, and what stored texts cannot."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from playwright.sync_api import Page, expect
from tests.support.inspector_page import Inspector
from tests.support.live_server import LiveServer

_STORAGE = "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])"


def test_the_link_logs_in_and_its_token_is_nowhere(live: LiveServer, open_page) -> None:
    page: Page = open_page()
    page.goto(f"{live.origin}/#token={live.owner}")
    page.locator("main#main h1").wait_for()
    assert live.owner not in page.url
    assert live.owner not in page.evaluate(_STORAGE)
    assert live.owner not in page.content()
    page.goto("about:blank")
    page.go_back()
    page.locator("main#main h1").wait_for()
    assert live.owner not in page.url
    (cookie,) = page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert live.owner not in cookie["value"]


def test_without_a_session_the_form_says_where_the_token_is(live: LiveServer, open_page) -> None:
    page: Page = open_page()
    page.goto(live.origin)
    expect(page.get_by_text("prints a link that signs you in")).to_be_visible()
    field = page.get_by_label("Token or key")
    field.fill("eun_wrong_token")
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_role("alert")).to_contain_text("does not know this token")
    field.fill(live.owner)
    page.keyboard.press("Enter")
    page.locator("main#main h1").wait_for()
    page.complaints.clear()  # type: ignore[attr-defined]  # the browser notes each 401


def test_a_link_with_an_old_token_says_so(live: LiveServer, open_page) -> None:
    page: Page = open_page()
    page.goto(f"{live.origin}/#token=eun_old_token")
    expect(page.get_by_role("alert")).to_contain_text("not valid any more")
    page.complaints.clear()  # type: ignore[attr-defined]  # the browser notes each 401


def test_a_key_sees_its_tenant_alone(inspector: Inspector, live: LiveServer, open_page) -> None:
    inspector.remember("user=anna", "Anna of no tenant likes tea.")
    _, text = live.services.keys.create("shop", tenant="acme")
    live.call("POST", "/v1/memories", {"scope": "user=anna", "items": ["Anna of acme likes coffee."]}, key=text)
    page: Page = open_page()
    page.goto(f"{live.origin}/#token={text}")
    expect(page.get_by_text("shop · acme")).to_be_visible()
    page.goto(f"{live.origin}/#/learned?span=all")
    expect(page.get_by_text("Anna of acme likes coffee.")).to_be_visible()
    expect(page.locator(".memory")).to_have_count(1)


def test_signing_out_ends_the_session(own_inspector: Inspector) -> None:
    inspector = own_inspector
    inspector.page.get_by_role("button", name="Sign out").click()
    expect(inspector.page.get_by_label("Token or key")).to_be_visible()
    inspector.page.reload()
    expect(inspector.page.get_by_label("Token or key")).to_be_visible()
    inspector.page.complaints.clear()  # type: ignore[attr-defined]  # the browser notes each 401


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


_ATTACKS = (
    "<script>window.ran = 1</script>",
    '<img src="x" onerror="window.ran = 1">',
    "<svg/onload=window.ran=1>",
    '<a href="javascript:window.ran=1">click</a> javascript:window.ran=1',
    "<style>body{display:none}</style><base href=//evil.example>",
    "{{constructor.constructor('window.ran=1')()}} ${window.ran=1}",
    "</script><script>window.ran=1</script>",
    "**bold** [link](javascript:window.ran=1) `code`",
    "👩‍🚀 🏳️‍🌈 é 日本語 עברית",
)
_VIEWS = ("learned", "search", "scope", "timeline", "context")


@pytest.fixture(scope="module")
def attacked(live) -> str:
    """A scope whose every field is an attack."""
    scope = "user=<img src=x onerror=window.ran=1>"
    items = [
        {"text": text, "label": f"<b>{place}</b>", "people": [text[:80]], "metadata": {"note": text}, "id": f"a{place}"}
        for place, text in enumerate(_ATTACKS)
    ]
    answer = live.call("POST", "/v1/memories", {"scope": scope, "items": items}, key=live.owner)
    assert answer.status == 200, answer.content
    return scope


def test_nothing_stored_runs(inspector: Inspector, attacked: str) -> None:
    for view in _VIEWS:
        inspector.go(view, scope=attacked, q="window ran script", message="window ran script", span="all")
        inspector.shows("window.ran")
        _expect_harmless(inspector)


def test_nothing_stored_runs_in_an_opened_item(inspector: Inspector, attacked: str) -> None:
    inspector.go("timeline", scope=attacked)
    for place in range(len(_ATTACKS)):
        inspector.page.get_by_role("button", name="Open").nth(place).click()
        expect(inspector.page.get_by_role("dialog").locator("h2")).to_have_text(_ATTACKS[-1 - place])
        inspector.press("Escape")
    _expect_harmless(inspector)


def test_signs_without_a_shape_are_shown_by_name(inspector: Inspector) -> None:
    inspector.remember("user=signs", "pay \u202e001\u202c euro\u0007\u200b now")
    inspector.go("timeline", scope="user=signs")
    text = inspector.page.locator(".timeline .memory-text")
    expect(text).to_have_text("pay U+202E001U+202C euroU+0007U+200B now")
    expect(text.locator(".sign")).to_have_count(4)


def test_a_long_word_stays_in_its_place(inspector: Inspector) -> None:
    inspector.remember("user=long", "W" * 3000)
    inspector.page.set_viewport_size({"width": 360, "height": 700})
    inspector.go("timeline", scope="user=long")
    inspector.page.locator(".memory-text").wait_for()
    assert inspector.page.evaluate("document.documentElement.scrollWidth") <= 360


def test_a_huge_text_is_cut_and_can_be_read_whole(inspector: Inspector) -> None:
    huge = "".join(f"word{number} " for number in range(10_000))
    inspector.remember("user=huge", huge)
    inspector.go("timeline", scope="user=huge")
    text = inspector.page.locator(".timeline .memory-text")
    assert len(text.inner_text()) < 2_000
    inspector.page.get_by_role("button", name=f"Show all {len(huge):,} characters").click()
    for shown in range(40_000, len(huge), 40_000):
        inspector.page.get_by_role("button", name=f"Show more ({len(huge) - shown:,} characters left)").click()
    expect(inspector.page.get_by_role("button", name="Show more")).to_have_count(0)
    assert text.evaluate("node => node.textContent") == huge


def _expect_harmless(inspector: Inspector) -> None:
    assert inspector.page.evaluate("window.ran") is None
    strangers = "document.querySelectorAll('main img, main script, main style, main base, [onerror], [onload]').length"
    assert inspector.page.evaluate(strangers) == 0
    addresses = inspector.page.evaluate(
        "[...document.querySelectorAll('[href]')].map((node) => node.getAttribute('href'))"
    )
    assert all(address.startswith(("#", "/")) and not address.startswith("//") for address in addresses)
