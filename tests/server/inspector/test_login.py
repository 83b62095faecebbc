"""Logging in: by the printed link, by the form; and where the token is afterwards."""

from __future__ import annotations

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
