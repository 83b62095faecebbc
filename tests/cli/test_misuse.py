"""Whatever stands behind an option, a command works or says in one line what is wrong; it never shows a traceback."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.cli.conftest import Cli

import eunoe
from eunoe.cli.app import app
from eunoe.cli.command import Command

ANNA = "agent=cook/session=s1/user=anna"
VALUES = ["", "-1", str(2**70), "ж" * 5000]
BASE: dict[str, list[str]] = {
    "observe": [ANNA, "Hello."],
    "remember": [ANNA, "Anna likes jam."],
    "update": [ANNA, "f1", "Anna has a cat."],
    "pin": [ANNA, "f1"],
    "forget": [ANNA, "f1", "--yes"],
    "recall": [ANNA, "the dog"],
    "look-up": [ANNA, "the dog"],
    "list": [ANNA],
    "recent": [ANNA],
    "expire": [ANNA, "f1", "--never"],
    "retract": [ANNA, "m1"],
    "get": [ANNA, "f1"],
    "history": [ANNA, "f1"],
    "files": [ANNA, "a.py"],
    "graph": [ANNA],
    "scopes": ["user=anna"],
    "status": [],
    "backup": ["copy.db"],
    "restore": ["copy.db"],
    "export": [ANNA],
    "import": ["-"],
    "import-chats": ["chat.jsonl"],
    "reembed": ["none"],
    "reindex": [ANNA],
    "check": [],
    "form": [ANNA],
    "context": [ANNA, "Where is the dog?"],
    "consolidate": [ANNA],
    "archive": [ANNA, "--keep-best", "5"],
    "unarchive": [ANNA, "f1"],
    "correct": [ANNA, "f1", "keep"],
    "corrections": [ANNA],
    "incognito": ["session=secret"],
    "streams list": ["user=anna"],
    "streams show": [ANNA],
    "streams set": [ANNA, "keep_best=5"],
    "streams presets": ["user"],
    "streams set-preset": ["team", "owner=team"],
    "summaries list": [ANNA],
    "summaries show": [ANNA, "1"],
    "summaries diff": [ANNA, "1", "1"],
    "summaries lineage": [ANNA, "1"],
    "summaries restore": [ANNA, "1"],
    "summaries write": [ANNA, "Anna has a dog."],
    "discussion show": ["trip"],
    "discussion search": ["trip", "lighthouse"],
    "discussion forget": ["trip", "m1", "--yes"],
    "discussion list": [],
    "discussion status": ["trip"],
    "discussion update": ["trip", "--messages", "talk.json"],
    "discussion rebuild": ["trip"],
    "discussion delete": ["trip", "--yes"],
    "discussion import": ["files"],
    "discussion export": ["trip", "files"],
    "review list": [],
    "review keep": [ANNA, "f1"],
    "key create": ["laptop", "--tenant", "acme"],
    "key list": [],
    "key rotate": ["abc"],
    "key revoke": ["abc"],
    "key audit": [],
    "doctor": [],
    "workflow check": ["main.json"],
    "workflow run": ["main.json", "--discussion", "trip", "--prompt", "Hi"],
    "ticket list": [],
    "ticket show": ["login", "--project", "shop"],
    "ticket revert": ["login", "--project", "shop"],
    "ticket lessons": ["--project", "shop"],
    "ticket redact": ["--project", "shop"],
}
MODELS = {"help", "store", "llm", "fast_llm"}
"""Options that have tests of their own."""
ELSEWHERE = {
    "chat",
    "demo",
    "worker",
    "serve",
    "mcp",
    "hook",
    "ticket run",
    "migrate eden",
    "migrate hipporag",
    "migrate mem0",
    "migrate wiki",
    "wiki",
}
"""Commands that go on until they are stopped, end the process, or read other systems; they have tests of their own."""


def commands() -> Iterator[tuple[str, Any]]:
    for name, found in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        module = getattr(found, "module", None)  # of a group, which is loaded when it is called
        if module is None:
            yield name, found
            continue
        group = typer.Typer()
        for each in vars(import_module(module)).values():
            if isinstance(each, Command) and each.words[0] == name:
                each.register(group)
        yield from ((f"{name} {own}", command) for own, command in typer.main.get_group(group).commands.items())


COMMANDS = {name: found for name, found in commands() if name not in ELSEWHERE}


def test_every_command_is_misused() -> None:
    assert set(COMMANDS) == set(BASE)


@pytest.fixture(scope="module")
def stocked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what commands work on, to be copied."""
    folder = tmp_path_factory.mktemp("stocked")
    with eunoe.open(folder / "memory.db", embedder="none", form=False) as memory:
        memory.observe(ANNA, {"id": "m1", "content": "My dog is called Bruno."})
        memory.remember(ANNA, "Anna has a dog.", id="f1")
        memory.summaries.write(ANNA, "Anna has a dog.")
        memory.admin.backup(folder / "copy.db")
    (folder / "main.json").write_text('[{"type": "StaticResponse", "content": "Hello"}]')
    (folder / "talk.json").write_text('[{"role": "user", "content": "Hello."}]')
    return folder


@pytest.fixture
def misused_cli(cli: Cli, stocked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMORY_SAVE_DIR", str(tmp_path / "projects"))
    shutil.copytree(stocked, tmp_path, dirs_exist_ok=True)
    return cli


def assert_one_line(result: Any, what: list[str]) -> None:
    assert result.code in (0, 1, 2), what
    assert "Traceback" not in result.err, what
    assert "eunoe: unexpected" not in result.err, (what, result.err)
    if result.code:
        errors = [line for line in result.err.splitlines() if line.startswith("eunoe: ")]
        assert len(errors) <= 1, (what, result.err)
        assert len(result.err) < 2000, what


@pytest.mark.parametrize("name", COMMANDS)
def test_an_option_takes_or_refuses_whatever_it_is_given(misused_cli: Cli, name: str) -> None:
    options = [each for each in COMMANDS[name].params if each.param_type_name == "option" and not each.is_flag]
    for option in options:
        for value in VALUES if option.name not in MODELS else ():
            given = [*name.split(), *BASE[name], option.opts[0], value]
            assert_one_line(misused_cli(*given), given)


@pytest.mark.parametrize("name", COMMANDS)
def test_an_argument_takes_or_refuses_whatever_it_is_given(misused_cli: Cli, name: str) -> None:
    for place in range(len(BASE[name])):
        for value in VALUES:
            given = [*name.split(), *BASE[name][:place], value, *BASE[name][place + 1 :]]
            assert_one_line(misused_cli(*given), given)


def test_half_of_a_surrogate_pair_is_one_line_too(store: Path) -> None:
    environment = {**os.environ, "EUNOE_STORE": str(store)}
    for given in (["get", ANNA, b"\x80"], ["remember", ANNA, b"\x80"], ["recall", ANNA, "x", "--since", b"\x80"]):
        command = [sys.executable, "-m", "eunoe", *given]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr.count("\n"), done.stderr[:7]) == (1, 1, "eunoe: "), done.stderr


@pytest.mark.parametrize(
    "command",
    [
        "recall user=anna tea",
        "context user=anna tea",
        "list user=anna",
        "get user=anna x",
        "history user=anna x",
        "graph user=anna",
        "scopes",
        "status",
        "corrections user=anna",
        "streams",
        "summaries user=anna",
        "review user=anna",
        "export out.jsonl",
        "backup out.db",
        "check",
        "form user=anna --dry-run",
        "key list",
        "key audit",
        "ticket lessons --project shop",
        "ticket redact --project shop --dry-run",
        "ticket revert login --project shop",
    ],
)
def test_a_command_that_only_looks_makes_no_store(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    result = cli(*command.split(), "--store", "new.db")
    assert (result.code, result.out) == (1, "")
    assert "there is no memory at new.db yet" in result.err
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("command", [["form", "--dry-run", "I like tea."], ["streams", "presets"]])
def test_a_command_that_needs_no_store_makes_none(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    result = cli(*command, "--store", "new.db")
    assert (result.code, bool(result.out)) == (0, True)
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize(
    "command",
    [
        "migrate hipporag nowhere --project shop",
        "migrate hipporag empty --project shop",
        "migrate hipporag empty",
        "migrate mem0 nowhere",
        "migrate eden nowhere.json",
        "migrate wiki nowhere.json",
    ],
)
def test_an_import_of_what_is_not_there_makes_no_store(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    (tmp_path / "here" / "empty").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    result = cli(*command.split(), "--store", "new.db")
    assert (result.code, result.out) == (1, "")
    assert "eunoe: " in result.err
    assert [path.name for path in Path().iterdir()] == ["empty"]
