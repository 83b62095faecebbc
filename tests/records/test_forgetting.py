"""Forgetting reaches everything, can prove it, and lasts."""

from __future__ import annotations

import random
import shutil
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.support.steps import steps_of

import eunoe
from eunoe.embed.adapters import from_callable
from eunoe.embed.store_embedder import StoreEmbedder
from eunoe.errors import InputError, NotFoundError, StoreFullError
from eunoe.records.forgetting import ByIds, remove
from eunoe.store.sql import SqlWriting
from eunoe.store.sqlite import SqliteStore

ANNA = "user=anna"
SECRET = "The combination of the safe is 17-42-99."


def texts(memory, scope=ANNA, **filters):
    return [item.text for item in memory.list(scope, limit=1000, **filters).items]


def raw(path):
    return b"".join(file.read_bytes() for file in sorted(path.parent.iterdir()))


def plant(path, statement, *values):
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(statement, values)
    connection.close()


def test_a_message_by_id(memory, path):
    memory.observe(ANNA, ["before", {"content": SECRET, "id": "m1", "caption": "a picture of the open safe"}, "after"])
    assert SECRET.encode() in raw(path)
    report = memory.forget(ANNA, "m1", verify=True)
    assert (report.messages, report.atoms, report.total) == (("m1",), (), 1)
    assert report.scopes == (eunoe.Scope(user="anna"),)
    assert (report.verified, report.traces) == (True, ())
    assert texts(memory) == ["before", "after"]
    assert SECRET.encode() not in raw(path)
    assert b"picture of the open" not in raw(path)
    with pytest.raises(NotFoundError):
        memory.get(ANNA, "m1")


def test_it_is_not_recalled_any_more(memory):
    kept = memory.remember(ANNA, SECRET)
    memory.remember(ANNA, "The safe is behind the picture.")
    assert kept.id in [hit.id for hit in memory.recall(ANNA, "combination of the safe")]
    memory.forget(ANNA, kept.id)
    for recipe in ("default", "lexical"):
        assert kept.id not in [hit.id for hit in memory.recall(ANNA, "combination of the safe", recipe=recipe)]


def test_an_atom_goes_with_all_its_versions(memory, path):
    first = memory.remember(ANNA, f"{SECRET} It is new.")
    second = memory.update(ANNA, first.id, f"{SECRET} It is old.")
    third = memory.update(ANNA, second.id, "The safe was sold.")
    report = memory.forget(ANNA, second.id, verify=True)
    assert set(report.atoms) == {first.id, second.id, third.id}
    assert report.notes == (f"Newer versions of what was named went too: {third.id}",)
    assert report.verified
    assert texts(memory, retired=True) == []
    assert b"combination" not in raw(path)
    for text in (f"{SECRET} It is new.", f"{SECRET} It is old.", "The safe was sold."):
        assert memory.remember(ANNA, text).outcome == "forgotten"


@pytest.mark.parametrize("named", [["new"], ["old", "new"], ["other"]])
def test_a_correction_that_was_named_is_not_told_of(memory, named):
    ids = {name: memory.remember(ANNA, f"The {name} one.").id for name in ("old", "other")}
    ids["new"] = memory.update(ANNA, ids["old"], "The new one.").id
    assert memory.forget(ANNA, [ids[name] for name in named]).notes == ()


def test_a_message_takes_what_rests_on_it_along(memory):
    memory.observe(ANNA, [{"content": SECRET, "id": "m1"}, {"content": "Tea, please.", "id": "m2"}])
    fact = memory.remember(ANNA, "Anna has a safe.", source=["m1", "m2"])
    newer = memory.update(ANNA, fact.id, "Anna had a safe.", source=["m2"])
    other = memory.remember(ANNA, "Anna likes tea.", source=["m2"])
    report = memory.forget(ANNA, "m1")
    assert report.messages == ("m1",)
    assert set(report.atoms) == {fact.id, newer.id}
    assert [item.id for item in memory.list(ANNA, retired=True).items] == ["m2", other.id]


def test_several_ids_at_once_or_none(memory):
    memory.observe(ANNA, [{"content": f"message {n}", "id": str(n)} for n in range(4)])
    with pytest.raises(NotFoundError, match=r"9.*nothing was removed"):
        memory.forget(ANNA, ["1", "9"])
    assert len(texts(memory)) == 4
    assert memory.forget(ANNA, ["1", "3"]).messages == ("1", "3")
    again = memory.forget(ANNA, ["1", "3"], verify=True)
    assert (again.total, again.verified) == (0, True)


def test_only_in_its_scope(memory):
    for scope in (ANNA, "user=ben"):
        memory.observe(scope, {"content": SECRET, "id": "m1"})
    report = memory.forget(ANNA, "m1", verify=True)
    assert report.verified  # Ben's own words are no trace of Anna's
    assert texts(memory, "user=ben") == [SECRET]
    with pytest.raises(NotFoundError):
        memory.forget("user=zoe", "m1")
    assert memory.forget("user=zoe", everything=True).total == 0
    assert memory.forget("user=zoe", person="Anna").total == 0
    assert len(memory.scopes()) == 2


def test_several_scopes(memory):
    for scope in (ANNA, "user=ben", "user=zoe"):
        memory.observe(scope, "words")
    report = memory.forget([ANNA, "user=ben", ANNA], everything=True)
    assert report.total == 2
    assert [str(scope) for scope in report.scopes] == [ANNA, "user=ben"]
    assert texts(memory, "user=zoe") == ["words"]


def test_a_person(memory):
    memory.observe(
        ANNA,
        [
            {"content": "I am here.", "name": "Ben", "id": "1"},
            {"content": "So is ben.", "name": "Anna", "id": "2"},
            {"content": "Benjamin is not.", "name": "Anna", "id": "3"},
            {"content": "Bye.", "name": " BEN ", "id": "4"},
        ],
    )
    about = memory.remember(ANNA, "He likes tea.", people=["Ben"])
    rests = memory.remember(ANNA, "Somebody was there.", source=["1"])
    report = memory.forget(ANNA, person="ben", verify=True)
    assert report.messages == ("1", "4")
    assert set(report.atoms) == {about.id, rests.id}
    assert report.mentions == ("2",)
    assert (report.verified, report.traces) == (False, ())  # somebody else mentions Ben
    assert texts(memory) == ["So is ben.", "Benjamin is not."]


def test_a_person_and_who_mentions_them(memory):
    memory.observe(ANNA, [{"content": "Hi Ben!", "id": "1"}, {"content": "Hi Benjamin!", "id": "2"}])
    report = memory.forget(ANNA, person=" Ben ", mentions=True)
    assert (report.messages, report.mentions) == (("1",), ())
    assert texts(memory) == ["Hi Benjamin!"]


@pytest.mark.parametrize("name", ["A.B", "a+b", "(x)", "日本", "O'Hara"])
def test_names_are_taken_as_they_are(memory, name):
    memory.observe(ANNA, [{"content": f"with {name} here", "id": "1"}, {"content": "AxB aab", "id": "2"}])
    assert memory.forget(ANNA, person=name, mentions=True).messages == ("1",)


@pytest.mark.parametrize(("person", "speaker"), [("José", "Jose\u0301"), ("Jose\u0301", "JOSÉ"), ("Strauß", "STRAUSS")])
def test_a_name_is_one_name_however_it_is_written(memory, person, speaker):
    memory.observe(ANNA, [{"content": "I was there.", "name": speaker, "id": "1"}, {"content": "So was I.", "id": "2"}])
    memory.observe(ANNA, {"content": f"{speaker} too!", "id": "3"})
    report = memory.forget(ANNA, person=person)
    assert (report.messages, report.mentions) == (("1",), ("3",))


@pytest.mark.parametrize(
    ("person", "text", "found"),
    [
        ("田中", "昨日田中さんは来ました。", True),
        ("김민수", "어제 김민수가 왔다.", True),
        ("สมชาย", "เมื่อวานสมชายมา", True),
        ("Ben", "昨日Benさんは来ました。", True),
        ("Ben田", "xBen田中", False),
        ("Jose", "José was here.", False),
        ("Jose", "Jose\u0301 was here.", False),
    ],
)
def test_a_name_inside_a_text_without_spaces_is_a_mention(memory, person, text, found):
    memory.observe(ANNA, [{"content": text, "id": "1"}, {"content": "nobody", "id": "2"}])
    assert memory.forget(ANNA, person=person, mentions=True).messages == (("1",) if found else ())


def test_everything(memory, path):
    memory.observe(ANNA, [SECRET, "hello"])
    memory.remember(ANNA, "A fact that nobody may see.")
    report = memory.forget(ANNA, everything=True, verify=True)
    assert (len(report.messages), len(report.atoms), report.verified) == (2, 1, True)
    assert texts(memory, retired=True) == []
    assert b"combination" not in raw(path)
    assert b"nobody may see" not in raw(path)
    assert [receipt.outcome for receipt in memory.observe(ANNA, [SECRET, "hello"])] == ["forgotten", "forgotten"]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"ids": ""},
        {"ids": []},
        {"person": " "},
        {"ids": "1", "everything": True},
        {"ids": "1", "person": "Ben"},
        {"person": "Ben", "everything": True},
    ],
    ids=str,
)
def test_what_to_forget_must_be_said_exactly(memory, arguments):
    memory.observe(ANNA, {"content": "words", "id": "1"})
    with pytest.raises(InputError, match="say what to forget"):
        memory.forget(ANNA, **arguments)
    assert texts(memory) == ["words"]


def test_a_blank_person_does_not_narrow_everything(memory):
    memory.remember(ANNA, "a fact")
    assert memory.forget(ANNA, person=" ", everything=True).total == 1


def test_it_does_not_return_when_the_same_is_read_again(memory, tmp_path):
    history = [{"content": SECRET, "id": "m1"}, {"content": SECRET, "time": 1_700_000_000}, SECRET, "fine"]
    memory.observe(ANNA, history)
    memory.remember(ANNA, "Anna has a safe.", id="f1")
    memory.remember(ANNA, "Anna has a key.")
    memory.admin.export(ANNA, tmp_path / "all.jsonl")
    memory.forget(ANNA, everything=True)
    outcomes = [receipt.outcome for receipt in memory.observe(ANNA, history)]
    assert outcomes == ["forgotten"] * 4
    for text, id in (("Anna has a safe.", "f1"), ("anna has a safe", ""), ("Anna has a key.", "k"), ("other", "f1")):
        assert memory.remember(ANNA, text, id=id).outcome == "forgotten"
    report = memory.admin.import_(tmp_path / "all.jsonl")
    assert (report.stored, report.forgotten) == (0, 6)
    assert texts(memory, retired=True) == []


def test_words_forgotten_alone_stay_away_on_import_too(tmp_path):
    """Two stores heard the same words at different places."""
    with eunoe.open(tmp_path / "one.db", embedder="none") as one:
        one.observe(ANNA, ["a", "b", SECRET])
        one.admin.export(ANNA, tmp_path / "one.jsonl")
    with eunoe.open(tmp_path / "two.db", embedder="none") as two:
        (receipt,) = two.observe(ANNA, SECRET)
        two.forget(ANNA, receipt.id)
        assert two.admin.import_(tmp_path / "one.jsonl").forgotten == 1
        assert texts(two) == ["a", "b"]


def test_it_may_be_kept_again_on_purpose(memory):
    kept = memory.remember(ANNA, SECRET)
    memory.forget(ANNA, kept.id)
    assert memory.remember(ANNA, SECRET, again=True).outcome == "stored"
    assert memory.remember(ANNA, SECRET).outcome == "duplicate"


def test_a_fact_does_not_return_as_an_observation(memory):
    kept = memory.remember(ANNA, SECRET)
    note = memory.remember(ANNA, "Anna has a safe.", kind="observation")
    other = memory.remember(ANNA, "Anna has a key.")
    memory.forget(ANNA, [kept.id, note.id])
    assert memory.remember(ANNA, SECRET, kind="observation").outcome == "forgotten"
    assert memory.remember(ANNA, "Anna has a safe.").outcome == "forgotten"
    assert memory.update(ANNA, other.id, SECRET, kind="observation").outcome == "forgotten"
    assert memory.remember(ANNA, SECRET, kind="observation", again=True).outcome == "stored"
    assert memory.remember(ANNA, SECRET).outcome == "stored"


@pytest.mark.parametrize("everything", [False, True])
def test_a_message_does_not_return_without_its_id(memory, tmp_path, everything):
    message = {"content": SECRET, "time": 1_700_000_000}
    memory.observe(ANNA, {**message, "id": "m1"})
    memory.forget(ANNA, () if everything else "m1", everything=everything)
    assert memory.observe(ANNA, message)[0].outcome == "forgotten"
    assert memory.observe(ANNA, {**message, "time": 1_800_000_000})[0].outcome == "stored"
    with eunoe.open(tmp_path / "other.db", embedder="none") as other:
        other.observe(ANNA, {**message, "id": "another"})
        other.admin.export(ANNA, tmp_path / "other.jsonl")
    assert memory.admin.import_(tmp_path / "other.jsonl").forgotten == 1


def test_the_same_words_at_the_same_time_that_stay_are_known(memory):
    message = {"content": "hello", "time": 1_700_000_000}
    memory.observe(ANNA, message)
    memory.observe(ANNA, {**message, "id": "m1"})
    memory.forget(ANNA, "m1")
    assert memory.observe(ANNA, message)[0].outcome == "duplicate"


def test_it_may_return_if_that_was_said(memory):
    kept = memory.remember(ANNA, SECRET)
    memory.observe(ANNA, {"content": "words", "id": "m1"})
    memory.forget(ANNA, [kept.id, "m1"], may_return=True)
    assert memory.status().tombstones == 0
    assert memory.remember(ANNA, SECRET).outcome == "stored"
    assert memory.observe(ANNA, {"content": "words", "id": "m1"})[0].outcome == "stored"


def test_what_is_left_behind_holds_no_words(memory, path):
    memory.observe(ANNA, {"content": SECRET, "name": "Zacharias", "session": "secret-session"})
    memory.remember(ANNA, "Zacharias has a safe.", people=["Zacharias"], metadata={"bank": "Zacharias & Sons"})
    memory.forget(ANNA, everything=True)
    assert memory.status().tombstones > 0
    for word in (b"Zacharias", b"secret-session", b"combination"):
        assert word not in raw(path)


def embed(texts):
    return [[1.0, len(text)] for text in texts]


def test_vectors_go_too(path):
    with eunoe.open(path, embedder=embed) as memory:
        memory.observe(ANNA, {"content": SECRET, "id": "m1"})
        memory.remember(ANNA, "Anna has a safe.", source=["m1"])
        report = memory.forget(ANNA, "m1", verify=True)
        assert report.vectors == 2
        assert report.verified
        assert sum(memory.status().vectors.values()) == 0


def test_no_search_no_verdict(memory):
    kept = memory.remember(ANNA, SECRET)
    report = memory.forget(ANNA, kept.id)
    assert (report.verified, report.traces) == (None, ())


def test_a_copy_in_another_table_is_found(memory, path):
    memory.observe(ANNA, {"content": SECRET, "id": "m1"})
    plant(path, "CREATE TABLE note AS SELECT ? AS value", f"he said: {SECRET}")
    report = memory.forget(ANNA, "m1", verify=True)
    assert report.verified is False
    assert any("note.value" in trace for trace in report.traces)


def test_a_copy_in_another_row_is_found(memory):
    memory.observe(ANNA, {"content": SECRET, "id": "m1"})
    memory.remember("user=ben", "Ben has a note.", metadata={"note": SECRET})
    report = memory.forget(ANNA, "m1", verify=True)
    assert report.verified is False
    assert any("items.metadata" in trace for trace in report.traces)


def test_a_copy_in_a_table_of_somebody_else_is_found(memory, path):
    memory.observe(ANNA, {"content": SECRET, "id": "m1"})
    plant(path, 'CREATE TABLE "odd name" (value)')
    plant(path, 'INSERT INTO "odd name" VALUES (?)', SECRET.encode())
    report = memory.forget(ANNA, "m1", verify=True)
    assert any("odd name" in trace for trace in report.traces)


def test_raw_bytes_in_the_file_are_found(memory, path):
    memory.observe(ANNA, {"content": SECRET, "id": "m1"})
    steps_of(memory).scrub()
    connection = sqlite3.connect(path)
    page = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'vectors'").fetchone()[0]
    connection.close()
    with path.open("r+b") as file:  # into the unused middle of a page that nothing will touch
        file.seek((page - 1) * 4096 + 1000)
        file.write(SECRET.encode())
    report = memory.forget(ANNA, "m1", verify=True)
    assert report.verified is False
    assert [trace.partition(":")[0] for trace in report.traces] == ["file memory.db"]


def test_bytes_in_the_log_are_found(memory, monkeypatch):
    memory.observe(ANNA, {"content": SECRET, "id": "m1"})
    monkeypatch.setattr(SqliteStore, "scrub", lambda *_: None)
    report = memory.forget(ANNA, "m1", verify=True)
    assert [trace.partition(":")[0] for trace in report.traces] == ["file memory.db-wal"]


def test_through_a_link_the_log_of_the_file_itself_is_searched(path, tmp_path, monkeypatch):
    link = tmp_path / "links" / "link.db"
    link.parent.mkdir()
    path.touch()
    link.symlink_to(path)
    with eunoe.open(link, embedder="none") as memory:
        kept = memory.remember(ANNA, SECRET)
        log = path.with_name("memory.db-wal")
        assert memory.status().bytes == path.stat().st_size + log.stat().st_size
        monkeypatch.setattr(SqliteStore, "scrub", lambda *_: None)
        report = memory.forget(ANNA, kept.id, verify=True)
        assert {trace.partition(":")[0] for trace in report.traces} == {"file memory.db-wal"}
        assert any(kept.id in trace for trace in report.traces)


@pytest.fixture
def reader(path):
    """Another process that keeps a read open once it is told to."""
    connection = sqlite3.connect(path, isolation_level=None)
    yield connection
    connection.close()


def keep_reading(memory, reader):
    memory._engine.store._timeout = 0
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM items").fetchone()


@pytest.mark.parametrize("may_return", [False, True])
def test_a_forget_that_is_held_up_says_so_and_can_be_completed(memory, path, reader, may_return):
    kept = memory.remember(ANNA, SECRET)
    keep_reading(memory, reader)
    report = memory.forget(ANNA, kept.id, may_return=may_return)
    assert (report.atoms, report.verified) == ((kept.id,), None)
    assert "keeps reading" in report.traces[0]
    assert SECRET.encode() in raw(path)
    again = memory.forget(ANNA, person="nobody", verify=True)
    assert (again.total, again.verified) == (0, False)
    assert "keeps reading" in again.traces[0]
    reader.execute("ROLLBACK")
    if may_return:
        with pytest.raises(NotFoundError):
            memory.forget(ANNA, kept.id)
    else:
        assert memory.forget(ANNA, kept.id, verify=True).verified
    assert SECRET.encode() not in raw(path)
    assert memory.forget(ANNA, person="nobody", verify=True).verified


def test_a_forget_without_room_to_wipe_says_so(memory, monkeypatch):
    def full(*_):
        raise StoreFullError("no room")

    kept = memory.remember(ANNA, SECRET)
    with monkeypatch.context() as patch:
        patch.setattr(SqliteStore, "scrub", full)
        report = memory.forget(ANNA, kept.id, verify=True)
    assert (report.atoms, report.verified) == ((kept.id,), False)
    assert "no room" in report.traces[-1]
    assert memory.forget(ANNA, kept.id, verify=True).verified


def killed_before_the_scrub(memory, path, tmp_path, monkeypatch, id):
    """What the disk holds at the moment between the removal and the scrub."""
    copy = tmp_path / "copy" / path.name
    copy.parent.mkdir()

    def stop(*_):
        for end in ("", "-wal"):
            shutil.copy(f"{path}{end}", f"{copy}{end}")

    with monkeypatch.context() as patch:
        patch.setattr(SqliteStore, "scrub", stop)
        memory.forget(ANNA, id)
    assert SECRET.encode() in raw(copy)
    return copy


def test_a_forget_that_was_killed_is_completed_by_the_next_opening(memory, path, tmp_path, monkeypatch):
    copy = killed_before_the_scrub(memory, path, tmp_path, monkeypatch, memory.remember(ANNA, SECRET).id)
    with eunoe.open(copy, embedder="none"):
        assert SECRET.encode() not in raw(copy)


def test_an_opening_does_not_wait_to_complete_it(memory, path, tmp_path, monkeypatch):
    kept = memory.remember(ANNA, SECRET)
    copy = killed_before_the_scrub(memory, path, tmp_path, monkeypatch, kept.id)
    reader = sqlite3.connect(copy, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM items").fetchone()
    monkeypatch.setattr("eunoe.store.sqlite.time.sleep", lambda _: pytest.fail("it waits"))
    with eunoe.open(copy, embedder="none") as again:
        assert SECRET.encode() in raw(copy)
        reader.close()
        assert again.forget(ANNA, kept.id, verify=True).verified
        assert SECRET.encode() not in raw(copy)


def test_a_deletion_during_a_scrub_stays_due(memory, path, monkeypatch):
    """The second forget commits while the first one scrubs, and is stopped before it can do so itself."""
    kept = memory.remember_many(ANNA, [SECRET, "The other safe is empty."])
    scrub = SqliteStore.scrub

    def meanwhile(store, timeout=None):
        scrub(store, timeout)
        monkeypatch.setattr(SqliteStore, "scrub", scrub)
        scope, chosen = eunoe.Scope.of(ANNA), ByIds([kept[0].id])
        store.write([scope], lambda store: remove(store, [scope], chosen, may_return=False))

    monkeypatch.setattr(SqliteStore, "scrub", meanwhile)
    memory.forget(ANNA, kept[1].id)
    assert SECRET.encode() in raw(path)
    memory.forget(ANNA, person="nobody")
    assert SECRET.encode() not in raw(path)


def test_a_row_that_is_still_there_is_found(memory, monkeypatch):
    kept = memory.remember(ANNA, "short")
    monkeypatch.setattr(SqlWriting, "delete", lambda *_: 0)
    report = memory.forget(ANNA, kept.id, verify=True)
    assert report.traces == (f"items: {kept.id} is still there",)


def test_an_index_that_still_has_it_is_found(memory, monkeypatch):
    kept = memory.remember(ANNA, SECRET)
    memory.recall(ANNA, "combination")
    monkeypatch.setattr(memory._engine.indexes, "forget", lambda _: None)
    report = memory.forget(ANNA, kept.id, verify=True)
    assert report.traces == ("index of user=anna",)


def echo(texts):
    raise RuntimeError("cannot embed\n\n" + "".join(f"  {text}" for text in texts))


def test_what_a_failing_embedder_said_is_cleared(path):
    with eunoe.open(path, embedder=echo) as memory:
        kept = memory.remember(ANNA, SECRET)
        assert f"cannot embed {SECRET}" in memory.status().embedder_error
        report = memory.forget(ANNA, kept.id, verify=True)
        assert report.verified
        assert memory.status().embedder_error == "the embedder failed; what it said was cleared by forget"


def test_an_embedder_that_fails_after_the_forget_is_not_quoted(path):
    asked, forgotten = threading.Event(), threading.Event()

    def late(texts):
        asked.set()
        assert forgotten.wait(60)
        echo(texts)

    with eunoe.open(path, embedder="none") as memory, ThreadPoolExecutor(1) as other:
        kept = memory.remember(ANNA, SECRET)
        embedding = StoreEmbedder(steps_of(memory), "none")
        made = other.submit(embedding._attempt, from_callable(late), lambda: late([SECRET]))
        assert asked.wait(60)
        memory.forget(ANNA, kept.id)
        embedding.clear_error()
        forgotten.set()
        assert made.result() is None
        assert "combination" not in embedding.error


def test_an_error_that_still_quotes_it_is_found(path, monkeypatch):
    with eunoe.open(path, embedder=echo) as memory:
        kept = memory.remember(ANNA, SECRET)
        monkeypatch.setattr(StoreEmbedder, "clear_error", lambda _: None)
        report = memory.forget(ANNA, kept.id, verify=True)
        assert report.traces == ("the embedder's last error in status",)


def test_errors_of_an_embedder_are_one_short_line(path):
    with eunoe.open(path, embedder=echo) as memory:
        memory.remember(ANNA, "many words\n" * 1000)
        error = memory.status().embedder_error
        assert "\n" not in error
        assert len(error) <= 300


@pytest.mark.parametrize("seed", [0, 2])
def test_no_bytes_stay_behind_however_pages_were_filled(path, seed):
    """SQLite moves rows between pages as they grow and go; a copy that stays behind must go too."""
    choose = random.Random(seed)
    gone: list[str] = []
    held: dict[str, list[str]] = {}

    def words():
        return f"secret{choose.randrange(10**9):09d} " + "w" * choose.choice([5, 50, 300, 900])

    with eunoe.open(path, embedder="none") as memory:
        for _ in range(25):
            texts = [words() for _ in range(choose.randint(1, 8))]
            receipts = memory.remember_many(ANNA, [{"text": text, "label": "x" * 20} for text in texts])
            held |= {receipt.id: [text] for receipt, text in zip(receipts, texts, strict=True)}
            for id in choose.sample(list(held), min(len(held), 3)):
                text = words()
                held[memory.update(ANNA, id, text).id] = [*held.pop(id), text]
            chosen = choose.sample(list(held), min(len(held), choose.randrange(4)))
            if chosen:
                report = memory.forget(ANNA, chosen, verify=True)
                assert report.traces == ()
                gone += [text for id in chosen for text in held.pop(id)]
                left = raw(path)
                assert not [text for text in gone if text[:15].encode() in left]


def test_another_process_drops_it_from_its_index(path, start):
    with eunoe.open(path, embedder="none") as memory:
        kept = memory.remember(ANNA, SECRET)
        other = start("ping", path)
        assert other.read() == {"ready": True}
        assert other.ask(SECRET) == {"listed": True, "recalled": True}
        memory.forget(ANNA, kept.id)
        assert other.ask(SECRET) == {"listed": False, "recalled": False}


def test_what_rests_on_an_atom_goes_with_it(memory):
    memory.observe("user=anna", [{"id": "m1", "content": "I moved to Rome."}])
    fact = memory.remember("user=anna", "Anna lives in Rome.", source=["m1"])
    memory.remember("user=anna", "Anna lives in Italy.", id="far", source=[fact.id])
    report = memory.forget("user=anna", "m1")
    assert set(report.atoms) == {fact.id, "far"}
    assert memory.list("user=anna").items == ()
