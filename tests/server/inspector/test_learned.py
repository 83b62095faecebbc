"""What was learned: keep, correct, pin, forget and undo, by keyboard."""

from __future__ import annotations

import re
from time import monotonic

from playwright.sync_api import expect
from tests.support.inspector_page import Inspector
from tests.support.live_server import LiveServer


def test_an_empty_store_says_what_to_do_and_loads_the_sample(empty_server: LiveServer, open_page) -> None:
    page = Inspector(open_page(), empty_server).enter().page
    expect(page.get_by_text("This memory is empty")).to_be_visible()
    expect(page.get_by_text("eunoe remember user=me")).to_be_visible()
    page.get_by_role("button", name="Load the sample").click()
    expect(page.get_by_text("The launch is planned for Saturday 10 May 2025").first).to_be_visible()
    scopes = empty_server.call("GET", "/v1/scopes", key=empty_server.owner).json["scopes"]
    assert all("user=sample" in scope for scope in scopes)


def test_only_what_came_since_the_last_visit_is_new(inspector: Inspector) -> None:
    inspector.remember("user=visit", "Learned before the visit.")
    inspector.go("learned")
    inspector.page.get_by_role("button", name="Mark all as seen").click()
    expect(inspector.page.get_by_text("Nothing new")).to_be_visible()
    inspector.remember("user=visit", "Learned after the visit.")
    inspector.page.reload()
    expect(inspector.row("Learned after the visit.")).to_be_visible()
    expect(inspector.page.locator(".memory")).to_have_count(1)
    stored = inspector.page.evaluate("JSON.stringify({...localStorage})")
    assert re.fullmatch(r'\{"eunoe.visit":"\{\\"since\\":\d+,\\"seen\\":\d+\}"\}', stored), "times alone are stored"


def test_what_waits_for_review_comes_first_and_is_kept(own_inspector: Inspector) -> None:
    inspector = own_inspector
    inspector.page.clock.install()
    talk = "session=s1/user=review"
    settings = {"scope": talk, "settings": {"review": "all"}}
    assert inspector.server.call("PATCH", "/v1/streams", settings, key=inspector.server.owner).status == 200
    said = {"scope": talk, "messages": [{"role": "user", "content": "I am allergic to celery."}]}
    inspector.server.call("POST", "/v1/messages", said, key=inspector.server.owner)
    inspector.server.call("POST", "/v1/form", {"scope": talk}, key=inspector.server.owner)
    inspector.go("learned", span="all")
    row = inspector.page.get_by_label("To review").locator(".memory", has_text="allergic to celery").first
    expect(row.get_by_text("to review")).to_be_visible()
    expect(inspector.page.locator("#review-count")).to_be_visible()
    waiting = inspector.read("/v1/status")["in_review"]
    inspector.press("j", "a")
    expect(row).to_be_hidden()
    inspector.press("z")
    expect(row).to_be_focused()
    inspector.press("a")
    inspector.page.clock.fast_forward(7000)
    expect(inspector.page.locator(".toast", has_text="Kept.")).to_have_count(0)
    deadline = monotonic() + 15
    while inspector.read("/v1/status")["in_review"] != waiting - 1:
        assert monotonic() < deadline, "it was not kept"
        inspector.page.wait_for_timeout(50)


def test_all_that_waits_can_be_kept_at_once(own_inspector: Inspector) -> None:
    inspector = own_inspector
    inspector.page.clock.install()
    for user in ("one", "two"):
        talk = f"session=s1/user={user}"
        settings = {"scope": talk, "settings": {"review": "all"}}
        inspector.server.call("PATCH", "/v1/streams", settings, key=inspector.server.owner)
        said = {"scope": talk, "messages": ["I am allergic to mustard."]}
        inspector.server.call("POST", "/v1/messages", said, key=inspector.server.owner)
        inspector.server.call("POST", "/v1/form", {"scope": talk}, key=inspector.server.owner)
    assert inspector.read("/v1/status")["in_review"] >= 2
    inspector.go("learned", span="all")
    inspector.page.get_by_role("button", name="Keep all").click()
    expect(inspector.page.get_by_label("To review").locator(".memory:visible")).to_have_count(0)
    inspector.page.clock.fast_forward(7000)
    expect(inspector.page.get_by_role("button", name="Keep all")).to_have_count(0)
    assert inspector.read("/v1/status")["in_review"] == 0


def test_correct_by_keyboard_and_undo(inspector: Inspector) -> None:
    inspector.remember("user=correct", "Anna lives in Paris.")
    inspector.go("learned", span="all")
    _select(inspector, "Anna lives in Paris.")
    inspector.press("e")
    inspector.page.get_by_label("Corrected text").fill("Anna lives in Rome.")
    inspector.press("Control+Enter")
    expect(inspector.row("Anna lives in Rome.")).to_be_focused()
    assert _texts(inspector, "user=correct") == ["Anna lives in Rome."]
    inspector.press("z")
    expect(inspector.row("Anna lives in Paris.")).to_be_focused()
    assert _texts(inspector, "user=correct") == ["Anna lives in Paris."]


def test_a_memory_is_said_not_to_be_worth_keeping_or_of_another_kind(inspector: Inspector) -> None:
    inspector.remember("user=judged", "Anna had pasta for lunch.")
    inspector.remember("user=judged", "Anna answers in short sentences.")
    inspector.go("learned", span="all")
    inspector.row("Anna had pasta for lunch.").get_by_role("button", name="Open").click()
    drawer = inspector.page.get_by_role("dialog")
    drawer.get_by_role("button", name="Not worth keeping").click()
    expect(drawer.locator(".badge.retired").first).to_have_text("archived")
    drawer.get_by_role("button", name="Close").click()
    inspector.row("Anna answers in short sentences.").get_by_role("button", name="Open").click()
    drawer.get_by_label("Another kind").select_option("instruction")
    expect(drawer).to_have_count(0)
    assert _texts(inspector, "user=judged") == ["Anna answers in short sentences."]
    found = inspector.read("/v1/corrections", scope="user=judged")["corrections"]
    assert [(each["verdict"], each["sentences"]) for each in found] == [
        ("instruction", ["Anna answers in short sentences."]),
        ("drop", ["Anna had pasta for lunch."]),
    ]


def test_escape_leaves_a_text_as_it_is(inspector: Inspector) -> None:
    inspector.remember("user=escape", "Ben lives in Oslo.")
    inspector.go("learned", span="all")
    _select(inspector, "Ben lives in Oslo.")
    inspector.press("e")
    inspector.page.get_by_label("Corrected text").fill("Something else")
    inspector.press("Escape")
    expect(inspector.row("Ben lives in Oslo.")).to_be_focused()
    assert _texts(inspector, "user=escape") == ["Ben lives in Oslo."]


def test_pin_by_keyboard_and_undo(inspector: Inspector) -> None:
    (id,) = inspector.remember("user=pin", "Carla is allergic to bees.")
    inspector.go("learned", span="all")
    _select(inspector, "Carla is allergic to bees.")
    inspector.press("p")
    expect(inspector.row("Carla is allergic to bees.").get_by_text("pinned")).to_be_visible()
    assert inspector.read(f"/v1/memories/{id}", scope="user=pin")["pinned"] is True
    inspector.press("z")
    inspector.row("Carla is allergic to bees.").get_by_text("pinned").wait_for(state="detached")
    assert inspector.read(f"/v1/memories/{id}", scope="user=pin")["pinned"] is False


def test_forget_waits_and_can_be_undone(inspector: Inspector) -> None:
    inspector.remember("user=undo", "Dora has a secret.")
    inspector.go("learned", span="all")
    _select(inspector, "Dora has a secret.")
    inspector.press("x")
    expect(inspector.row("Dora has a secret.")).to_be_hidden()
    assert _texts(inspector, "user=undo") == ["Dora has a secret."]
    inspector.press("z")
    expect(inspector.row("Dora has a secret.")).to_be_focused()


def test_forget_shows_its_proof(own_inspector: Inspector) -> None:
    inspector = own_inspector
    inspector.page.clock.install()
    (id,) = inspector.remember("user=proof", "Emil has a riddle.")
    change = {"scope": "user=proof", "text": "Emil has a secret."}
    assert inspector.server.call("PATCH", f"/v1/memories/{id}", change, key=inspector.server.owner).status == 200
    inspector.go("learned", span="all")
    _select(inspector, "Emil has a secret.")
    inspector.press("x")
    inspector.page.clock.fast_forward(7000)
    inspector.notice("Forgotten: this memory and its 1 earlier version")
    inspector.notice("Every table, file, index and cache was searched: no trace is left in the store.")
    inspector.notice("Backups and exports made before still hold it.")
    assert _texts(inspector, "user=proof") == []


def test_what_could_not_be_forgotten_is_shown_again(own_inspector: Inspector) -> None:
    inspector = own_inspector
    inspector.page.clock.install()
    inspector.remember("user=failure", "Gus has a secret.")
    inspector.go("learned", span="all")
    _select(inspector, "Gus has a secret.")
    inspector.page.route("**/v1/forget", lambda route: route.abort())
    inspector.press("x")
    expect(inspector.row("Gus has a secret.")).to_be_hidden()
    inspector.page.clock.fast_forward(7000)
    inspector.notice("The server cannot be reached. Is `eunoe serve` still running?")
    expect(inspector.row("Gus has a secret.")).to_be_visible()
    inspector.page.complaints.clear()  # type: ignore[attr-defined]  # the browser notes the request that failed


def test_what_waits_is_sent_when_the_page_is_left(inspector: Inspector) -> None:
    inspector.remember("user=leave", "Fay has a secret.")
    inspector.go("learned", span="all")
    _select(inspector, "Fay has a secret.")
    inspector.press("x")
    expect(inspector.row("Fay has a secret.")).to_be_hidden()
    inspector.page.goto("about:blank")
    deadline = monotonic() + 15
    while _texts(inspector, "user=leave"):
        assert monotonic() < deadline, "it was not sent"
        inspector.page.wait_for_timeout(50)


def test_j_and_k_walk_and_enter_opens(inspector: Inspector) -> None:
    inspector.remember("user=walk", "Walk: the first.")
    inspector.remember("user=walk", "Walk: the second.")
    inspector.go("learned", span="all")
    inspector.row("Walk: the first.").wait_for()
    inspector.press("j")
    expect(inspector.row("Walk: the second.")).to_be_focused()
    inspector.press("j")
    expect(inspector.row("Walk: the first.")).to_be_focused()
    inspector.press("k", "Enter")
    expect(inspector.page.get_by_role("dialog").get_by_text("Walk: the second.")).to_be_visible()
    inspector.press("Escape")
    expect(inspector.page.get_by_role("dialog")).to_have_count(0)


def _select(inspector: Inspector, text: str) -> None:
    """Walk to a memory with the keyboard."""
    inspector.row(text).first.wait_for()
    for _ in range(60):
        inspector.press("j")
        if inspector.row(text).evaluate_all("rows => rows.some((row) => row === document.activeElement)"):
            return
    raise AssertionError(f"the keyboard does not reach {text}")


def _texts(inspector: Inspector, scope: str) -> list[str]:
    return [item["text"] for item in inspector.read("/v1/memories", scope=scope)["items"]]
