"""Damage is told where it is read, and what is not damaged stays readable."""

from __future__ import annotations

import io
import logging
import random
import sqlite3
import sys
from contextlib import closing
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from unittest.mock import patch

import pytest
from tests.support.steps import Steps

import eunoe
from eunoe.errors import DamagedStoreError, NotFoundError
from eunoe.store.codec import find_damaged
from eunoe.store.sqlite import SqliteStore
from eunoe.store.sqlite_files import find_damage

ANNA = "user=anna"
BEN = "user=ben"
SECRET = "Anna keeps the spare key under the blue flowerpot."


@pytest.fixture(scope="module")
def soak():
    path = Path(__file__).parents[1] / "soak" / "damage.py"
    spec = spec_from_file_location("soak_damage", path)
    module = module_from_spec(spec)
    sys.modules["soak_damage"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["soak_damage"]


def embed(texts):
    return [[1.0, float(len(text) % 7), float(text.count("a")), 1.0] for text in texts]


@pytest.fixture
def stocked(path):
    """A store with facts that have versions, a message, a summary, a tombstone and settings."""
    with eunoe.open(path, embedder=embed, form=False) as memory:
        memory.remember(ANNA, SECRET, id="key")
        memory.remember(ANNA, "Anna lives in Rome.", id="home")
        memory.update(ANNA, "home", "Anna lives in Oslo.")
        memory.remember(ANNA, "Anna has a cello.", kind="observation", id="cello")
        memory.observe(ANNA, {"content": "The tide comes in at noon.", "id": "m1"})
        memory.remember(ANNA, "Something to be forgotten.", id="gone")
        memory.forget(ANNA, "gone")
        memory.summaries.consolidate(ANNA)
        memory.streams.configure(ANNA, consolidation_trigger=7)
        memory.remember(BEN, "Ben likes tea.", id="tea")
    return path


def open_memory(path):
    return eunoe.open(path, embedder=embed, form=False)


def flip_in(path, found: bytes, bit: int = 0) -> None:
    content = bytearray(path.read_bytes())
    assert content.count(found) == 1
    content[content.index(found)] ^= 1 << bit
    path.write_bytes(content)


def execute(path, *statements):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def hide(path, table, condition):
    """Take rows away as a damaged page does: nobody counts them off."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        sql = "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = ?"
        triggers = connection.execute(sql, (table,)).fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        assert connection.execute(f"DELETE FROM {table} WHERE {condition}").rowcount
        for _, sql in triggers:
            connection.execute(sql)


def test_no_flipped_bit_is_silent(soak):
    logger = logging.getLogger("eunoe")
    level = logger.level
    try:
        counts = soak.run(files=24, seed=11)
        counts += soak.run(files=12, seed=12, aim="structure")
    finally:
        logger.setLevel(level)
    assert counts["announced"] > 10
    assert not counts["silent"]
    assert not counts["untyped"]


def test_a_damaged_row_is_named_and_the_rest_stays_readable(stocked, caplog):
    flip_in(stocked, b"spare key under")
    with open_memory(stocked) as memory:
        with pytest.raises(DamagedStoreError, match=r"items id key of user=anna") as caught:
            memory.get(ANNA, "key")
        hits = memory.recall(ANNA, "Where is the spare key? Where does Anna live?")
        page = memory.list(ANNA)
        context = memory.context(ANNA, "Where does Anna live?")
        assert memory.get(ANNA, "m1").text == "The tide comes in at noon."
        assert memory.get(BEN, "tea").text == "Ben likes tea."
        assert memory.list(BEN).notes == ()
        assert [each.text for each in memory.history(ANNA, "home")] == ["Anna lives in Rome.", "Anna lives in Oslo."]
        report = memory.admin.check()
    assert "key" not in [hit.id for hit in hits]
    assert "Anna lives in Oslo." in [hit.text for hit in hits]
    assert "Anna lives in Oslo." in [item.text for item in page.items]
    for notes in (hits.notes, page.notes, context.notes):
        assert any("items id key of user=anna" in note for note in notes)
    assert [(each.table, each.row, each.scope) for each in report.damage] == [("items", "id key", ANNA)]
    said = [str(caught.value), caplog.text, str(report), *hits.notes, *page.notes]
    assert not any("flowerpot" in text or "spare" in text for text in said)


def test_an_export_refuses_what_is_damaged_or_leaves_it_out(stocked, tmp_path):
    flip_in(stocked, b"spare key under")
    with open_memory(stocked) as memory:
        with pytest.raises(DamagedStoreError, match=r"id key .*--skip-damaged"):
            memory.admin.export(ANNA, tmp_path / "anna.jsonl")
        assert not (tmp_path / "anna.jsonl").exists()
        file = io.StringIO()
        memory.admin.export(ANNA, file, skip_damaged=True)
    assert "flowerpot" not in file.getvalue()
    assert "Anna lives in Oslo." in file.getvalue()


@pytest.mark.parametrize(
    ("table", "condition"),
    [
        ("items", "id = 'key'"),
        ("revisions", "number = 1"),
        ("summaries", "1 = 1"),
        ("settings", "1 = 1"),
        ("tombstones", "1 = 1"),
        ("absorptions", "1 = 1"),
    ],
)
def test_a_row_that_cannot_be_found_is_missed(stocked, table, condition):
    hide(stocked, table, condition)
    with open_memory(stocked) as memory:
        hits = memory.recall(ANNA, "cello")
        assert any("cannot be found" in note and ANNA in note for note in hits.notes)
        assert any("cannot be found" in note for note in memory.list(ANNA).notes)
        with pytest.raises(DamagedStoreError, match="cannot be found"):
            memory.get(ANNA, "key" if table == "items" else "never there")
        with pytest.raises(DamagedStoreError):
            memory.admin.export(ANNA, io.StringIO())
        with pytest.raises(NotFoundError):
            memory.get(BEN, "key")
        assert not memory.admin.check()


@pytest.mark.parametrize("name", ["model"])
def test_a_value_that_cannot_be_found_is_missed(stocked, name):
    hide(stocked, "meta", f"name = '{name}'")
    lost = pytest.raises(DamagedStoreError, match=r"meta: 1 of its \d+ rows cannot be found")
    with lost, open_memory(stocked) as memory:
        memory.remember(ANNA, "One more.")


def test_a_scope_that_cannot_be_found_is_missed(stocked):
    hide(stocked, "streams", f"scope = '{BEN}'")
    with open_memory(stocked) as memory:
        with pytest.raises(DamagedStoreError, match="streams: 1 of its 2 rows"):
            memory.scopes()
        assert memory.get(ANNA, "m1")
        assert not memory.admin.check()


def rewrite_index(path, index, column, old, new):
    """Let an index say something else than its table."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        root, sql = connection.execute("SELECT rootpage, sql FROM sqlite_schema WHERE name = ?", (index,)).fetchone()
        size = connection.execute("PRAGMA page_size").fetchone()[0]
    content = bytearray(path.read_bytes())
    page = content[(root - 1) * size : root * size]
    assert page.count(old) == 1, (sql, column)
    content[(root - 1) * size : root * size] = page.replace(old, new)
    path.write_bytes(content)


def test_an_index_that_leads_to_another_row_gives_no_wrong_answer(stocked):
    rewrite_index(stocked, "items_id", "id", b"cello", b"cellp")
    with open_memory(stocked) as memory:
        for id in ("cello", "cellp"):
            with pytest.raises(DamagedStoreError, match="index"):
                memory.get(ANNA, id)
        assert "Anna has a cello." in [item.text for item in memory.list(ANNA).items]
        assert not memory.admin.check()


def test_a_scope_is_found_though_its_index_is_damaged(stocked):
    rewrite_index(stocked, "streams_place_scope", "scope", BEN.encode(), b"user=bem")
    with open_memory(stocked) as memory:
        assert memory.get(BEN, "tea").text == "Ben likes tea."
        assert not memory.admin.check()


def test_damaged_vectors_are_made_anew(stocked):
    of = "WHERE seq = (SELECT seq FROM items WHERE id = '{}')"
    execute(
        stocked,
        f"UPDATE vectors SET data = zeroblob(8) {of.format('key')}",
        f"DELETE FROM vectors {of.format('cello')}",
    )
    with open_memory(stocked) as memory:
        damaged = [each.table for each in memory.admin.check().damage]
        assert damaged.count("vectors") == 2
        hits = memory.recall(ANNA, "the spare key")
        assert any("made anew" in note for note in hits.notes)
        assert memory.flush()
        assert memory.admin.check()
        assert memory.recall(ANNA, "the spare key").notes == ()


def test_access_counts_that_are_damaged_begin_anew(stocked):
    with open_memory(stocked) as memory:
        memory.recall(BEN, "tea")
    execute(stocked, "UPDATE access_counts SET times = times + 5")
    with open_memory(stocked) as memory:
        memory.recall(BEN, "tea")
    with open_memory(stocked) as memory:
        assert memory.admin.access_counts(BEN, ["tea"])["tea"].times == 1
        assert memory.admin.check()


@pytest.mark.parametrize(
    "change", ["text = CAST(x'ff6162' AS TEXT)", "recorded = 9223372036854775807", "people = '['", "kind = 7"]
)
def test_values_that_are_none_raise_typed_errors(stocked, change):
    execute(stocked, f"UPDATE items SET {change} WHERE id = 'm1'")
    with open_memory(stocked) as memory:
        with pytest.raises(DamagedStoreError):
            memory.get(ANNA, "m1")
        assert "Anna lives in Oslo." in [item.text for item in memory.list(ANNA).items]
        assert memory.recall(ANNA, "Where does Anna live?").notes
        assert not memory.admin.check()


@pytest.fixture
def log(tmp_path):
    """What a killed process leaves behind: a store, and its log."""
    path = tmp_path / "killed.db"
    with open_memory(tmp_path / "open.db") as memory:
        for number in range(12):
            memory.remember(ANNA, f"Anna counts to {number}.", id=f"f{number}")
        for end in ("", "-wal"):
            Path(f"{path}{end}").write_bytes(Path(f"{tmp_path / 'open.db'}{end}").read_bytes())
    return path.with_name(f"{path.name}-wal")


def test_a_log_with_a_flipped_bit_is_refused_until_it_is_cut_off(log):
    content = log.read_bytes()
    damaged = bytearray(content)
    damaged[len(content) // 2] ^= 4
    log.write_bytes(damaged)
    path = log.with_name("killed.db")
    with pytest.raises(DamagedStoreError, match=r"truncate -s \d+") as caught:
        open_memory(path)
    assert log.read_bytes() == damaged
    place = int(str(caught.value).split("truncate -s ")[1].split()[0])
    assert 32 <= place <= len(content) // 2
    with log.open("r+b") as file:
        file.truncate(place)
    with open_memory(path) as memory:
        assert 0 < len(memory.list(ANNA).items) < 12
        assert memory.admin.check()


def test_every_bit_of_a_log_counts(log):
    content = log.read_bytes()
    assert find_damage(content) is None
    choose = random.Random(5)
    last = len(content) - 4096 - 24
    places = [*range(32), *range(last, last + 24), *(choose.randrange(len(content)) for _ in range(100))]
    for place in places:
        damaged = bytearray(content)
        damaged[place] ^= 1 << choose.randrange(8)
        assert find_damage(bytes(damaged)) is not None, place


def test_a_log_that_was_cut_off_is_not_damaged(log):
    """A process that is killed leaves the last write half done: nobody was told that it was stored."""
    content = log.read_bytes()
    for end in range(0, len(content), 1777):
        assert find_damage(content[:end]) is None
    size = 4096 + 24
    frame = content[32 + size : 32 + 2 * size]
    for written in (24, 500, 4000):  # over an older log, whose bytes follow
        torn = content[: 32 + size] + frame[:written] + bytes(size - written) + b"\1" * (2 * size)
        assert find_damage(torn) is None


def test_a_log_that_was_begun_anew_is_not_damaged(tmp_path):
    path = tmp_path / "memory.db"
    store = Steps(SqliteStore(path))
    for number in range(30):
        with store.writing():
            store.set_value(f"name {number}", "value" * 300)
    store._checkpoint("RESTART")
    with store.writing():
        store.set_value("name", "value")
    content = Path(f"{path}-wal").read_bytes()
    assert len(content) > 100_000
    assert find_damage(content) is None
    store.close()


def test_a_log_in_use_is_not_looked_at(path, start):
    """Another process has the store open, and may be writing to its log this very moment."""
    child = start("ping", path)
    assert child.read() == {"ready": True}
    with open_memory(path) as memory:
        memory.remember(ANNA, "Anna counts on.")
    log = path.with_name(f"{path.name}-wal")
    content = bytearray(log.read_bytes())
    content[-5000] ^= 1
    log.write_bytes(content)
    with open_memory(path):
        pass
    child.kill()


def test_what_is_missing_in_a_large_stream_is_told_with_its_first_page(path):
    with open_memory(path) as memory:
        memory.remember_many(ANNA, [{"text": f"fact {number}", "id": f"f{number}"} for number in range(1100)])
    hide(path, "items", "id = 'f1050'")
    execute(path, "UPDATE items SET text = 'fact 1o40' WHERE id = 'f1040'")
    with open_memory(path) as memory:
        first = memory.list(ANNA, limit=10)
        assert any("cannot be found" in note for note in first.notes)
        assert not any("f1040" in note for note in first.notes)
        last = memory.list(ANNA, limit=100, newest=True)
        assert any("f1040" in note for note in last.notes)
        assert "fact 1o40" not in [item.text for item in last.items]
        assert not memory.admin.check()


def test_a_page_of_a_large_stream_reads_few_of_its_rows(path):
    with open_memory(path) as memory:
        memory.remember_many(ANNA, [{"text": f"fact {number}", "id": f"f{number}"} for number in range(1100)])
    with open_memory(path) as memory, patch("eunoe.store.checks.find_damaged", wraps=find_damaged) as compare:
        assert memory.list(ANNA, limit=10).notes == ()
        assert sum(len(call.args[0]) for call in compare.call_args_list) < 20
