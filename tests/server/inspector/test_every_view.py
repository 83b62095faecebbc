"""Every view opens, with a scope and without one; what cannot be opened says why."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect
from tests.support.inspector_page import SAMPLE, Inspector

_VIEWS = (
    "learned", "search", "scope", "timeline", "summaries", "graph", "context", "dryrun", "jobs", "calls", "live",
    "keys", "audit", "backup",
)  # fmt: skip


def test_these_are_all_views(inspector: Inspector) -> None:
    named = inspector.page.locator("#navigation a").evaluate_all("links => links.map((link) => link.dataset.view)")
    assert tuple(named) == _VIEWS


@pytest.mark.parametrize("view", _VIEWS)
def test_every_view_opens_with_a_scope(inspector: Inspector, view: str) -> None:
    """An undefined name in a module ends in the box for errors: it is a fault like any other."""
    for params in ({"scope": SAMPLE}, {"scope": SAMPLE, "q": "launch", "message": "launch"}, {}):
        inspector.go(view, **params)
        if view != "live":  # its stream of events stays open
            inspector.page.wait_for_load_state("networkidle")
        expect(inspector.page.locator("main [role=alert]")).to_have_count(0)


def test_a_view_that_is_not_there_is_named(inspector: Inspector) -> None:
    inspector.page.goto(f"{inspector.server.origin}/#/nonsense")
    expect(inspector.page.locator("h1")).to_have_text("No such view")
    inspector.shows('The page has no view "nonsense".')


def test_a_view_comes_back_after_an_outage(own_inspector: Inspector) -> None:
    page = own_inspector.page
    page.route("**/static/views/graph.js", lambda route: route.abort())
    page.goto(f"{own_inspector.server.origin}/#/graph")
    own_inspector.shows("The server cannot be reached. Is `eunoe serve` still running?")
    page.unroute("**/static/views/graph.js")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".view-graph h1")).to_have_text("Entity graph")
    page.complaints.clear()  # type: ignore[attr-defined]  # the browser notes the request that failed


@pytest.mark.parametrize("view", ["timeline", "summaries", "graph"])
def test_a_mistyped_scope_is_told_beside_its_field(inspector: Inspector, view: str) -> None:
    inspector.go(view, scope=SAMPLE)
    field = inspector.page.get_by_label("Scope")
    field.fill("user=/x")
    inspector.press("Enter")
    expect(inspector.page.locator(".scope-field .error-text")).to_contain_text("user=anna")
    expect(field).to_have_value("user=/x")
    expect(field).to_be_focused()
    field.fill("anna")
    inspector.press("Enter")
    expect(inspector.page).to_have_url(re.compile(r"scope=user%3Danna"))
    expect(inspector.page.get_by_label("Scope")).to_have_value("user=anna")


def test_a_mistyped_scope_in_the_address_leaves_the_form(inspector: Inspector) -> None:
    for view in ("timeline", "summaries", "graph"):
        inspector.go(view, scope="user=/x")
        expect(inspector.page.locator(".scope-field .error-text")).to_contain_text("user=anna")
