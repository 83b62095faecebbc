"""Everybody can use it: names for controls, headings in order, the keyboard, light and dark, a phone."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from tests.support.inspector_page import SAMPLE, Inspector

_VIEWS = (
    "learned", "search", "scope", "timeline", "summaries", "graph", "context", "dryrun", "jobs", "calls", "live",
    "keys", "audit", "backup",
)  # fmt: skip
_FAULTS = """() => {
  const shown = (node) => node.getClientRects().length > 0;
  const named = (node) => node.getAttribute("aria-label") || node.textContent.trim() || node.title
    || [...(node.labels ?? [])].some((label) => label.textContent.trim());
  const controls = [...document.querySelectorAll("button, a, input, select, textarea, meter, progress, [role=img]")];
  const headings = [...document.querySelectorAll("main h1, main h2, main h3")].filter(shown);
  const levels = headings.map((node) => +node.tagName[1]);
  const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
  return [
    ...controls.filter((node) => shown(node) && !named(node)).map((node) => `no name: ${node.outerHTML.slice(0, 100)}`),
    ...levels.filter((level, place) => level - (levels[place - 1] ?? 0) > 1).map((level) => `h${level} too deep`),
    ...(levels.filter((level) => level === 1).length === 1 ? [] : ["not one h1"]),
    ...ids.filter((id, place) => ids.indexOf(id) !== place).map((id) => `two with the id ${id}`),
    ...[...document.querySelectorAll("[aria-controls], label[for]")].map((node) => node.getAttribute("for")
      ?? node.getAttribute("aria-controls")).filter((id) => !document.getElementById(id)).map((id) => `no ${id}`),
    ...(document.documentElement.lang ? [] : ["no language"]),
    ...(document.title.includes("Eunoe") ? [] : ["no title"]),
    ...(document.documentElement.scrollWidth <= innerWidth ? [] : ["wider than the window"]),
  ];
}"""
_CONTRAST = """() => {
  const channels = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map((each) => {
    const value = colour.startsWith("color(") ? +each : each / 255;
    return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  const light = (colour) => { const [r, g, b] = channels(colour); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ground = (node) => {
    for (; node; node = node.parentElement) {
      const colour = getComputedStyle(node).backgroundColor;
      if (!/, 0\\)$|\\/ 0\\)$|transparent/.test(colour)) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const faults = [];
  for (const node of document.querySelectorAll("body *")) {
    const says = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
    if (!says || !node.getClientRects().length || node.closest("svg, .hidden-text, .skip, option")) continue;
    const [one, other] = [light(getComputedStyle(node).color), light(ground(node))];
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (ratio < 4.5) faults.push(`${ratio.toFixed(2)} ${node.className} ${node.textContent.slice(0, 30)}`);
  }
  return faults;
}"""


@pytest.mark.parametrize("width", [360, 1280])
def test_every_view_is_in_order(inspector: Inspector, width: int) -> None:
    inspector.page.set_viewport_size({"width": width, "height": 800})
    for view in _VIEWS:
        inspector.go(
            view, **({"scope": SAMPLE, "q": "mast", "message": "mast", "span": "all"} if view != "scope" else {})
        )
        inspector.page.wait_for_load_state("networkidle") if view != "live" else None
        assert (view, inspector.page.evaluate(_FAULTS)) == (view, [])


def test_keys_are_cards_on_a_phone(inspector: Inspector) -> None:
    inspector.server.services.keys.create("a telephone with a long name", tenant="acme")
    inspector.page.set_viewport_size({"width": 360, "height": 800})
    inspector.go("keys")
    for name in ("Rotate", "Revoke"):
        box = inspector.page.get_by_role("button", name=name).first.bounding_box()
        assert box
        assert 0 <= box["x"] <= 360 - box["width"]
    wrap = inspector.page.locator(".table-wrap")
    assert wrap.evaluate("node => node.scrollWidth <= node.clientWidth")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_can_be_read_in_both_colours(inspector: Inspector, theme: str) -> None:
    inspector.page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    for view in ("learned", "search", "summaries", "keys", "context"):
        inspector.go(view, scope=SAMPLE, q="mast", message="mast", span="all")
        inspector.page.wait_for_load_state("networkidle")
        assert (view, inspector.page.evaluate(_CONTRAST)) == (view, [])


def test_the_colours_follow_the_system_or_the_choice(inspector: Inspector) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    inspector.page.emulate_media(color_scheme="light")
    light = inspector.page.evaluate(ground)
    inspector.page.emulate_media(color_scheme="dark")
    dark = inspector.page.evaluate(ground)
    assert light != dark
    switch = inspector.page.get_by_role("button", name="Colours")
    switch.click()
    assert inspector.page.evaluate(ground) == light
    switch.click()
    assert inspector.page.evaluate(ground) == dark
    inspector.page.reload()
    inspector.page.emulate_media(color_scheme="light")
    inspector.page.locator("main#main h1").wait_for()
    assert inspector.page.evaluate(ground) == dark


def test_the_keyboard_alone_is_enough(inspector: Inspector) -> None:
    inspector.press("Tab")
    expect(inspector.page.get_by_role("link", name="Skip to the content")).to_be_focused()
    inspector.press("Enter")
    expect(inspector.page.locator("main")).to_be_focused()
    inspector.press("?")
    expect(inspector.page.get_by_role("dialog", name="Keyboard")).to_be_visible()
    inspector.press("Escape", "/")
    query = inspector.page.get_by_label("Question or words")
    expect(query).to_be_focused()
    query.press_sequentially("mast")
    inspector.press("Enter")
    inspector.page.locator(".hit").first.wait_for()
    inspector.page.locator(".hit").first.get_by_role("button", name="Open").focus()
    inspector.press("Enter")
    expect(inspector.page.get_by_role("dialog", name="Memory")).to_be_visible()
    inspector.press("Escape")
    expect(inspector.page.locator(".hit").first.get_by_role("button", name="Open")).to_be_focused()
    inspector.press("g", "t")
    expect(inspector.page.get_by_role("heading", name="Timeline", exact=True)).to_be_visible()


def test_a_letter_in_a_field_is_no_command(inspector: Inspector) -> None:
    inspector.go("search")
    inspector.page.get_by_label("Question or words").press_sequentially("g t x ?")
    expect(inspector.page.get_by_label("Question or words")).to_have_value("g t x ?")
    expect(inspector.page.get_by_role("heading", name="Search")).to_be_visible()


def test_on_a_phone_the_menu_opens_and_closes(inspector: Inspector) -> None:
    inspector.page.set_viewport_size({"width": 360, "height": 640})
    navigation = inspector.page.get_by_role("navigation", name="Views")
    expect(navigation).to_be_hidden()
    inspector.page.get_by_role("button", name="Menu").click()
    navigation.get_by_role("link", name="Search").click()
    expect(inspector.page.get_by_role("heading", name="Search")).to_be_visible()
    expect(navigation).to_be_hidden()
