"""A scope that holds nothing: every command says so, and names near scopes that hold something."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Cli, Result

import eunoe

ANNA = "agent=cook/user=anna"


class TestEmptyScope:
    NEAR = "user=anna holds nothing, but agent=cook/user=anna does: name every key of the scope you mean"
    WIDER = "agent=cook holds nothing, but agent=cook/user=... does: name every key of the scope you mean"
    NONE = "user=bob holds nothing: `eunoe scopes` lists the scopes that do"

    @pytest.fixture
    def filled_cli(self, cli: Cli) -> Cli:
        cli("remember", ANNA, "Anna likes a strong tea.", "--id", "tea")
        return cli

    @pytest.mark.parametrize(
        ("args", "message"),
        [
            (["recall", "user=anna", "tea", "--exact"], "nothing found"),
            (["list", "user=anna", "--exact"], "nothing found"),
            (["list", "user=anna", "--all", "--exact"], "nothing found"),
            (["files", "user=anna", "src/", "--exact"], "nothing found"),
            (["context", "user=anna", "Which tea?"], "nothing found"),
            (["graph", "user=anna", "--exact"], "no names found"),
            (["consolidate", "user=anna"], "nothing to do"),
            (["summaries", "user=anna"], "nothing found"),
        ],
    )
    def test_of_a_command_that_finds_nothing(self, filled_cli: Cli, args: list[str], message: str) -> None:
        assert filled_cli(*args) == Result(0, "", f"{message}\n{self.NEAR}\n")
        as_json = filled_cli(*args, "--json")
        assert (as_json.code, as_json.err) == (0, f"{self.NEAR}\n")
        assert as_json.json is None or isinstance(as_json.json, list | dict)

    @pytest.mark.parametrize(
        "args",
        [["form"], ["archive", "--keep-best", "1", "--exact"], ["forget", "--everything", "--yes", "--exact"]],
        ids=lambda args: args[0],
    )
    def test_of_a_command_that_does_nothing(self, filled_cli: Cli, args: list[str]) -> None:
        name, *options = args
        result = filled_cli(name, "user=anna", *options)
        assert (result.code, result.err) == (0, f"{self.NEAR}\n")

    @pytest.mark.parametrize(
        "args",
        [
            ["get", "user=anna", "tea", "--exact"],
            ["history", "user=anna", "tea", "--exact"],
            ["update", "user=anna", "tea", "Anna likes milk."],
            ["pin", "user=anna", "tea"],
            ["unarchive", "user=anna", "tea"],
            ["forget", "user=anna", "tea", "--yes", "--exact"],
            ["export", "user=anna", "--exact"],
            ["streams", "show", "user=anna"],
            ["summaries", "show", "user=anna"],
            ["summaries", "restore", "user=anna", "1"],
        ],
        ids=lambda args: " ".join(args[:2]),
    )
    def test_of_a_command_that_fails(self, filled_cli: Cli, args: list[str]) -> None:
        result = filled_cli(*args)
        assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
        assert result.err.startswith("eunoe: ")
        assert result.err.endswith(f"; {self.NEAR}\n")

    @pytest.mark.parametrize(
        "args", [["recall", "agent=cook", "tea"], ["list", "agent=cook"], ["export", "agent=cook"]]
    )
    def test_names_everything_within_where_it_may_be_asked_for(self, filled_cli: Cli, args: list[str]) -> None:
        assert filled_cli(*args).err.endswith(f"{self.WIDER}, or write agent=cook/*\n")
        asked = filled_cli(args[0], "agent=cook/*", *args[2:])
        assert (asked.code, "strong tea" in asked.out) == (0, True)

    @pytest.mark.parametrize("args", [["pin", "agent=cook", "tea"], ["context", "agent=cook", "Which tea?"]])
    def test_names_nothing_wider_where_one_scope_is_meant(self, filled_cli: Cli, args: list[str]) -> None:
        assert filled_cli(*args).err.endswith(f"{self.WIDER}\n")

    def test_is_not_said_where_what_lies_within_is_found(self, filled_cli: Cli) -> None:
        for args in (["recall", "user=anna", "tea"], ["list", "user=anna"], ["get", "user=anna", "tea"]):
            shown = filled_cli(*args)
            assert ("strong tea" in shown.out, ANNA in shown.out, shown.err) == (True, True, "")
        assert filled_cli("pin", "user=anna", "tea").err.count(f"{ANNA} has it: name that scope")
        assert "1 memory" in filled_cli("forget", "user=anna", "tea", "--yes").out

    def test_is_not_meant_where_only_the_id_is_wrong(self, filled_cli: Cli) -> None:
        assert filled_cli("get", ANNA, "milk").err == "eunoe: there is no memory 'milk' in this scope\n"
        assert filled_cli("recall", ANNA, "zebra", "--recipe", "lexical").err == "nothing found\n"

    def test_keys_as_other_memories_call_them(self, filled_cli: Cli) -> None:
        assert filled_cli("list", "agent_id=cook/user_id=anna", "--json").items[0]["id"] == "tea"
        assert filled_cli("recall", "user_id=anna/agent=cook", "tea", "--json").json[0]["scope"] == ANNA
        assert filled_cli("scopes", "user_id=anna").out == f"{ANNA}\n"
        assert filled_cli("streams", "user_id=anna", "--json").json[0]["scope"] == ANNA

    def test_stands_in_the_json_too(self, filled_cli: Cli) -> None:
        assert filled_cli("list", "user=anna", "--exact", "--json").json == {
            "items": [],
            "next": "",
            "notes": [self.NEAR],
        }
        assert filled_cli("list", "user=anna", "--all", "--exact", "--json").json["notes"] == [self.NEAR]
        assert "notes" not in filled_cli("list", ANNA, "--json").json
        asked = filled_cli("recall", "user=anna", "tea", "--exact", "--json", "--notes")
        assert asked.json == {"hits": [], "notes": [self.NEAR]}
        found = filled_cli("recall", ANNA, "tea", "--json", "--notes").json
        assert ([hit["id"] for hit in found["hits"]], found["notes"]) == (["tea"], [])
        assert filled_cli("forget", "user=anna", "--everything", "--exact", "--yes", "--json").json["notes"] == [
            self.NEAR
        ]


def test_a_person_whom_others_mention_is_not_said_to_be_gone(cli: Cli) -> None:
    cli("observe", "room=1", "--speakers", "-", stdin="Tom Berg: My card ends in 4711.\nEva: Tom Berg, not here!\n")
    result = cli("forget", "room=1", "--person", "Tom Berg", "--verify", "--yes")
    assert result.code == 1
    assert "1 other still mentions the name" in result.out
    assert "to remove that too: eunoe forget room=1 --person 'Tom Berg' --mentions\n" in result.out
    assert "verified: what was forgotten left no trace, but the name is still there" in result.out
    assert "no table, file" not in result.out
    again = cli("forget", "room=1", "--person", "Tom Berg", "--mentions", "--verify", "--yes")
    assert (again.code, "no table, file, index or cache holds a trace" in again.out) == (0, True)


class TestLanguage:
    @pytest.fixture
    def store(self, tmp_path: Path) -> Path:
        path = tmp_path / "memory.db"
        with eunoe.open(path, embedder="static") as memory:
            memory.remember(ANNA, "Anna rented a flat in Berlin.")
        return path

    def test_a_question_that_the_embedder_does_not_read(self, cli: Cli) -> None:
        note = "wordllama-256 reads English: this question (German) was matched by its words and in part"
        asked = cli("recall", ANNA, "Wo hat Anna eine Wohnung?", "--json", "--notes")
        assert asked.err.startswith(note)
        assert asked.json["notes"][0].startswith(note)
        assert cli("context", ANNA, "Wo hat Anna eine Wohnung?").err.startswith(note)
        assert cli("recall", ANNA, "Where is the flat?").err == ""

    def test_status_says_what_it_reads(self, cli: Cli) -> None:
        shown = " ".join(cli("status").out.split())
        assert "embedder wordllama-256, reads English languages 1 English among the latest 1" in shown
        assert cli("status", "--json").json["embedder_languages"] == ["English"]
