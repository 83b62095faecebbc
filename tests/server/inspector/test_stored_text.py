"""Stored text is shown and never run, whatever it holds."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from tests.support.inspector_page import Inspector

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
