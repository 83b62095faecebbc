"""The command line: every command, its streams, its exit codes and its errors."""

from __future__ import annotations

import json
import os
import pty
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Cli, Result

import eunoe
from eunoe.cli import main

ANNA = "user=anna"
COMMANDS = (
    *("observe", "remember", "update", "pin", "recall", "list", "get", "history", "files", "scopes", "status"),
    *("forget", "backup", "restore", "export", "import", "reembed", "reindex", "check", "demo"),
    *("recent", "expire", "retract", "look-up", "form", "context", "worker", "chat", "streams set", "summaries diff"),
)


@pytest.fixture
def filled_cli(cli: Cli) -> Cli:
    """A command line on a store with two messages and a fact called `tea`."""
    messages = [
        {
            "id": "m1",
            "speaker": "Anna",
            "time": "2024-05-07T18:30",
            "session": "s1",
            "text": "My sister lives in Turin.",
        },
        {"id": "m2", "speaker": "Bruno", "time": "2024-05-08", "session": "s2", "text": "ERR_42 is back."},
    ]
    assert cli("observe", ANNA, "-", stdin=json.dumps(messages).encode()).code == 0
    options = ["--label", "preference", "--person", "Anna", "--file", "src/tea.py", "--source", "m1", "--id", "tea"]
    assert cli("remember", ANNA, "Anna prefers tea.", *options).code == 0
    return cli


def process(*args: str | Path, store: Path | None = None, **options: Any) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **({"EUNOE_STORE": str(store)} if store else {})}
    command = [sys.executable, "-m", "eunoe", *map(str, args)]
    return subprocess.run(
        command,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=False,
        stdin=subprocess.DEVNULL,
        **options,
    )


def test_version_and_help_load_nothing_heavy() -> None:
    code = (
        "import sys; names = {'numpy', 'wordllama', 'Stemmer', 'sqlite3', 'eunoe.engine'}\n"
        "from eunoe.cli.app import run\n"
        "assert run(['--version']) == 0 and run(['--help']) == 0\n"
        "heavy = names & sys.modules.keys()\n"
        "sys.exit(f'loaded: {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"eunoe {eunoe.__version__}\n")


@pytest.mark.parametrize(
    "name",
    COMMANDS,
)
def test_every_command_has_a_sentence_and_an_example(cli: Cli, name: str) -> None:
    result = cli(*name.split(), "--help")
    assert result.code == 0
    assert f"Example: eunoe {name}" in result.out
    sentence = result.out.split("Usage:")[1].splitlines()[2]
    assert sentence.strip(), "no sentence under the usage line"


class TestObserve:
    def test_one_message(self, cli: Cli) -> None:
        options = ["--role", "assistant", "--speaker", "Ada", "--time", "2024-05-07", "--session", "s1", "--json"]
        receipt = cli("observe", ANNA, "Good morning.", *options).json
        assert (receipt["stored"], receipt["duplicates"]) == (1, 0)
        item = cli("get", ANNA, receipt["receipts"][0]["id"], "--json").json
        assert (item["role"], item["speaker"], item["session"]) == ("assistant", "Ada", "s1")
        assert (item["text"], item["time"]) == ("Good morning.", "2024-05-07T00:00:00+00:00")

    def test_json_lines_array_and_text_are_told_apart(self, cli: Cli, tmp_path: Path) -> None:
        (tmp_path / "lines").write_text('{"text": "a"}\n\n{"content": "b", "role": "assistant"}\n', encoding="utf-8")
        (tmp_path / "array").write_text('[\n  {"text": "c"},\n  "d"\n]', encoding="utf-8-sig")
        (tmp_path / "text").write_text("[10:32] e\n  f: g\r\n", encoding="utf-8", newline="")
        for name in ("lines", "array", "text"):
            assert cli("observe", ANNA, "--file", tmp_path / name).out == "2 messages: 2 stored\n"
        texts = [item["text"] for item in cli("list", ANNA, "--json").items]
        assert texts == ["a", "b", "c", "d", "[10:32] e", "  f: g"]

    def test_named_speakers_in_plain_text(self, cli: Cli) -> None:
        cli("observe", ANNA, "-", "--speakers", stdin="Zoë: Salut: ça va ?\nassistant: Oui.\nno name\n".encode())
        found = [(item["role"], item["speaker"], item["text"]) for item in cli("list", ANNA, "--json").items]
        assert found == [("user", "Zoë", "Salut: ça va ?"), ("assistant", "", "Oui."), ("user", "", "no name")]

    def test_options_fill_in_only_what_a_message_does_not_say(self, cli: Cli) -> None:
        lines = b'{"text": "a", "name": "Bo", "timestamp": "2024-01-01"}\n{"text": "b"}\n'
        cli("observe", ANNA, "-", "--speaker", "Ada", "--time", "2024-02-02", stdin=lines)
        found = [(item["speaker"], item["time"][:10]) for item in cli("list", ANNA, "--json").items]
        assert found == [("Bo", "2024-01-01"), ("Ada", "2024-02-02")]

    def test_known_forgotten_and_conflicting_messages_are_counted(self, filled_cli: Cli) -> None:
        filled_cli("forget", ANNA, "m2", "--yes")
        again = [
            {"id": "m1", "text": "Other words."},
            {"id": "m2", "text": "ERR_42 is back."},
            {"id": "m3", "text": "x"},
        ]
        lines = "\n".join(map(json.dumps, again)).encode()
        result = filled_cli("observe", ANNA, "-", "--json", stdin=lines)
        counts = {name: result.json[name] for name in ("stored", "duplicates", "forgotten", "conflicts")}
        assert counts == {"stored": 1, "duplicates": 0, "forgotten": 1, "conflicts": 1}
        assert result.code == 1
        shown = filled_cli("observe", ANNA, "-", stdin=lines).out
        assert "1 known already, 1 refused (forgotten before), 1 refused (id taken by other words)" in shown
        assert "m1" in shown

    @pytest.mark.parametrize("extra", [{}, {"time": "2024-05-07"}, {"time": None, "n": 1}])
    def test_long_input_loses_and_doubles_nothing(self, cli: Cli, extra: dict[str, Any]) -> None:
        """More than one batch of messages that only place or count can tell apart."""
        lines = "\n".join(json.dumps({"text": "ok" if n % 3 else f"line {n}", **extra}) for n in range(1300)).encode()
        assert cli("observe", ANNA, "-", "--json", stdin=lines).json["stored"] == 1300
        assert cli("observe", ANNA, "-", "--json", stdin=lines).json["duplicates"] == 1300

    def test_a_bad_line_is_named_and_says_what_was_stored(self, cli: Cli) -> None:
        good = [json.dumps({"id": str(n), "text": "ok"}) for n in range(600)]
        result = cli("observe", ANNA, "-", stdin="\n".join([*good, '{"text":']).encode())
        assert result.code == 1
        assert result.err.startswith("eunoe: standard input line 601: not JSON")
        assert result.err.endswith("; the first 500 were stored\n")
        assert len(cli("list", ANNA, "--all", "--json").items) == 500

    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            (b"hello\n\xff", "not UTF-8"),
            (b'{"role": "user"}', "line 1: the message has no 'content'"),
            (b'["a", 7]', "item 2: a message is a dict"),
            (b'[{"text": "a"}', "not JSON"),
            (b'{"text": "a", "time": "soon"}', "line 1: cannot read time 'soon'"),
        ],
    )
    def test_bad_input_is_one_line_and_stores_nothing(self, cli: Cli, content: bytes, reason: str) -> None:
        result = cli("observe", ANNA, "-", stdin=content)
        assert (result.code, result.out) == (1, "")
        assert reason in result.err
        assert result.err.endswith("nothing was stored\n")
        assert result.err.count("\n") == 1
        assert cli("list", ANNA, "--json").items == []

    def test_an_argument_is_what_was_said_even_if_a_file_is_called_so(self, cli: Cli, tmp_path: Path) -> None:
        assert cli("observe", ANNA, "I'm allergic to nuts").err == ""
        file = tmp_path / "chat.txt"
        file.write_text("Good morning.", encoding="utf-8")
        assert f"--file {file}" in cli("observe", ANNA, file).err
        assert [item["text"] for item in cli("list", ANNA, "--json").items] == ["I'm allergic to nuts", str(file)]


class TestRemember:
    def test_everything_that_can_be_said_about_a_fact(self, cli: Cli) -> None:
        given = {"kind": "observation", "label": "l", "id": "own", "time": "2024-01-01", "valid-from": "2024-01-02"}
        given |= {"valid-to": "2024-01-03", "metadata": '{"a": [1]}', "page": "wiki/1", "file": "./a//b.py"}
        given |= {"person": "Anna", "source": "m1"}
        options = [part for name, value in given.items() for part in (f"--{name}", value)]
        result = cli("remember", ANNA, "It is so.", *options, "--person", "Bo", "--pinned")
        assert (result.code, result.out) == (0, "stored as own\n")
        item = cli("get", ANNA, "own", "--json").json
        assert (item["kind"], item["label"], item["pinned"]) == ("observation", "l", True)
        assert (item["people"], item["files"], item["pages"]) == (["Anna", "Bo"], ["a/b.py"], ["wiki/1"])
        assert (item["source"], item["metadata"]) == (["m1"], {"a": [1]})
        times = [item[name][:10] for name in ("time", "valid_from", "valid_to")]
        assert times == ["2024-01-01", "2024-01-02", "2024-01-03"]

    def test_a_duplicate_is_said(self, cli: Cli) -> None:
        first = cli("remember", ANNA, "Anna likes tea.", "--json").json["receipts"][0]["id"]
        again = cli("remember", ANNA, "anna likes  TEA")
        assert (again.code, again.out) == (0, f"known already as {first}\n")

    def test_what_was_forgotten_is_refused_until_asked_for_again(self, filled_cli: Cli) -> None:
        filled_cli("forget", ANNA, "tea", "--yes")
        refused = filled_cli("remember", ANNA, "Anna prefers tea.")
        assert refused.code == 1
        assert refused.out.startswith("refused: it was forgotten on purpose")
        assert filled_cli("remember", ANNA, "Anna prefers tea.", "--again").code == 0

    def test_a_batch_from_a_file_with_defaults(self, cli: Cli, tmp_path: Path) -> None:
        (tmp_path / "facts.jsonl").write_text('{"text": "a", "label": "own"}\n"b"\n', encoding="utf-8")
        result = cli("remember", ANNA, "--from", tmp_path / "facts.jsonl", "--label", "given")
        assert result.out == "2 memories: 2 stored\n"
        assert [item["label"] for item in cli("list", ANNA, "--json").items] == ["own", "given"]

    def test_a_bad_batch_names_the_line(self, cli: Cli) -> None:
        result = cli("remember", ANNA, "--from", "-", stdin=b'{"text": "a"}\n{"text": "b", "colour": "red"}\n')
        assert result.err == "eunoe: standard input line 2: unknown field colour; nothing was stored\n"
        assert result.code == 1


class TestUpdateAndHistory:
    def test_the_old_version_stays_readable(self, filled_cli: Cli) -> None:
        result = filled_cli("update", ANNA, "tea", "Anna prefers coffee.", "--valid-from", "2024-06-01", "--json")
        receipt = result.json["receipts"][0]
        assert (result.json["superseded"], receipt["closed"]) == (1, "tea")
        versions = filled_cli("history", ANNA, receipt["id"], "--json").json
        assert [version["text"] for version in versions] == ["Anna prefers tea.", "Anna prefers coffee."]
        assert versions[1]["label"] == "preference"
        shown = filled_cli("history", ANNA, "tea").out
        assert shown.index("Anna prefers tea.") < shown.index("Anna prefers coffee.")
        assert "true until 2024-06-01" in shown

    def test_only_a_field_changes(self, filled_cli: Cli) -> None:
        new = filled_cli("update", ANNA, "tea", "--label", "taste", "--json").json["receipts"][0]["id"]
        item = filled_cli("get", ANNA, new, "--json").json
        assert (item["text"], item["label"], item["people"]) == ("Anna prefers tea.", "taste", ["Anna"])


def test_pin_and_take_the_pin_off(filled_cli: Cli) -> None:
    assert filled_cli("pin", ANNA, "tea").out == "tea is pinned now\n"
    assert filled_cli("pin", ANNA, "tea").out == "tea was pinned already\n"
    assert filled_cli("get", ANNA, "tea", "--json").json["pinned"] is True
    assert filled_cli("pin", ANNA, "tea", "--off", "--json").json["outcome"] == "stored"
    assert filled_cli("get", ANNA, "tea", "--json").json["pinned"] is False


def test_what_is_expired_or_retracted_is_not_recalled(filled_cli: Cli) -> None:
    assert filled_cli("expire", ANNA, "tea", "--at", "2024-06-01").out == "1 memory true until 2024-06-01\n"
    assert filled_cli("recall", ANNA, "tea", "--kind", "fact", "--json").json == []
    assert [hit["id"] for hit in filled_cli("recall", ANNA, "tea", "--expired", "--kind", "fact", "--json").json] == [
        "tea"
    ]
    assert filled_cli("expire", ANNA, "tea", "--never").code == 0
    assert filled_cli("expire", ANNA, "tea").code == 2
    assert filled_cli("retract", ANNA, "m2").out == "1 message retracted\n"
    assert "m2" not in {hit["id"] for hit in filled_cli("recall", ANNA, "ERR_42", "--json").json}
    assert filled_cli("retract", ANNA, "m2", "--off").code == 0
    assert "m2" in {hit["id"] for hit in filled_cli("recall", ANNA, "ERR_42", "--json").json}


def test_what_was_learned_last_and_what_a_conversation_may_recall(filled_cli: Cli) -> None:
    assert [item["id"] for item in filled_cli("recent", "--json").json["items"]] == ["tea"]
    assert filled_cli("recent", "user=bob", "--json").json["items"] == []
    assert filled_cli("look-up", f"session=s9/{ANNA}", "prefers tea", "--json").json[0]["id"] == "tea"


class TestList:
    def test_a_page_says_how_to_read_on(self, filled_cli: Cli) -> None:
        first = filled_cli("list", ANNA, "-n", "2", "--json")
        assert [item["id"] for item in first.items] == ["m1", "m2"]
        assert first.err == ""
        rest = filled_cli("list", ANNA, "-n", "2", "--after", first.json["next"], "--json")
        assert [item["id"] for item in rest.items] == ["tea"]
        assert rest.json["next"] == ""
        assert f"--after {first.json['next']}\n" in filled_cli("list", ANNA, "-n", "2").err

    def test_kinds_labels_and_retired_versions(self, filled_cli: Cli) -> None:
        filled_cli("update", ANNA, "tea", "Anna prefers coffee.")
        assert [item["id"] for item in filled_cli("list", ANNA, "--kind", "message", "--json").items] == ["m1", "m2"]
        assert len(filled_cli("list", ANNA, "--label", "preference", "--json").items) == 1
        assert len(filled_cli("list", ANNA, "--label", "preference", "--retired", "--all", "--json").items) == 2


class TestTexts:
    LONG = "word " * 200 + "the end"

    @pytest.mark.parametrize("args", [["list", ANNA], ["recall", ANNA, "word"], ["history", ANNA, "x"]])
    def test_are_cut_and_whole_on_demand(self, cli: Cli, args: list[str]) -> None:
        cli("remember", ANNA, self.LONG, "--id", "x")
        assert "the end" not in cli(*args).out
        assert "the end" in " ".join(cli(*args, "--full").out.split())

    def test_cannot_drive_the_terminal(self, cli: Cli) -> None:
        cli("remember", ANNA, "red \x1b[31malert\x1b[0m [bold]\x07 :smile:", "--id", "x")
        for result in (cli("list", ANNA), cli("get", ANNA, "x"), cli("list", ANNA, "--full")):
            assert r"red \x1b[31malert\x1b[0m [bold]\x07 :smile:" in result.out


def test_files(filled_cli: Cli) -> None:
    assert [item["id"] for item in filled_cli("files", ANNA, "src/", "--json").json] == ["tea"]
    assert "Anna prefers tea." in filled_cli("files", ANNA, "src/tea.py").out
    assert filled_cli("files", ANNA, "lib/").err == "nothing found\n"


def test_scopes(filled_cli: Cli) -> None:
    filled_cli("remember", "agent=cook/user=bob", "x")
    assert filled_cli("scopes").out == "agent=cook/user=bob\nuser=anna\n"
    assert filled_cli("scopes", "user=bob", "--json").json == ["agent=cook/user=bob"]


def test_status(filled_cli: Cli, store: Path) -> None:
    found = filled_cli("status", "--json").json
    assert (found["messages"], found["facts"], found["scopes"], found["embedder"]) == (2, 1, 1, "none")
    assert found["target"] == str(store)
    assert "messages" in filled_cli("status").out


class TestRecall:
    def test_hits_with_score_reasons_and_source(self, filled_cli: Cli) -> None:
        hits = filled_cli("recall", ANNA, "sister Turin", "--json").json
        assert hits[0]["id"] == "m1"
        assert hits[0]["source"] == ["m1"]
        assert 0 < hits[0]["score"] <= 1
        assert hits[0]["reasons"][0]["name"] == "lexical"

    def test_why_is_said_in_words(self, filled_cli: Cli) -> None:
        assert "shares words with the question" not in filled_cli("recall", ANNA, "sister Turin").out
        shown = " ".join(filled_cli("recall", ANNA, "sister Turin", "--why").out.split())
        assert "shares words with the question" in shown
        assert "My sister lives in Turin." in shown

    @pytest.mark.parametrize(
        ("options", "ids"),
        [
            (["--kind", "fact"], {"tea"}),
            (["--kind", "message", "--speaker", "Bruno"], {"m2"}),
            (["--session", "s1", "--kind", "message"], {"m1"}),
            (["--since", "2024-05-08", "--kind", "message"], {"m2"}),
            (["--until", "2024-05-07T23:00", "--kind", "message"], {"m1"}),
            (["--until", "2024-05-08", "--kind", "message"], {"m1"}),
            (["--file", "./src/tea.py"], {"tea"}),
            (["--label", "preference"], {"tea"}),
            (["--kind", "fact", "--person", "Anna"], {"tea"}),
            (["--kind", "fact", "--known-at", "2020-01-01"], set()),
            (["--tokens", "5", "--kind", "fact"], {"tea"}),
        ],
    )
    def test_filters(self, filled_cli: Cli, options: list[str], ids: set[str]) -> None:
        query = "sister Turin ERR_42 back prefers tea"
        hits = filled_cli("recall", ANNA, query, "--recipe", "lexical", "--json", *options).json
        assert {hit["id"] for hit in hits} == ids

    def test_what_was_true_then(self, filled_cli: Cli) -> None:
        filled_cli("update", ANNA, "tea", "Anna prefers coffee.", "--valid-from", "2024-06-01")
        options = ["--kind", "fact", "--recipe", "lexical", "--json"]
        then = filled_cli("recall", ANNA, "What does Anna prefer?", "--as-of", "2024-05-30", *options).json
        now = filled_cli("recall", ANNA, "What does Anna prefer?", *options).json
        assert [hit["text"] for hit in then] == ["Anna prefers tea."]
        assert [hit["text"] for hit in now] == ["Anna prefers coffee."]

    def test_conditions_on_metadata(self, filled_cli: Cli) -> None:
        for id, metadata in (("a", '{"team": "red", "size": 3}'), ("b", '{"team": "red", "size": 2}')):
            filled_cli("remember", ANNA, f"Tea for team {id}.", "--id", id, "--metadata", metadata)
        where = '{"team": "red", "size": {"gte": 3}}'
        assert [hit["id"] for hit in filled_cli("recall", ANNA, "tea", "--where", where, "--json").json] == ["a"]

    def test_a_time_stands_in_place_of_a_recipe(self, filled_cli: Cli) -> None:
        found = filled_cli("recall", ANNA, "tea", "--recipe", "60000", "--json")
        assert found.json == filled_cli("recall", ANNA, "tea", "--recipe", "thorough", "--json").json
        for wrong in ("0", "-5", "60001", "1.5", "٣", "nan", "9" * 5000):
            refused = filled_cli("recall", ANNA, "tea", "--recipe", wrong)
            assert (refused.code, refused.out) == (1, "")
            assert "milliseconds" in refused.err


class TestForget:
    def test_ids_with_what_rests_on_them(self, filled_cli: Cli) -> None:
        report = filled_cli("forget", ANNA, "m1", "--yes", "--verify", "--json").json
        assert (report["messages"], report["atoms"], report["verified"]) == (["m1"], ["tea"], True)
        assert [item["id"] for item in filled_cli("list", ANNA, "--json").items] == ["m2"]

    def test_the_report_in_words(self, filled_cli: Cli) -> None:
        shown = filled_cli("forget", ANNA, "--person", "Bruno", "--yes", "--verify").out
        assert shown.startswith("forgotten: 1 message, 0 memories, 0 vectors\n")
        assert "no table, file, index or cache holds a trace" in shown

    def test_a_message_that_stays_is_named_and_offered(self, filled_cli: Cli) -> None:
        shown = filled_cli("forget", ANNA, "tea", "--yes", "--verify")
        assert shown.code == 1
        assert f"m1 in {ANNA} stays and still says it\n" in shown.out
        assert f"to forget that too: eunoe forget {ANNA} m1\n" in shown.out
        assert "not searched: exports, backups" in shown.out
        assert "verified" not in shown.out

    def test_by_words_only_what_has_them(self, filled_cli: Cli) -> None:
        filled_cli("remember", ANNA, "Teams meet on Monday.", "--id", "teams")
        filled_cli("remember", f"session=s1/{ANNA}", "Two teas, please.", "--id", "two")
        shown = filled_cli("forget", ANNA, "--words", "the TEA", "--yes", "--json")
        assert set(shown.json["atoms"]) == {"tea", "two"}
        assert "merely alike, not forgotten: teams" not in shown.out
        assert filled_cli("get", ANNA, "teams").code == 0
        nothing = filled_cli("forget", ANNA, "--words", "coffee", "--yes")
        assert "nothing in user=anna has the words 'coffee'" in nothing.out + nothing.err

    def test_a_user_of_a_group_by_the_name_on_their_messages(self, cli: Cli) -> None:
        said = [
            {"id": user, "role": "user", "user": user, "content": f"I am {user}, hello."} for user in ("ben", "anna")
        ]
        cli("observe", "agent=a/session=g", "-", stdin=json.dumps(said).encode())
        report = cli("forget", "agent=a/session=g", "--person", "ben", "--yes", "--verify", "--json").json
        assert (report["messages"], report["verified"]) == (["ben"], True)

    def test_a_person_with_mentions(self, filled_cli: Cli) -> None:
        filled_cli("observe", ANNA, "Bruno fixed it.", "--speaker", "Carla")
        assert "1 other still mentions" in filled_cli("forget", ANNA, "--person", "Bruno", "-y").out
        assert len(filled_cli("forget", ANNA, "--person", "Bruno", "--mentions", "-y", "--json").json["messages"]) == 1

    @pytest.mark.parametrize(
        ("options", "verified", "code"), [([], None, 0), (["--verify"], None, 1), (["--verify"], False, 1)]
    )
    def test_what_is_not_gone_is_said(
        self, filled_cli: Cli, monkeypatch: pytest.MonkeyPatch, options: list[str], verified: bool | None, code: int
    ) -> None:
        left = "bytes still in the write-ahead log"
        report = eunoe.ForgetReport(messages=("m1",), verified=verified, traces=(left,))
        monkeypatch.setattr("eunoe.memory.Memory.forget", lambda *_, **__: report)
        shown = filled_cli("forget", ANNA, "m1", "--yes", *options)
        assert f"not gone: {left}\n" in shown.out
        as_json = filled_cli("forget", ANNA, "m1", "--yes", "--json", *options)
        assert as_json.json["traces"] == [left]
        assert (shown.code, as_json.code) == (code, code)

    def test_whoever_is_asked_reads_how_far_it_reaches(self, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[str] = []
        monkeypatch.setattr("eunoe.cli.write.confirm", asked.append)
        for scope in (["user=anna"], ["user=anna", "--exact"], ["agent=cook"], ["agent=cook/*"]):
            assert cli("forget", *scope, "--everything").code == 1
        whole, *others = asked
        assert whole == "Forget everything in user=anna and everything within"
        assert others == [f"Forget everything in {each}" for each in ("user=anna", "agent=cook", "agent=cook/*")]

    def test_everything_and_it_may_return(self, filled_cli: Cli) -> None:
        assert filled_cli("forget", ANNA, "--everything", "--may-return", "--yes", "--json").json["atoms"] == ["tea"]
        assert filled_cli("remember", ANNA, "Anna prefers tea.").code == 0

    @pytest.mark.parametrize(
        "wrong", [[], ["m1", "--everything"], ["m1", "--mentions"], ["--person", " "], ["m1", "--words", "x"]]
    )
    def test_exactly_one_thing_to_forget(self, filled_cli: Cli, wrong: list[str]) -> None:
        assert filled_cli("forget", ANNA, *wrong, "--yes").code == 2
        assert len(filled_cli("list", ANNA, "--json").items) == 3

    def test_refuses_without_a_terminal_to_ask(self, filled_cli: Cli) -> None:
        result = filled_cli("forget", ANNA, "m1")
        assert result.code == 2
        assert "--yes" in result.err
        assert len(filled_cli("list", ANNA, "--json").items) == 3

    @pytest.mark.parametrize(("answer", "code", "left"), [(b"y\n", 0, 1), (b"n\n", 1, 3), (b"\n", 1, 3)])
    def test_asks_on_a_terminal(self, filled_cli: Cli, store: Path, answer: bytes, code: int, left: int) -> None:
        controller, terminal = pty.openpty()
        os.write(controller, answer)
        command = [sys.executable, "-m", "eunoe", "forget", ANNA, "m1", "--json", "--store", str(store)]
        done = subprocess.run(command, stdin=terminal, capture_output=True, text=True, check=False)
        os.close(controller)
        os.close(terminal)
        assert done.returncode == code
        assert "for good?" in done.stderr
        assert (json.loads(done.stdout)["messages"] == ["m1"]) if code == 0 else done.stdout == ""
        assert len(filled_cli("list", ANNA, "--json").items) == left


class TestExportAndImport:
    def test_there_and_back(self, filled_cli: Cli, tmp_path: Path) -> None:
        file, other = tmp_path / "all.jsonl", tmp_path / "other.db"
        assert filled_cli("export", "--all", "-o", file).out == f"3 lines written to {file}\n"
        report = filled_cli("import", file, "--store", other, "--embedder", "none", "--json").json
        assert (report["lines"], report["stored"]) == (3, 3)
        assert filled_cli("import", file, "--store", other, "--json").json["duplicates"] == 3
        here, there = filled_cli("list", ANNA, "--json").out, filled_cli("list", ANNA, "--json", "--store", other).out
        assert here == there

    def test_through_pipes(self, filled_cli: Cli, tmp_path: Path) -> None:
        exported = filled_cli("export", ANNA)
        assert exported.err == "3 lines written\n"
        assert exported.lines[0] == {"eunoe": 2}
        result = filled_cli("import", "-", "-s", tmp_path / "b.db", "--embedder", "none", stdin=exported.out.encode())
        assert result.out.startswith("3 lines: 3 stored")

    def test_to_a_file_with_json(self, filled_cli: Cli, tmp_path: Path) -> None:
        file = tmp_path / "anna.jsonl"
        assert filled_cli("export", ANNA, "-o", file, "--json").json == {"file": str(file), "lines": 3}
        assert filled_cli("export", ANNA, "--json").code == 2

    def test_what_cannot_be_exported(self, cli: Cli, tmp_path: Path) -> None:
        assert cli("export").code == 2
        assert cli("export", "--all").err == "eunoe: the store is empty: there is nothing to export\n"
        assert cli("export", "user=nobody").code == 1

    def test_a_mark_of_byte_order_is_no_part_of_the_first_line(self, filled_cli: Cli, tmp_path: Path) -> None:
        content = filled_cli("export", ANNA).out.encode("utf-8-sig")
        (tmp_path / "marked.jsonl").write_bytes(content)
        assert filled_cli("import", tmp_path / "marked.jsonl", "--json").json["duplicates"] == 3
        assert filled_cli("import", "-", "--json", stdin=content).json["duplicates"] == 3

    @pytest.mark.parametrize(
        "content", ['{"role": "user", "content": "Hello."}\n', '\n[{"text": "Hello."}]', '[\n"Hello."\n]']
    )
    def test_messages_are_sent_to_observe(self, filled_cli: Cli, tmp_path: Path, content: str) -> None:
        file, other = tmp_path / "chat.jsonl", tmp_path / "other.db"
        file.write_text(content, encoding="utf-8")
        result = filled_cli("import", file, "--store", other)
        assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
        assert f"`eunoe observe SCOPE --file {file}`" in result.err
        assert not other.exists()

    def test_a_bad_line_is_named(self, filled_cli: Cli) -> None:
        result = filled_cli("import", "-", stdin=b'{"eunoe": 1}\nnonsense\n')
        assert result.code == 1
        assert "line 2" in result.err


class TestBackup:
    def test_there_and_back(self, filled_cli: Cli, tmp_path: Path) -> None:
        file = tmp_path / "monday.db"
        made = filled_cli("backup", file, "--json").json
        assert (made["path"], made["messages"], made["facts"], made["scopes"]) == (str(file), 2, 1, 1)
        assert made["bytes"] == file.stat().st_size
        filled_cli("remember", ANNA, "Anna prefers coffee.")
        back = filled_cli("restore", file)
        assert back.out.startswith("2 messages, 1 fact, 0 observations in 1 scope")
        assert ".replaced-" in back.err
        assert [item["text"] for item in filled_cli("list", ANNA, "--kind", "fact", "--json").json["items"]] == [
            "Anna prefers tea."
        ]
        assert filled_cli("restore", file, "--discard", "--json").json["kept"] == ""

    def test_what_is_refused_is_one_line(self, filled_cli: Cli, tmp_path: Path) -> None:
        (tmp_path / "letter").write_text("Dear Anna")
        refused = [
            filled_cli("backup", tmp_path / "letter"),
            filled_cli("backup", tmp_path),
            filled_cli("restore", tmp_path / "letter"),
            filled_cli("restore", tmp_path / "nothing.db"),
        ]
        assert [(each.code, each.out, each.err.count("\n")) for each in refused] == [(1, "", 1)] * 4
        assert (tmp_path / "letter").read_text() == "Dear Anna"

    def test_nothing_is_written_over_the_store(self, filled_cli: Cli, tmp_path: Path) -> None:
        store = filled_cli("status", "--json").json["target"]
        filled_cli("remember", "project=atlas", "Anna Berg met Felix Cole.")
        for end in ("", "-wal", "-journal"):
            for line in (
                ["export", ANNA, "-o", f"{store}{end}"],
                ["backup", f"{store}{end}"],
                ["graph", "project=atlas", "--graphml", f"{store}{end}"],
            ):
                refused = filled_cli(*line)
                assert (line, refused.code, refused.err.count("\n")) == (line, 1, 1)
        assert len(filled_cli("list", ANNA, "--json").json["items"]) == 3


class TestModels:
    def test_reembed_changes_the_model(self, filled_cli: Cli) -> None:
        assert filled_cli("reembed", "static", "--json").json == {"made": 3, "embedder": "wordllama-256"}
        assert filled_cli("reembed").out == "0 vectors made; the store's model is wordllama-256\n"
        assert filled_cli("status", "--json").json["vectors"] == {"wordllama-256": 3}

    def test_reindex(self, filled_cli: Cli) -> None:
        assert filled_cli("reindex", ANNA).out == "1 index built\n"
        assert filled_cli("reindex", ANNA, "--json").json == {"indexes": 1}

    def test_check(self, filled_cli: Cli) -> None:
        result = filled_cli("check")
        assert result.code == 0
        assert result.out.startswith("everything is as it was written\n")
        document = filled_cli("check", "--json").json
        assert document["damage"] == []
        assert document["rows"] > 0

    def test_check_of_a_damaged_store(self, filled_cli: Cli, store: Path, tmp_path: Path) -> None:
        with closing(sqlite3.connect(store, isolation_level=None)) as connection:
            connection.execute("UPDATE items SET label = 'other' WHERE kind = 'fact'")
        result = filled_cli("check")
        assert result.code == 1
        assert "items id" in result.out
        assert "the row is not as it was written" in result.out
        damage = filled_cli("check", "--json").json["damage"]
        assert [(each["table"], each["scope"]) for each in damage] == [("items", ANNA)]
        refused = filled_cli("export", ANNA, "-o", tmp_path / "anna.jsonl")
        assert refused.code == 1
        assert "--skip-damaged" in refused.err
        assert filled_cli("export", ANNA, "-o", tmp_path / "anna.jsonl", "--skip-damaged").code == 0


class TestOptions:
    def test_store_and_json_before_or_after_the_command(self, cli: Cli, tmp_path: Path) -> None:
        other = str(tmp_path / "other.db")
        cli("--store", other, "--embedder", "none", "remember", ANNA, "x")
        assert len(cli("--json", "-s", other, "list", ANNA).items) == 1
        assert len(cli("list", ANNA, "-s", other, "--json").items) == 1
        assert cli("list", ANNA, "--json").items == []

    @pytest.mark.parametrize(
        "args",
        [
            ["--json", "demo"],
            ["demo", "--json"],
            ["--store", "x.db", "demo"],
        ],
    )
    def test_what_has_stores_of_its_own_refuses_them(self, cli: Cli, args: list[str]) -> None:
        result = cli(*args)
        assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)


class TestErrors:
    @pytest.mark.parametrize(
        ("args", "code"),
        [
            (["list", ""], 1),
            (["list", "nonsense"], 1),
            (["get", ANNA, "nope"], 1),
            (["history", ANNA, "nope"], 1),
            (["update", ANNA, "nope", "x"], 1),
            (["pin", ANNA, "nope"], 1),
            (["forget", ANNA, "nope", "--yes"], 1),
            (["observe", ANNA, "--file", "/nowhere/at/all"], 1),
            (["observe", ANNA, "--file", "."], 1),
            (["observe", ANNA, "-", "--format", "xml"], 1),
            (["import", "."], 1),
            (["import", "/nowhere/at/all"], 1),
            (["remember", ANNA, "\udcff"], 1),
            (["status", "--store", "."], 1),
            (["status", "--store", "postgres://x"], 1),
            (["list", ANNA, "--after", "x"], 1),
            (["list", ANNA, "--limit", "0"], 1),
            (["list", ANNA, "--limit", "many"], 2),
            (["list"], 2),
            (["frobnicate"], 2),
            (["list", ANNA, "--colour"], 2),
        ],
    )
    def test_one_line_on_standard_error(self, cli: Cli, args: list[str], code: int) -> None:
        result = cli(*args)
        assert (result.code, result.out) == (code, "")
        assert result.err.startswith("eunoe: ")
        assert result.err.count("\n") == 1

    def test_a_file_that_is_no_store_is_left_alone(self, cli: Cli, tmp_path: Path) -> None:
        file = tmp_path / "notes.txt"
        file.write_text("not a database")
        result = cli("remember", ANNA, "x", "--store", file)
        assert (result.code, result.err.count("\n")) == (1, 1)
        assert file.read_text() == "not a database"

    def test_a_typo_gets_a_suggestion(self, cli: Cli) -> None:
        assert "'recall'" in cli("recal", ANNA, "x").err

    def test_an_unforeseen_error_is_one_line_too(self, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(*_: object, **__: object) -> None:
            raise RuntimeError("two\nlines")

        monkeypatch.setattr("eunoe.open", broken)
        result = cli("status")
        assert result.code == 1
        assert result.err == "eunoe: unexpected RuntimeError: two lines (set EUNOE_DEBUG=1 to see where)\n"
        monkeypatch.setenv("EUNOE_DEBUG", "1")
        with pytest.raises(RuntimeError):
            cli("status")

    def test_ctrl_c_is_quiet(self, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
        def interrupted(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("eunoe.open", interrupted)
        assert cli("status") == Result(130, "", "")

    def test_ctrl_c_before_all_is_imported_is_quiet(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Interrupted:
            def __getattr__(self, name: str) -> object:
                raise KeyboardInterrupt

        monkeypatch.setitem(sys.modules, "eunoe.cli.app", Interrupted())
        with pytest.raises(SystemExit) as caught:
            main(["status"])
        assert caught.value.code == 130


class TestProcess:
    def test_streams_and_exit_codes(self, store: Path) -> None:
        done = process("remember", ANNA, "Zoë says 你好 👋", "--json", store=store)
        assert (done.returncode, done.stderr) == (0, "")
        assert json.loads(done.stdout)["stored"] == 1
        failed = process("get", ANNA, "nope", store=store)
        assert (failed.returncode, failed.stdout) == (1, "")
        assert failed.stderr.startswith("eunoe: ")
        assert failed.stderr.count("\n") == 1
        assert process("get", store=store).returncode == 2

    def test_json_is_utf_8_whatever_the_terminal_speaks(self, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        process("remember", ANNA, "Zoë says 你好 👋", store=store)
        monkeypatch.setenv("PYTHONIOENCODING", "ascii")
        listed = process("list", ANNA, "--json", store=store)
        assert json.loads(listed.stdout)["items"][0]["text"] == "Zoë says 你好 👋"
        assert "Zoë" in process("export", ANNA, store=store).stdout
        assert process("list", ANNA, store=store).returncode == 0

    @pytest.mark.parametrize("args", [["list", ANNA, "--all", "--json"], ["list", ANNA, "--all"], ["export", ANNA]])
    def test_a_reader_that_leaves_is_no_error_to_shout_about(self, store: Path, args: list[str]) -> None:
        with eunoe.open(store, embedder="none") as memory:  # more than a pipe holds
            memory.observe(ANNA, [{"id": str(n), "text": "many words " * 40} for n in range(400)])
        command = [sys.executable, "-m", "eunoe", *args, "-s", str(store)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as started:
            assert started.stdout
            assert started.stderr
            assert started.stdout.readline()
            started.stdout.close()
            assert started.stderr.read() == ""
