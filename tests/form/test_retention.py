"""Clean-up: what goes, what stays whatever happens, and the way back."""

from __future__ import annotations

import sqlite3
from datetime import timedelta

import pytest
from tests.support.records import items_of, make_record
from tests.support.steps import steps_of

import eunoe
from eunoe.errors import ConflictError, InputError, NotFoundError
from eunoe.form.retention import worth_of
from eunoe.model.arguments import utc_now
from eunoe.model.scope import Scope
from eunoe.store.schema import Absorption, AccessCount, Tombstone

REPO = "repository=eunoe"
ANNA = "agent=cook/user=anna"
NOW = utc_now()


def ago(days):
    return NOW - timedelta(days=days)


def add_facts(memory, scope, **days):
    """One fact for each name, recorded so many days ago."""
    memory.remember_many(scope, [{"text": f"fact {name}", "id": name} for name in days])
    store = steps_of(memory)
    records = items_of(store, scope, ids=list(days))
    with store.writing():
        store.update([record._replace(recorded=ago(days[record.id])) for record in records])


def add_access(memory, scope, **accesses):
    """Note how often each was recalled, and how many days ago."""
    store = steps_of(memory)
    seqs = {record.id: record.seq for record in items_of(store, scope, ids=list(accesses))}
    with store.writing():
        store.add_access([AccessCount(seqs[id], times, ago(days)) for id, (times, days) in accesses.items()])


def open_ids(memory, scope):
    return [item.id for item in memory.list(scope, kinds=("fact", "observation")).items]


def test_nothing_goes_without_a_policy(memory):
    add_facts(memory, REPO, a=4000)
    report = memory.streams.apply_retention(REPO)
    assert (report.archived, report.kept, report.dry_run) == ((), 1, False)


def test_nobody_waits_for_a_clean_up_that_finds_nothing(memory, path):
    add_facts(memory, REPO, a=40)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    assert memory.streams.apply_retention(REPO).kept == memory.streams.apply_retention(REPO, keep_best=1).kept == 1
    assert len(memory.streams.apply_retention(REPO, max_age_days=1, dry_run=True).archived) == 1
    holder.close()


def test_a_scope_that_holds_nothing_is_tidy(memory):
    assert memory.streams.apply_retention("user=nobody", keep_best=1).archived == ()
    assert memory.scopes() == []


def test_too_old_goes_and_says_why(memory):
    add_facts(memory, REPO, old=11, young=9)
    memory.remember(REPO, "happened long ago", id="past", time=ago(12))
    memory.remember(REPO, "will happen", id="future", time=ago(-50))
    report = memory.streams.apply_retention(REPO, max_age_days=10)
    assert report.archived == (("old", "older than 10 days"), ("past", "older than 10 days"))
    assert report.kept == 2
    assert open_ids(memory, REPO) == ["young", "future"]


def test_idle_counts_from_the_last_use_else_from_the_record(memory):
    add_facts(memory, REPO, idle=20, used=20, fresh=1, left=20)
    add_access(memory, REPO, used=(1, 2), left=(9, 15))
    memory.remember(REPO, "old news, learned today", id="told", time=ago(400))
    report = memory.streams.apply_retention(REPO, max_idle_days=10)
    assert report.archived == (("idle", "not recalled for 10 days"), ("left", "not recalled for 10 days"))


def test_the_best_are_kept_by_age_and_use(memory):
    add_facts(memory, REPO, old=300, older=400, useful=500, young=1)
    add_access(memory, REPO, useful=(7, 1))
    report = memory.streams.apply_retention(REPO, keep_best=2)
    assert report.archived == (("old", "worth less than the best 2"), ("older", "worth less than the best 2"))
    assert open_ids(memory, REPO) == ["useful", "young"]


def test_a_clean_up_stays_within_its_scope(memory):
    add_facts(memory, REPO, a=100, b=1)
    add_facts(memory, ANNA, c=200, d=300)
    assert memory.streams.apply_retention(REPO).kept == 2
    report = memory.streams.apply_retention(REPO, keep_best=1)
    assert ([id for id, _ in report.archived], report.kept) == (["a"], 1)
    assert (open_ids(memory, REPO), open_ids(memory, ANNA)) == (["b"], ["c", "d"])


def test_of_equals_the_younger_stays(memory):
    add_facts(memory, REPO, a=5, b=5, c=5)
    assert [id for id, _ in memory.streams.apply_retention(REPO, keep_best=2, dry_run=True).archived] == ["a"]
    assert [id for id, _ in memory.streams.apply_retention(REPO, keep_best=1).archived] == ["a", "b"]


def test_the_worth_of_an_atom():
    fresh = worth_of(make_record(recorded=NOW), None, NOW)
    assert (fresh.worth, fresh.age_days, fresh.idle_days) == (1.0, 0.0, 0.0)
    old = make_record(recorded=ago(90))
    assert worth_of(old, None, NOW).worth == pytest.approx(0.5)
    assert worth_of(old, AccessCount(1, 3, NOW), NOW).worth == pytest.approx(2.5)
    assert worth_of(old, AccessCount(1, 3, ago(30)), NOW).worth == pytest.approx(1.5)
    assert worth_of(old, AccessCount(1, 3, ago(30)), NOW).idle_days == pytest.approx(30)
    assert worth_of(make_record(recorded=ago(3), time=ago(45)), None, NOW)[1:] == pytest.approx((45, 3, 0.5**0.5))
    assert worth_of(make_record(recorded=ago(3), time=ago(-45)), None, NOW)[1:] == pytest.approx((0, 3, 1))


def test_pinned_ones_stay_and_count(memory):
    add_facts(memory, REPO, pinned=900, a=2, b=1)
    memory.pin(REPO, "pinned")
    assert memory.streams.apply_retention(REPO, max_age_days=100, max_idle_days=100).archived == ()
    assert [id for id, _ in memory.streams.apply_retention(REPO, keep_best=2).archived] == ["a"]
    assert [id for id, _ in memory.streams.apply_retention(REPO, keep_best=1).archived] == ["b"]
    assert memory.streams.apply_retention(REPO, keep_best=1).archived == ()
    assert open_ids(memory, REPO) == ["pinned"]


def test_observations_that_wait_for_their_summary_stay(memory):
    add_facts(memory, ANNA, fact=50)
    memory.remember(ANNA, "Anna likes tea.", kind="observation", id="waits", time=ago(60))
    memory.remember(ANNA, "Anna lives in Rome.", kind="observation", id="held", time=ago(60))
    store = steps_of(memory)
    with store.writing():
        store.save([Absorption(store.stream(Scope.of(ANNA)).id, "held", 1)])
    assert [id for id, _ in memory.streams.apply_retention(ANNA, keep_best=1, dry_run=True).archived] == ["held"]
    report = memory.streams.apply_retention(ANNA, max_age_days=10)
    assert [id for id, _ in report.archived] == ["fact", "held"]
    assert open_ids(memory, ANNA) == ["waits"]


def test_where_no_summary_is_written_no_observation_waits(memory):
    memory.remember(REPO, "Tests live in tests/.", kind="observation", id="seen", time=ago(60))
    assert [id for id, _ in memory.streams.apply_retention(REPO, max_age_days=10).archived] == ["seen"]


def test_messages_are_never_touched(memory):
    memory.observe(REPO, [{"content": "an old message", "id": "m", "time": "2001-01-01"}])
    assert memory.streams.apply_retention(REPO, max_age_days=1, max_idle_days=0.000001, keep_best=1).archived == ()
    assert memory.get(REPO, "m").text == "an old message"


def test_a_dry_run_changes_nothing_and_tells_the_same(memory, path):
    add_facts(memory, REPO, a=50, b=40, c=1)
    before = [memory.get(REPO, id) for id in "abc"]
    dry = memory.streams.apply_retention(REPO, max_age_days=45, keep_best=1, dry_run=True)
    assert dry.dry_run
    assert [memory.get(REPO, id) for id in "abc"] == before
    wet = memory.streams.apply_retention(REPO, max_age_days=45, keep_best=1)
    assert (wet.archived, wet.kept) == (dry.archived, dry.kept)
    assert memory.streams.apply_retention(REPO, max_age_days=45, keep_best=1).archived == ()


def test_what_is_not_given_comes_from_the_settings(memory):
    add_facts(memory, ANNA, a=50, b=40, c=1)
    memory.streams.configure(ANNA, keep_best=2)
    assert [id for id, _ in memory.streams.apply_retention(ANNA, dry_run=True).archived] == ["a"]
    assert [id for id, _ in memory.streams.apply_retention(ANNA, max_age_days=30, dry_run=True).archived] == ["a", "b"]
    assert memory.streams.apply_retention(ANNA, keep_best=0).archived == ()


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
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
    add_facts(memory, scope, a=50)
    with pytest.raises(InputError, match=reason):
        memory.streams.apply_retention(scope, **policy)
    assert open_ids(memory, scope) == ["a"]


def test_archived_ones_are_not_recalled_and_come_back(memory):
    add_facts(memory, REPO, a=50)
    memory.remember(REPO, "Deployments happen on Fridays.")
    kept = memory.recall(REPO, "When do deployments happen?")[0].id
    memory.streams.apply_retention(REPO, keep_best=1)
    assert "a" not in [hit.id for hit in memory.recall(REPO, "fact a")]
    archived = memory.get(REPO, "a")
    assert (archived.retired is not None, archived.superseded_by, archived.valid_to) == (True, "", None)
    assert memory.streams.unarchive(REPO, "a").outcome == "stored"
    assert memory.streams.unarchive(REPO, "a").outcome == "duplicate"
    assert memory.recall(REPO, "fact a")[0].id == "a"
    assert sorted(open_ids(memory, REPO)) == sorted(["a", kept])


def test_a_twin_stored_since_keeps_the_archived_one_away(memory):
    old = memory.remember(REPO, "Tests live in tests/.", time=ago(60))
    memory.streams.apply_retention(REPO, max_age_days=10)
    new = memory.remember(REPO, "tests live in tests/")
    assert new.outcome == "stored"
    with pytest.raises(ConflictError, match=new.id):
        memory.streams.unarchive(REPO, old.id)
    assert open_ids(memory, REPO) == [new.id]


def test_superseded_ones_and_strangers_do_not_come_back(memory):
    memory.remember(REPO, "Anna lives in Paris.", id="home")
    new = memory.update(REPO, "home", "Anna lives in Rome.")
    with pytest.raises(ConflictError, match=new.id):
        memory.streams.unarchive(REPO, "home")
    with pytest.raises(NotFoundError):
        memory.streams.unarchive(REPO, "nobody")
    with pytest.raises(NotFoundError):
        memory.streams.unarchive("user=nobody", "home")


def test_words_with_a_tombstone_do_not_come_back(memory):
    old = memory.remember(REPO, "The code is 4711.", time=ago(60))
    memory.streams.apply_retention(REPO, max_age_days=10)
    store = steps_of(memory)
    (record,) = items_of(store, REPO, ids=[old.id])
    with store.writing():
        store.add_tombstones(record.stream, [Tombstone(record.identity)])
    assert memory.streams.unarchive(REPO, old.id).outcome == "forgotten"
    assert open_ids(memory, REPO) == []


def test_forgetting_reaches_what_was_archived_with_the_same_words(path):
    with eunoe.open(path, embedder="none") as memory:
        old = memory.remember("user=anna", "Anna hides the key under the fern.", time="2020-01-01")
        assert memory.streams.apply_retention("user=anna", max_age_days=30).archived
        new = memory.remember("user=anna", "Anna hides the key under the fern.")
        report = memory.forget("user=anna", new.id, verify=True)
        assert set(report.atoms) == {old.id, new.id}
        assert report.verified
    assert b"under the fern" not in path.read_bytes()
