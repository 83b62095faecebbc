"""Bytes that stay behind where a file keeps nothing are found, on every kind of page."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

import eunoe
from eunoe.store import sqlite_bytes

PAGE_BYTES = 4096
ID = b"01a1e30e7d927c6afff68ab0"


@pytest.fixture(scope="module")
def soak():
    spec = spec_from_file_location("soak_traces", Path(__file__).parents[1] / "soak" / "traces.py")
    module = module_from_spec(spec)
    sys.modules["soak_traces"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["soak_traces"]


@pytest.fixture
def pages(tmp_path):
    """A database with pages of every kind, by the first byte of each."""
    path = tmp_path / "pages.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("CREATE TABLE items (seq INTEGER PRIMARY KEY, text TEXT, id TEXT)")
        connection.execute("CREATE INDEX items_id ON items (id)")
        rows = [(f"text {number} " * 20, f"id {number:06d}") for number in range(3000)]
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO items (text, id) VALUES (?, ?)", rows)
        connection.execute("INSERT INTO items (text) VALUES (?)", ("long " * 3000,))
        connection.execute("COMMIT")
        connection.execute("VACUUM")
    content = path.read_bytes()
    return [content[start : start + PAGE_BYTES] for start in range(0, len(content), PAGE_BYTES)]


def page_of_kind(pages, kind):
    return next(place for place, page in enumerate(pages) if place and page[0] == kind)


def planted(pages, kind, content):
    """The pages, with bytes in the gap of one that has room for them."""
    head = 12 if kind in (2, 5) else 8
    for place, page in enumerate(pages):
        start = head + 2 * int.from_bytes(page[3:5])
        if place and page[0] == kind and int.from_bytes(page[5:7]) - start > len(content) + 8:
            changed = page[: start + 4] + content + page[start + 4 + len(content) :]
            return [*pages[:place], changed, *pages[place + 1 :]]
    raise AssertionError(kind)


@pytest.mark.parametrize("kind", [2, 5, 10, 13])
def test_what_was_deleted_is_found_on_every_kind_of_page(pages, kind):
    assert not sqlite_bytes.has_leftovers(pages, PAGE_BYTES, {ID})
    assert not sqlite_bytes.has_leftovers(pages, PAGE_BYTES)
    damaged = planted(pages, kind, ID)
    assert sqlite_bytes.has_leftovers(damaged, PAGE_BYTES, {ID})
    assert sqlite_bytes.has_leftovers(damaged, PAGE_BYTES)
    assert sqlite_bytes.find_unused(damaged, PAGE_BYTES, [ID.decode(), b"something else"]) == {ID.decode()}


@pytest.mark.parametrize("kind", [2, 5, 10])
def test_copies_of_what_is_still_there_may_stay_on_pages_of_indexes(pages, kind):
    assert not sqlite_bytes.has_leftovers(planted(pages, kind, ID), PAGE_BYTES, {b"another id that was deleted"})


def test_short_names_are_found_too(pages):
    assert sqlite_bytes.has_leftovers(planted(pages, 10, b"\0m1234\0"), PAGE_BYTES, {b"m1234"})


def test_freed_spans_and_pages_of_no_tree_are_searched(pages):
    place = page_of_kind(pages, 10)
    page = bytearray(pages[place])
    span = PAGE_BYTES - 64
    page[1:3] = span.to_bytes(2)
    page[span:] = b"\0\0" + (64).to_bytes(2) + ID + bytes(60 - len(ID))
    assert sqlite_bytes.has_leftovers([*pages[:place], bytes(page), *pages[place + 1 :]], PAGE_BYTES, {ID})
    free = b"\0\0\0\0" + ID.ljust(PAGE_BYTES - 4, b"\0")
    assert sqlite_bytes.has_leftovers([*pages, free], PAGE_BYTES, {ID})


def test_cells_in_use_are_no_leftovers(pages):
    assert not sqlite_bytes.find_unused(pages, PAGE_BYTES, ["id 000007", "id 002999"])


def test_old_definitions_of_tables_are_no_leftovers(tmp_path):
    path = tmp_path / "memory.db"
    with eunoe.open(path, embedder="none", llm="none") as memory:
        memory.remember("user=anna", "Anna likes tea.")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("VACUUM")
    content = path.read_bytes()
    assert content[100] == 5  # the definitions take more than one page
    assert not sqlite_bytes.has_leftovers([content], PAGE_BYTES, {ID})
    pages = [content[start : start + PAGE_BYTES] for start in range(0, len(content), PAGE_BYTES)]
    assert not sqlite_bytes.has_leftovers(pages, PAGE_BYTES, {ID})
    assert sqlite_bytes.has_leftovers([b"".join(planted(pages, 13, ID))], PAGE_BYTES, {ID})


def test_nothing_forgotten_stays_in_the_file(soak):
    report = soak.run(forgets=50, seed=3)
    assert report.forgotten >= 50
    assert (sum(report.found.values()), report.unverified) == (0, 0)
