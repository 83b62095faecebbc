"""The command line around forming: form, context, streams, summaries, archive, incognito, worker, status."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Cli, Result

import eunoe
from eunoe.errors import StoreBusyError
from eunoe.memory import Admin, Memory
from eunoe.model.result import FormReport

HERE = "agent=cook/session=s1/user=anna"
OWN = "agent=cook/user=anna"
TALK = ("Please call me Ann.", "I am allergic to peanuts.", "I prefer tea to coffee.", "My dog is called Rex.")


@pytest.fixture
def observed_cli(cli: Cli) -> Cli:
    """A command line on a store with a short conversation that nothing was made of yet."""
    assert cli("observe", HERE, "-", stdin="\n".join(TALK)).code == 0
    return cli


@pytest.fixture
def formed_cli(observed_cli: Cli) -> Cli:
    assert observed_cli("form", HERE).code == 0
    return observed_cli


class TestForm:
    def test_shows_what_was_learned_and_where(self, observed_cli: Cli) -> None:
        result = observed_cli("form", HERE)
        assert result.code == 0
        assert result.out.startswith("4 messages: ")
        assert "I am allergic to peanuts." in result.out
        assert OWN in result.out

    def test_json_has_the_report_and_the_memories(self, observed_cli: Cli) -> None:
        found = observed_cli("form", HERE, "--json").json
        assert found["messages"] == 4
        assert {atom["id"] for atom in found["learned"]} == set(found["stored"])
        assert OWN in {atom["scope"] for atom in found["learned"]}

    def test_due_leaves_a_short_talk_alone(self, observed_cli: Cli) -> None:
        assert observed_cli("form", HERE, "--due").out == "nothing to form\n"
        assert observed_cli("status", "--json").json["due_messages"] == 4

    def test_all_takes_every_conversation(self, observed_cli: Cli) -> None:
        observed_cli("observe", "session=s9/user=bob", "I live in Oslo.")
        found = observed_cli("form", "--all", "--json").json
        assert found["messages"] == 5
        assert {"user=bob", OWN} <= {atom["scope"] for atom in found["learned"]}
        assert observed_cli("status", "--json").json["due_messages"] == 0

    def test_a_failing_model_is_an_exit_code_and_loses_nothing(self, observed_cli: Cli, broken_llm: str) -> None:
        failed = observed_cli("form", HERE, "--llm", broken_llm)
        assert failed.code == 1
        assert "failed, and still due" in failed.err
        assert "Traceback" not in failed.err
        shown = observed_cli("status").out
        assert "tried again later" in shown
        assert "extraction" in shown
        assert observed_cli("status", "--json").json["failing"] == 1
        assert observed_cli("form", HERE, "--llm", "none", "--json").json["messages"] == 4
        assert observed_cli("status", "--json").json["failing"] == 0


class TestObserve:
    LINES = "\n".join(f"I like dish number {number}." for number in range(50))

    def test_forms_what_is_due_before_it_leaves(self, cli: Cli) -> None:
        assert cli("observe", HERE, "-", stdin=self.LINES).out == "50 messages: 50 stored\n"
        assert cli("status", "--json").json["due_messages"] < 50
        assert "dish number" in cli("context", HERE).out

    def test_leaves_it_if_told_so(self, cli: Cli) -> None:
        cli("observe", HERE, "-", "--no-form", stdin=self.LINES)
        assert cli("status", "--json").json["due_messages"] == 50
        assert cli("form", HERE, "--due", "--json").json["messages"] == 50

    def test_whoever_does_not_wait_still_sees_what_was_stored(self, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
        def interrupted(_: Memory, timeout: float | None = None) -> bool:
            if timeout is None:
                raise KeyboardInterrupt
            return False

        monkeypatch.setattr(Memory, "flush", interrupted)
        result = cli("observe", HERE, "Hello.", "--json")
        assert (result.code, result.json["stored"]) == (0, 1)
        assert result.err == "stored; memories are being formed (Ctrl-C leaves the rest for later)\n"

    def test_a_failing_model_is_said_in_one_line(self, cli: Cli, broken_llm: str) -> None:
        result = cli("observe", HERE, "-", "--llm", broken_llm, stdin=self.LINES)
        assert (result.code, result.out) == (0, "50 messages: 50 stored\n")
        assert result.err.startswith("eunoe: forming has to be tried again: ")
        assert "Traceback" not in result.err


class TestContext:
    def test_prints_the_text_alone(self, formed_cli: Cli, store: Path) -> None:
        result = formed_cli("context", HERE, "What may I not eat?")
        assert (result.code, result.err) == (0, "")
        assert result.out.startswith("<MemoryContext")
        assert "allergic to peanuts" in result.out
        whole = formed_cli("context", HERE, "What may I not eat?", "--json").json
        assert whole["tokens"] > 0
        assert result.out == whole["text"] + "\n"

    def test_formats(self, formed_cli: Cli) -> None:
        assert formed_cli("context", HERE, "--format", "markdown").out.startswith("<!-- eunoe:memory -->")
        assert "allergic" in json.dumps(formed_cli("context", HERE, "--format", "json").json)
        messages = formed_cli("context", HERE, "--format", "messages").json
        assert all(message["role"] != "system" for message in messages)
        assert formed_cli("context", HERE, "--format", "pdf").code == 1

    def test_nothing_is_looked_up_if_told_so(self, formed_cli: Cli) -> None:
        found = formed_cli("context", HERE, "peanuts", "--no-recall", "--json").json
        assert (found["hits"], found["query"]) == ([], "")

    def test_company_hides_what_is_private(self, formed_cli: Cli) -> None:
        formed_cli("remember", OWN, "Anna is afraid of dogs.")
        assert "afraid of dogs" in formed_cli("context", HERE, "dogs").out
        assert "afraid of dogs" not in formed_cli("context", HERE, "dogs", "--users", "bob, carla").out


class TestStreams:
    def test_alone_it_lists(self, formed_cli: Cli) -> None:
        for args in ([], ["list"]):
            shown = formed_cli("streams", *args).out
            assert OWN in shown
            assert "session" in shown
        assert [one["scope"] for one in formed_cli("streams", "--json").json] == [HERE, OWN]

    def test_keys_choose(self, formed_cli: Cli) -> None:
        formed_cli("remember", "user=bob", "x")
        assert [one["scope"] for one in formed_cli("streams", "agent=cook", "session=s1", "--json").json] == [HERE]
        assert [one["scope"] for one in formed_cli("streams", "user=bob", "--json").json] == ["user=bob"]
        assert formed_cli("streams", "user=nobody").err == "nothing found\n"

    def test_options_stand_before_or_after(self, formed_cli: Cli, store: Path) -> None:
        wanted = formed_cli("streams", "show", OWN, "--json").json
        assert formed_cli("--json", "streams", "show", OWN).json == wanted
        assert formed_cli("streams", "--json", "--store", store, "show", OWN).json == wanted

    def test_set_makes_a_shard_with_values_of_each_type(self, cli: Cli, tmp_path: Path) -> None:
        (tmp_path / "prompt.txt").write_text("Recipes {with} braces, 50 % and zest é.\n", encoding="utf-8")
        scope = "agent=cook/shard=recipes"
        given = [f"extraction_prompt=@{tmp_path / 'prompt.txt'}", "is_active=no", "fact_buffer_max=7"]
        given += ["user_weight=0.25", "extraction_fields=fact", "consolidation_prompt="]
        stream = cli("streams", "set", scope, *given, "--json").json
        assert (stream["scope"], stream["preset"]) == (scope, "agent")
        settings = stream["settings"]
        assert settings["extraction_prompt"] == "Recipes {with} braces, 50 % and zest é."
        assert (settings["is_active"], settings["fact_buffer_max"], settings["user_weight"]) == (False, 7, 0.25)
        assert (settings["extraction_fields"], settings["consolidation_prompt"]) == (["fact"], "")
        assert "not active" in cli("streams").out
        assert "7  (preset: 100)" in cli("streams", "show", scope).out

    @pytest.mark.parametrize(
        ("change", "code", "why"),
        [
            ("colour=red", 1, "there is no setting colour"),
            ("is_active=perhaps", 1, "is_active cannot be 'perhaps': it is true or false"),
            ("fact_max_words=many", 1, "it is a whole number"),
            ("fact_max_words=0", 1, "at least 1"),
            ("user_weight=nan", 1, "user_weight"),
            ("extraction_fields=poem", 1, "must be some of"),
            ("extraction_prompt=@/nowhere/at/all", 1, "cannot read /nowhere/at/all"),
            ("colour", 2, "write NAME=VALUE"),
        ],
    )
    def test_what_makes_no_sense_changes_nothing(self, formed_cli: Cli, change: str, code: int, why: str) -> None:
        before = formed_cli("streams", "--json").out
        result = formed_cli("streams", "set", OWN, change)
        assert (result.code, result.out, result.err.count("\n")) == (code, "", 1)
        assert why in result.err
        assert formed_cli("streams", "--json").out == before

    def test_presets_are_shown_changed_and_made(self, cli: Cli) -> None:
        assert cli("streams", "presets", "--json").json["agent"]["consolidation_trigger"] == 16
        assert "consolidation_trigger" in cli("streams", "presets").out
        made = cli(
            "streams", "set-preset", "team", "--like", "user", "owner=team", "consolidated_max_words=200", "--json"
        )
        assert (made.json["owner"], made.json["consolidated_max_words"]) == (["team"], 200)
        assert cli("streams", "presets", "team", "--json").json == made.json
        cli("streams", "set-preset", "user", "consolidation_trigger=3")
        assert cli("streams", "presets", "--json").json["user"]["consolidation_trigger"] == 3
        assert cli("streams", "presets", "nope").err.startswith("eunoe: there is no preset nope")


class TestSummaries:
    @pytest.fixture
    def revised_cli(self, formed_cli: Cli) -> Cli:
        assert formed_cli("consolidate", OWN).code == 0
        assert formed_cli("summaries", "write", OWN, "Ann keeps a dog. She drinks tea.", "--parent", "1").code == 0
        return formed_cli

    def test_consolidate_prints_the_summary(self, formed_cli: Cli) -> None:
        result = formed_cli("consolidate", OWN)
        assert "allergic to peanuts" in result.out
        assert result.err.startswith("revision 1 by extractive, ")
        assert formed_cli("consolidate", OWN, "--due").err == "nothing to do\n"
        assert formed_cli("consolidate", OWN, "--due", "--json").json is None

    def test_list_and_show(self, revised_cli: Cli) -> None:
        assert "2 (current)" in revised_cli("summaries", OWN).out
        assert [one["number"] for one in revised_cli("summaries", "list", OWN, "--json").json] == [1, 2]
        assert revised_cli("summaries", "show", OWN).out == "Ann keeps a dog. She drinks tea.\n"
        assert "allergic to peanuts" in revised_cli("summaries", "show", OWN, "1").out
        missing = revised_cli("summaries", "show", OWN, "9")
        assert (missing.code, missing.err) == (1, f"eunoe: {OWN} has no revision 9: it has 1, 2\n")

    def test_diff_goes_by_sentences(self, revised_cli: Cli) -> None:
        revised_cli("summaries", "write", OWN, "Ann keeps a cat. She drinks tea.")
        shown = revised_cli("summaries", "diff", OWN, "2", "3").out.splitlines()
        assert [line for line in shown if line[0] in "+-" and line[:3] not in ("+++", "---")] == [
            "-Ann keeps a dog.",
            "+Ann keeps a cat.",
        ]
        assert revised_cli("summaries", "diff", OWN, "2", "2") == Result(0, "", "they say the same\n")

    def test_lineage_names_what_was_taken_in(self, revised_cli: Cli) -> None:
        line = revised_cli("summaries", "lineage", OWN, "--json").json
        taken = revised_cli("summaries", OWN, "--json").json[0]["absorbed"]
        assert [(one["revision"], one["absorbed"]) for one in line] == [(1, taken), (2, [])]
        shown = revised_cli("summaries", "lineage", OWN).out
        assert "allergic to peanuts" in shown
        assert all(id in shown for id in taken)

    def test_restore_is_a_revision_of_its_own(self, revised_cli: Cli) -> None:
        first = revised_cli("summaries", "show", OWN, "1").out
        restored = revised_cli("summaries", "restore", OWN, "1", "--json").json
        assert restored["number"] == 3
        assert revised_cli("summaries", "show", OWN).out == first
        assert revised_cli("summaries", "restore", OWN, "9").code == 1
        assert revised_cli("summaries", "restore", OWN, "9" * 30).code == 1


class TestArchive:
    @pytest.fixture
    def facts_cli(self, cli: Cli) -> Cli:
        for number in range(3):
            cli("remember", "user=anna", f"Fact {number}.", "--id", f"f{number}")
        cli("pin", "user=anna", "f0")
        return cli

    def test_a_dry_run_says_what_would_go(self, facts_cli: Cli) -> None:
        report = facts_cli("archive", "user=anna", "--keep-best", "1", "--dry-run", "--json").json
        assert report["dry_run"] is True
        assert report["archived"]
        assert "f0" not in dict(report["archived"])
        assert "would be archived" in facts_cli("archive", "user=anna", "--keep-best", "1", "--dry-run").out
        assert len(facts_cli("list", "user=anna", "--json").json["items"]) == 3

    def test_what_is_archived_comes_back_on_request(self, facts_cli: Cli) -> None:
        shown = facts_cli("archive", "user=anna", "--keep-best", "1")
        assert "archived" in shown.out
        left = {item["id"] for item in facts_cli("list", "user=anna", "--json").json["items"]}
        (gone, *_) = sorted({"f1", "f2"} - left)
        assert facts_cli("unarchive", "user=anna", gone).out == f"{gone} is back\n"
        assert facts_cli("unarchive", "user=anna", gone).out == f"{gone} was not archived\n"
        assert gone in {item["id"] for item in facts_cli("list", "user=anna", "--json").json["items"]}


class TestIncognito:
    def test_nothing_of_a_marked_session_is_kept(self, cli: Cli, store: Path) -> None:
        assert cli("incognito", HERE).out == f"nothing of {HERE} is kept\n"
        assert cli("observe", HERE, "My secret is xyzzy.").out == "not kept: the session is incognito\n"
        assert cli("observe", HERE, "xyzzy", "--json").json["ignored"] == 1
        assert cli("scopes").out == ""
        assert b"xyzzy" not in b"".join(file.read_bytes() for file in store.parent.iterdir())
        assert cli("incognito", HERE, "--off", "--json").json == {"scope": HERE, "incognito": False}
        assert cli("observe", HERE, "Hello.").out.startswith("stored as ")


class TestWorker:
    ONCE = ("worker", "--once", "--idle", "0")

    def test_one_round_forms_what_is_quiet(self, observed_cli: Cli) -> None:
        result = observed_cli(*self.ONCE)
        assert (result.code, result.out) == (0, "")
        assert " 4 messages: " in result.err
        assert observed_cli(*self.ONCE, "--json").json["messages"] == 0
        assert OWN in observed_cli("streams").out

    def test_many_sessions_in_one_round(self, cli: Cli) -> None:
        with eunoe.open(os.environ["EUNOE_STORE"], form=False) as memory:
            for number in range(30):
                memory.observe(f"session=s{number}/user=u{number}", [*TALK])
        assert cli(*self.ONCE, "--concurrency", "2", "--json").json["messages"] == 30 * len(TALK)

    def test_what_fails_is_reported_and_stays_due(self, observed_cli: Cli, broken_llm: str) -> None:
        result = observed_cli(*self.ONCE, "--llm", broken_llm)
        assert result.code == 1
        assert "failed, and still due" in result.err
        assert observed_cli("status", "--json").json["due_messages"] == 4

    def test_a_failing_round_does_not_end_it(self, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
        rounds = iter([StoreBusyError("held by\nanother"), RuntimeError("unforeseen"), FormReport(messages=5)])

        def work(*_: object, **__: object) -> FormReport:
            done = next(rounds, FormReport())
            if isinstance(done, Exception):
                raise done
            if done == FormReport():
                os.kill(os.getpid(), signal.SIGTERM)
            return done

        monkeypatch.setattr(Admin, "process_cold_sessions", work)
        result = cli("worker", "--every", "0.001")
        assert result.code == 0
        assert "StoreBusyError: held by another" in result.err
        assert "RuntimeError: unforeseen" in result.err
        assert "5 messages" in result.err

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_a_signal_ends_the_wait(self, observed_cli: Cli, store: Path, number: signal.Signals) -> None:
        command = [sys.executable, "-m", "eunoe", "worker", "--every", "1000", "--idle", "0", "--json"]
        with subprocess.Popen(
            command, env={**os.environ}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout
            assert process.stderr
            assert json.loads(process.stdout.readline())["messages"] == 4
            process.send_signal(number)
            assert process.wait(timeout=60) == 0
            assert (process.stdout.read(), process.stderr.read()) == ("", "")


class TestMigrateEden:
    @pytest.fixture
    def export(self, tmp_path: Path) -> Path:
        file = tmp_path / "memory_user.json"
        document = {"_id": "1", "agent_id": "cook", "user_id": "anna", "content": "Anna likes tea."}
        file.write_text(json.dumps([document]), encoding="utf-8")
        return file

    def test_says_what_came_and_changes_nothing_the_second_time(self, cli: Cli, export: Path) -> None:
        result = cli("migrate", "eden", export)
        assert (result.code, result.err) == (0, "")
        assert result.out.startswith("1 document read\n")
        assert cli("summaries", "show", OWN).out == "Anna likes tea.\n"
        again = cli("migrate", "eden", export, "--json").json
        assert (again["summaries"]["stored"], again["summaries"]["known"]) == (0, 1)

    def test_what_makes_no_sense_is_named_and_is_an_exit_code(self, cli: Cli, export: Path) -> None:
        export.write_text(export.read_text().replace("]", ', {"_id": "2"}]'), encoding="utf-8")
        result = cli("migrate", "eden", export)
        assert result.code == 1
        assert "cannot be read: memory_user.json:1: " in result.err
        assert cli("summaries", "show", OWN).out == "Anna likes tea.\n"


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_tables_are_never_wider_than_the_terminal(
    formed_cli: Cli, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    formed_cli("remember", OWN, "long " * 100, "--label", "x" * 100)
    formed_cli("consolidate", OWN)
    formed_cli("observe", HERE, f"I like {'really ' * 30} long walks.")
    calls = ("form", HERE), ("streams",), ("streams", "show", OWN), ("streams", "presets"), ("status",)
    more = ("summaries", OWN), ("summaries", "lineage", OWN), ("archive", OWN, "--keep-best", "1", "--dry-run")
    for args in (*calls, *more):
        result = formed_cli(*args)
        assert result.code == 0
        assert max(map(len, result.out.splitlines())) <= columns
