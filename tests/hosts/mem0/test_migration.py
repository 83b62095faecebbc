"""Moving in from a store that mem0 itself has made."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import eunoe
from eunoe.cli.app import run
from eunoe.errors import InputError
from eunoe.hosts.mem0 import Memory
from eunoe.hosts.mem0.migration import amigrate, describe, migrate

ANNA = {"user_id": "anna"}
SCRIPT = Path(__file__).parent / "make_store.py"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Mapping[str, Any]]:
    """The folder of a mem0 store, and what mem0 said of it."""
    folder = tmp_path_factory.mktemp("mem0")
    environment = {**os.environ, "MEM0_TELEMETRY": "False", "MEM0_DIR": str(folder / "dir"), "OPENAI_API_KEY": "none"}
    command = [sys.executable, str(SCRIPT), str(folder / "qdrant"), str(folder / "history.db")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return folder, json.loads(done.stdout)


def test_everything_comes_with_its_ids_and_times(made: tuple[Path, Any], path: Path) -> None:
    folder, said = made
    with eunoe.open(path, embedder="none", llm="none", form=False) as store:
        seen: list[int] = []
        report = migrate(store, folder, progress=seen.append)
        assert (report.memories, report.versions, report.scopes, report.stored) == (2, 1, 2, 3)
        assert seen
        memory = Memory(memory=store)
        for id, theirs in said["items"].items():
            ours = memory.get(id)
            assert ours is not None
            assert ours.pop("id").startswith(theirs.pop("id"))
            assert ours == theirs
        rows, wanted = memory.history(said["changed"]), said["history"]
        for row in (*rows, *wanted):
            del row["id"]
        assert [{**row, "actor_id": None} for row in rows] == [{**row, "actor_id": None} for row in wanted]
        assert len(memory.get_all(filters=ANNA)["results"]) == 2
        assert [each["memory"] for each in memory.search("Turin", filters={"run_id": "r1"})["results"]] == [
            "I moved to Turin"
        ]
        assert memory.get(said["gone"]) is None
        memory.update(said["changed"], "I moved to Oslo")
        assert [row["event"] for row in memory.history(said["changed"])] == ["ADD", "UPDATE", "UPDATE"]
    assert b"swordfish" not in path.read_bytes()


def test_a_second_run_changes_nothing_and_what_was_forgotten_stays_so(made: tuple[Path, Any], path: Path) -> None:
    folder, said = made

    async def main() -> None:
        async with eunoe.open_async(path, embedder="none", llm="none", form=False) as store:
            first, second = await amigrate(store, folder), await amigrate(store, folder)
            assert (first.stored, second.stored, second.known) == (3, 0, 3)
            await store.forget("session=r1/user=anna", said["changed"])
            third = await amigrate(store, folder)
            assert (third.stored, third.known) == (0, 1)
            assert third.forgotten >= 1

    asyncio.run(main())


def test_without_its_history_a_memory_comes_as_it_is_now(made: tuple[Path, Any], path: Path) -> None:
    with eunoe.open(path, embedder="none", llm="none", form=False) as store:
        report = migrate(store, made[0] / "qdrant")
        assert (report.memories, report.versions, report.stored, report.history) == (2, 0, 2, "")


def test_it_is_shown_before_anything_is_written(
    made: tuple[Path, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "memory.db"
    monkeypatch.setenv("EUNOE_STORE", str(store))
    assert run(["migrate", "mem0", str(made[0]), "--dry-run"]) == 0
    assert "2 memories with 1 earlier version of 2 scopes, from 20" in capsys.readouterr().out
    assert not store.exists()
    assert run(["migrate", "mem0", str(made[0])]) == 0
    assert "3 stored, 0 known already" in capsys.readouterr().out
    assert run(["migrate", "mem0", str(made[0]), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["known"] == 3
    assert run(["migrate", "mem0", str(made[0] / "dir")]) == 1
    assert "is no local folder of a mem0 store" in capsys.readouterr().err


def test_what_is_no_mem0_store_is_told(made: tuple[Path, Any], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no collection 'other'; it has mem0"):
        describe(made[0], collection="other")
    with pytest.raises(InputError, match="there is no history database"):
        describe(made[0], tmp_path / "none.db")
    odd = tmp_path / "odd.db"
    odd.write_text("no database at all, whatever its name says")
    with pytest.raises(InputError, match="is no history database of mem0"):
        describe(made[0], odd)


def test_odd_points_are_named_and_the_rest_comes(tmp_path: Path, path: Path) -> None:
    from qdrant_client import QdrantClient
    from qdrant_client.models import Distance, PointStruct, VectorParams

    client = QdrantClient(path=str(tmp_path / "qdrant"))
    client.create_collection("mem0", VectorParams(size=1, distance=Distance.COSINE))
    payloads: list[dict[str, Any]] = [
        {"data": "I like tea", "user_id": "anna", "created_at": "2025-05-07T00:21:28.118301-07:00"},
        {"data": "I like cake"},
        {"user_id": "anna"},
        {"data": "I like pie", "user_id": "anna", "created_at": "some day"},
    ]
    client.upsert("mem0", [PointStruct(id=n, vector=[1.0], payload=each) for n, each in enumerate(payloads)])
    client.close()
    with eunoe.open(path, embedder="none", llm="none", form=False) as store:
        report = migrate(store, tmp_path)
        assert (report.stored, len(report.problems)) == (1, 3)
        assert report.problems[0] == "1: it names neither user_id nor agent_id nor run_id"
        (item,) = Memory(memory=store).get_all(filters=ANNA)["results"]
        assert (item["memory"], item["created_at"]) == ("I like tea", "2025-05-07T07:21:28.118301+00:00")
