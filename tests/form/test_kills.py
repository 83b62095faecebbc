"""A process that forms memories may end at any moment: nothing is lost and nothing is done twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_KILLS = int(os.environ.get("EUNOE_KILLS", "24"))
_CHILD = Path(__file__).parents[1] / "support" / "forming_child.py"


class Forming:
    """A process of `forming_child.py`, which speaks JSON line by line."""

    def __init__(self, *arguments: object, lease: float) -> None:
        # One thread for the arithmetic: a process that forks must have no other.
        settings = {"EUNOE_LEASE": str(lease), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-W", "error", str(_CHILD), *map(str, arguments)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **settings}
        )

    def said(self, told: str = "") -> list[dict[str, Any]]:
        """All it has to say until it ends, and it has to end well."""
        text, _ = self.process.communicate(told)
        assert self.process.returncode == 0
        return [json.loads(line) for line in text.splitlines()]

    def clear(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


@pytest.fixture
def children() -> Iterator[list[Forming]]:
    started: list[Forming] = []
    yield started
    for child in started:
        child.clear()


def test_a_process_killed_at_random_loses_nothing_and_does_nothing_twice(
    children: list[Forming], tmp_path: Path
) -> None:
    halves = (_KILLS // 2, _KILLS - _KILLS // 2)
    for place, kills in enumerate(halves):
        folder = tmp_path / str(place)
        folder.mkdir()
        children.append(Forming("kill", folder, kills, f"kills-{place}", lease=0.02))
    for child, kills in zip(children, halves, strict=True):
        *faults, end = child.said()
        assert faults == []
        assert end["done"] == kills
        assert end["formed"] == end["stored"] > kills
        assert end["revisions"]


def test_a_process_stopped_before_any_statement_loses_nothing_and_does_nothing_twice(
    children: list[Forming], tmp_path: Path
) -> None:
    children.append(Forming("points", tmp_path, lease=0.001))
    *faults, end = children[0].said()
    assert faults == []
    assert end["done"] > 40
