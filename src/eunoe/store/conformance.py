"""The suite that shows a backend keeps the contract. It needs pytest, which nothing else in the package does.

Run it on a backend by naming how it is opened:

    class TestMyStore(StoreConformance):
        @pytest.fixture
        def opener(self, tmp_path):
            return lambda: MyStore(tmp_path / "memory.db")

`opener` opens the same store every time it is called within one test. A store that is gone when it is closed sets
`lasting = False`; the tests that open it a second time are then left out.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import pytest

from eunoe.errors import StoreBusyError, StoreError
from eunoe.model.record import Record
from eunoe.store.books import Health
from eunoe.store.contract import Bearer, IndexRow, Marks, Store
from eunoe.store.tables import (
    AccessCount,
    Job,
    PassageGraphRecord,
    RevisionRecord,
    SessionState,
    SettingsRecord,
    StreamState,
    SummaryState,
    Tombstone,
    UsageRecord,
)

KINDS = ("message", "fact", "observation")
Opener = Callable[[], Store]


class _Stop(Exception):
    """Raised by a test in the middle of a step."""


def row(seq: int, stream: StreamState, **fields: Any) -> Record:
    """A fact with this number, and whatever else is given."""
    fact = Record(
        seq=seq,
        stream=stream.id,
        version=stream.version,
        pending=0,
        kind="fact",
        id=f"id-{seq}",
        key=f"key-{seq}".encode(),
        text=f"text number {seq}",
        caption="",
        time=None,
        session="",
        speaker="",
        role="",
        label="",
        people="",
        files="",
        valid_from=None,
        valid_to=None,
        recorded=1_700_000_000_000_000,
        retired=None,
        pinned=0,
        position=None,
        supersedes="",
        superseded_by="",
        source="",
        pages="",
        metadata="",
    )
    return fact._replace(**fields)


def put(store: Store, scope: str, count: int = 1, **fields: Any) -> list[Record]:
    """Writes rows in one step, as the engine does."""
    with store.writing():
        stream = store.advance(store.make_stream(scope).id)
        first = store.reserve(count)
        rows = [row(seq, stream, **fields) for seq in range(first, first + count)]
        store.insert(rows)
    return rows


def stone(name: str, lane: str = "", position: int | None = None) -> Tombstone:
    return Tombstone(name.encode(), f"content of {name}".encode(), lane.encode(), position)


def seqs(rows: Sequence[Record | IndexRow | Bearer]) -> list[int]:
    return [one.seq for one in rows]


class StoreConformance:
    """Every promise of the contract, as a test."""

    lasting: ClassVar[bool] = True

    @pytest.fixture
    def opener(self) -> Opener:
        raise NotImplementedError("give a fixture `opener` that returns a function which opens the store")

    @pytest.fixture
    def store(self, opener: Opener) -> Iterator[Store]:
        store = opener()
        yield store
        store.close()

    @pytest.fixture
    def reopen(self, opener: Opener) -> Iterator[Opener]:
        """Opens the store once more, beside the first."""
        if not self.lasting:
            pytest.skip("this store is gone when it is closed")
        opened: list[Store] = []

        def again() -> Store:
            opened.append(opener())
            return opened[-1]

        yield again
        for store in opened:
            store.close()

    def test_says_where_it_is_and_which_schema_it_has(self, store: Store) -> None:
        assert store.target
        assert store.schema >= 1

    def test_a_scope_without_a_stream_has_none(self, store: Store) -> None:
        with store.reading():
            assert store.stream("user=anna") is None
            assert store.streams() == []

    def test_a_stream_is_made_once(self, store: Store) -> None:
        with store.writing():
            made = store.make_stream("user=anna")
            assert made.scope == "user=anna"
            assert made.position == 0
            assert store.make_stream("user=anna") == made
            assert store.make_stream("user=ben").id != made.id
        with store.reading():
            assert store.stream("user=anna") == made

    def test_streams_are_paged_in_the_order_of_their_scopes(self, store: Store) -> None:
        with store.writing():
            for name in ("user=c", "user=a", "agent=z", "user=b"):
                store.make_stream(name)
        with store.reading():
            assert [stream.scope for stream in store.streams()] == ["agent=z", "user=a", "user=b", "user=c"]
            assert [stream.scope for stream in store.streams(limit=2)] == ["agent=z", "user=a"]
            assert [stream.scope for stream in store.streams(after="user=a", limit=1)] == ["user=b"]
            assert store.streams(after="user=c") == []

    def test_advance_moves_version_and_log_of_one_stream(self, store: Store) -> None:
        with store.writing():
            anna, ben = store.make_stream("user=anna"), store.make_stream("user=ben")
            moved = store.advance(anna.id, 3)
            assert moved == anna._replace(version=anna.version + 1, position=3)
            assert store.advance(anna.id) == moved._replace(version=moved.version + 1)
        with store.reading():
            assert store.stream("user=ben") == ben

    def test_numbers_are_reserved_once(self, store: Store) -> None:
        with store.writing():
            first = store.reserve(3)
            second = store.reserve(1)
        assert first > 0
        assert second >= first + 3
        with store.writing():
            assert store.reserve(1) > second

    def test_numbers_of_deleted_rows_are_not_used_again(self, store: Store, reopen: Opener) -> None:
        rows = put(store, "user=anna", 3)
        with store.writing():
            version = store.advance(rows[0].stream).version
            store.delete(rows[0].stream, seqs(rows), version)
        other = reopen()
        with other.writing():
            assert other.reserve(1) > rows[-1].seq

    def test_every_field_comes_back_as_it_was(self, store: Store) -> None:
        full: dict[str, Any] = {
            "kind": "message",
            "pending": 1,
            "text": "NUL \0, emoji 🌊, \u2028, right to left: \u202b\u05e9\u05dc",
            "caption": "a dog",
            "time": -1,
            "session": "s1",
            "speaker": "Anna",
            "role": "user",
            "label": "preference",
            "people": '["Ben"]',
            "files": '["a/b.py"]',
            "valid_from": 0,
            "valid_to": 253_402_300_799_999_999,
            "pinned": 1,
            "position": 4,
            "supersedes": "before",
            "superseded_by": "after",
            "source": '["m1"]',
            "pages": '["home"]',
            "metadata": '{"a":1}',
        }
        (written,) = put(store, "user=anna", **full)
        with store.reading():
            assert store.by_seq([written.seq]) == [written]
            (entry,) = store.entries(written.stream, 0, None)
        assert entry.vector is None
        names = [name for name in IndexRow._fields if name != "vector"]
        assert [getattr(entry, name) for name in names] == [getattr(written, name) for name in names]

    def test_long_texts_and_long_lists_fit(self, store: Store) -> None:
        text = "0123456789" * 1_100_000
        (long,) = put(store, "user=anna", text=text)
        rows = put(store, "user=anna", 2500)
        with store.reading():
            assert store.by_seq([long.seq])[0].text == text
            assert sorted(store.by_seq(seqs(rows))) == rows
            assert sorted(store.by_id(rows[0].stream, [one.id for one in rows])) == rows
            assert sorted(store.by_key(rows[0].stream, [one.key for one in rows])) == rows

    def test_rows_are_found_in_their_stream_only(self, store: Store) -> None:
        (anna,) = put(store, "user=anna", id="same", key=b"same")
        (ben,) = put(store, "user=ben", id="same", key=b"same")
        with store.reading():
            assert store.by_id(anna.stream, ["same"]) == [anna]
            assert store.by_key(ben.stream, [b"same"]) == [ben]
            assert store.by_id(anna.stream, ["other"]) == []
            assert store.by_id(anna.stream, []) == []
            assert store.by_key(anna.stream, []) == []
            assert store.by_seq([]) == []

    def test_ids_are_unique_in_a_stream(self, store: Store) -> None:
        put(store, "user=anna", id="same")
        with pytest.raises(StoreError):
            put(store, "user=anna", id="same")

    def test_keys_are_unique_among_rows_that_are_not_retired(self, store: Store) -> None:
        (old,) = put(store, "user=anna", key=b"same")
        with pytest.raises(StoreError):
            put(store, "user=anna", key=b"same")
        with store.writing():
            store.replace([old._replace(retired=7)])
        (new,) = put(store, "user=anna", key=b"same")
        put(store, "user=anna", key=b"same", retired=8)
        with store.reading():
            assert store.by_key(new.stream, [b"same"]) == [new]

    def test_replace_writes_a_row_anew(self, store: Store) -> None:
        first, second = put(store, "user=anna", 2)
        changed = first._replace(version=9, text="new words", retired=5, pinned=1, key=b"new")
        with store.writing():
            store.replace([changed])
            store.replace([])
        with store.reading():
            assert store.page(first.stream, 0, 10, KINDS, True) == [changed, second]

    def test_pages_are_in_order_and_filtered_before_the_limit(self, store: Store) -> None:
        put(store, "user=ben", 3)
        facts = put(store, "user=anna", 3)
        messages = put(store, "user=anna", 3, kind="message")
        closed = put(store, "user=anna", 2, retired=1)
        stream = facts[0].stream
        with store.reading():
            assert store.page(stream, 0, 100, KINDS, True) == [*facts, *messages, *closed]
            assert store.page(stream, 0, 100, KINDS, False) == [*facts, *messages]
            assert store.page(stream, 0, 2, ("message",), False) == messages[:2]
            assert store.page(stream, messages[1].seq, 2, ("message",), False) == messages[2:]
            assert store.page(stream, closed[-1].seq, 2, KINDS, True) == []

    def test_the_tail_of_a_session_is_its_last_messages_latest_first(self, store: Store) -> None:
        with store.writing():
            stream = store.advance(store.make_stream("user=anna").id, 6)
            first = store.reserve(7)
            log = [
                row(first + place, stream, kind="message", session="ab"[place % 2], position=place)
                for place in range(6)
            ]
            store.insert([*log, row(first + 6, stream, session="a")])
        with store.reading():
            assert store.tail(stream.id, "a", 2) == [log[4], log[2]]
            assert store.tail(stream.id, "b", 9) == [log[5], log[3], log[1]]
            assert store.tail(stream.id, "", 9) == []

    def test_citing_rows_are_those_with_a_source(self, store: Store) -> None:
        put(store, "user=anna", 2)
        cited = put(store, "user=anna", 2, source='["m1"]')
        put(store, "user=ben", source='["m1"]')
        with store.reading():
            assert store.citing(cited[0].stream) == cited

    def test_entries_give_what_changed_since_a_version(self, store: Store) -> None:
        first = put(store, "user=anna", 2)
        second = put(store, "user=anna", 1)
        put(store, "user=ben", 1)
        stream = first[0].stream
        with store.reading():
            assert seqs(store.entries(stream, 0, None)) == seqs([*first, *second])
            assert seqs(store.entries(stream, first[0].version, None)) == seqs(second)
            assert store.entries(stream, second[0].version, None) == []
        with store.writing():
            version = store.advance(stream).version
            store.replace([first[0]._replace(version=version, pinned=1)])
        with store.reading():
            (entry,) = store.entries(stream, second[0].version, None)
            assert (entry.seq, entry.pinned) == (first[0].seq, 1)

    def test_bearing_gives_living_atoms_with_a_text_in_their_metadata_changed_since_a_version(
        self, store: Store
    ) -> None:
        first = put(store, "user=anna", 2, metadata='{"colour": "red"}')
        second = put(store, "user=anna", 1, metadata='{"colour": "blue"}')
        put(store, "user=anna", 1, metadata='{"Colour": "red"}')
        put(store, "user=anna", 1, kind="observation", metadata='{"colour": "red"}')
        put(store, "user=anna", 1, kind="message", metadata='{"colour": "red"}')
        put(store, "user=ben", 1, metadata='{"colour": "red"}')
        stream = first[0].stream

        def bearing(since: int, *kinds: str) -> list[int]:
            with store.reading():
                return sorted(seqs(store.bearing(stream, kinds or ["fact"], '"colour"', since)))

        assert bearing(0) == seqs([*first, *second])
        assert bearing(first[0].version) == seqs(second)
        assert bearing(second[0].version) == []
        assert len(bearing(0, "observation")) == 1
        assert len(bearing(0, "observation", "fact")) == 4
        with store.writing():
            version = store.advance(stream).version
            store.replace([first[0]._replace(version=version, people='["Ben"]', metadata='{"colour": "green"}')])
            store.replace([first[1]._replace(version=version, retired=5)])
        with store.reading():
            (atom,) = store.bearing(stream, ["fact"], '"colour"', second[0].version)
        assert atom == (first[0].seq, "fact", '["Ben"]', '{"colour": "green"}')
        assert bearing(0) == seqs([first[0], second[0]])

    def test_a_step_that_raises_leaves_no_marks(self, store: Store) -> None:
        with store.writing():
            store.marks[1] = Marks(version=1)
        assert store.marks == {1: Marks(version=1)}

        def break_off() -> None:
            with store.writing():
                raise _Stop

        with pytest.raises(_Stop):
            break_off()
        assert store.marks == {}

    def test_removed_gives_what_was_deleted_since_a_version(self, store: Store) -> None:
        rows = put(store, "user=anna", 3)
        stream = rows[0].stream
        versions = []
        for one in rows[:2]:
            with store.writing():
                versions.append(store.advance(stream).version)
                store.delete(stream, [one.seq], versions[-1])
        with store.reading():
            assert store.removed(stream, rows[0].version) == seqs(rows[:2])
            assert store.removed(stream, versions[0]) == [rows[1].seq]
            assert store.removed(stream, versions[1]) == []
            assert seqs(store.entries(stream, 0, None)) == [rows[2].seq]
            assert store.by_seq(seqs(rows)) == [rows[2]]

    def test_delete_takes_the_vectors_of_all_models_and_counts_them(self, store: Store) -> None:
        first, second = put(store, "user=anna", 2)
        with store.writing():
            models = [store.model(name, 2) for name in ("one", "two")]
            for model in models:
                store.put_vectors(model, [(first.seq, b"1111"), (second.seq, b"2222")])
            assert store.delete(first.stream, [first.seq], store.advance(first.stream).version) == 2
            assert store.delete(first.stream, [], store.advance(first.stream).version) == 0
        with store.reading():
            assert store.counts().vectors == {"one": 1, "two": 1}
            assert seqs(store.without_vector(models[0], 0, 9)) == []

    def test_tombstones_are_found_by_key_and_by_place(self, store: Store) -> None:
        with store.writing():
            anna, ben = store.make_stream("user=anna").id, store.make_stream("user=ben").id
            stones = [stone("a", "lane", 1), stone("b", "lane", 5), stone("c", "other", 7), stone("d")]
            store.bury(anna, stones)
            store.bury(anna, stones[:1])
            store.bury(ben, [stone("e", "lane", 2)])
            store.bury(ben, [])
        with store.reading():
            assert store.buried(anna, [b"a", b"d", b"e"]) == [stones[0], stones[3]]
            assert store.buried(anna, []) == []
            assert store.has_buried(anna)
            assert not store.has_buried(99)
            assert store.buried_tail(anna, b"lane", 1) == [stones[1]]
            assert store.buried_tail(anna, b"lane", 9) == [stones[1], stones[0]]
            assert store.buried_tail(anna, b"", 9) == []
            assert sorted(store.tombstones(anna)) == sorted(stones)
            assert store.counts().tombstones == 5
        with store.writing():
            store.unbury(anna, [b"a", b"b", b"e"])
        with store.reading():
            assert sorted(store.tombstones(anna)) == sorted(stones[2:])
            assert [one.key for one in store.tombstones(ben)] == [b"e"]

    def test_a_model_is_made_once(self, store: Store) -> None:
        with store.writing():
            number = store.model("static", 256)
            assert store.model("static", 256) == number
            assert store.model("minilm", 384) != number
        with store.reading():
            assert store.find_model("static") == (number, 256)
            assert store.find_model("none") is None

    def test_vectors_are_kept_per_model(self, store: Store) -> None:
        first, second = put(store, "user=anna", 2)
        with store.writing():
            one, two = store.model("one", 2), store.model("two", 2)
            store.put_vectors(one, [(first.seq, b"old!"), (second.seq, b"2222")])
            store.put_vectors(one, [(first.seq, b"1111")])
            store.put_vectors(two, [(first.seq, b"3333")])
        with store.reading():
            assert [entry.vector for entry in store.entries(first.stream, 0, one)] == [b"1111", b"2222"]
            assert [entry.vector for entry in store.entries(first.stream, 0, two)] == [b"3333", None]
            assert [entry.vector for entry in store.entries(first.stream, 0, None)] == [None, None]
            assert store.counts().vectors == {"one": 2, "two": 1}

    def test_a_dropped_model_takes_its_vectors_along(self, store: Store) -> None:
        (fact,) = put(store, "user=anna")
        with store.writing():
            one, two = store.model("one", 2), store.model("two", 2)
            store.put_vectors(one, [(fact.seq, b"1111")])
            store.put_vectors(two, [(fact.seq, b"2222")])
            store.drop_model(one)
        with store.reading():
            assert store.find_model("one") is None
            assert store.counts().vectors == {"two": 1}
            assert [entry.vector for entry in store.entries(fact.stream, 0, one)] == [None]
            assert [entry.vector for entry in store.entries(fact.stream, 0, two)] == [b"2222"]

    def test_rows_without_a_vector_are_paged(self, store: Store) -> None:
        rows = put(store, "user=anna", 4) + put(store, "user=ben", 1)
        with store.writing():
            model = store.model("one", 2)
            store.put_vectors(model, [(rows[1].seq, b"1111")])
        with store.reading():
            assert store.without_vector(model, 0, 2) == [rows[0], rows[2]]
            assert store.without_vector(model, rows[2].seq, 9) == rows[3:]
            assert store.without_vector(-1, 0, 9) == rows

    def test_waiting_rows_come_oldest_first_and_those_of_some_streams_newest_first(self, store: Store) -> None:
        late = put(store, "user=ben", 2, pending=1)
        put(store, "user=anna", 2)
        later = put(store, "user=anna", 1, pending=1)
        with store.reading():
            assert store.waiting(9) == [*late, *later]
            assert store.waiting(2) == late
            assert store.waiting(9, [later[0].stream]) == later
            assert store.waiting(9, [later[0].stream, late[0].stream]) == [*later, *late[::-1]]
            assert store.waiting(2, [later[0].stream, late[0].stream]) == [*later, late[1]]
            assert store.waiting(1, [late[0].stream]) == late[1:]
            assert store.waiting(9, []) == []
            assert store.counts().pending == 3

    def test_adopting_a_model_marks_what_lacks_a_vector_and_moves_every_stream_on(self, store: Store) -> None:
        first, second = put(store, "user=anna", 2, pending=1)
        (third,) = put(store, "user=ben")
        with store.writing():
            model = store.model("one", 2)
            store.put_vectors(model, [(first.seq, b"1111")])
            store.adopt(model)
        with store.reading():
            assert seqs(store.waiting(9)) == [second.seq, third.seq]
            assert seqs(store.entries(first.stream, first.version, model)) == [first.seq, second.seq]
            for scope, before in (("user=anna", first), ("user=ben", third)):
                stream = store.stream(scope)
                assert stream is not None
                assert stream.version == before.version + 1
                assert {one.version for one in store.page(stream.id, 0, 9, KINDS, True)} == {stream.version}
        with store.writing():
            store.adopt(None)
        with store.reading():
            assert store.waiting(9) == []

    def test_meta_keeps_values_by_name(self, store: Store) -> None:
        with store.writing():
            store.set_meta("model", "one")
            store.set_meta("model", "two")
        with store.reading():
            assert store.get_meta("model") == "two"
            assert store.get_meta("none of these") is None

    def test_counts_tell_what_is_there(self, store: Store) -> None:
        put(store, "user=anna", 3)
        put(store, "user=ben", 2, kind="message")
        put(store, "user=ben", 1, kind="observation", retired=1)
        with store.reading():
            counts = store.counts()
        assert counts.streams == 2
        assert counts.kinds == {"fact": 3, "message": 2}
        assert (counts.retired, counts.pending, counts.tombstones) == (1, 0, 0)
        assert counts.vectors == {}
        assert counts.bytes > 0

    def test_a_step_that_raises_has_never_happened(self, store: Store) -> None:
        (kept,) = put(store, "user=anna")
        before = self.everything(store)

        def break_off() -> None:
            with store.writing():
                stream = store.advance(store.make_stream("user=anna").id, 2)
                store.make_stream("user=ben")
                store.insert([row(store.reserve(1), stream)])
                store.replace([kept._replace(text="other")])
                store.delete(kept.stream, [kept.seq], stream.version)
                store.bury(stream.id, [stone("a")])
                store.put_vectors(store.model("one", 2), [(kept.seq, b"1111")])
                store.set_meta("name", "value")
                raise _Stop

        with pytest.raises(_Stop):
            break_off()
        assert self.everything(store) == before
        put(store, "user=anna")

    def test_a_failed_statement_takes_its_whole_step_along(self, store: Store) -> None:
        put(store, "user=anna", id="taken")
        before = self.everything(store)

        def clash() -> None:
            with store.writing():
                stream = store.advance(store.make_stream("user=anna").id)
                first = store.reserve(2)
                store.insert([row(first, stream)])
                store.insert([row(first + 1, stream, id="taken")])

        with pytest.raises(StoreError):
            clash()
        assert self.everything(store) == before

    def test_a_read_that_raises_leaves_the_store_usable(self, store: Store) -> None:
        def break_off() -> None:
            with store.reading():
                store.counts()
                raise _Stop

        with pytest.raises(_Stop):
            break_off()
        put(store, "user=anna")

    def test_reading_is_one_snapshot(self, store: Store) -> None:
        put(store, "user=anna")
        with ThreadPoolExecutor(1) as other, store.reading():
            before = self.seen(store)
            other.submit(put, store, "user=anna").result()
            other.submit(put, store, "user=ben").result()
            assert self.seen(store) == before
        with store.reading():
            assert self.seen(store) != before

    def test_a_snapshot_is_as_of_the_moment_reading_began(self, store: Store) -> None:
        with ThreadPoolExecutor(1) as other, store.reading():
            other.submit(put, store, "user=anna").result()
            assert store.streams() == []

    def test_a_read_inside_a_step_is_part_of_it(self, store: Store) -> None:
        put(store, "user=anna")
        with ThreadPoolExecutor(1) as other, store.reading():
            other.submit(put, store, "user=ben").result()
            with store.reading():
                assert [stream.scope for stream in store.streams()] == ["user=anna"]
            assert [stream.scope for stream in store.streams()] == ["user=anna"]
        with store.writing():
            store.make_stream("user=cid")
            with store.reading():
                assert len(store.streams()) == 3
            store.make_stream("user=dan")
        assert self.scopes(store) == ["user=anna", "user=ben", "user=cid", "user=dan"]

    def test_a_write_inside_a_step_is_refused(self, store: Store) -> None:
        with store.reading(), pytest.raises(StoreError):
            put(store, "user=anna")
        with store.writing(), pytest.raises(StoreError):
            put(store, "user=anna")
        assert self.scopes(store) == []
        put(store, "user=anna")

    def test_what_is_not_committed_is_not_seen(self, store: Store) -> None:
        with ThreadPoolExecutor(1) as other, store.writing():
            store.make_stream("user=anna")
            assert other.submit(self.scopes, store).result() == []
        assert self.scopes(store) == ["user=anna"]

    def test_writers_wait_for_each_other(self, store: Store) -> None:
        entered, order = threading.Event(), []

        def second() -> None:
            entered.set()
            with store.writing():
                order.append("second")

        with ThreadPoolExecutor(1) as other:
            with store.writing():
                waiting = other.submit(second)
                entered.wait()
                order.append("first")
            waiting.result()
        assert order == ["first", "second"]

    def test_a_writer_may_have_little_patience(self, store: Store) -> None:
        def second() -> None:
            with pytest.raises(StoreBusyError), store.writing(patience=0.01):
                pass

        with ThreadPoolExecutor(1) as other:
            with store.writing():
                other.submit(second).result()
            put(store, "user=anna")

    def test_threads_write_and_read_at_once(self, store: Store) -> None:
        def work(name: str) -> list[int]:
            numbers = []
            for _ in range(25):
                numbers += seqs(put(store, "user=all", 2))
                with store.reading():
                    assert seqs(store.by_seq(numbers[-2:])) == numbers[-2:]
            return numbers

        with ThreadPoolExecutor(4) as threads:
            written = [number for part in threads.map(work, "abcd") for number in part]
        with store.reading():
            stream = store.stream("user=all")
            assert stream is not None
            rows = store.page(stream.id, 0, 1000, KINDS, True)
        assert seqs(rows) == sorted(written)
        assert len(set(written)) == 200
        assert stream.version == len({one.version for one in rows}) == 100

    def test_every_version_between_is_a_whole_step(self, store: Store) -> None:
        """A reader that follows by deltas ends with what a fresh reader sees."""
        done = threading.Event()

        def write() -> None:
            for _ in range(40):
                rows = put(store, "user=anna", 2)
                with store.writing():
                    version = store.advance(rows[0].stream).version
                    store.delete(rows[0].stream, [rows[0].seq], version)
            done.set()

        held: set[int] = set()
        version = 0
        with ThreadPoolExecutor(1) as other:
            writer = other.submit(write)
            last = False
            while not last:
                last = done.is_set()
                with store.reading():
                    stream = store.stream("user=anna")
                    if stream:
                        held.update(seqs(store.entries(stream.id, version, None)))
                        held.difference_update(store.removed(stream.id, version))
                        version = stream.version
                        assert held == set(seqs(store.page(stream.id, 0, 1000, KINDS, True)))
            writer.result()
        assert len(held) == 40

    def test_what_was_written_is_there_when_opened_again(self, store: Store, reopen: Opener) -> None:
        rows = put(store, "user=anna", 2)
        with store.writing():
            store.put_vectors(store.model("one", 2), [(rows[0].seq, b"1111")])
            store.bury(rows[0].stream, [stone("a")])
            store.set_meta("name", "value")
        before = self.everything(store)
        store.close()
        other = reopen()
        assert self.everything(other) == before
        with other.reading():
            assert other.get_meta("name") == "value"

    def test_two_openings_see_each_other_at_once(self, store: Store, reopen: Opener) -> None:
        other = reopen()
        for writer, reader in ((store, other), (other, store)):
            rows = put(writer, "user=anna", 2)
            with reader.reading():
                assert reader.by_seq(seqs(rows)) == rows

    def test_a_closed_store_says_so(self, store: Store) -> None:
        store.close()
        store.close()
        with pytest.raises(StoreError), store.reading():
            pass
        with pytest.raises(StoreError), store.writing():
            pass

    def test_deleted_words_leave_no_trace(self, store: Store) -> None:
        words = [f"the secret of number {number} is {number * number}" for number in range(50)]
        long = "a long secret story " * 2000
        rows = [put(store, "user=anna", text=text)[0] for text in [*words, long]]
        assert store.traces([words[7], long]).keys() == {words[7], long}
        with store.writing():
            version = store.advance(rows[0].stream).version
            store.delete(rows[0].stream, seqs(rows), version)
        store.scrub()
        assert store.traces([*words, long]) == {}
        assert store.traces([]) == {}
        store.scrub(patience=0)

    def test_traces_name_every_place(self, store: Store) -> None:
        put(store, "user=anna", text="the secret is in the text")
        put(store, "user=anna", metadata='{"note":"the secret is in the metadata"}')
        with store.writing():
            store.set_meta("note", "the secret is in a setting")
        found = store.traces(
            ["the secret is in the text", "the secret is in the metadata", "the secret is in a setting"]
        )
        assert len(found) == 3
        assert all(found.values())
        assert store.traces(["the secret is nowhere to be found"]) == {}

    def test_settings_are_kept_per_stream(self, store: Store) -> None:
        books = store.books
        with store.writing():
            anna, ben = store.make_stream("user=anna"), store.make_stream("agent=ben")
            assert books.settings(anna.id) is None
            assert books.configured() == []
            books.put_settings(SettingsRecord(anna.id, "user", "{}"))
            last = SettingsRecord(anna.id, "user", '{"keep_best":5}')
            books.put_settings(last)
            other = SettingsRecord(ben.id, "agent", "{}")
            books.put_settings(other)
        with store.reading():
            assert books.settings(anna.id) == last
            assert books.configured() == [(ben, other), (anna, last)]
        with store.writing():
            books.drop_settings(anna.id)
            books.drop_settings(anna.id)
        with store.reading():
            assert books.settings(anna.id) is None
            assert books.configured() == [(ben, other)]

    def test_a_session_is_dropped_with_its_work(self, store: Store) -> None:
        books = store.books
        with store.writing():
            anna, ben = store.make_stream("user=anna").id, store.make_stream("user=ben").id
            assert books.session(anna) is None
            session = SessionState(anna, 7, 3, 2.5, 1_700_000_000_000_000, '["Änna"]')
            books.put_session(SessionState(anna))
            books.put_session(session)
            books.put_session(SessionState(ben))
            books.put_work([Job(anna, 0, 7), Job(ben, 0, 7)])
        with store.reading():
            assert books.session(anna) == session
        with store.writing():
            books.drop_session(anna)
        with store.reading():
            assert books.session(anna) is None
            assert books.work(anna) == []
            assert books.session(ben) == SessionState(ben)
            assert books.work(ben) == [Job(ben, 0, 7)]

    def test_work_is_known_by_its_stream_and_start(self, store: Store) -> None:
        books = store.books
        with store.writing():
            anna, ben = store.make_stream("user=anna").id, store.make_stream("user=ben").id
            books.put_work([])
            books.put_work([Job(anna, 9, 12), Job(anna, 0, 9), Job(ben, 0, 4)])
            late = Job(anna, 9, 12, "worker", 50, 2, 60, "it failed")
            books.put_work([late])
        with store.reading():
            assert books.work(anna) == [Job(anna, 0, 9), late]
        with store.writing():
            books.drop_work(anna, 0)
            books.drop_work(anna, 1)
        with store.reading():
            assert books.work(anna) == [late]
            assert books.work(ben) == [Job(ben, 0, 4)]

    def test_idle_sessions_come_longest_idle_first(self, store: Store) -> None:
        books = store.books
        with store.writing():
            made = {name: store.make_stream(f"session={name}") for name in "abcdefg"}
            sessions = {
                "a": SessionState(made["a"].id, messages=4, active=30),
                "b": SessionState(made["b"].id, messages=9, active=20),
                "c": SessionState(made["c"].id, messages=3, active=10),
                "d": SessionState(made["d"].id, messages=9, active=100),
                "e": SessionState(made["e"].id, messages=0, active=40),
                "f": SessionState(made["f"].id, messages=0, active=40),
                "g": SessionState(made["g"].id, messages=0, active=40),
            }
            for session in sessions.values():
                books.put_session(session)
            books.put_work([Job(made["e"].id, 0, 5), Job(made["f"].id, 0, 5, owner="busy", until=150)])
            books.put_work([Job(made["g"].id, 0, 5, attempts=1, retry=150, error="it failed")])
        with store.reading():
            found = [(made[name], sessions[name]) for name in "bae"]
            assert books.idle(100, 4, 10) == found
            assert books.idle(100, 4, 2) == found[:2]
            assert [session for _, session in books.idle(100, 3, 1)] == [sessions["c"]]
            late = {stream.scope for stream, _ in books.idle(151, 4, 10)}
            assert late == {f"session={name}" for name in "abdefg"}

    def test_a_summary_row_is_written_anew(self, store: Store) -> None:
        books = store.books
        with store.writing():
            stream = store.make_stream("user=anna").id
            assert books.summary(stream) is None
            books.put_summary(SummaryState(stream))
            full = SummaryState(stream, 3, 4, 1, "worker", 50, 2, 60, "it failed")
            books.put_summary(full)
        with store.reading():
            assert books.summary(stream) == full

    def test_revisions_are_kept_in_order(self, store: Store) -> None:
        books = store.books
        with store.writing():
            anna, ben = store.make_stream("user=anna").id, store.make_stream("user=ben").id
            rows = [
                RevisionRecord(anna, number, number - 1, f"text {number}", '["o1"]', "hand", 7) for number in (2, 1, 3)
            ]
            for one in rows:
                books.put_revision(one)
            books.put_revision(rows[0]._replace(stream=ben))
        with store.reading():
            assert books.revisions(anna) == sorted(rows)
            assert books.revision(anna, 2) == rows[0]
            assert books.revision(anna, 9) is None
        with store.writing():
            books.drop_revisions(anna, [])
            books.drop_revisions(anna, [2, 3, 9])
        with store.reading():
            assert books.revisions(anna) == [rows[1]]
            assert books.revision(ben, 2) == rows[0]._replace(stream=ben)

    def test_observations_wait_until_a_revision_absorbs_them(self, store: Store) -> None:
        books = store.books
        put(store, "user=anna", 1)
        put(store, "user=anna", 1, kind="message")
        put(store, "user=anna", 1, kind="observation", retired=1)
        waiting = put(store, "user=anna", 3, kind="observation")
        other = put(store, "user=ben", 1, kind="observation", id=waiting[0].id)
        stream = waiting[0].stream
        ids = [one.id for one in waiting]
        with store.reading():
            assert books.unabsorbed(stream) == waiting
            assert books.unabsorbed_count(stream) == 3
        with store.writing():
            books.absorb(stream, [], 1)
            books.absorb(stream, [ids[0]], 1)
            books.absorb(stream, [ids[1]], 2)
        with store.reading():
            assert books.absorbed(stream) == {ids[0]: 1, ids[1]: 2}
            assert books.unabsorbed(stream) == waiting[2:]
            assert books.unabsorbed_count(stream) == 1
            assert books.unabsorbed(other[0].stream) == other
            assert books.absorbed(other[0].stream) == {}
        with store.writing():
            books.release(stream, [])
            books.release(stream, [ids[0], "no such id"])
            books.absorb(stream, [ids[1]], 3)
        with store.reading():
            assert books.absorbed(stream) == {ids[1]: 3}
            assert books.unabsorbed(stream) == [waiting[0], waiting[2]]

    def test_long_lists_are_absorbed_and_released(self, store: Store) -> None:
        books = store.books
        rows = put(store, "user=anna", 2500, kind="observation")
        ids = [one.id for one in rows]
        with store.writing():
            books.absorb(rows[0].stream, ids, 1)
            books.touch({one.seq: AccessCount(1, 5) for one in rows})
            assert books.unabsorbed_count(rows[0].stream) == 0
            assert len(books.uses(seqs(rows))) == 2500
            books.release(rows[0].stream, ids)
            assert books.unabsorbed(rows[0].stream) == rows
            for number in range(1, 2501):
                books.put_revision(RevisionRecord(rows[0].stream, number, 0, "", "", "", 0))
            books.drop_revisions(rows[0].stream, range(1, 2501))
            assert books.revisions(rows[0].stream) == []

    def test_the_latest_atoms_are_living_ones_of_a_kind(self, store: Store) -> None:
        books = store.books
        facts = put(store, "user=anna", 4)
        put(store, "user=anna", 1, kind="observation")
        put(store, "user=anna", 1, retired=1)
        put(store, "user=ben", 1)
        stream = facts[0].stream
        with store.reading():
            assert books.latest(stream, "fact", 3) == facts[:0:-1]
            assert books.latest(stream, "fact", 99) == facts[::-1]
            assert len(books.latest(stream, "observation", 9)) == 1
            assert books.living(stream, "fact") == 4
            assert books.living(stream, "observation") == 1

    def test_summaries_that_wait_to_be_written_anew_are_found(self, store: Store) -> None:
        books = store.books
        with store.writing():
            streams = [store.make_stream(f"user={name}") for name in "abc"]
            for stream, rebuild in zip(streams, (1, 0, 1), strict=True):
                books.put_summary(SummaryState(stream.id, rebuild=rebuild))
        with store.reading():
            assert books.rebuilds(9) == [streams[0], streams[2]]
            assert len(books.rebuilds(1)) == 1
        with store.writing():
            books.put_summary(SummaryState(streams[0].id))
            assert books.rebuilds(9) == [streams[2]]

    def test_links_are_known_from_both_ends(self, store: Store) -> None:
        books = store.books
        with store.writing():
            session, user, agent = (store.make_stream(name) for name in ("session=s", "user=u", "agent=a"))
            for target in (user, agent, user):
                books.link(session.id, target.id)
        with store.reading():
            assert books.resting_on(session.id) == [agent, user]
            assert books.resting_on(user.id) == []
            assert books.rests_on(user.id) == books.rests_on(agent.id) == [session]

    def test_uses_add_up_and_go_with_their_row(self, store: Store) -> None:
        books = store.books
        first, second, third = put(store, "user=anna", 3)
        with store.writing():
            books.touch(
                {first.seq: AccessCount(2, 50), second.seq: AccessCount(1, 10), third.seq + 99: AccessCount(1, 10)}
            )
            books.touch({first.seq: AccessCount(3, 40)})
            books.touch({})
        with store.reading():
            assert books.uses([*seqs([first, second, third]), third.seq + 99]) == {
                first.seq: AccessCount(5, 50),
                second.seq: AccessCount(1, 10),
            }
            assert books.uses([]) == {}
        with store.writing():
            store.delete(first.stream, [first.seq], store.advance(first.stream).version)
        with store.reading():
            assert books.uses([first.seq, second.seq]) == {second.seq: AccessCount(1, 10)}

    def test_readings_are_found_by_row_and_by_content(self, store: Store) -> None:
        books = store.books
        first, second, third = put(store, "user=anna", 3)
        (other,) = put(store, "user=ben", 1)
        read = PassageGraphRecord(first.seq, b"one", "model", '{"entities": ["Anna"]}')
        with store.writing():
            books.put_readings([read._replace(data="{}"), PassageGraphRecord(other.seq, b"two", "model", "{}")])
            books.put_readings([read])
            books.put_readings([])
        with store.reading():
            assert books.readings(seqs([first, second])) == {first.seq: read.data}
            assert books.readings([]) == {}
            assert books.known_readings(first.stream, [b"one", b"two", b"three"]) == {b"one": read}
            assert [row.seq for row in books.unread(first.stream, KINDS, 0, 9)] == seqs([second, third])

    def test_living_rows_without_a_reading_are_due_in_order(self, store: Store) -> None:
        books = store.books
        rows = put(store, "user=anna", 5)
        stream = rows[0].stream
        with store.writing():
            version = store.advance(stream).version
            store.replace([rows[1]._replace(retired=1, version=version), rows[3]._replace(kind="observation")])
            books.put_readings([PassageGraphRecord(rows[2].seq, b"c", "model", "{}")])
        with store.reading():
            due = [rows[0].seq, rows[3].seq, rows[4].seq]
            assert [row.seq for row in books.unread(stream, KINDS, 0, 9)] == due
            assert [row.seq for row in books.unread(stream, KINDS, due[0], 1)] == due[1:2]
            assert [row.seq for row in books.unread(stream, ("fact",), 0, 9)] == [due[0], due[2]]
            assert books.unread_count(stream, KINDS) == 3
            assert books.unread_count(stream, ("observation",)) == 1

    def test_readings_go_with_their_row_and_leave_no_trace(self, store: Store) -> None:
        first, second = put(store, "user=anna", 2)
        with store.writing():
            store.books.put_readings(
                [PassageGraphRecord(row.seq, b"x", "m", f"secret {row.id}") for row in (first, second)]
            )
        with store.writing():
            store.delete(first.stream, [first.seq], store.advance(first.stream).version)
        store.scrub()
        with store.reading():
            assert store.books.readings(seqs([first, second])) == {second.seq: f"secret {second.id}"}
        assert store.traces([f"secret {first.id}"]) == {}

    def test_what_was_spent_adds_up_by_operation_and_model(self, store: Store) -> None:
        books = store.books
        with store.writing():
            assert books.spent() == []
            books.spend([])
            books.spend(
                [UsageRecord("form", "m", 1, 0, 10, 5, 100, 0.5), UsageRecord("form", "m", 1, 1, 10, 5, 100, 0.25)]
            )
            books.spend([UsageRecord("form", "other", 1), UsageRecord("consolidate", "m", 1)])
        with store.reading():
            assert books.spent() == [
                UsageRecord("consolidate", "m", 1),
                UsageRecord("form", "m", 2, 1, 20, 10, 200, 0.75),
                UsageRecord("form", "other", 1),
            ]

    def test_hidden_scopes_are_known_until_they_are_shown(self, store: Store) -> None:
        books = store.books
        with store.writing():
            books.hide(b"one")
            books.hide(b"one")
            assert (books.hidden(b"one"), books.hidden(b"two")) == (True, False)
            books.show(b"one")
            books.show(b"one")
        with store.reading():
            assert not books.hidden(b"one")

    def test_health_counts_what_is_due_and_what_fails(self, store: Store) -> None:
        books = store.books
        with store.reading():
            assert books.health() == Health(0, 0, 0, 0, "")
        talk = put(store, "session=a", 5, kind="message")
        put(store, "session=a", 1)
        put(store, "session=b", 5, kind="message")
        stream = talk[0].stream
        with store.writing():
            other = store.make_stream("session=b").id
            books.put_session(SessionState(stream, talk[3].seq, messages=1))
            books.put_session(SessionState(other, messages=5))
            books.put_work([Job(stream, talk[0].seq, talk[3].seq)])
            books.put_revision(RevisionRecord(stream, 1, 0, "text", "[]", "hand", 0))
            books.put_summary(SummaryState(stream, 1, 1))
            assert books.health() == Health(9, 1, 0, 1, "")
            books.put_work([Job(stream, talk[0].seq, talk[3].seq, attempts=1, error="no answer")])
            assert books.health() == Health(9, 1, 1, 1, "no answer")
            books.put_summary(SummaryState(stream, 1, 1, attempts=2, error="too short"))
            health = books.health()
        assert health.failing == 2
        assert health.error in ("no answer", "too short")

    def test_a_step_that_raises_leaves_the_books_as_they_were(self, store: Store) -> None:
        (kept,) = put(store, "user=anna", kind="observation")
        with store.writing():
            self.fill_books(store, kept, "first")
        before = self.booked(store, kept)

        def break_off() -> None:
            with store.writing():
                self.fill_books(store, kept, "second")
                raise _Stop

        with pytest.raises(_Stop):
            break_off()
        assert self.booked(store, kept) == before

    def test_the_books_are_there_when_opened_again(self, store: Store, reopen: Opener) -> None:
        (kept,) = put(store, "user=anna", kind="observation")
        with store.writing():
            self.fill_books(store, kept, "first")
        before = self.booked(store, kept)
        store.close()
        assert self.booked(reopen(), kept) == before

    def test_words_of_dropped_revisions_leave_no_trace(self, store: Store) -> None:
        """Rows of many sizes, some of which stay, move between pages while the others go."""
        dice = random.Random(6)
        kept: dict[tuple[int, int], str] = {}
        gone: list[str] = []
        with store.writing():
            streams = [store.make_stream(f"user={name}").id for name in "abcd"]
        for number in range(1, 250):
            place = dice.choice(streams), number
            kept[place] = f"the secret of revision {number} " + "and more " * dice.randrange(150)
            dropped = [one for one in kept if dice.random() < 0.05]
            with store.writing():
                store.books.put_revision(RevisionRecord(*place, 0, kept[place], "[]", "hand", 0))
                for stream, old in dropped:
                    store.books.drop_revisions(stream, [old])
            gone += [kept.pop(one) for one in dropped]
        assert store.traces([*kept.values()]).keys() == set(kept.values())
        store.scrub()
        assert store.traces(gone) == {}

    def fill_books(self, store: Store, row: Record, word: str) -> None:
        """Something in every book; other words give other rows."""
        books, stream, number = store.books, row.stream, len(word)
        books.put_settings(SettingsRecord(stream, word, "{}"))
        books.put_session(SessionState(stream, number, users=word))
        books.put_work([Job(stream, number, number + 1, error=word)])
        books.put_summary(SummaryState(stream, number, number, error=word))
        books.put_revision(RevisionRecord(stream, number, 0, word, "[]", word, 0))
        books.absorb(stream, [row.id, word], number)
        books.link(store.make_stream(f"session={word}").id, stream)
        books.touch({row.seq: AccessCount(number, number)})
        books.spend([UsageRecord(word, word, number)])
        books.hide(word.encode())

    def booked(self, store: Store, row: Record) -> tuple[object, ...]:
        books, stream = store.books, row.stream
        with store.reading():
            return (
                books.configured(),
                books.session(stream),
                books.work(stream),
                books.summary(stream),
                books.revisions(stream),
                books.absorbed(stream),
                books.rests_on(stream),
                books.uses([row.seq]),
                books.spent(),
                [books.hidden(word) for word in (b"first", b"second")],
            )

    def seen(self, store: Store) -> list[tuple[StreamState, list[Record]]]:
        return [(stream, store.page(stream.id, 0, 1000, KINDS, True)) for stream in store.streams()]

    def scopes(self, store: Store) -> list[str]:
        with store.reading():
            return [stream.scope for stream in store.streams()]

    def everything(self, store: Store) -> tuple[object, ...]:
        """All a store holds, but for its size."""
        with store.reading():
            stones = [list(store.tombstones(stream.id)) for stream in store.streams()]
            return self.seen(store), stones, store.counts()._replace(bytes=0), store.get_meta("name")
