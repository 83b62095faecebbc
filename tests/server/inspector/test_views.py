"""The views of the inspector, as a person uses them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from time import monotonic

import pytest
from playwright.sync_api import expect
from tests.support.inspector_page import SAMPLE, Inspector
from tests.support.live_server import LiveServer


def test_search_draws_the_reasons_of_each_hit(inspector: Inspector) -> None:
    inspector.go("search", scope=SAMPLE)
    inspector.page.get_by_label("Question or words").fill("Who is allergic to cashews?")
    inspector.press("Enter")
    hit = inspector.page.locator(".hit", has_text="allergic to cashews and pistachios").first
    expect(hit.locator(".reason-bar")).to_have_attribute("aria-label", re.compile(r"Score \d\.\d\d: .*lexical \d+ %"))
    expect(hit.locator(".reason-bar rect.reason-lexical")).to_be_visible()
    hit.get_by_text("Reasons", exact=True).click()
    expect(hit.get_by_role("cell", name="Words in common (lexical)")).to_be_visible()
    expect(hit.get_by_role("cell", name="cashew")).to_be_visible()
    assert "q=Who+is+allergic" in inspector.page.url, "the address can be shared"


def test_search_in_all_scopes_by_kind_and_recipe(inspector: Inspector) -> None:
    inspector.go("search", q="pistachios", kind="message", recipe="lexical")
    hit = inspector.page.locator(".hit").first
    expect(hit).to_contain_text("no cashews or pistachios near me")
    expect(inspector.page.locator(".hit .kind-fact")).to_have_count(0)
    inspector.page.get_by_label("Kind").select_option("fact")
    expect(inspector.page.locator(".hit").first).to_contain_text("adrenaline pen")


def test_an_item_shows_its_history_and_the_words_it_rests_on(inspector: Inspector) -> None:
    inspector.go("search", q="When is the launch?", scope=SAMPLE, kind="fact")
    inspector.page.locator(".hit", has_text="10 May 2025").get_by_role("button", name="Open").click()
    drawer = inspector.page.get_by_role("dialog")
    expect(drawer.get_by_text("2 versions")).to_be_visible()
    expect(drawer.locator(".versions .retired")).to_contain_text("Saturday 12 April 2025")
    expect(drawer.locator(".sources")).to_contain_text("we launch on Saturday the 12th of April")
    expect(drawer.locator(".facts")).to_contain_text(re.compile(r"Recalled\s*\d+ time"))


def test_an_open_item_is_corrected(inspector: Inspector) -> None:
    inspector.remember("user=drawer", "Hilda lives in Turin.")
    inspector.go("timeline", scope="user=drawer")
    inspector.page.get_by_role("button", name="Open").click()
    drawer = inspector.page.get_by_role("dialog")
    drawer.get_by_role("button", name="Correct").click()
    drawer.get_by_label("Corrected text").fill("Hilda lives in Milan.")
    drawer.get_by_role("button", name="Save").click()
    expect(drawer.locator("h2")).to_have_text("Hilda lives in Milan.")
    expect(drawer.locator(".versions")).to_contain_text("now shown above")
    (kept,) = inspector.read("/v1/memories", scope="user=drawer")["items"]
    assert kept["text"] == "Hilda lives in Milan."


def test_a_scope_at_a_glance(inspector: Inspector) -> None:
    inspector.go("scope")
    inspector.page.get_by_label("Find a scope").fill("sample session talk")
    expect(inspector.page.locator(".rows .scope", has_text="session=1/")).to_have_count(0)
    expect(inspector.page.locator(".rows .scope", has_text="session=talk/user=sample")).to_have_count(1)
    inspector.go("scope", scope=SAMPLE)
    inspector.shows("Summary")
    expect(inspector.page.locator(".memories").first).to_contain_text("adrenaline pen")
    expect(inspector.page.locator(".rows")).to_contain_text("session=1")
    inspector.page.get_by_text("All ", exact=False).last.click()
    inspector.page.get_by_label("consolidation trigger").fill("7")
    inspector.page.get_by_role("button", name="Save changes").click()
    inspector.notice("Saved: consolidation trigger.")
    (stream,) = [s for s in inspector.read("/v1/streams", user="sample")["streams"] if s["scope"] == SAMPLE]
    assert stream["settings"]["consolidation_trigger"] == 7


def test_the_timeline_as_of_a_day(inspector: Inspector) -> None:
    inspector.go("timeline", scope=SAMPLE)
    inspector.shows("The launch is planned for Saturday 10 May 2025")
    expect(inspector.page.locator(".timeline .retired").first).to_contain_text("12 April 2025")
    yesterday = datetime.now(UTC) - timedelta(days=1)
    inspector.page.get_by_label("As of").fill(f"{yesterday:%Y-%m-%d}")
    inspector.shows("Nothing was known")
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    inspector.page.get_by_label("As of").fill(f"{tomorrow:%Y-%m-%d}")
    inspector.shows("The launch is planned for Saturday 10 May 2025")
    expect(inspector.page.locator(".timeline .retired")).to_have_count(0)


def test_revisions_side_by_side(inspector: Inspector) -> None:
    inspector.go("summaries", scope=SAMPLE)
    inspector.page.get_by_role("button", name="Revision 2").click()
    expect(inspector.page.locator(".side.new h2")).to_have_text("Revision 2")
    expect(inspector.page.locator(".side.new ins").first).to_be_visible()
    expect(inspector.page.locator(".side.old ins")).to_have_count(0)
    inspector.shows("Absorbed by revision 2")
    absorbed = inspector.page.locator(".memories .memory").first
    absorbed.get_by_text("from ", exact=False).click()
    expect(absorbed.locator(".sources blockquote").first).to_be_visible()


def test_the_graph_grows_by_a_click_and_is_a_list_too(inspector: Inspector) -> None:
    inspector.go("graph", scope=SAMPLE, entity="Wellow")
    before = inspector.page.locator(".entity").count()
    inspector.page.locator(".entity", has_text="Jonas").dispatch_event("click")
    expect(inspector.page.locator(".passages h2")).to_have_text("Jonas")
    after = inspector.page.locator(".entity").count()
    assert before < after <= before + 100
    expect(inspector.page.locator(".entity-list li")).to_have_count(after)
    inspector.page.locator(".entity-list").get_by_role("button", name=re.compile("^Henrike, ")).press("Enter")
    expect(inspector.page.locator(".passages h2")).to_have_text("Henrike")
    inspector.page.locator(".passage").first.click()
    expect(inspector.page.get_by_role("dialog")).to_contain_text("Henrike")


def test_the_context_of_a_message_and_its_budget(inspector: Inspector) -> None:
    inspector.go("context", scope=SAMPLE)
    inspector.page.get_by_label("Message").fill("What must Jonas not eat?")
    inspector.page.get_by_role("button", name="Preview").click()
    expect(inspector.page.locator(".context-text")).to_contain_text("<MemoryContext")
    expect(inspector.page.locator(".meter-line b")).to_have_text(re.compile(r"^[\d,]+ of 1,500 tokens$"))
    inspector.page.get_by_role("slider").fill("300")
    expect(inspector.page.locator(".meter-line b")).to_have_text(re.compile(r"^\d+ of 300 tokens$"))


def test_a_text_of_only_the_page_is_kept_by_nobody(inspector: Inspector) -> None:
    before = inspector.read("/v1/status")["messages"]
    inspector.go("dryrun")
    inspector.page.get_by_label("What is said").fill("I am allergic to hazelnuts.\nIs it late?")
    inspector.page.get_by_role("button", name="Try it").click()
    inspector.shows("Nothing was kept.")
    expect(inspector.page.locator("ol.memories")).to_contain_text("allergic to hazelnuts")
    expect(inspector.page.locator("ol.memories .origin").first).to_contain_text("sure")
    expect(inspector.page.locator(".passed-over")).to_contain_text("it only asks")
    assert inspector.read("/v1/status")["messages"] == before


def test_jobs_calls_and_backup(inspector: Inspector) -> None:
    inspector.server.call("POST", "/v1/jobs", {"kind": "export", "scope": SAMPLE}, key=inspector.server.owner)
    inspector.go("jobs")
    expect(inspector.page.locator(".job", has_text="export").first).to_be_visible()
    inspector.go("jobs", state="queued")
    round_job = inspector.page.locator(".job", has_text="archive what is old").filter(has_text="next at")
    expect(round_job.locator(".badge.warn")).to_have_count(0)
    expect(round_job.first).to_be_visible()
    inspector.go("calls")
    inspector.shows("No language model")
    inspector.go("backup")
    inspector.page.get_by_role("button", name="Back up now").click()
    inspector.shows("Written and read once more")
    with inspector.page.expect_download() as download:
        inspector.page.get_by_role("link", name="Download").click()
    assert SAMPLE in download.value.path().read_text()


def test_a_test_of_the_connection_is_among_the_calls_at_once(inspector: Inspector) -> None:
    answer = {"model": "openai:test", "problem": "", "seconds": 0.2}
    call = {"time": "2025-05-10T10:00:00Z", "operation": "test", "model": "openai:test", "scope": "", "error": ""}
    figures = {"input_tokens": 3, "output_tokens": 1, "seconds": 0.2, "cost": 0}
    inspector.go("calls")
    inspector.shows("No language model")
    inspector.page.route("**/v1/models/test", lambda route: route.fulfill(json=answer))
    inspector.page.route("**/v1/calls*", lambda route: route.fulfill(json={"items": [call | figures], "next": ""}))
    inspector.page.get_by_role("button", name="Test the connection").click()
    inspector.shows("openai:test answered in 200 ms.")
    expect(inspector.page.get_by_label("Calls").locator("tbody tr")).to_have_count(1)


def test_the_live_feed_shows_what_is_learned(inspector: Inspector) -> None:
    inspector.go("live")
    expect(inspector.page.get_by_text("live", exact=True)).to_be_visible()
    inspector.remember("user=live", "Learned while the page listens.")
    expect(inspector.row("Learned while the page listens.")).to_be_visible()


def test_a_key_is_shown_once_rotated_and_revoked(inspector: Inspector) -> None:
    inspector.go("keys")
    inspector.page.get_by_label("Name").fill("notebook")
    inspector.page.get_by_label("Tenant").fill("acme")
    inspector.page.get_by_role("button", name="Make the key").click()
    first = inspector.page.locator(".secret code").inner_text()
    assert inspector.server.call("GET", "/v1/status", key=first).status == 200
    row = inspector.page.get_by_role("row").filter(has_text="notebook")
    row.get_by_role("button", name="Rotate").click()
    row.get_by_role("button", name="The old secret ends now").click()
    expect(inspector.page.locator(".secret code")).not_to_have_text(first)
    second = inspector.page.locator(".secret code").inner_text()
    assert inspector.server.call("GET", "/v1/status", key=first).status == 401
    row.get_by_role("button", name="Revoke").click()
    row.get_by_role("button", name="Revoke for good").click()
    expect(row.get_by_text("revoked")).to_be_visible()
    assert inspector.server.call("GET", "/v1/status", key=second).status == 401
    inspector.go("audit")
    expect(inspector.page.locator("tbody tr").first).to_be_visible()
    expect(inspector.page.locator("tbody")).not_to_contain_text(second)


_VIEWS = (
    "learned", "search", "scope", "timeline", "summaries", "graph", "context", "dryrun", "jobs", "calls", "live",
    "keys", "audit", "backup",
)  # fmt: skip


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
