"""`eunoe discussion`: discussions are listed, made, shown, moved and deleted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Cli

import eunoe
from eunoe.apps.discussion import Discussion, discussion_ids
from eunoe.apps.discussion.files.layout import is_encrypted_file


def chat(count: int) -> list[dict[str, Any]]:
    topics = ("Rome", "Turin", "Oslo", "Lima", "Cairo")
    return [
        {"role": ("user", "assistant")[number % 2], "content": f"Message {number} is about {topics[number % 5]}."}
        for number in range(count)
    ]


@pytest.fixture
def chat_file(tmp_path: Path) -> Path:
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(chat(30)))
    return path


@pytest.fixture
def trip(cli: Cli, chat_file: Path) -> Cli:
    """A command line on a store with one discussion."""
    result = cli("discussion", "update", "trip", "--user", "anna", "--messages", chat_file)
    assert result.code == 0, result.err
    return cli


def test_an_update_takes_messages_in_and_makes_memories(cli: Cli, chat_file: Path) -> None:
    result = cli("discussion", "update", "trip", "--messages", chat_file, "--json")
    assert result.code == 0
    assert len(result.json["log"]["new"]) == 30
    assert result.json["made"] > 0
    assert "of" in result.err
    again = cli("discussion", "update", "trip", "--messages", chat_file)
    assert (again.code, "new messages" in again.out, "chunks made" in again.out) == (0, False, False)


@pytest.mark.parametrize("indent", [None, 2])
def test_messages_come_as_a_request_for_a_chat_api(cli: Cli, indent: int | None) -> None:
    request = json.dumps({"model": "any", "messages": chat(4)}, indent=indent)
    result = cli("discussion", "update", "trip", "--messages", "-", "--json", stdin=request)
    assert len(result.json["log"]["new"]) == 4


def test_a_scope_of_another_host_disturbs_no_list(trip: Cli) -> None:
    assert trip("observe", "user=anna/discussion=my:talk!", "hi").code == 0
    result = trip("discussion", "list", "--json")
    assert [row["id"] for row in result.json] == ["trip"]


def test_the_whole_chat_takes_back_what_it_does_not_show(trip: Cli) -> None:
    few = json.dumps(chat(2))
    kept = trip("discussion", "update", "trip", "--user", "anna", "--messages", "-", "--json", stdin=few)
    assert kept.json["log"]["retracted"] == []
    assert "kept" in kept.err
    whole = trip("discussion", "update", "trip", "--user", "anna", "--messages", "-", "--whole", "--json", stdin=few)
    assert len(whole.json["log"]["retracted"]) == 28


def test_discussions_are_listed_with_their_users(trip: Cli) -> None:
    trip("discussion", "update", "work", "--messages", "-", stdin=json.dumps(chat(3)))
    rows = trip("discussion", "list", "--json").json
    assert [(row["id"], row["user"], row["messages"]) for row in rows] == [("trip", "anna", 30), ("work", "default", 3)]
    assert [row["id"] for row in trip("discussion", "--user", "anna", "--json").json] == ["trip"]
    assert "there are no discussions" in trip("discussion", "list", "--user", "ben").err


def test_list_and_status_say_that_an_import_waits_for_its_place(cli: Cli, chat_file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "files" / "trip"
    folder.mkdir(parents=True)
    (folder / "memories.json").write_text(json.dumps([{"text_block": "Ann is here.", "hash": "0" * 64}]))
    cli("discussion", "import", folder)
    assert cli("discussion", "update", "trip", "--messages", chat_file).code == 1
    for command in (["list"], ["status", "trip"]):
        assert "--continue-at" in cli("discussion", *command).err
    assert cli("discussion", "update", "trip", "--continue-at", "start").code == 0
    assert "--continue-at" not in cli("discussion", "status", "trip").err


def test_failed_chunks_are_shown_with_attempts_and_when_they_are_tried_again(
    cli: Cli, chat_file: Path, tmp_path: Path
) -> None:
    (tmp_path / "w").mkdir()
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"fileMemoryWorkflowName": "missing"}))
    options = ["--messages", chat_file, "--settings", settings, "--workflows", tmp_path / "w"]
    result = cli("discussion", "update", "trip", *options)
    assert result.code == 1
    assert "missing" in result.out + result.err
    status = cli("discussion", "status", "trip", "--json").json
    assert status["failed"][0]["attempts"] == 1
    assert status["failed"][0]["retry"]
    shown = cli("discussion", "status", "trip").out
    assert "after" in shown
    assert status["failed"][0]["error"] in " ".join(shown.split())
    assert cli("discussion", "update", "trip", "--force").code == 0
    assert cli("discussion", "status", "trip", "--json").json["failed"] == []


def test_a_rebuild_makes_everything_anew(trip: Cli, tmp_path: Path) -> None:
    before = trip("discussion", "status", "trip", "--user", "anna", "--json").json
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"chunkEstimatedTokenSize": 100_000, "maxMessagesBetweenChunks": 12}))
    result = trip("discussion", "rebuild", "trip", "--user", "anna", "--settings", settings, "--json")
    assert result.code == 0, result.err
    after = trip("discussion", "status", "trip", "--user", "anna", "--json").json
    assert after["messages"] == before["messages"]
    assert 0 < after["chunk_memories"] < before["chunk_memories"]


def test_a_rebuild_by_a_workflow_that_is_not_there_changes_nothing(trip: Cli, tmp_path: Path) -> None:
    before = trip("discussion", "status", "trip", "--user", "anna", "--json").json
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"fileMemoryWorkflowName": "missing"}))
    options = ["--settings", settings, "--workflows", tmp_path]
    result = trip("discussion", "rebuild", "trip", "--user", "anna", *options)
    assert (result.code, "missing" in result.err) == (1, True)
    assert trip("discussion", "status", "trip", "--user", "anna", "--json").json == before


def test_an_update_says_that_somebody_else_holds_chunks(cli: Cli, store: Path, chat_file: Path) -> None:
    with eunoe.open(store, embedder="none") as memory:
        trip = Discussion(memory, "trip")
        first, *_, fifth = trip.log.take_in(chat(5)).ids
        data = {"kind": "chunk_memory", "place": 1.0, "first": first, "last": fifth}
        memory.leases.acquire(trip.scope, f"chunk_memory:{first}", data=data)
    result = cli("discussion", "update", "trip", "--messages", chat_file)
    assert (result.code, "held by another process" in " ".join(result.err.split())) == (0, True)
    assert "chunks held" in result.out


def test_a_deleted_discussion_is_gone_and_may_begin_again(trip: Cli, chat_file: Path, store: Path) -> None:
    refused = trip("discussion", "delete", "trip", "--user", "anna")
    assert (refused.code, "--yes" in refused.err) == (2, True)
    assert trip("discussion", "delete", "trip", "--user", "anna", "--yes").code == 0
    with eunoe.open(store, embedder="none") as memory:
        assert discussion_ids(memory, "anna") == []
    assert b"Turin" not in store.read_bytes()
    assert trip("discussion", "status", "trip", "--user", "anna").code == 1
    assert trip("discussion", "update", "trip", "--user", "anna", "--messages", chat_file).code == 0


def test_files_go_out_and_come_in(trip: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = trip("discussion", "export", "trip", out, "--user", "anna")
    assert result.code == 0, result.err
    (memories,) = out.rglob("memories.json")
    folder = memories.parent.parent.name
    done = trip("discussion", "import", out, "--name-user", f"{folder}=ben", "--json")
    assert (done.code, [row["user"] for row in done.json["discussions"]]) == (0, ["ben"])
    one = trip("discussion", "import", memories.parent, "--user", "cleo", "--id", "other", "--json")
    assert [(row["id"], row["user"]) for row in one.json["discussions"]] == [("other", "cleo")]


def test_files_are_kept_current_in_either_layout_and_encrypted(trip: Cli, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("secret")
    (tmp_path / "salt").write_bytes(b"salt")
    key = ("--api-key-file", str(tmp_path / "key"), "--salt", str(tmp_path / "salt"))
    update = (
        "discussion",
        "update",
        "trip",
        "--user",
        "anna",
        "--files-dir",
        str(tmp_path / "files"),
        "--layout",
        "flat",
    )
    assert trip(*update, *key).code == 0
    (memories,) = (tmp_path / "files").rglob("trip_memories.jsonl")
    assert is_encrypted_file(memories)
    result = trip(*update)
    assert (result.code, is_encrypted_file(memories)) == (0, True)
    assert "give the API key" in result.err


@pytest.mark.parametrize(
    ("args", "stdin", "words"),
    [
        (["update", "../trip", "--messages", "-"], "[]", "no id of a discussion"),
        (["update", "trip"], "", "there is no discussion"),
        (["status", "trip"], "", "there is no discussion"),
        (["update", "trip", "--messages", "-"], '[{"content": "x"}]', "role"),
        (["update", "trip", "--messages", "missing.json"], "", "missing.json"),
        (["delete", "trip", "--yes"], "", "there is no discussion"),
        (["import", "missing"], "", "missing"),
        (["import", ".", "--api-key-file", "x"], "", "--salt"),
    ],
)
def test_mistakes_are_said_in_a_line(cli: Cli, args: list[str], stdin: str, words: str, tmp_path: Path) -> None:
    result = cli("discussion", *args, stdin=stdin)
    assert result.code in (1, 2)
    assert words in result.err
    assert "Traceback" not in result.err


def test_memories_are_shown_and_found_put_right_and_removed(trip: Cli) -> None:
    of_anna = ("--user", "anna")
    shown = trip("discussion", "show", "trip", *of_anna, "--json").json
    ids = [each["id"] for each in shown["memories"]]
    assert (len(ids) > 3, shown["keywords"], shown["summary"] != "") == (True, [], True)
    found = trip("discussion", "search", "trip", "Message 7", *of_anna, "--json").json
    assert found[0]["id"] in ids
    assert trip("update", shown["scope"], ids[0], "They spoke of Berlin.").code == 0
    assert trip("discussion", "forget", "trip", ids[1], "--yes", *of_anna).code == 0
    assert trip("discussion", "update", "trip", *of_anna).code == 0
    result = trip("discussion", "show", "trip", *of_anna, "--full")
    assert ("Berlin" in result.out, ids[0] in result.out, ids[1] in result.out) == (True, False, False)
    assert "eunoe update discussion=trip/user=anna ID TEXT" in result.err
    assert "Berlin" in trip("discussion", "show", "trip", "summary", *of_anna).out
    assert trip("summaries", "write", shown["scope"], "A talk about Madrid.").code == 0
    assert trip("discussion", "show", "trip", "summary", *of_anna).out == "A talk about Madrid.\n"
    assert trip("discussion", "show", "trip", "state", *of_anna).code == 0


def test_settings_are_tried_on_one_chunk_before_a_rebuild(trip: Cli, tmp_path: Path) -> None:
    before = trip("discussion", "show", "trip", "--user", "anna", "--json").json
    (tmp_path / "settings.json").write_text('{"both": true, "maxMessagesBetweenChunks": 4}')
    options = ("discussion", "rebuild", "trip", "--user", "anna", "--settings", tmp_path / "settings.json", "--try")
    chunks, keywords = trip(*options, "2", "--json").json
    assert ("Message 4" in chunks["text"], "Message 8" in chunks["text"]) == (True, False)
    assert ("Message 5" in chunks["made"][0]["text"], len(chunks["now"]), keywords["now"]) == (True, 2, [])
    assert keywords["made"]
    assert "chunk 2 of 7" in trip(*options, "2").out
    assert trip(*options, "99").code == 1
    assert trip("discussion", "show", "trip", "--user", "anna", "--json").json == before
