"""What is due, who works on it, and how a log is cut."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.records import NOON, make_record
from tests.support.steps import Steps

import eunoe
from eunoe.errors import ConflictError, EunoeError, InputError
from eunoe.memory import Memory
from eunoe.model.arguments import from_micros, utc_now
from eunoe.model.atom import Record
from eunoe.model.scope import Scope
from eunoe.model.stream import PRESETS
from eunoe.records import jobs
from eunoe.records import log as sessions
from eunoe.store.contract import ItemQuery
from eunoe.store.schema import IncognitoMark, Job, Lease, SessionState, StreamLink
from eunoe.store.sqlite import SqliteStore
from eunoe.text.normalize import fingerprint
from eunoe.text.sentences import token_count
from eunoe.work import leases

TALK = Scope(agent="cook", session="s1", user="anna")
GROUP = Scope(agent="cook", session="s2")
SESSION = PRESETS["session"]


@pytest.fixture
def memory(path: Path) -> Iterator[Memory]:
    with eunoe.open(path, embedder="none", llm="none", form=False) as memory:
        yield memory


@pytest.fixture
def store(path: Path, memory: Memory) -> Iterator[SqliteStore]:
    """The same file, seen past the engine."""
    store = Steps(SqliteStore(path))
    yield store
    store.close()


def session(store: SqliteStore, scope: Scope) -> SessionState | None:
    with store.reading():
        return sessions.load_session(store, store.stream(scope))


def claimed(store: SqliteStore, scope: Scope, **how: Any) -> Job | None:
    with store.writing():
        stream = store.stream(scope)
        assert stream
        return jobs.claim_job(store, stream, how.get("least", 1), how.get("ignore_pause", True), how.get("tried", ()))


def chunk(store: SqliteStore, job: Job) -> list[str]:
    with store.reading():
        return [row.text for row in jobs.job_messages(store, job)]


def test_messages_are_counted_once_with_the_weight_of_their_role(memory: Memory, store: SqliteStore) -> None:
    said = [{"role": role, "content": "x" * 45} for role in ("user", "assistant", "tool", "narrator", "system")]
    memory.observe(TALK, said)
    memory.observe(TALK, said)
    counted = session(store, TALK)
    assert counted
    assert counted.messages == 4
    assert counted.weight == pytest.approx(10 * (1.0 + 0.2 + 0.5 + 0.5))


def test_recalled_memory_counts_for_nothing(memory: Memory, store: SqliteStore) -> None:
    memory.observe(TALK, [{"role": "user", "content": "<MemoryContext>old news</MemoryContext>"}])
    counted = session(store, TALK)
    assert counted
    assert (counted.messages, counted.weight) == (0, 0.0)


def test_users_of_a_group_are_kept_and_odd_names_are_not(memory: Memory, store: SqliteStore) -> None:
    said = [{"role": "user", "user": name, "content": f"I am {name}."} for name in ("anna", "ben", " ", "anna", "a\tb")]
    memory.observe(GROUP, said)
    assert session(store, GROUP).users == ("anna", "ben")  # type: ignore[union-attr]


def test_a_conversation_is_linked_to_what_its_users_own(memory: Memory, store: SqliteStore) -> None:
    memory.observe(GROUP, [{"role": "user", "user": name, "content": f"I am {name}."} for name in ("anna", "ben")])
    with store.reading():
        stream = store.stream(GROUP)
        assert stream
        linked = store.streams(ids=[link.stream for link in store.load(StreamLink, source=stream.id)])
    assert {str(each.scope) for each in linked} == {"agent=cook/user=anna", "agent=cook/user=ben"}


def test_a_scope_that_no_preset_knows_is_not_counted(memory: Memory, store: SqliteStore) -> None:
    memory.observe({"discussion": "x"}, [f"word {place}" for place in range(60)])
    assert session(store, Scope(discussion="x")) is None


def test_messages_from_before_anybody_counted_are_due_with_the_next(memory: Memory, store: SqliteStore) -> None:
    memory.observe(TALK, ["one", "two"])
    memory.observe(GROUP, [{"role": "user", "user": "ben", "content": "Hello."}])
    with store.writing():
        store.drop(SessionState)
    memory.observe(TALK, ["three"])
    counted = session(store, TALK)
    assert counted
    assert (counted.messages, counted.users) == (3, ("anna",))


@pytest.mark.parametrize(
    ("messages", "weight", "due"),
    [(44, 999.0, False), (45, 0.0, True), (4, 1000.0, True), (3, 5000.0, False), (45, 1000.0, True)],
)
def test_due_after_enough_messages_or_tokens_but_never_under_the_minimum(
    messages: int, weight: float, due: bool
) -> None:
    assert sessions.is_due(SessionState(1, messages=messages, weight=weight), SESSION) is due


def test_a_piece_is_leased_to_one_and_taken_over_when_the_lease_ends(
    memory: Memory, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.observe(TALK, ["one", "two"])
    first = claimed(store, TALK)
    assert first
    assert chunk(store, first) == ["one", "two"]
    assert claimed(store, TALK) is None
    with store.writing():
        over = first.lease._replace(owner="somebody", until=utc_now() - timedelta(microseconds=1))
        store.save([first._replace(lease=over)])
    second = claimed(store, TALK)
    assert second
    assert second.start == first.start
    assert second.lease.owner == leases.current_owner()


def test_what_is_no_longer_held_can_neither_be_renewed_nor_finished(memory: Memory, store: SqliteStore) -> None:
    memory.observe(TALK, ["one"])
    job = claimed(store, TALK)
    assert job
    assert leases.renew(store, job)
    with store.writing():
        lost = job._replace(lease=job.lease._replace(owner="somebody"))
        store.save([lost])
    assert not leases.renew(store, job)
    with store.writing():
        assert not jobs.finish_job(store, job)
        leases.fail(store, job, "too late")
        leases.release(store, job)
        assert store.load(Job, stream=job.stream) == [lost]


def test_renewing_holds_a_job_for_longer_and_finishing_ends_no_other(
    memory: Memory, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for scope in (TALK, GROUP):
        memory.observe(scope, [{"role": "user", "user": "anna", "content": "Hello."}])
    job, other = claimed(store, TALK), claimed(store, GROUP)
    assert job
    assert other
    assert job.start == other.start
    later = utc_now() + timedelta(hours=1)
    monkeypatch.setattr(leases, "utc_now", lambda: later)
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(leases, "current_owner", lambda: "the thread that renews")
        assert leases.renew(store, job)
    with store.writing():
        (held,) = store.load(Job, stream=job.stream)
        assert held == job._replace(lease=job.lease._replace(until=later + timedelta(seconds=leases.lease_seconds())))
        assert jobs.finish_job(store, job)
        assert store.load(Job) == [other]


def test_a_job_that_is_given_back_is_there_for_the_next_as_if_nobody_had_begun_it(
    memory: Memory, store: SqliteStore
) -> None:
    memory.observe(TALK, ["one"])
    job = claimed(store, TALK)
    assert job
    with store.writing():
        leases.release(store, job)
        assert store.load(Job) == [job._replace(lease=Lease())]
    again = claimed(store, TALK, ignore_pause=False)
    assert again
    assert (again.start, again.stop) == (job.start, job.stop)


def test_what_nobody_counted_is_work_once_and_facts_are_none(memory: Memory, store: SqliteStore) -> None:
    memory.observe(GROUP, "What is said elsewhere is no work here.")
    memory.observe(TALK, ["one", "two"])
    memory.remember(TALK, "Anna likes tea.")
    with store.writing():
        store.drop(SessionState)
    job = claimed(store, TALK)
    assert job
    assert chunk(store, job) == ["one", "two"]
    assert session(store, TALK).cursor == job.stop  # type: ignore[union-attr]
    assert claimed(store, TALK) is None


def test_a_failure_waits_longer_each_time_and_never_for_more_than_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "utc_now", lambda: NOON)

    def pause(attempts: int) -> float:
        failed = leases.lease_after_failure(Lease(attempts=attempts - 1), "no answer", 7, 3)
        assert failed.retry
        assert failed.attempts == attempts
        return (failed.retry - NOON).total_seconds()

    pauses = [pause(attempts) for attempts in range(1, 40)]
    assert 22 <= pauses[0] <= 30
    assert pauses[1] > pauses[0]
    assert all(2700 <= pause <= 3600 for pause in pauses[8:])
    assert pauses == [pause(attempts) for attempts in range(1, 40)]


def test_a_failed_piece_waits_unless_asked_for_again_and_later_ones_go_on(memory: Memory, store: SqliteStore) -> None:
    memory.observe(TALK, ["one"])
    job = claimed(store, TALK)
    assert job
    with store.writing():
        leases.fail(store, job, "the model\nsaid  no " + "x" * 1000)
        failed = store.load(Job, stream=job.stream)[0].lease
    assert failed.error.startswith("the model said no")
    assert len(failed.error) <= 300
    assert failed.attempts == 1
    assert claimed(store, TALK, ignore_pause=False) is None
    memory.observe(TALK, ["two"])
    later = claimed(store, TALK, ignore_pause=False)
    assert later
    assert chunk(store, later) == ["two"]
    again = claimed(store, TALK, ignore_pause=True)
    assert again
    assert (again.start, again.stop) == (job.start, job.stop)
    assert again.lease._replace(until=None) == failed._replace(owner=leases.current_owner())


@pytest.mark.parametrize(("least", "enough"), [(None, 6), (5, 5), (1, 1)])
def test_a_conversation_waits_until_there_is_enough_of_it(
    memory: Memory, store: SqliteStore, least: int | None, enough: int
) -> None:
    memory.streams.set_preset("session", formation_messages=6)

    def is_claimable() -> bool:
        with store.reading():
            stream = store.stream(TALK)
            assert stream
            return jobs.can_claim(store, stream, least, ignore_pause=False)

    said = [f"word {place}" for place in range(enough)]
    for text in said[:-1]:
        memory.observe(TALK, text)
        assert not is_claimable()
        assert claimed(store, TALK, least=least) is None
    memory.observe(TALK, said[-1])
    assert is_claimable()
    job = claimed(store, TALK, least=least)
    assert job
    assert chunk(store, job) == said
    assert not is_claimable()


def test_a_lease_is_renewed_while_the_work_lasts_and_no_longer_when_it_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(leases.LEASE_VARIABLE, "0.03")
    answers = iter([True, EunoeError("the store is busy"), False])
    lost = threading.Event()
    threads: list[threading.Thread] = []

    def renew() -> bool:
        threads.append(threading.current_thread())
        answer = next(answers)
        if isinstance(answer, EunoeError):
            raise answer
        if not answer:
            lost.set()
        return answer

    with leases.renewing(renew):
        assert lost.wait(10)
        threads[-1].join(10)
        assert not threads[-1].is_alive()
    assert len(threads) == 3


def test_the_cursor_follows_the_work_and_counts_start_again(memory: Memory, store: SqliteStore) -> None:
    memory.observe(TALK, ["one", "two", "three"])
    before = session(store, TALK)
    job = claimed(store, TALK)
    counted = session(store, TALK)
    assert job
    assert before
    assert before.active
    assert counted == before._replace(cursor=job.stop, messages=0, weight=0.0)
    memory.observe(GROUP, "What is said elsewhere is no work here.")
    assert claimed(store, TALK) is None


def test_a_lease_that_is_no_number_of_seconds_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("soon", "0", "-3", "inf", "nan"):
        monkeypatch.setenv(leases.LEASE_VARIABLE, value)
        with pytest.raises(InputError, match=leases.LEASE_VARIABLE):
            leases.lease_seconds()
    monkeypatch.setenv(leases.LEASE_VARIABLE, "0.25")
    assert leases.lease_seconds() == 0.25


def test_an_incognito_session_leaves_nothing_on_disk(memory: Memory, path: Path) -> None:
    secret = {"agent": "cook", "session": "hush-hush-hush", "user": "xenophon"}
    memory.streams.set_incognito(secret)
    receipts = memory.observe(secret, ["The treasure lies under the oak."])
    assert [receipt.outcome for receipt in receipts] == ["ignored"]
    assert memory.form(secret).messages == 0
    assert memory.scopes() == []
    files = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert not any(word in files for word in (b"treasure", b"hush-hush", b"xenophon"))
    memory.streams.set_incognito(secret, on=False)
    assert memory.observe(secret, ["Hello."])[0].outcome == "stored"


def test_a_session_that_has_messages_cannot_become_incognito(memory: Memory) -> None:
    memory.observe(TALK, ["Hello."])
    with pytest.raises(ConflictError, match="forget them first"):
        memory.streams.set_incognito(TALK)
    assert memory.observe(TALK, ["And again."])[0].outcome == "stored"


SPELLINGS = [
    ("agent=a/session=s9/user=anna", {"user": "anna"}),
    ("agent=a/session=s9", {"user": "anna"}),
    ("agent=a/session=s9/thread=2/user=ben", {}),
    ("agent=a/user=anna", {"session": "s9"}),
]


@pytest.mark.parametrize("marked", [scope for scope, _ in SPELLINGS[:3]])
@pytest.mark.parametrize(("scope", "fields"), SPELLINGS)
def test_a_session_is_incognito_however_it_is_spelled(memory: Memory, marked, scope, fields) -> None:
    memory.streams.set_incognito(marked)
    secret = {"content": "The treasure lies under the oak.", "id": "m1", **fields}
    told, kept = memory.observe(scope, [secret, {"content": "Hello.", "session": "other"}])
    assert (told.outcome, told.id) == ("ignored", "m1")
    assert kept.outcome == ("stored" if "session" not in scope else "ignored")
    memory.streams.set_incognito(scope if "session" in scope else marked, on=False)
    assert memory.observe(scope, secret)[0].outcome == "stored"


@pytest.mark.parametrize(
    "scope", ["agent=b/session=s9", "session=s9", "agent=a/session=s8", "agent=a/session=s9/tenant=x", "agent=a"]
)
def test_other_sessions_are_kept_beside_one_that_is_incognito(memory: Memory, scope: str) -> None:
    memory.streams.set_incognito("agent=a/session=s9/user=anna")
    assert memory.observe(scope, "Hello.")[0].outcome == "stored"


@pytest.mark.parametrize(("scope", "fields"), SPELLINGS)
def test_a_session_that_has_messages_under_any_scope_cannot_become_incognito(memory, scope, fields) -> None:
    memory.observe(scope, {"content": "Hello.", **fields})
    with pytest.raises(ConflictError, match="forget them first"):
        memory.streams.set_incognito("agent=a/session=s9/user=carl")
    memory.streams.set_incognito("agent=b/session=s9/user=carl")


def test_a_session_becomes_incognito_beside_others_that_have_messages(memory: Memory) -> None:
    memory.observe("agent=a/user=anna", {"content": "Hello.", "session": "s8"})
    memory.observe("agent=a/tenant=x/user=anna", {"content": "Hello.", "session": "s9"})
    memory.remember("agent=a/session=s9/user=anna", "Anna likes tea.")
    memory.streams.set_incognito("agent=a/session=s9")
    assert memory.observe("agent=a/user=anna", {"content": "Hello again.", "session": "s9"})[0].outcome == "ignored"


def test_a_mark_on_the_very_scope_still_holds(memory: Memory, store: SqliteStore) -> None:
    with store.writing():
        store.save([IncognitoMark(fingerprint(TALK.text))])
    assert memory.observe(TALK, "Hello.")[0].outcome == "ignored"
    memory.streams.set_incognito(TALK, on=False)
    assert memory.observe(TALK, "Hello.")[0].outcome == "stored"


def test_forgetting_a_scope_drops_its_session_and_work(memory: Memory, store: SqliteStore) -> None:
    memory.observe(TALK, ["one"])
    job = claimed(store, TALK)
    memory.observe(TALK, ["two"])
    with store.writing():
        stream = store.stream(TALK)
        assert stream
        assert job
        sessions.forget_in_session(store, stream, True, "")
        assert store.load(SessionState) == []
        assert store.load(Job) == []
        assert not jobs.finish_job(store, job)


def test_forgetting_a_person_takes_them_out_of_the_users_and_clears_errors(memory: Memory, store: SqliteStore) -> None:
    memory.observe(GROUP, [{"role": "user", "user": name, "content": f"I am {name}."} for name in ("anna", "ben")])
    job = claimed(store, GROUP)
    memory.observe(GROUP, [{"role": "user", "user": "ben", "content": "Hello again."}])
    with store.writing():
        stream = store.stream(GROUP)
        assert stream
        assert job
        leases.fail(store, job, "cannot read 'I am anna.'")
        sessions.forget_in_session(store, stream, False, "Anna")
        (left,) = store.load(SessionState, stream=stream.id)
        assert (left.users, left.messages) == ((sessions.FORGOTTEN_USER, "ben"), 1)
        failed = store.load(Job, stream=stream.id)[0].lease
    assert failed.attempts == 1
    assert "anna" not in failed.error
    assert failed.error


def test_counts_follow_what_was_forgotten(memory: Memory, store: SqliteStore) -> None:
    receipts = memory.observe(TALK, ["one", "two", "three"])
    with store.writing():
        stream = store.stream(TALK)
        assert stream
        rows = store.select(ItemQuery(stream.id, ids=[receipts[0].id]))
        store.delete(stream.id, [row.seq for row in rows], store.advance(stream.id).version)
        sessions.forget_in_session(store, stream, False, "")
    counted = session(store, TALK)
    assert counted
    assert counted.messages == 2
    assert counted.weight == pytest.approx(len("two" + "three") / 4.5)


def row(seq: int, size: int, session: str, time: int) -> Record:
    return make_record(kind="message", seq=seq, text="x" * size, session=session, time=from_micros(time), position=seq)


LOGS = st.lists(
    st.tuples(st.integers(0, 400), st.sampled_from(["a", "a", "a", "b"]), st.sampled_from([1, 60, 3600])), max_size=60
)


@given(LOGS, st.integers(1, 200), st.integers(1, 5))
def test_every_message_is_in_exactly_one_piece_in_order_and_pieces_keep_their_limits(
    log: Sequence[tuple[int, str, int]], most_tokens: int, messages: int
) -> None:
    time, rows = 0, []
    for place, (size, name, step) in enumerate(log):
        time += step * 1_000_000
        rows.append(row(place + 1, size, name, time))
    settings = SESSION.changed(chunk_tokens=most_tokens, formation_messages=messages)
    chunks = jobs.cut_into_chunks(rows, settings)
    assert [one for chunk in chunks for one in chunk] == rows
    for piece in chunks:
        assert 1 <= len(piece) <= messages * 4
        assert len(piece) == 1 or sum(token_count(one.text) for one in piece) <= most_tokens


def test_a_piece_ends_where_the_talk_paused() -> None:
    times = [place * 1_000_000 + (place >= 6) * 7_200_000_000 for place in range(12)]
    rows = [row(place + 1, 9, "a", time) for place, time in enumerate(times)]
    assert [len(piece) for piece in jobs.cut_into_chunks(rows, SESSION.changed(formation_messages=2))] == [6, 6]
    sessions = [row(place + 1, 9, "a" if place < 5 else "b", place) for place in range(12)]
    assert [len(piece) for piece in jobs.cut_into_chunks(sessions, SESSION.changed(formation_messages=2))] == [5, 7]


def test_a_piece_takes_in_as_many_tokens_as_it_may() -> None:
    rows = [row(place + 1, 45, "a", place) for place in range(8)]
    pieces = jobs.cut_into_chunks(rows, SESSION.changed(chunk_tokens=3 * token_count("x" * 45)))
    assert [len(piece) for piece in pieces] == [3, 3, 2]


def test_a_single_huge_message_is_a_piece_of_its_own() -> None:
    rows = [row(1, 9, "a", 0), row(2, 900_000, "a", 1), row(3, 9, "a", 2)]
    assert [len(piece) for piece in jobs.cut_into_chunks(rows, SESSION)] == [1, 1, 1]


def test_a_very_long_log_is_cut_part_by_part_and_nothing_is_left_out(
    memory: Memory, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "_MAX_MESSAGES", 10)
    memory.streams.set_preset("session", formation_messages=1)
    said = [f"word {place}" for place in range(37)]
    memory.observe(TALK, said)
    formed: list[str] = []
    sizes = []
    while job := claimed(store, TALK):
        formed += chunk(store, job)
        sizes.append(len(chunk(store, job)))
        with store.writing():
            assert jobs.finish_job(store, job)
    assert formed == said
    assert sizes == [4] * 9 + [1]


def test_a_vector_that_is_none_is_refused_in_an_incognito_session_too(memory: Memory) -> None:
    memory.streams.set_incognito("session=s1/user=anna")
    with pytest.raises(EunoeError):
        memory.remember("session=s1/user=anna", "Anna likes tea.", vector=[None, None])


def test_an_incognito_session_keeps_nothing_that_is_remembered_or_written_either(memory, path):
    secret = "agent=a/session=hush/user=anna"
    memory.streams.set_incognito(secret)
    assert memory.remember(secret, "The code word is pomegranate.").outcome == "ignored"
    with pytest.raises(ConflictError, match="incognito"):
        memory.summaries.write(secret, "Anna likes pomegranates.")
    with pytest.raises(ConflictError, match="incognito"):
        memory.streams.configure(secret, consolidation_trigger=2)
    assert memory.scopes() == []
    memory.close()
    assert b"hush" not in path.read_bytes()
    assert b"pomegranate" not in path.read_bytes()


def test_a_group_stays_a_group_when_one_of_it_is_forgotten(memory: Memory, store: SqliteStore) -> None:
    """Else the other's own memory would be shown to all who are still there."""
    group = "agent=cook/session=s1"
    memory.remember("agent=cook/user=ben", "Ben has diabetes.")
    memory.observe(group, [{"content": "Hi, it is me.", "user": name, "speaker": name} for name in ("anna", "ben")])
    memory.forget(group, person="Anna")
    assert "diabetes" not in memory.context(group, "diabetes").text
    assert "anna" not in repr(session(store, Scope.of(group)))
    assert "diabetes" in memory.context("agent=cook/session=s2/user=ben", "diabetes").text


def test_a_user_who_is_forgotten_in_a_session_of_their_own_leaves_no_one_behind(memory: Memory) -> None:
    own = "agent=cook/session=s1/user=anna"
    memory.remember("agent=cook/user=anna", "Anna has diabetes.")
    memory.observe(own, [{"content": "Hi, it is me.", "speaker": "anna"}, {"content": "Hello.", "speaker": "Eve"}])
    memory.forget(own, person="Anna")
    assert "diabetes" in memory.context(own, "diabetes").text


def test_what_is_said_while_a_conversation_is_switched_off_is_due_when_it_is_on_again(memory: Memory) -> None:
    memory.observe(TALK, "I am allergic to peanuts.")
    for scope in (TALK, "agent=cook/user=anna"):
        memory.streams.configure(scope, is_active=False)
    memory.observe(TALK, "My sister lives in Oslo.")
    assert memory.form(TALK).messages == 0
    memory.streams.configure(TALK, is_active=True)
    assert memory.status().due_messages == 2
    assert memory.admin.process_cold_sessions(idle=0, minimum=2).messages == 2
