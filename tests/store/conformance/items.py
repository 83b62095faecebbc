"""Promises about streams, their records, vectors and tombstones."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.store.conformance.samples import (
    ANNA,
    BEN,
    NOW,
    delete_records,
    insert_facts,
    new_fact,
    seqs_of,
    tombstone,
)
from tests.support.steps import Steps

from eunoe.errors import StoreError
from eunoe.model.arguments import ATOM_KINDS, KINDS, from_micros, to_micros
from eunoe.model.scope import Scope
from eunoe.store.contract import IndexRow, ItemQuery
from eunoe.store.schema import Absorption, PassageGraphRecord
from eunoe.store.statements import MAX_PARAMETERS

_LIST_SIZE = 2 * MAX_PARAMETERS + 1


class ItemConformance:
    def test_it_says_where_it_is_and_which_schema_it_has(self, store: Steps) -> None:
        assert store.target
        assert store.schema >= 1

    def test_a_stream_is_made_once(self, store: Steps) -> None:
        with store.writing():
            assert store.stream(ANNA) is None
            anna = store.create_stream(ANNA)
            assert (anna.scope, anna.position) == (ANNA, 0)
            assert store.create_stream(ANNA) == store.stream(ANNA) == anna
            assert store.create_stream(BEN).id != anna.id

    def test_streams_are_paged_in_the_order_of_their_scopes(self, store: Steps) -> None:
        """By code point, whatever the language of the machine."""
        names = ["B", "Z", "_", "a", "a b", "z", "ä", "\u4e2d", "\U0001f30a"]
        with store.writing():
            assert store.streams() == []
            streams = {name: store.create_stream(Scope(user=name)) for name in reversed(names)}
        with store.reading():
            assert store.streams() == list(store.iterate_streams()) == [streams[name] for name in names]
            assert store.streams(after="user=a", limit=2) == [streams["a b"], streams["z"]]
            assert store.streams(after="user=\U0001f30a") == []
            assert store.streams(ids=[streams[name].id for name in "zZz"]) == [streams["Z"], streams["z"]]
            assert store.streams(ids=[]) == []

    def test_streams_are_found_by_their_tenant(self, store: Steps) -> None:
        texts = ["agent=x/tenant=a/user=b", "tenant=a", "tenant=a/user=c", "tenant=a%2Fb", "tenant=a-b", "tenant=a0"]
        with store.writing():
            for text in [*texts, "tenant=A", "user=tenant=a", "x_tenant=a", "user=a"]:
                store.create_stream(Scope.stored(text))
        with store.reading():
            found = store.streams(tenant="a")
            assert [stream.scope.text for stream in found] == texts[:3]
            assert list(store.iterate_streams("a")) == found
            assert store.streams(found[0].scope.text, 1, tenant="a") == found[1:2]
            assert store.streams(containing=["user=c"], tenant="a") == found[2:]
            assert [stream.scope.text for stream in store.streams(tenant="a/b")] == ["tenant=a%2Fb"]
            assert store.streams(tenant="b") == []

    def test_streams_are_found_by_parts_of_their_scopes(self, store: Steps) -> None:
        names = ["%", "_", "\\", "'", "a%b", "anna", "Anna", "ÄNNA", "änna"]
        with store.writing():
            scopes = [store.create_stream(Scope(agent="x", user=name)).scope for name in names]
        with store.reading():
            for part in ["user=", "%", "_", "\\", "'", "user=a", "Anna", "ä", "x/user=%25", "?", "nobody", ""]:
                found = {stream.scope for stream in store.streams(containing=["agent=x", part])}
                assert found == {scope for scope in scopes if part in scope.text}
            first = store.streams(limit=1)
            assert store.streams(limit=1, containing=["user="]) == first
            assert store.streams(limit=1, containing=["änna"]) == []

    def test_advance_moves_version_and_log_of_one_stream(self, store: Steps) -> None:
        with store.writing():
            anna, ben = store.create_stream(ANNA), store.create_stream(BEN)
            advanced = store.advance(anna.id, 3)
            assert advanced == anna._replace(version=anna.version + 1, position=3)
            assert store.advance(anna.id) == advanced._replace(version=advanced.version + 1)
            assert store.stream(BEN) == ben

    def test_numbers_are_never_used_twice(self, store: Steps, other: Steps) -> None:
        records = insert_facts(store, ANNA, 3)
        assert records[0].seq > 0
        assert seqs_of(records) == sorted(set(seqs_of(records)))
        delete_records(store, records)
        assert insert_facts(other, ANNA)[0].seq > records[-1].seq

    def test_every_field_comes_back_as_it_was(self, store: Steps) -> None:
        written = insert_facts(store, ANNA)
        fields: dict[str, Any] = {
            "kind": "message",
            "pending": True,
            "text": "NUL \0, emoji 🌊, \u2028, right to left: \u202b\u05e9\u05dc",
            "caption": "a dog",
            "time": from_micros(-1),
            "session": "s1",
            "speaker": "Anna",
            "role": "user",
            "label": "preference",
            "people": ("Ben", "Änna"),
            "files": ("a/b.py",),
            "pages": ("home",),
            "valid_from": from_micros(0),
            "valid_to": from_micros(253_402_300_799_999_999),
            "retired": NOW,
            "pinned": True,
            "position": 4,
            "supersedes": "before",
            "superseded_by": "after",
            "supports": (("m1", "m2"), ("m3",)),
            "metadata": {"a": [1, 2.5, None, {"b": True}], "ä": "\0"},
            "topic": b"\x00\xff",
        }
        written += insert_facts(store, ANNA, **fields)
        with store.reading():
            assert store.select(ItemQuery()) == written
            plain, full = store.index_rows(written[0].stream, 0, None)
        lists = {"people": '["Ben","Änna"]', "files": '["a/b.py"]', "pinned": 1, "vector": None}
        times = {name: to_micros(getattr(written[1], name)) for name in ("time", "valid_from", "valid_to", "retired")}
        expected = {name: getattr(written[1], name) for name in IndexRow._fields if name != "vector"}
        assert full._asdict() == {**expected, **lists, **times, "recorded": to_micros(NOW)}
        assert (plain.time, plain.people, plain.retired, plain.pinned) == (None, "", None, 0)

    def test_long_texts_fit(self, store: Steps) -> None:
        (long,) = insert_facts(store, ANNA, text="0123456789" * 1_100_000)
        with store.reading():
            assert store.select(ItemQuery(seqs=[long.seq])) == [long]

    def test_ids_and_open_identities_are_unique_in_a_stream(self, store: Steps) -> None:
        (old,) = insert_facts(store, ANNA, id="same", identity=b"same")
        insert_facts(store, BEN, id="same", identity=b"same")
        for taken in ({"id": "same"}, {"identity": b"same"}):
            with pytest.raises(StoreError):
                insert_facts(store, ANNA, **taken)
        with store.writing():
            store.update([old._replace(retired=NOW)])
        (new,) = insert_facts(store, ANNA, identity=b"same")
        insert_facts(store, ANNA, identity=b"same", retired=NOW)
        with store.reading():
            assert store.select(ItemQuery(new.stream, identities=[b"same"], open=True)) == [new]

    def test_update_writes_a_record_anew(self, store: Steps) -> None:
        first, second = insert_facts(store, ANNA, 2, people=("Anna",), pending=True)
        changed = first._replace(version=9, text="new words", retired=NOW, people=(), pending=False, identity=b"new")
        with store.writing():
            store.update([changed])
            store.update([])
            assert store.insert(store.create_stream(ANNA), []) == []
            assert store.select(ItemQuery(first.stream)) == [changed, second]

    def test_queries_find_what_they_ask_for(self, store: Steps) -> None:
        said = [("m1", "a"), ("m2", "b"), ("m3", "a")]
        with store.writing():
            anna, ben = (store.advance(store.create_stream(scope).id) for scope in (ANNA, BEN))
            records = [
                *(new_fact(0, anna, kind="message", id=id, session=session, position=place, identity=id.encode())
                  for place, (id, session) in enumerate(said)),
                new_fact(1, anna, id="home", topic=b"home", session="a"),
                new_fact(1, anna, id="old", topic=b"home", retired=NOW),
                new_fact(2, anna, id="tea", kind="observation", supports=(("m1",),)),
                new_fact(3, anna, id="note", kind="observation", metadata={"a": 1}, pending=True),
                new_fact(4, anna, id="graph"),
                new_fact(1, ben, id="home", topic=b"home", pending=True),
            ]  # fmt: skip
            records = store.insert(anna, records[:-1]) + store.insert(ben, records[-1:])
            seq = {record.id: record.seq for record in records[:-1]}
            model = store.create_model("one", 2).number
            store.save([Absorption(anna.id, "tea", 1), Absorption(ben.id, "note", 1)])
            store.save([PassageGraphRecord(seq["graph"], b"", "", "{}")])
            store.put_vectors(model, [(number, b"1234") for number in seqs_of(records[1:])])
        everything = ["m1", "m2", "m3", "home", "old", "tea", "note", "graph"]
        cases: list[tuple[ItemQuery, list[str]]] = [
            (ItemQuery(), [*everything, "home"]),
            (ItemQuery(anna.id), everything),
            (ItemQuery(anna.id, order="newest"), everything[::-1]),
            (ItemQuery(anna.id, order="position"), ["m3", "m2", "m1", "graph", "note", "tea", "old", "home"]),
            (ItemQuery(anna.id, kinds=("message",)), ["m1", "m2", "m3"]),
            (ItemQuery(anna.id, kinds=ATOM_KINDS, open=True), ["home", "tea", "note", "graph"]),
            (ItemQuery(anna.id, kinds=KINDS, after=seq["tea"]), ["note", "graph"]),
            (ItemQuery(anna.id, kinds=KINDS, after=seq["tea"], until=seq["note"]), ["note"]),
            (ItemQuery(anna.id, ids=["home", "m2", "none", "m2"]), ["m2", "home"]),
            (ItemQuery(ids=["home"]), ["home", "home"]),
            (ItemQuery(anna.id, identities=[b"number 1", b"none"]), ["home", "old"]),
            (ItemQuery(anna.id, identities=[b"number 1"], open=True), ["home"]),
            (ItemQuery(ben.id, topics=[b"home", b"none"]), ["home"]),
            (ItemQuery(anna.id, topics=[b"home"], order="newest"), ["old", "home"]),
            (ItemQuery(anna.id, topic_start=b"ho"), ["home", "old"]),
            (ItemQuery(anna.id, topic_start=b"homely"), []),
            (ItemQuery(seqs=[seq["old"], seq["m1"], 0, 10**9]), ["m1", "old"]),
            (ItemQuery(ben.id, seqs=[seq["old"]]), []),
            (ItemQuery(anna.id, session="a"), ["m1", "m3"]),
            (ItemQuery(anna.id, session="a", order="position"), ["m3", "m1"]),
            (ItemQuery(anna.id, session=""), []),
            (ItemQuery(anna.id, supported=True), ["tea"]),
            (ItemQuery(anna.id, described=True), ["note"]),
            (ItemQuery(anna.id, pending=True), ["note"]),
            (ItemQuery(pending=True), ["note", "home"]),
            (ItemQuery(pending=True, order="newest"), ["home", "note"]),
            (ItemQuery(anna.id, kinds=("observation",), unabsorbed=True), ["note"]),
            (ItemQuery(anna.id, kinds=("fact",), without_graph=True), ["home", "old"]),
            (ItemQuery(without_vector=model), ["m1"]),
            (ItemQuery(ben.id, without_vector=-1), ["home"]),
            (ItemQuery(anna.id, kinds=()), []),
            (ItemQuery(anna.id, ids=()), []),
            (ItemQuery(anna.id, identities=()), []),
            (ItemQuery(anna.id, topics=()), []),
            (ItemQuery(anna.id, seqs=()), []),
        ]
        with store.reading():
            for query, ids in cases:
                assert [record.id for record in store.select(query)] == ids, query
                assert [record.id for record in store.select(query._replace(limit=2))] == ids[:2], query
                assert store.count(query) == len(ids), query
            assert [record.id for record in store.iterate(ItemQuery(anna.id), page=3)] == everything

    def test_records_are_found_by_when_they_were_recorded(self, store: Steps) -> None:
        hours = [NOW + timedelta(hours=hour) for hour in range(4)]
        with store.writing():
            anna, ben = (
                store.create_stream(Scope.parse(text)) for text in ("app=x/user=anna", "app=x%2Fuser=anna/user=ben")
            )
            records = [
                new_fact(1, anna, id="old", recorded=hours[0], retired=hours[2]),
                new_fact(2, anna, id="late", recorded=hours[3]),
                new_fact(3, anna, id="early", recorded=hours[1], in_review=True),
                new_fact(4, anna, id="said", recorded=hours[3], kind="message"),
            ]
            records = store.insert(anna, records)
            records += store.insert(ben, [new_fact(5, ben, id="other", recorded=hours[1], replaces=("old",))])
        latest = ItemQuery(kinds=ATOM_KINDS, order="latest")
        cases: list[tuple[ItemQuery, list[str]]] = [
            (latest, ["late", "other", "early", "old"]),
            (latest._replace(kinds=None), ["said", "late", "other", "early", "old"]),
            (latest._replace(open=True), ["late", "other", "early"]),
            (latest._replace(since=hours[1]), ["late", "other", "early"]),
            (latest._replace(before=hours[1]), ["old"]),
            (latest._replace(older_than=(hours[1], records[-1].seq)), ["early", "old"]),
            (latest._replace(stream=anna.id), ["late", "early", "old"]),
            (latest._replace(in_review=True), ["early"]),
            (latest._replace(reviewed=True, open=True), ["late", "other"]),
            (ItemQuery(anna.id, known_at=hours[1], open=True), ["old", "early"]),
            (ItemQuery(anna.id, known_at=hours[2], open=True), ["early"]),
            (ItemQuery(anna.id, known_at=hours[2]), ["old", "early"]),
            (ItemQuery(anna.id, known_at=hours[3], open=True, order="newest"), ["said", "early", "late"]),
        ]
        with store.reading():
            for query, ids in cases:
                assert [record.id for record in store.select(query)] == ids, query
                assert [record.id for record in store.select(query._replace(limit=2))] == ids[:2], query
                assert store.count(query) == len(ids), query
            assert store.select(ItemQuery(ids=["other"]))[0].replaces == ("old",)

    def test_streams_are_found_by_when_their_last_atom_was_recorded(self, store: Steps) -> None:
        hours = [NOW + timedelta(hours=hour) for hour in range(4)]
        with store.writing():
            scopes = map(Scope.parse, ("tenant=x/user=anna", "tenant=x%2Fuser=anna/user=ben", "tenant=xx", "user=eve"))
            anna, ben, other, eve = map(store.create_stream, scopes)
            store.insert(anna, [new_fact(hour, anna, recorded=hours[hour]) for hour in (2, 0)])
            store.insert(ben, [new_fact(5, ben, recorded=hours[1])])
            store.insert(other, [new_fact(6, other, recorded=hours[1] + timedelta(minutes=1))])
            store.insert(eve, [new_fact(7, eve, recorded=hours[3], kind="message")])
        ids = [stream.id for stream in (anna, ben, other, eve)]
        later = hours[1] + timedelta(minutes=1)
        with store.reading():
            assert store.last_recorded(ids) == [(anna.id, hours[2]), (other.id, later), (ben.id, hours[1])]
            assert store.last_recorded(ids[:2], until=hours[1]) == [(ben.id, hours[1]), (anna.id, hours[0])]
            assert store.last_recorded([ben.id], until=hours[0]) == store.last_recorded([]) == []

    def test_streams_within_a_scope_have_its_keys_and_no_other_tenant(self, store: Steps) -> None:
        texts = (
            *("user=anna", "agent=cook/user=anna", "agent=cook/session=s/user=anna/zone=z", "user=Anna", "user=anna2"),
            *("agent=cook", "agent=cook/user=ben", "session=x%2Fuser=anna", "project=user=anna/user=ben"),
            *("tenant=t/user=anna", "agent=cook/tenant=t/user=anna", "tenant=t2/user=anna", "tenant=t"),
            *("tenant=t%2Fuser=anna/user=ben", "user=anna%252F", "user=anna%2F"),
        )
        with store.writing():
            streams = [store.create_stream(Scope.parse(text)) for text in texts]
        asked = [Scope.parse(text) for text in (*texts, "agent=cook/user=eve", "zone=z", "session=s")]
        with store.reading():
            for scope in asked:
                expected = {each for each in streams if scope.everything.covers(each.scope)}
                assert store.streams_within(scope) == sorted(expected, key=lambda each: each.scope.text), scope
            assert [each.scope.text for each in store.streams_within(Scope(user="anna"))] == [
                *("agent=cook/session=s/user=anna/zone=z", "agent=cook/user=anna", "user=anna"),
            ]

    def test_long_lists_find_each_record_once_and_in_order(self, store: Steps) -> None:
        records = insert_facts(store, ANNA, _LIST_SIZE)
        stream, limit = records[0].stream, MAX_PARAMETERS + 3
        ids, seqs = [record.id for record in records][::-1], seqs_of(records)[::-1]
        identities = [record.identity for record in records]
        with store.reading():
            for query in (
                ItemQuery(seqs=[*seqs, *seqs]),
                ItemQuery(stream, ids=[*ids, "none", *ids]),
                ItemQuery(stream, identities=identities, open=True),
                ItemQuery(ids=ids, seqs=seqs),
            ):
                assert store.select(query) == records
                assert store.select(query._replace(order="newest", limit=limit)) == records[: -limit - 1 : -1]
                assert store.count(query) == _LIST_SIZE
        delete_records(store, records)
        with store.reading():
            assert store.select(ItemQuery()) == []
            assert store.removed(stream, 0) == seqs[::-1]

    def test_index_rows_are_what_changed_since_a_version(self, store: Steps) -> None:
        first, second = insert_facts(store, ANNA, 2)
        (third,) = insert_facts(store, ANNA)
        insert_facts(store, BEN)
        with store.reading():
            assert seqs_of(store.index_rows(first.stream, 0, None)) == seqs_of([first, second, third])
            assert seqs_of(store.index_rows(first.stream, first.version, None)) == [third.seq]
            assert store.index_rows(first.stream, third.version, None) == []
        with store.writing():
            version = store.advance(first.stream).version
            store.update([second._replace(version=version, pinned=True)])
        fourth = insert_facts(store, ANNA)
        with store.reading():
            changed = store.index_rows(first.stream, third.version, None)
        assert [(row.seq, row.pinned) for row in changed] == [(second.seq, 1), (fourth[0].seq, 0)]

    def test_row_marks_tell_every_change(self, store: Steps) -> None:
        first, second = insert_facts(store, ANNA, 2)
        insert_facts(store, BEN)
        with store.writing():
            model, other = (store.create_model(name, 2).number for name in ("one", "two"))
        with store.reading():
            before = store.row_marks(first.stream, model)
        assert [mark[:2] for mark in before] == [(each.seq, each.version) for each in (first, second)]
        assert [mark[3:] for mark in before] == [(-1, -1)] * 2
        changes: list[Callable[[], None]] = [
            lambda: store.update([second._replace(pinned=True)]),
            lambda: store.put_vectors(model, [(second.seq, b"1111")]),
            lambda: store.put_vectors(model, [(second.seq, b"2222")]),
            lambda: store.save([PassageGraphRecord(second.seq, b"content", "model", "{}")]),
        ]
        known = [before]
        for change in changes:
            with store.writing():
                change()
            with store.reading():
                known.append(store.row_marks(first.stream, model))
            assert known[-1][0] == before[0]
            assert known[-1][1] not in [marks[1] for marks in known[:-1]]
        with store.writing():
            store.put_vectors(other, [(second.seq, b"3333")])
        with store.reading():
            assert store.row_marks(first.stream, model) == known[-1]
            assert [mark[3] for mark in store.row_marks(first.stream, None)] == [-1, -1]

    def test_removed_are_those_deleted_since_a_version(self, store: Steps) -> None:
        records = insert_facts(store, ANNA, 3)
        stream = records[0].stream
        versions = [delete_records(store, [record]) for record in records[:2]]
        with store.reading():
            assert store.removed(stream, records[0].version) == seqs_of(records[:2])
            assert store.removed(stream, versions[0]) == [records[1].seq]
            assert store.removed(stream, versions[1]) == []
            assert seqs_of(store.index_rows(stream, 0, None)) == [records[2].seq]
            assert store.select(ItemQuery(stream)) == records[2:]

    def test_tombstones_are_found_by_identity_and_by_session(self, store: Steps) -> None:
        tombstones = [tombstone("a", "s", 1), tombstone("b", "s", 5), tombstone("c", "other", 7), tombstone("d", "s")]
        with store.writing():
            anna, ben = store.create_stream(ANNA).id, store.create_stream(BEN).id
            store.add_tombstones(anna, [tombstones[0]._replace(position=9), *tombstones[1:]])
            store.add_tombstones(anna, tombstones[:1])
            store.add_tombstones(ben, [tombstone("e", "s", 2)])
            store.add_tombstones(ben, [])
            assert store.tombstones(anna) == tombstones
            assert len(store.tombstones(anna, limit=1)) == 1
            assert store.tombstones(99) == store.tombstones(anna, []) == []
            assert store.tombstones(anna, [b"a", b"d", b"e"]) == [tombstones[0], tombstones[3]]
            assert store.tombstones(anna, session_hash=b"s") == [tombstones[1], tombstones[0]]
            assert store.tombstones(anna, session_hash=b"s", limit=1) == [tombstones[1]]
            assert store.tombstones(anna, session_hash=b"") == []
            assert store.counts().tombstones == 5
            store.remove_tombstones(anna, [b"a", b"b", b"e"])
            assert store.tombstones(anna) == tombstones[2:]
            assert [each.identity for each in store.tombstones(ben)] == [b"e"]

    def test_a_model_is_made_once(self, store: Steps) -> None:
        with store.writing():
            assert store.model("one") is None
            one, two = store.create_model("one", 2), store.create_model("two", 3)
            assert store.create_model("one", 2) == store.model("one") == one
            assert (one.dimensions, two.dimensions) == (2, 3)
            assert one.number != two.number

    def test_vectors_are_kept_per_model(self, store: Steps) -> None:
        first, second = insert_facts(store, ANNA, 2)

        def vectors(model: int | None) -> list[bytes | None]:
            return [row.vector for row in store.index_rows(first.stream, 0, model)]

        with store.writing():
            one, two = (store.create_model(name, 2).number for name in ("one", "two"))
            store.put_vectors(one, [(first.seq, b"old!"), (second.seq, b"2222")])
            store.put_vectors(one, [(first.seq, b"1111")])
            store.put_vectors(two, [(first.seq, b"3333")])
            assert (vectors(one), vectors(two)) == ([b"1111", b"2222"], [b"3333", None])
            assert vectors(None) == [None, None]
            assert store.counts().vectors == {"one": 2, "two": 1}
            assert store.delete(first.stream, [first.seq], store.advance(first.stream).version) == 2
            assert store.delete(first.stream, [], store.advance(first.stream).version) == 0
            assert store.counts().vectors == {"one": 1, "two": 0}
            store.drop_model(one)
            assert (store.model("one"), vectors(one)) == (None, [None])
            assert store.counts().vectors == {"two": 0}

    def test_vectors_of_one_record_are_given_to_another(self, store: Steps) -> None:
        first, second = insert_facts(store, ANNA, 2)
        with store.writing():
            models = [store.create_model(name, 2).number for name in ("one", "two")]
            for model in models:
                store.put_vectors(model, [(first.seq, b"1111")])
            store.copy_vectors(first.seq, second.seq)
            store.copy_vectors(second.seq, second.seq)
            assert store.delete_vectors([first.seq]) == 2
            assert store.delete_vectors([]) == 0
            for model in models:
                assert [row.vector for row in store.index_rows(first.stream, 0, model)] == [None, b"1111"]

    def test_a_record_on_its_way_to_another_model_has_lost_nothing(self, store: Steps) -> None:
        first, second, third = insert_facts(store, ANNA, 3)
        with store.writing():
            old, new = (store.create_model(name, 2).number for name in ("old", "new"))
            store.put_vectors(old, [(first.seq, b"1111"), (second.seq, b"2222")])
            store.put_vectors(new, [(second.seq, b"3333")])
            assert store.delete_vectors([second.seq], old) == 1
            assert [row.vector for row in store.index_rows(first.stream, 0, new)] == [None, b"3333", None]
            assert store.lost_vectors == {third.seq}
            store.lost_vectors.clear()

    def test_records_are_found_by_what_closed_them_and_by_parts_of_their_metadata(self, store: Steps) -> None:
        facts = insert_facts(store, ANNA, 4)
        (other,) = insert_facts(store, BEN)
        with store.writing():
            by: list[dict[str, Any]] = [
                {"superseded_by": "x"},
                {"superseded_by": "y"},
                {"metadata": {"a": 1}},
                {"metadata": {"a": "A%"}},
            ]
            store.update([fact._replace(**changes) for fact, changes in zip(facts, by, strict=True)])
            store.update([other._replace(superseded_by="x")])

            def found(**query: Any) -> list[int]:
                return seqs_of(store.select(ItemQuery(facts[0].stream, **query)))

            assert found(superseded_by=["x"]) == [facts[0].seq]
            assert found(superseded_by=["y", "x", ""]) == [facts[0].seq, facts[1].seq]
            assert found(superseded_by=[]) == []
            store.update([facts[3]._replace(metadata={"a": "A%"}, retired=NOW)])
            assert found(archived=True) == [facts[3].seq]
            assert found(metadata_parts=[['"a":']]) == [facts[2].seq, facts[3].seq]
            assert found(metadata_parts=[['"a":'], ['"A%"', "x"]]) == [facts[3].seq]
            assert found(metadata_parts=[['"a%"', "x"]]) == []
            assert found(limit=2, offset=1) == [facts[1].seq, facts[2].seq]
            assert found(limit=2, offset=9) == []

    def test_adopting_a_model_marks_what_lacks_a_vector_and_advances_every_stream(self, store: Steps) -> None:
        first, second = insert_facts(store, ANNA, 2, pending=True)
        (third,) = insert_facts(store, BEN)
        with store.writing():
            model = store.create_model("one", 2).number
            store.put_vectors(model, [(first.seq, b"1111")])
            store.adopt_model(model)
            assert seqs_of(store.select(ItemQuery(pending=True))) == [second.seq, third.seq]
            assert store.counts().pending == 2
            assert seqs_of(store.index_rows(first.stream, first.version, model)) == [first.seq, second.seq]
            for record in (first, third):
                versions = {each.version for each in store.select(ItemQuery(record.stream))}
                assert versions == {store.streams(ids=[record.stream])[0].version} == {record.version + 1}
            store.adopt_model(None)
            assert store.select(ItemQuery(pending=True)) == []

    def test_values_are_kept_by_name(self, store: Steps) -> None:
        with store.writing():
            assert store.get_value("name") is None
            store.set_value("name", "one")
            store.set_value("name", "two")
            assert store.get_value("name") == "two"
