"""The commands of the page on discussions run after its example in Python."""

import re
import shlex
from pathlib import Path

import pytest

from eunoe.cli.app import run

PAGE = Path(__file__).parents[3] / "docs" / "discussions" / "README.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def test_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EUNOE_STORE", str(tmp_path / "memory.db"))
    exec(compile(blocks("python")[0], str(PAGE), "exec"), {"__name__": "__main__"})
    commands = [line.removeprefix("$ ") for block in blocks("console") for line in block.splitlines()]
    assert len(commands) == 9
    assert [command for command in commands if run(shlex.split(command)[1:]) != 0] == []
    assert (tmp_path / "discussions" / "trip" / "memories.json").exists()
