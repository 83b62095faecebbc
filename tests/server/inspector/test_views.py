"""The views, each on its main path, on the sample."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from playwright.sync_api import expect
from tests.support.inspector_page import SAMPLE, Inspector


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
