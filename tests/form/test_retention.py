"""Clean-up: what goes, what stays whatever happens, and the way back."""

from __future__ import annotations

import sqlite3

import pytest

import eunoe
from eunoe.errors import ConflictError, InputError, NotFoundError
from eunoe.form.retention import standing
from eunoe.model.time import from_micros, to_micros, utc_now
from eunoe.store.conformance import new_fact as fact_row
from eunoe.store.tables import AccessCount, StreamState, Tombstone

REPO = "repository=eunoe"
ANNA = "agent=cook/user=anna"
DAY = 86_400_000_000
NOW = to_micros(utc_now())


def ago(days):
    return from_micros(NOW - int(days * DAY))


def store_of(memory):
    return memory._engine.store


def dated(memory, scope, **days):
    """One fact for each name, recorded so many days ago."""
    memory.remember_many(scope, [{"text": f"fact {name}", "id": name} for name in days])
    store = store_of(memory)
    with store.writing():
        stream = store.stream(str(eunoe.Scope.of(scope)))
        rows = store.by_id(stream.id, list(days))
        store.replace([row._replace(recorded=NOW - int(days[row.id] * DAY)) for row in rows])


def used(memory, scope, **uses):
    """Notes how often each was recalled, and how many days ago."""
    store = store_of(memory)
    with store.writing():
        stream = store.stream(str(eunoe.Scope.of(scope)))
        seqs = {row.id: row.seq for row in store.by_id(stream.id, list(uses))}
        store.books.touch({seqs[id]: AccessCount(times, NOW - int(days * DAY)) for id, (times, days) in uses.items()})


def living(memory, scope):
    return [item.id for item in memory.list(scope, kinds=("fact", "observation")).items]


def test_nothing_goes_without_a_policy(memory):
    dated(memory, REPO, a=4000)
    report = memory.streams.apply_retention(REPO)
    assert (report.archived, report.kept, report.dry_run) == ((), 1, False)


def test_nobody_waits_for_a_clean_up_that_finds_nothing(memory, path):
    dated(memory, REPO, a=40)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    assert memory.streams.apply_retention(REPO).kept == memory.streams.apply_retention(REPO, keep_best=1).kept == 1
    assert len(memory.streams.apply_retention(REPO, max_age_days=1, dry_run=True).archived) == 1
    holder.close()


def test_a_scope_that_holds_nothing_is_tidy(memory):
    assert memory.streams.apply_retention("user=nobody", keep_best=1).archived == ()
    assert memory.scopes() == []


def test_too_old_goes_and_says_why(memory):
    dated(memory, REPO, old=11, young=9)
    memory.remember(REPO, "happened long ago", id="past", time=ago(12))
    memory.remember(REPO, "will happen", id="future", time=ago(-50))
    report = memory.streams.apply_retention(REPO, max_age_days=10)
    assert report.archived == (("old", "older than 10 days"), ("past", "older than 10 days"))
    assert report.kept == 2
    assert living(memory, REPO) == ["young", "future"]


def test_idle_counts_from_the_last_use_else_from_the_record(memory):
    dated(memory, REPO, idle=20, used=20, fresh=1, left=20)
    used(memory, REPO, used=(1, 2), left=(9, 15))
    memory.remember(REPO, "old news, learned today", id="told", time=ago(400))
    report = memory.streams.apply_retention(REPO, max_idle_days=10)
    assert report.archived == (("idle", "not recalled for 10 days"), ("left", "not recalled for 10 days"))


def test_the_best_are_kept_by_age_and_use(memory):
    dated(memory, REPO, old=300, older=400, useful=500, young=1)
    used(memory, REPO, useful=(7, 1))
    report = memory.streams.apply_retention(REPO, keep_best=2)
    assert report.archived == (("old", "worth less than the best 2"), ("older", "worth less than the best 2"))
    assert living(memory, REPO) == ["useful", "young"]


def test_of_equals_the_younger_stays(memory):
    dated(memory, REPO, a=5, b=5, c=5)
    assert [id for id, _ in memory.streams.apply_retention(REPO, keep_best=2, dry_run=True).archived] == ["a"]
    assert [id for id, _ in memory.streams.apply_retention(REPO, keep_best=1).archived] == ["a", "b"]


def test_the_worth_of_an_atom():
    stream = StreamState(1, "user=anna", 1, 0)
    fresh = standing(fact_row(1, stream, recorded=NOW), None, NOW)
    assert (fresh.value, fresh.age, fresh.idle) == (1.0, 0.0, 0.0)
    old = fact_row(1, stream, recorded=NOW - 90 * DAY)
    assert standing(old, None, NOW).value == pytest.approx(0.5)
    assert standing(old, AccessCount(3, NOW), NOW).value == pytest.approx(2.5)
    assert standing(old, AccessCount(3, NOW - 30 * DAY), NOW).value == pytest.approx(1.5)


def test_pinned_ones_stay_and_count(memory):
    dated(memory, REPO, pinned=900, a=2, b=1)
    memory.pin(REPO, "pinned")
    assert memory.streams.apply_retention(REPO, max_age_days=100, max_idle_days=100).archived == ()
    assert [id for id, _ in memory.streams.apply_retention(REPO, keep_best=2).archived] == ["a"]
    assert [id for id, _ in memory.streams.apply_retention(REPO, keep_best=1).archived] == ["b"]
    assert memory.streams.apply_retention(REPO, keep_best=1).archived == ()
    assert living(memory, REPO) == ["pinned"]


def test_observations_that_wait_for_their_summary_stay(memory):
    dated(memory, ANNA, fact=50)
    memory.remember(ANNA, "Anna likes tea.", kind="observation", id="waits", time=ago(60))
    memory.remember(ANNA, "Anna lives in Rome.", kind="observation", id="held", time=ago(60))
    store = store_of(memory)
    with store.writing():
        store.books.absorb(store.stream(ANNA).id, ["held"], 1)
    assert [id for id, _ in memory.streams.apply_retention(ANNA, keep_best=1, dry_run=True).archived] == ["held"]
    report = memory.streams.apply_retention(ANNA, max_age_days=10)
    assert [id for id, _ in report.archived] == ["fact", "held"]
    assert living(memory, ANNA) == ["waits"]


def test_where_no_summary_is_written_no_observation_waits(memory):
    memory.remember(REPO, "Tests live in tests/.", kind="observation", id="seen", time=ago(60))
    assert [id for id, _ in memory.streams.apply_retention(REPO, max_age_days=10).archived] == ["seen"]


def test_messages_are_never_touched(memory):
    memory.observe(REPO, [{"content": "an old message", "id": "m", "time": "2001-01-01"}])
    assert memory.streams.apply_retention(REPO, max_age_days=1, max_idle_days=0.000001, keep_best=1).archived == ()
    assert memory.get(REPO, "m").text == "an old message"


def test_a_dry_run_changes_nothing_and_tells_the_same(memory, path):
    dated(memory, REPO, a=50, b=40, c=1)
    before = [memory.get(REPO, id) for id in "abc"]
    dry = memory.streams.apply_retention(REPO, max_age_days=45, keep_best=1, dry_run=True)
    assert dry.dry_run
    assert [memory.get(REPO, id) for id in "abc"] == before
    wet = memory.streams.apply_retention(REPO, max_age_days=45, keep_best=1)
    assert (wet.archived, wet.kept) == (dry.archived, dry.kept)
    assert memory.streams.apply_retention(REPO, max_age_days=45, keep_best=1).archived == ()


def test_what_is_not_given_comes_from_the_settings(memory):
    dated(memory, ANNA, a=50, b=40, c=1)
    memory.streams.configure(ANNA, keep_best=2)
    assert [id for id, _ in memory.streams.apply_retention(ANNA, dry_run=True).archived] == ["a"]
    assert [id for id, _ in memory.streams.apply_retention(ANNA, max_age_days=30, dry_run=True).archived] == ["a", "b"]
    assert memory.streams.apply_retention(ANNA, keep_best=0).archived == ()


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        ({"max_size": 3}, "knows no max_size"),
        ({"fact_buffer_max": 3}, "knows no fact_buffer_max"),
        ({"max_age_days": -1}, "max_age_days cannot be -1"),
        ({"max_idle_days": float("nan")}, "max_idle_days"),
        ({"keep_best": 1.5}, "whole number"),
        ({"keep_best": True}, "whole number"),
        ({"max_age_days": "ten"}, "it is a number"),
    ],
    ids=str,
)
@pytest.mark.parametrize("scope", [REPO, ANNA])
def test_a_policy_that_makes_no_sense_is_refused(memory, scope, policy, reason):
    dated(memory, scope, a=50)
    with pytest.raises(InputError, match=reason):
        memory.streams.apply_retention(scope, **policy)
    assert living(memory, scope) == ["a"]


def test_archived_ones_are_not_recalled_and_come_back(memory):
    dated(memory, REPO, a=50)
    memory.remember(REPO, "Deployments happen on Fridays.")
    kept = memory.recall(REPO, "When do deployments happen?")[0].id
    memory.streams.apply_retention(REPO, keep_best=1)
    assert "a" not in [hit.id for hit in memory.recall(REPO, "fact a")]
    archived = memory.get(REPO, "a")
    assert (archived.retired is not None, archived.superseded_by, archived.valid_to) == (True, "", None)
    assert memory.streams.unarchive(REPO, "a").outcome == "stored"
    assert memory.streams.unarchive(REPO, "a").outcome == "duplicate"
    assert memory.recall(REPO, "fact a")[0].id == "a"
    assert sorted(living(memory, REPO)) == sorted(["a", kept])


def test_one_clean_up_is_one_step_of_the_version(memory):
    dated(memory, ANNA, a=50, b=50, c=50)
    before = memory.streams.list()[0].version
    memory.streams.apply_retention(ANNA, max_age_days=1)
    assert memory.streams.list()[0].version == before + 1
    memory.streams.apply_retention(ANNA, max_age_days=1)
    assert memory.streams.list()[0].version == before + 1


def test_a_twin_stored_since_keeps_the_archived_one_away(memory):
    old = memory.remember(REPO, "Tests live in tests/.", time=ago(60))
    memory.streams.apply_retention(REPO, max_age_days=10)
    new = memory.remember(REPO, "tests live in tests/")
    assert new.outcome == "stored"
    with pytest.raises(ConflictError, match=new.id):
        memory.streams.unarchive(REPO, old.id)
    assert living(memory, REPO) == [new.id]


def test_superseded_ones_and_strangers_do_not_come_back(memory):
    memory.remember(REPO, "Anna lives in Paris.", id="home")
    new = memory.update(REPO, "home", "Anna lives in Rome.")
    with pytest.raises(ConflictError, match=new.id):
        memory.streams.unarchive(REPO, "home")
    with pytest.raises(NotFoundError):
        memory.streams.unarchive(REPO, "nobody")
    with pytest.raises(NotFoundError):
        memory.streams.unarchive("user=nobody", "home")


def test_tombstones_survive_it_all(memory):
    gone = memory.remember(REPO, "The code is 4711.")
    memory.forget(REPO, gone.id)
    dated(memory, REPO, a=50)
    memory.streams.apply_retention(REPO, max_age_days=1)
    memory.streams.unarchive(REPO, "a")
    assert memory.remember(REPO, "The code is 4711.").outcome == "forgotten"


def test_words_with_a_tombstone_do_not_come_back(memory):
    old = memory.remember(REPO, "The code is 4711.", time=ago(60))
    memory.streams.apply_retention(REPO, max_age_days=10)
    store = store_of(memory)
    with store.writing():
        (row,) = store.by_id(store.stream(REPO).id, [old.id])
        store.bury(row.stream, [Tombstone(row.key, b"", b"", None)])
    assert memory.streams.unarchive(REPO, old.id).outcome == "forgotten"
    assert living(memory, REPO) == []


def test_a_large_stream_is_tidied_in_one_go(memory):
    memory.remember_many(REPO, [f"fact number {number}" for number in range(2300)])
    report = memory.streams.apply_retention(REPO, keep_best=300)
    assert (len(report.archived), report.kept) == (2000, 300)
    assert memory.status().retired == 2000
    assert memory.list(REPO, limit=1).items[0].text == "fact number 2000"


def test_forgetting_reaches_what_was_archived_with_the_same_words(path):
    with eunoe.open(path, embedder="none") as memory:
        old = memory.remember("user=anna", "Anna hides the key under the fern.", time="2020-01-01")
        assert memory.streams.apply_retention("user=anna", max_age_days=30).archived
        new = memory.remember("user=anna", "Anna hides the key under the fern.")
        report = memory.forget("user=anna", new.id, verify=True)
        assert set(report.atoms) == {old.id, new.id}
        assert report.verified
    assert b"under the fern" not in path.read_bytes()
