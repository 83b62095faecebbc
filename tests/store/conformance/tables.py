"""Promises about the tables beside the records, about counts, and about what deleted texts leave behind."""

import random
from datetime import timedelta
from operator import attrgetter

from tests.store.conformance.samples import (
    ANNA,
    BEN,
    NOW,
    delete_records,
    insert_facts,
    seqs_of,
    table_records,
    tombstone,
)
from tests.support.steps import Steps

from eunoe.model.scope import Scope
from eunoe.store.contract import Counts
from eunoe.store.schema import (
    TABLES,
    AccessCount,
    CallRecord,
    Job,
    Lease,
    PassageGraphRecord,
    RevisionRecord,
    SessionState,
    StreamLink,
    SummaryState,
    UsageRecord,
)
from eunoe.store.statements import MAX_PARAMETERS

_MINUTE = timedelta(minutes=1)


class TableConformance:
    def test_tables_keep_records_by_their_keys(self, store: Steps) -> None:
        (anna,), (ben,) = insert_facts(store, ANNA), insert_facts(store, BEN)
        records = [table_records(anna), table_records(anna, "second"), table_records(ben)]
        assert [type(record) for record in records[0]] == list(TABLES)
        with store.writing():
            for first, changed, other in zip(*records, strict=True):
                table, names = type(first), TABLES[type(first)].key
                key = {name: getattr(first, name) for name in names}
                assert store.load(table) == []
                store.save([first])
                assert store.load(table, **key) == [first]
                store.save([other, changed])
                store.save([])
                assert store.load(table) == sorted([changed, other], key=attrgetter(*names))
                assert store.load(table, **key) == store.load(table, **{**key, names[0]: [key[names[0]]]}) == [changed]
                assert store.load(table, **{names[0]: []}) == []
                store.drop(table, **{names[0]: []})
                store.drop(table, **key)
                store.drop(table, **key)
                assert store.load(table) == [other]

    def test_tables_are_asked_for_any_columns(self, store: Steps) -> None:
        (anna,), (ben,) = insert_facts(store, ANNA), insert_facts(store, BEN)
        links = [StreamLink(anna.stream, ben.stream), StreamLink(anna.stream, anna.stream)]
        graphs = [PassageGraphRecord(fact.seq, b"content", "model", "{}") for fact in (anna, ben)]
        summaries = [SummaryState(ben.stream, rebuild=True), SummaryState(anna.stream)]
        with store.writing():
            for records in (links, graphs, summaries):
                store.save(records)
            assert store.load(StreamLink, source=anna.stream) == sorted(links)
            assert store.load(StreamLink, stream=ben.stream) == links[:1]
            assert store.load(StreamLink, source=ben.stream) == []
            assert store.load(PassageGraphRecord, content=[b"content", b"none"]) == graphs
            assert store.load(SummaryState, rebuild=True) == summaries[:1]
            assert store.load(SummaryState, rebuild=False) == summaries[1:]

    def test_tables_answer_in_the_order_of_their_keys(self, store: Steps) -> None:
        (anna,), (ben,) = insert_facts(store, ANNA), insert_facts(store, BEN)
        jobs = [Job(stream, start, start + 1) for stream in sorted([anna.stream, ben.stream]) for start in (0, 9, 12)]
        usage = [UsageRecord(operation, model) for operation in "Zaä" for model in "Za"]
        with store.writing():
            store.save(jobs[::-1])
            store.save(usage[::-1])
            assert store.load(UsageRecord) == usage
            assert store.load(Job, stream=jobs[0].stream) == jobs[:3]
            assert store.load(Job, stream=[ben.stream, anna.stream], start=[12, 9, 9]) == [*jobs[1:3], *jobs[4:]]
            store.drop(Job, stream=jobs[0].stream, start=[0, 12, 99])
            assert store.load(Job) == [jobs[1], *jobs[3:]]
            store.drop(Job)
            assert store.load(Job) == []

    def test_long_lists_of_keys_find_each_record_once_and_in_order(self, store: Steps) -> None:
        (fact,) = insert_facts(store, ANNA)
        revisions = [RevisionRecord(fact.stream, number, 0, "", (), "", NOW) for number in range(3 * MAX_PARAMETERS)]
        numbers = [revision.number for revision in reversed(revisions)]
        with store.writing():
            store.save(revisions)
            assert store.load(RevisionRecord, stream=fact.stream, number=[*numbers, *numbers]) == revisions
            store.drop(RevisionRecord, stream=fact.stream, number=numbers[1:])
            assert store.load(RevisionRecord) == revisions[-1:]

    def test_idle_sessions_come_longest_idle_first(self, store: Steps) -> None:
        idle = {"a": (4, 3), "b": (9, 4), "c": (3, 5), "d": (9, 0), "e": (0, 2), "f": (0, 2), "g": (0, 2)}
        later = NOW + _MINUTE
        with store.writing():
            ids = {name: store.create_stream(Scope(session=name)).id for name in idle}
            sessions = {
                name: SessionState(ids[name], messages=messages, active=NOW - minutes * _MINUTE)
                for name, (messages, minutes) in idle.items()
            }
            store.save(list(sessions.values()))
            store.save([Job(ids["e"], 0, 5), Job(ids["f"], 0, 5, Lease("busy", later))])
            store.save([Job(ids["g"], 0, 5, Lease(attempts=1, retry=later, error="it failed"))])
        with store.reading():
            assert store.idle_sessions(NOW, 4, 10) == [sessions[name] for name in "bae"]
            assert store.idle_sessions(NOW, 4, 2) == [sessions[name] for name in "ba"]
            assert store.idle_sessions(NOW, 3, 1) == [sessions["c"]]
            late = store.idle_sessions(later + _MINUTE, 4, 10)
            assert {session.stream for session in late} == {ids[name] for name in "abdefg"}

    def test_access_counts_add_up_and_go_with_their_record(self, store: Steps) -> None:
        first, second, third = insert_facts(store, ANNA, 3)
        with store.writing():
            gone = AccessCount(third.seq + 99, 1, NOW)
            store.add_access([AccessCount(first.seq, 2, NOW), AccessCount(second.seq, 1, NOW), gone])
            store.add_access([AccessCount(first.seq, 3, NOW - _MINUTE), AccessCount(second.seq, 1, NOW + _MINUTE)])
            store.add_access([])
            counts = [AccessCount(first.seq, 5, NOW), AccessCount(second.seq, 2, NOW + _MINUTE)]
            assert store.load(AccessCount, seq=seqs_of([first, second, third])) == store.load(AccessCount) == counts
        delete_records(store, [first])
        with store.reading():
            assert store.load(AccessCount) == counts[1:]

    def test_usage_adds_up_by_operation_and_model(self, store: Steps) -> None:
        with store.writing():
            store.add_usage([])
            store.add_usage(
                [UsageRecord("form", "m", 1, 0, 10, 5, 100, 0.5), UsageRecord("form", "m", 1, 1, 10, 5, 100)]
            )
            store.add_usage([UsageRecord("form", "n", 1), UsageRecord("consolidate", "m", 1, cost=0.25)])
            assert store.load(UsageRecord) == [
                UsageRecord("consolidate", "m", 1, cost=0.25),
                UsageRecord("form", "m", 2, 1, 20, 10, 200, 0.5),
                UsageRecord("form", "n", 1),
            ]

    def test_the_last_calls_are_kept(self, store: Steps) -> None:
        calls = [CallRecord(0, "form", f"model {place}", "", NOW, 5, 3, 2, 0.5, "") for place in range(7)]
        with store.writing():
            store.add_calls([], 4)
            assert store.calls(9) == []
            store.add_calls(calls[:3], 4)
            store.add_calls(calls[3:], 4)
            found = store.calls(9)
            assert [call.model for call in found] == ["model 6", "model 5", "model 4", "model 3"]
            assert [call._replace(number=0) for call in reversed(found)] == calls[3:]
            assert store.calls(1) == found[:1]
            assert store.calls(2, before=found[1].number) == found[2:]
            assert len({call.number for call in found}) == 4

    def test_counts_tell_what_is_there_what_is_due_and_what_fails(self, store: Steps) -> None:
        with store.reading():
            empty = store.counts()
        assert empty == Counts(0, {}, 0, 0, 0, {}, empty.bytes, 0, 0, 0, "", 0, 0)
        insert_facts(store, ANNA, 3, pending=True)
        messages = insert_facts(store, BEN, 2, kind="message")
        insert_facts(store, BEN, 1, kind="observation", retired=NOW)
        messages += insert_facts(store, BEN, 3, kind="message")
        stream = messages[0].stream
        job = Job(stream, messages[0].seq, messages[3].seq)
        with store.writing():
            store.save([SessionState(stream, messages[3].seq, messages=1)])
            store.save([job])
            store.save([RevisionRecord(stream, 1, 0, "text", (), "hand", NOW)])
            counts = store.counts()
            assert counts.bytes > 0
            assert counts == Counts(2, {"fact": 3, "message": 5}, 1, 3, 0, {}, counts.bytes, 4, 1, 0, "", 1, 0)
            store.save([job._replace(lease=Lease(attempts=1, error="no answer"))])
            assert (store.counts().failing, store.counts().error) == (1, "no answer")
            store.save([SummaryState(stream, 1, 1, lease=Lease(attempts=2, error="too short"))])
            counts = store.counts()
            anna = store.counts([store.create_stream(ANNA).id])
            ben = store.counts([stream])
        insert_facts(store, ANNA, 2, in_review=True)
        insert_facts(store, ANNA, 1, in_review=True, retired=NOW)
        with store.reading():
            assert (store.counts().in_review, store.counts().kinds) == (2, counts.kinds)
        assert counts.failing == 2
        assert counts.error in ("no answer", "too short")
        assert anna == Counts(1, {"fact": 3}, 0, 3, 0, {}, 0, 0, 0, 0, "", 0, 0)
        assert ben == Counts(1, {"message": 5}, 1, 0, 0, {}, 0, 4, 1, 2, counts.error, 1, 0)

    def test_a_sound_store_has_no_damage(self, store: Steps) -> None:
        first, second = insert_facts(store, ANNA, 2)
        with store.writing():
            store.save([RevisionRecord(first.stream, 1, 0, "text", (first.id,), "hand", NOW)])
            store.add_tombstones(first.stream, [tombstone("one")])
            store.add_access([AccessCount(first.seq, 1, NOW)])
            store.put_vectors(store.create_model("model", 2).number, [(first.seq, b"1234"), (second.seq, b"5678")])
            store.update([second._replace(pinned=True, version=store.advance(first.stream).version)])
            store.drop(RevisionRecord, stream=first.stream)
            store.delete(first.stream, [first.seq], store.advance(first.stream).version)
        read: list[int] = []
        with store.reading():
            assert store.noticed(first.stream) == store.damage(first.stream) == ()
            report = store.check(read.append)
        assert report
        assert read[-1] == report.rows > 0

    def test_deleted_words_leave_no_trace(self, store: Steps) -> None:
        words = [f"the secret of number {number} is {number * number}" for number in range(50)]
        long = "a long secret story " * 2000
        facts = [insert_facts(store, ANNA, text=text)[0] for text in [*words, long]]
        graph = f"the graph of {facts[0].id}"
        with store.writing():
            store.save([PassageGraphRecord(facts[0].seq, b"x", "model", graph)])
        assert store.find_traces([words[7], long, graph]).keys() == {words[7], long, graph}
        delete_records(store, facts)
        store.scrub()
        assert store.find_traces([*words, long, graph]) == store.find_traces([]) == {}
        store.scrub(timeout=0)

    def test_traces_name_every_place(self, store: Steps) -> None:
        insert_facts(store, ANNA, text="the secret is in the text")
        insert_facts(store, ANNA, metadata={"note": "the secret is in the metadata"})
        with store.writing():
            store.set_value("note", "the secret is in a value")
        secrets = [f"the secret is in {place}" for place in ("the text", "the metadata", "a value", "nothing at all")]
        traces = store.find_traces(secrets)
        assert traces.keys() == set(secrets[:3])
        assert all(traces.values())

    def test_dropped_and_replaced_words_leave_no_trace(self, store: Steps) -> None:
        """Records of many sizes, some of which stay, move between pages while the others go."""
        dice = random.Random(6)
        there: dict[tuple[int, int], str] = {}
        gone: list[str] = []
        with store.writing():
            streams = [store.create_stream(Scope(user=name)).id for name in "abcd"]
        for number in range(1, 250):
            place = dice.choice(streams), number
            there[place] = f"the secret of revision {number} " + "and more " * dice.randrange(150)
            dropped = [place for place in there if dice.random() < 0.05]
            with store.writing():
                store.save([RevisionRecord(*place, 0, there[place], (), "hand", NOW)])
                for stream, old in dropped:
                    store.drop(RevisionRecord, stream=stream, number=old)
            gone += [there.pop(place) for place in dropped]
        assert store.find_traces(list(there.values())).keys() == set(there.values())
        store.scrub()
        assert store.find_traces(gone) == {}
