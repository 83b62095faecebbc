"""`eunoe import-chats`: what is in the file is shown, and nothing is written without a yes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Cli

SAMPLES = Path(__file__).parents[1] / "fixtures" / "chats"
CHATGPT, CLAUDE = SAMPLES / "chatgpt.json", SAMPLES / "claude.json"


def test_without_a_scope_the_file_is_shown_and_nothing_is_written(cli: Cli) -> None:
    result = cli("import-chats", CLAUDE)
    assert result.code == 0
    for part in ("Claude's export", "acc-anna: 1; acc-ben: 1", "2025-03-01 to 2025-04-01"):
        assert part in result.out
    assert "name whose they are" in result.err
    assert cli("scopes", "--json").json == []


def test_without_a_yes_nothing_is_written(cli: Cli) -> None:
    result = cli("import-chats", CHATGPT, "--scope", "user=anna")
    assert "(1 of older versions are left out)" in result.out
    assert "add --yes" in result.err
    assert cli("scopes", "--json").json == []


def test_a_yes_brings_them_in_once(cli: Cli) -> None:
    result = cli("import-chats", CHATGPT, "--scope", "user=anna", "--yes")
    assert result.code == 0
    assert result.out.index("ChatGPT's export") < result.out.index("2 conversations read, 5 messages stored")
    again = cli("import-chats", CHATGPT, "--scope", "user=anna", "--yes", "--json").json["report"]
    assert (again["stored"], again["known"]) == (0, 5)
    assert "peanuts" in cli("recall", "user=anna", "allergic to peanuts").out


def test_who_is_asked_on_a_terminal_decides(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eunoe.cli.import_chats._is_terminal", lambda: True)
    refused = cli("import-chats", CHATGPT, "--scope", "user=anna", stdin="n\n")
    assert refused.out.count("ChatGPT's export") == 1
    assert "nothing was written" in refused.err
    assert "--yes" not in refused.err
    result = cli("import-chats", CHATGPT, "--scope", "user=anna", stdin="y\n")
    assert "Bring them in? [y/N]" in result.err
    assert "5 messages stored" in result.out


def test_people_go_where_they_are_sent(cli: Cli) -> None:
    people = ("--person", "acc-anna=user=anna", "--person", "acc-ben=user=ben")
    assert cli("import-chats", CLAUDE, *people, "--yes", "--no-form").code == 0
    assert "session=c-2/user=ben" in cli("scopes").out


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (["nowhere.json", "--scope", "user=anna"], 1, "not there"),
        ([CLAUDE, "--scope", "nonsense"], 1, "cannot read 'nonsense' as a scope"),
        ([CLAUDE, "--scope", "session=s1/user=anna", "--yes"], 1, "names a session"),
        ([CLAUDE, "--person", "acc-anna"], 2, "write NAME=SCOPE"),
        ([CLAUDE, "--person", "acc-anna=user=anna", "--yes"], 1, "no scope for the conversations of acc-ben"),
        ([CLAUDE, "--person", "acc-x=user=x", "--scope", "user=anna", "--yes"], 1, "holds nothing of acc-x"),
    ],
)
def test_what_makes_no_sense_is_refused(cli: Cli, arguments: list[str | Path], code: int, reason: str) -> None:
    result = cli("import-chats", *arguments)
    assert (result.code, reason in result.err) == (code, True)
    assert cli("scopes", "--json").json == []


def test_what_cannot_be_read_is_named_and_the_rest_comes(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_text('{"role": "user", "content": "I moved to Rome."}\n{"role": "user"\n')
    for arguments in ([], ["--scope", "user=anna"], ["--scope", "user=anna", "--yes"]):
        result = cli("import-chats", path, *arguments)
        assert (result.code, "cannot be read: chat.jsonl:2: not JSON" in result.err) == (1, True)
    assert "1 message stored" in result.out
    report = cli("import-chats", path, "--scope", "user=anna", "--yes", "--json")
    assert report.code == 1
    assert len(report.json["report"]["problems"]) == 1
