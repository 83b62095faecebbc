"""Dumps of `wiki_memories`, in every shape MongoDB's tools write."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import eunoe
from eunoe.apps.wiki.dumps import DumpReport, import_dumps
from eunoe.cli.app import run
from eunoe.errors import InputError
from eunoe.memory import Memory

SHOP = UUID("6f9619ff-8b86-d011-b42d-00c04fc964ff")
BASE64 = b64encode(SHOP.bytes).decode()
SCOPE = f"repository={SHOP}"


def document(place: int, **changes: Any) -> dict[str, Any]:
    return {
        "_id": {"$oid": f"6943f8a2{place:016x}"},
        "repository_id": {"$binary": {"base64": BASE64, "subType": "04"}},
        "memory_type": "pattern_found",
        "content": f"Pattern {place}.",
        "embedding": [0.25, {"$numberDouble": "0.5"}],
        "source_agent": "page_agent",
        "file_paths": [f"/tmp/clones/abc/src/h{place}.py"],
        "related_pages": ["handlers"],
        "embedding_metadata": {"model": "text-embedding-3-small", "dimension": {"$numberInt": "384"}},
        "created_at": {"$date": "2026-01-07T10:00:00Z"},
        "updated_at": {"$date": {"$numberLong": "1767780000000"}},
        **changes,
    }


def write_lines(path: Path, *documents: Any) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in documents), encoding="utf-8")
    return path


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    return tmp_path / "wiki_memories.json"


def test_memories_move_in_with_their_fields(memory: Memory, dump: Path) -> None:
    report = import_dumps(memory, write_lines(dump, document(1)), clone_paths=["/tmp/clones/*"])
    assert report == DumpReport(documents=1, repositories=1, stored=1)
    (item,) = memory.list(SCOPE).items
    assert (item.text, item.label, item.files, item.pages) == (
        "Pattern 1.",
        "pattern_found",
        ("src/h1.py",),
        ("handlers",),
    )
    assert item.time is not None
    assert item.time.isoformat() == "2026-01-07T10:00:00+00:00"
    assert item.metadata["source_agent"] == "page_agent"


@pytest.mark.parametrize(
    "id",
    [
        str(SHOP),
        str(SHOP).upper(),
        {"$uuid": str(SHOP)},
        {"$binary": {"base64": BASE64, "subType": "4"}},
        {"$binary": {"base64": BASE64, "subType": "03"}},
        {"$binary": BASE64, "$type": "04"},
        {"$binary": BASE64, "$type": 4},
    ],
)
def test_every_spelling_of_a_uuid_is_one_repository(memory: Memory, dump: Path, id: Any) -> None:
    import_dumps(memory, write_lines(dump, document(1, repository_id=id)))
    assert [scope.text for scope in memory.scopes()] == [SCOPE]


@pytest.mark.parametrize("shape", ["lines", "array", "pretty"])
def test_every_shape_of_a_file_is_read_and_twice_changes_nothing(memory: Memory, dump: Path, shape: str) -> None:
    documents = [document(place) for place in range(3)]
    if shape == "lines":
        write_lines(dump, *documents)
    else:
        dump.write_text(json.dumps(documents, indent=2 if shape == "pretty" else None), encoding="utf-8")
    assert import_dumps(memory, dump).stored == 3
    before = memory.list(SCOPE, retired=True).items
    assert import_dumps(memory, dump) == DumpReport(documents=3, repositories=1, known=3)
    assert memory.list(SCOPE, retired=True).items == before


@pytest.mark.parametrize(
    ("created", "expected"),
    [
        ({"$date": {"$numberLong": "1767780000000"}}, "2026-01-07T10:00:00+00:00"),
        ({"$date": 1767780000000}, "2026-01-07T10:00:00+00:00"),
        ("2026-01-07T10:00:00", "2026-01-07T10:00:00+00:00"),
        (None, "2025-12-18T12:50:42+00:00"),
    ],
)
def test_times(memory: Memory, dump: Path, created: Any, expected: str) -> None:
    import_dumps(memory, write_lines(dump, document(1, created_at=created)))
    (item,) = memory.list(SCOPE).items
    assert item.time is not None
    assert item.time.isoformat() == expected


def test_what_makes_no_sense_is_named_with_its_place_and_the_rest_comes(memory: Memory, dump: Path) -> None:
    broken = [
        document(1, memory_type="opinion"),
        document(2, content=" "),
        document(3, repository_id=None),
        document(4, file_paths=7),
        {"_id": 5},
        6,
    ]
    write_lines(dump, *broken, document(7))
    with dump.open("a", encoding="utf-8") as file:
        file.write('{"half": \n{"content"\n')
    report = import_dumps(memory, dump)
    assert report.stored == 1
    assert [line.split(":")[1] for line in report.problems] == ["8", "9", "1", "2", "3", "4", "5", "6"]


def test_no_file_and_an_unreadable_one(memory: Memory, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="name the dumps"):
        import_dumps(memory)
    with pytest.raises(InputError, match="cannot read"):
        import_dumps(memory, tmp_path / "nope.json")


def test_the_command(tmp_path: Path, dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = str(tmp_path / "memory.db")
    write_lines(dump, document(1), document(2))
    arguments = ["migrate", "wiki", str(dump), "--clone-path", "/tmp/clones/*", "--store", store]
    assert run(arguments) == 0
    assert "2 documents of 1 repository read" in capsys.readouterr().out
    assert run([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["known"] == 2
    write_lines(dump, document(1, memory_type="x"))
    assert run(arguments) == 1
    assert "cannot be read: wiki_memories.json:1: memory_type" in capsys.readouterr().err
    with eunoe.open(store, embedder="none") as memory:
        assert [atom.text for atom in memory.by_files(SCOPE, ["src/h2.py"])] == ["Pattern 2."]
