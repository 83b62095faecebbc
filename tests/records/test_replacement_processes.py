"""Processes that replace the same id at once, or are killed while they do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import eunoe
from eunoe import Memory

ANNA = "user=anna"
ROUNDS = 25
REPLACE = """
import sys, itertools, eunoe
path, name, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
with eunoe.open(path, embedder="none", llm="none", form=False) as memory:
    print("open", flush=True)
    sys.stdin.readline()
    for number in range(rounds) if rounds else itertools.count():
        receipt = memory.remember("user=anna", f"{name} {number}", id="a", metadata={"n": number}, replace=True)
        print(receipt.outcome, number, flush=True)
"""


def start(path: Path, name: str, rounds: int = 0) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", REPLACE, str(path), name, str(rounds)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def read_line(child: subprocess.Popen[str]) -> str:
    assert child.stdout
    return child.stdout.readline()


def history(memory: Memory) -> list[str]:
    versions = memory.history(ANNA, "a")
    assert [version.retired is None for version in versions] == [False] * (len(versions) - 1) + [True]
    assert [version.id for version in versions].index("a") == len(versions) - 1
    assert memory.admin.check().damage == ()
    return [version.text for version in versions]


def test_two_processes_replace_an_id_and_lose_no_version(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    children = [start(path, name, ROUNDS) for name in ("one", "two")]
    for child in children:
        assert read_line(child) == "open\n"
    outputs = [child.communicate("go\n", timeout=120)[0].split() for child in children]
    assert [child.returncode for child in children] == [0, 0]
    assert sorted(word for output in outputs for word in output[::2]) == ["stored"] + ["superseded"] * (2 * ROUNDS - 1)
    with eunoe.open(path, embedder="none", llm="none") as memory:
        texts = history(memory)
        assert len(texts) == 2 * ROUNDS
        for name in ("one", "two"):
            assert [text for text in texts if text.startswith(name)] == [f"{name} {n}" for n in range(ROUNDS)]
        assert [item.text for item in memory.list(ANNA).items] == texts[-1:]


def test_a_killed_process_leaves_a_whole_history(tmp_path: Path) -> None:
    path, expected = tmp_path / "memory.db", list[str]()
    for name in ("one", "two", "three"):
        child = start(path, name)
        assert read_line(child) == "open\n"
        assert child.stdin
        assert child.stdout
        child.stdin.write("go\n")
        child.stdin.flush()
        seen = [read_line(child) for _ in range(7)]
        child.kill()
        seen += child.stdout.readlines()
        child.wait()
        child.stdin.close()
        child.stdout.close()
        acknowledged = sum(line.endswith("\n") for line in seen)
        with eunoe.open(path, embedder="none", llm="none") as memory:
            texts = history(memory)
        expected = texts[: len(expected)]
        assert texts[len(expected) :] == [f"{name} {n}" for n in range(len(texts) - len(expected))]
        assert acknowledged <= len(texts) - len(expected) <= acknowledged + 1
        expected = texts
