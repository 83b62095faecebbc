"""A process killed at any moment: what it acknowledged is there, and nothing half-written is."""

from __future__ import annotations

import json
import random
import sqlite3
import time
from collections import Counter
from pathlib import Path

import pytest

import eunoe

ROUNDS = 12
NEW_FILES = 12
# Each counts what breaks it.
RULES = {
    "a row is no newer than its stream": """
        SELECT count(*) FROM items i JOIN streams s ON s.id = i.stream WHERE i.version > s.version""",
    "a change is no newer than its stream": """
        SELECT count(*) FROM changes c JOIN streams s ON s.id = c.stream WHERE c.version > s.version""",
    "what was removed is not there": "SELECT count(*) FROM changes WHERE what = 2 AND seq IN (SELECT seq FROM items)",
    "every row came in with a change": """
        SELECT count(*) FROM items i WHERE NOT EXISTS
        (SELECT 1 FROM changes c WHERE c.stream = i.stream AND c.what = 0 AND c.seq <= i.seq)""",
    "numbers are handed out upwards": """
        SELECT count(*) FROM items i JOIN streams s ON s.id = i.stream WHERE i.seq - (i.stream << 27) > s.last""",
    "places are handed out upwards": """
        SELECT count(*) FROM items i JOIN streams s ON s.id = i.stream WHERE i.position >= s.position""",
    "one place, one message": "SELECT count(*) - count(DISTINCT position) FROM items WHERE kind = 'message'",
    "a vector belongs to a row": "SELECT count(*) FROM vectors WHERE seq NOT IN (SELECT seq FROM items)",
    "a row has a vector or waits for one": """
        SELECT count(*) FROM items WHERE pending = 0 AND seq NOT IN (SELECT seq FROM vectors)""",
}


def read_rows(path: Path) -> dict[str, sqlite3.Row]:
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    rows = {row["id"]: row for row in connection.execute("SELECT * FROM items")}
    connection.close()
    return rows


def check_rules(path: Path) -> None:
    """Rules that hold in every store after every whole step."""
    with eunoe.open(path) as memory:  # opening is what recovers the file
        assert memory.status().schema >= 1
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    broken = {rule: connection.execute(sql).fetchone()[0] for rule, sql in RULES.items()}
    connection.close()
    assert not any(broken.values()), broken


class ExpectedContent:
    """What a child said it would do and what it acknowledged, compared with what is in the file."""

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}
        self.stored: set[str] = set()
        self.gone: set[str] = set()
        self.unfinished: dict[str, object] | None = None

    def note(self, line: dict) -> None:
        if "begin" in line:
            self.unfinished = line
            self.sizes[line["batch"]] = 1 if line["begin"] == "update" else line["size"]
            return
        assert self.unfinished
        if self.unfinished["begin"] == "forget":
            self.gone.update(line["ids"])
            self.stored.difference_update(line["ids"])
        elif self.unfinished["begin"] == "update":
            self.stored.add(line["ids"][0])
        else:
            self.stored.update(line["ids"])
        self.unfinished = None

    def compare(self, rows: dict[str, sqlite3.Row]) -> None:
        before = set(self.stored)
        self.resolve_unfinished(rows)
        assert self.stored <= rows.keys()
        assert not self.gone & rows.keys()
        self.check_batches(rows)
        for row in rows.values():
            if row["superseded_by"]:
                assert row["retired"] is not None
                assert rows[row["superseded_by"]]["supersedes"]
            if row["supersedes"]:
                assert rows[row["supersedes"]]["retired"] is not None
        assert before - self.stored <= self.gone

    def check_batches(self, rows: dict[str, sqlite3.Row]) -> None:
        """Each batch is there as a whole, but for what was forgotten of it."""
        stored = Counter(json.loads(row["metadata"])["batch"] for row in rows.values())
        for batch, size in self.sizes.items():
            assert stored[batch] <= size
        acknowledged = Counter(json.loads(rows[id]["metadata"])["batch"] for id in self.stored)
        assert stored == acknowledged

    def resolve_unfinished(self, rows: dict[str, sqlite3.Row]) -> None:
        """What was under way when the child died happened as a whole or not at all."""
        unfinished, self.unfinished = self.unfinished, None
        if not unfinished:
            return
        if unfinished["begin"] == "forget":
            left = set(unfinished["ids"]) & rows.keys()
            assert left in (set(), set(unfinished["ids"]))
            if not left:
                gone = {id for id in self.stored if id not in rows}
                self.gone |= gone
                self.stored -= gone
            return
        new = {id for id, row in rows.items() if json.loads(row["metadata"])["batch"] == unfinished["batch"]}
        assert len(new) in (0, self.sizes[unfinished["batch"]])
        self.stored |= new


def test_killed_while_writing(path, start):
    chance = random.Random("killed while writing")
    expected = ExpectedContent()
    for number in range(ROUNDS):
        child = start("crash", path, number)
        for _ in range(chance.randint(1, 40)):
            expected.note(child.read())
        time.sleep(chance.random() * 0.004)  # any moment will do; this only makes sure that they differ
        for line in child.kill():
            expected.note(line)
        check_rules(path)
        expected.compare(read_rows(path))
    assert expected.stored
    assert expected.gone


def test_killed_while_making_the_file(tmp_path, start):
    chance = random.Random("killed while making the file")
    for number in range(NEW_FILES):
        path = tmp_path / f"{number}.db"
        child = start("create", path)
        assert child.read() == {"ready": True}
        child.tell()
        acknowledged = [child.read()] if number % 4 == 0 else []
        time.sleep(chance.random() * 0.03)
        acknowledged += child.kill()
        with eunoe.open(path, embedder="none") as memory:
            texts = [item.text for item in memory.list("user=anna").items]
            assert texts == ["one", "two"] if acknowledged else texts in ([], ["one", "two"])
            memory.observe("user=anna", ["one", "two", "three"])
            assert [item.text for item in memory.list("user=anna").items] == ["one", "two", "three"]


@pytest.mark.parametrize("verb", ["observe", "remember_many"])
def test_a_batch_with_one_bad_item_stores_nothing(memory, verb):
    memory.observe("user=anna", "before")
    with pytest.raises(eunoe.errors.InputError, match="nothing was stored"):
        getattr(memory, verb)("user=anna", ["good", "lone \ud800 surrogate", "good too"])
    assert [item.text for item in memory.list("user=anna").items] == ["before"]
