"""A little of each soak, and that each of them sees a fault."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize(
    "arguments",
    [("kills.py", "--kills", "60"), ("scopes.py", "--pairs", "300")],
    ids=lambda each: each[0],
)
def test_a_little_of_a_soak_finds_nothing(arguments: tuple[str, ...]) -> None:
    command = [sys.executable, str(HERE / arguments[0]), *arguments[1:], "--processes", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 faults" in done.stdout


LOST = """
import os, sqlite3, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import kills
real = kills.content_faults
def lossy(files, expected, contents):
    file = sqlite3.connect(files.store, isolation_level=None)
    for content in contents:
        file.executemany("DELETE FROM items WHERE id = ?", [(id,) for id in sorted(content.stored)[:1]])
    file.close()
    return real(files, expected, contents)
kills.content_faults = lossy
faults, _ = kills.run(20, "lossy", Path(sys.argv[2], "kills"))
assert faults
"""
SEEN = """
import random, sys
sys.path.insert(0, sys.argv[1])
import eunoe, scopes
places = scopes.all_scopes(6, random.Random("seen"))
with eunoe.open(":memory:", embedder="none", llm="none", form=False) as memory:
    scopes.fill(memory, places)
    assert scopes.look(memory, places, random.Random("look"))[1] == []
    mine, theirs = places[0], next(each for each in places[1:] if not scopes.may_see(places[0], each))
    memory.remember(mine, f"Somebody has the code word {scopes.secret_of(theirs)}.")
    assert any(str(theirs) in fault for fault in scopes.look(memory, places, random.Random("look"))[1])
"""


@pytest.mark.parametrize("code", [LOST, SEEN], ids=["kills.py", "scopes.py"])
def test_a_fault_is_seen(code: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", code, str(HERE), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
