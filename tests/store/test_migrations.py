"""Files of older schemas are brought up to date, and say afterwards what they said before."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
from contextlib import closing
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from tests.support.steps import Steps

import eunoe
from eunoe.errors import NewerStoreError
from eunoe.model.atom import Record
from eunoe.records.identity import id_identity, topic_of
from eunoe.store.contract import ItemQuery
from eunoe.store.migrations import APPLICATION_ID, MIGRATIONS
from eunoe.store.sqlite import SqliteStore

ANNA = "user=anna"
BEN = "user=ben/agent=cook"
FIXTURES = Path(__file__).parents[1] / "fixtures"
KEYED = FIXTURES / "schema-3-keyed.db"
LETTERS = FIXTURES / "schema-4-letters.db"
SCHEMAS = [FIXTURES / f"schema-{number}.db" for number in range(1, len(MIGRATIONS) + 1)]


@pytest.fixture(params=SCHEMAS, ids=lambda file: file.stem)
def old(request, path):
    return shutil.copy(request.param, path)


@pytest.fixture
def keyed(path):
    return shutil.copy(KEYED, path)


@pytest.fixture(scope="module")
def maker():
    """What makes the fixtures."""
    spec = spec_from_file_location("make", FIXTURES / "make.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def execute(path, sql):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def dump(path):
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def all_records(path) -> list[Record]:
    store = Steps(SqliteStore(path))
    with store.reading():
        records = store.select(ItemQuery())
    store.close()
    return records


def test_the_fixture_of_every_schema_is_kept():
    assert sorted(FIXTURES.glob("*.db")) == sorted([*SCHEMAS, KEYED, LETTERS])


def test_an_old_file_opens_and_reads_right(old):
    with eunoe.open(old) as memory:
        items = {item.id: item for item in memory.list(ANNA, retired=True).items}
        messages = [item.text for item in items.values() if item.kind == "message"]
        words = "NUL \0 and emoji 🌊 and a line\u2028end"
        assert messages == ["bare one", "bare two", words, "with id", "with time"]
        assert items["home"].superseded_by in items
        versions = [version.text for version in memory.history(ANNA, "home")]
        assert versions == ["Anna lives in Paris.", "Anna lives in Rome."]
        assert items["home"].valid_to.isoformat() == "2024-01-01T00:00:00+00:00"
        assert items["home"].people == ("Anna",)
        assert items["home"].source == ("m1",)
        assert {item.recorded.isoformat() for item in items.values()} == {"2024-05-07T18:30:00+00:00"}
        assert memory.scopes(user="ben") == [eunoe.Scope(user="ben", agent="cook")]
        assert memory.list(BEN).items[0].metadata == {"stars": 4.5}
        status = memory.status()
        assert (status.schema, status.messages, status.facts, status.observations) == (len(MIGRATIONS), 5, 2, 1)
        assert (status.retired, status.unembedded, sum(status.vectors.values())) == (1, 0, 9)


def test_files_of_every_schema_say_the_same(old, tmp_path):
    newest = shutil.copy(SCHEMAS[-1], tmp_path / "newest.db")

    def content(path):
        """All records, with their places for the ids that nobody gave."""
        records = all_records(path)
        places = {record.id: f"place {place}" for place, record in enumerate(records)} | {"": ""}
        return [
            record._replace(
                id=places[record.id],
                identity=b"" if record.identity == id_identity(record.id) else record.identity,
                supersedes=places[record.supersedes],
                superseded_by=places[record.superseded_by],
            )
            for record in records
        ]

    assert content(old) == content(newest)


def test_an_old_file_remembers_what_was_forgotten(old):
    with eunoe.open(old) as memory:
        messages = [{"content": "to be forgotten", "id": "m2"}, {"content": "with id", "id": "m1"}]
        assert [receipt.outcome for receipt in memory.observe(ANNA, messages)] == ["forgotten", "duplicate"]
        assert memory.remember(ANNA, "A fact to be forgotten.").outcome == "forgotten"
        assert memory.observe(ANNA, {"content": "with time", "time": 1_700_000_000})[0].outcome == "duplicate"


def test_an_old_file_forgets_without_a_trace(old):
    with eunoe.open(old) as memory:
        report = memory.forget(ANNA, ["home", "m1"], verify=True)
        assert report.verified
        assert "home" in report.atoms
        assert "m1" in report.messages
    content = old.read_bytes()
    assert b"Anna lives in" not in content
    assert b"bare two" in content


def test_memory_keys_of_an_old_file_are_those_of_a_new_one(keyed, maker, tmp_path):
    maker.fill_keyed(tmp_path / "new.db")
    topics = {record.id: record.topic for record in all_records(keyed) if record.kind != "message"}
    assert topics == {
        record.id: record.topic for record in all_records(tmp_path / "new.db") if record.kind != "message"
    }
    assert topics["bern"] == topics["paris"] == topics["oslo"] == topic_of("fact", {"memory_key": "home"}, ())
    assert [id for id, topic in topics.items() if topic is None] == ["blank", "number"]
    assert topics["note"] not in (None, topics["bern"])


def test_a_keyed_atom_of_an_old_file_is_superseded(keyed):
    with eunoe.open(keyed, embedder="none") as memory:
        receipt = memory.remember(ANNA, "Anna lives in Graz.", metadata={"memory_key": "HOME"}, time="2024-04-01")
        assert (receipt.outcome, receipt.closed) == ("superseded", "bern")
        late = memory.remember(ANNA, "Anna lives in Linz.", metadata={"memory_key": "home"}, time="2024-01-15")
        assert late.outcome == "stored"
        towns = ["Paris", "Linz", "Rome", "Bern", "Graz"]
        history = [version.text for version in memory.history(ANNA, "paris")]
        assert history == [f"Anna lives in {town}." for town in towns]
        others = [item.id for item in memory.list(ANNA, kinds=["fact", "observation"]).items]
        assert {"tea", "note", "blank", "number", "secret"} <= set(others)
        assert [item.id for item in memory.list(BEN).items] == ["oslo"]


def test_a_keyed_atom_of_an_old_file_is_forgotten_without_a_trace(keyed):
    with eunoe.open(keyed, embedder="none") as memory:
        assert memory.forget(ANNA, "secret", verify=True).verified
    content = keyed.read_bytes()
    assert b"doormat" not in content
    assert topic_of("fact", {"memory_key": "secret"}, ()) not in content
    with eunoe.open(keyed, embedder="none") as memory:
        forgotten = memory.remember(ANNA, "The secret lies beneath the doormat.", metadata={"memory_key": "secret"})
        assert forgotten.outcome == "forgotten"


def test_texts_that_an_old_file_took_for_the_same_are_told_apart(path):
    shutil.copy(LETTERS, path)
    known = ("Wir trinken in Maßen.", ".5 mg is the dose.", "It went :(")
    others = ("Wir trinken in Massen.", "5 mg is the dose.", "It went :)")
    with eunoe.open(path, embedder="none") as memory:
        assert [memory.remember(ANNA, text).outcome for text in known] == ["duplicate"] * 3
        assert [memory.remember(ANNA, text).outcome for text in others] == ["stored"] * 3
        assert memory.remember(ANNA, "Er läuft in Maßen.", id="run").outcome == "duplicate"
        assert memory.remember(ANNA, "Er läuft in Massen.", id="run").outcome == "conflict"
        assert memory.status().schema == len(MIGRATIONS)


def test_what_an_old_file_forgot_stays_forgotten(path):
    """As that file knew it, which is in more disguises than tombstones know since."""
    shutil.copy(LETTERS, path)
    with eunoe.open(path, embedder="none") as memory:
        for text in ("Anna likes 🍎.", "ANNA  likes 🍎", "Sie isst Brot in Maßen.", "Anna likes"):
            assert memory.remember(ANNA, text).outcome == "forgotten"
        assert memory.remember(ANNA, "Anna likes 🍎.", again=True).outcome == "stored"


def test_an_upgraded_file_has_the_schema_of_a_new_one(old, tmp_path):
    new = tmp_path / "new.db"
    for path in (old, new):
        with eunoe.open(path):
            pass
    schema = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name"
    assert execute(old, schema) == execute(new, schema)


def test_the_second_new_file_is_like_the_one_that_went_through_all_migrations(tmp_path, monkeypatch):
    monkeypatch.setattr("eunoe.store.new_schema._known", {})
    migrated, copied, third = (tmp_path / f"{name}.db" for name in ("migrated", "copied", "third"))
    for path in (migrated, copied, third):
        SqliteStore(path).close()
    schema = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name"
    for query in (schema, "SELECT name, rows FROM digests ORDER BY name"):
        assert execute(migrated, query) == execute(copied, query)
    assert _values(migrated).keys() == _values(copied).keys()
    assert len({_values(path)["cursor_key"] for path in (migrated, copied, third)}) == 3
    for path in (migrated, copied, third):
        with eunoe.open(path, embedder="none") as memory:
            memory.observe(ANNA, ["one"])
            assert memory.admin.check()


def _values(path):
    return dict(execute(path, "SELECT name, value FROM meta"))


def test_a_new_migration_upgrades_an_old_file_in_place(old, monkeypatch):
    with eunoe.open(old):
        pass
    before = set(dump(old))

    def add_settings(connection):
        connection.execute("ALTER TABLE streams ADD COLUMN settings TEXT NOT NULL DEFAULT ''")

    monkeypatch.setattr("eunoe.store.sqlite.MIGRATIONS", [*MIGRATIONS, add_settings])
    with eunoe.open(old) as memory:
        assert memory.status().schema == len(MIGRATIONS) + 1
        assert len(memory.list(ANNA, retired=True).items) == 8
    assert all("streams" in line or "file_stamp" in line for line in before - set(dump(old)))
    assert execute(old, "PRAGMA user_version") == [(len(MIGRATIONS) + 1,)]
    assert execute(old, "PRAGMA application_id") == [(APPLICATION_ID,)]
    assert execute(old, "SELECT settings FROM streams") == [("",), ("",)]
    monkeypatch.undo()
    content = hashlib.sha256(old.read_bytes()).digest()
    with pytest.raises(NewerStoreError, match="upgrade"):
        eunoe.open(old)
    assert hashlib.sha256(old.read_bytes()).digest() == content


def test_a_migration_that_fails_leaves_the_file_as_it_was(old, monkeypatch):
    def fail(connection):
        connection.execute("CREATE TABLE extra (name TEXT)")
        connection.execute("DELETE FROM items")
        raise ValueError("the migration failed")

    monkeypatch.setattr("eunoe.store.sqlite.MIGRATIONS", [*MIGRATIONS, fail])
    content = old.read_bytes()
    with pytest.raises(ValueError, match="the migration failed"):
        eunoe.open(old)
    assert old.read_bytes() == content
    assert [file.name for file in old.parent.iterdir()] == [old.name]


def test_processes_upgrade_a_file_once(path, start):
    with eunoe.open(path, embedder="none") as memory:
        memory.observe(ANNA, ["one", "two"])
    children = [start("migrate", path) for _ in range(3)]
    for child in children:
        assert child.read() == {"ready": True}
    for child in children:
        child.tell()
    assert [child.read() for child in children] == [{"items": 2, "schema": len(MIGRATIONS) + 1}] * 3
    assert [child.end() for child in children] == [0, 0, 0]
    assert execute(path, "SELECT name FROM extra") == [("made once",)]


def test_what_was_damaged_before_a_migration_still_is(path):
    shutil.copy(FIXTURES / "schema-6.db", path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE items SET text = 'Ben hates garlic.' WHERE text = 'Ben likes garlic.'")
        connection.commit()
    with eunoe.open(path) as memory:
        report = memory.admin.check()
        assert [damage.problem for damage in report.damage] == ["the row is not as it was written"]
        assert memory.list(BEN).items == ()


def test_a_migrated_file_is_sound(old):
    with eunoe.open(old) as memory:
        assert memory.admin.check()
