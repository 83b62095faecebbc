"""Forming from the first claim to the last summary, with models that answer, fail and dawdle."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.steps import Steps

import eunoe
from eunoe.errors import LlmError
from eunoe.form import extraction
from eunoe.llm.contract import Prompt, ScriptedLlm
from eunoe.memory import Memory
from eunoe.model.result import FormReport
from eunoe.model.scope import Scope
from eunoe.store.schema import Job, Lease
from eunoe.store.sqlite import SqliteStore
from eunoe.work import leases

TALK = Scope(agent="cook", session="s1", user="anna")
GROUP = Scope(agent="cook", session="s2")
ANNA = Scope(agent="cook", user="anna")
BEN = Scope(agent="cook", user="ben")
SAID = ["I am allergic to peanuts.", "My sister Clara lives in Oslo.", "Please answer in short sentences."]
SAID_LATER = ["My cat is called Ferdinand.", "I bake bread on Sundays.", "My brother Otto plays the tuba."]


def memories(prompt: Prompt) -> Any:
    """One memory for each turn in each stream that is shown."""
    if prompt.operation != "extraction":
        return " ".join(each["text"] for each in json.loads(prompt.text)["observations"])
    turns = re.findall(r"<turn .*?>(.*?)</turn>", prompt.text, re.DOTALL)
    streams = len(re.findall(r"<stream ", prompt.text))
    return {
        "memories": [
            {"stream": stream, "kind": "observation", "text": text, "turns": [place], "key": None}
            for stream in range(1, streams + 1)
            for place, text in enumerate(turns, 1)
        ]
    }


@contextmanager
def opened(path: Path, llm: Any = "none") -> Iterator[Memory]:
    with eunoe.open(path, embedder="none", llm=llm, form=False) as memory:
        memory.streams.set_preset("session", observation_extraction_max=50, formation_minimum=1)
        memory.streams.set_preset("user", observation_extraction_max=50, consolidation_trigger=3)
        yield memory


def load_jobs(path: Path, scope: Scope) -> list[Job]:
    store = Steps(SqliteStore(path))
    try:
        with store.reading():
            stream = store.stream(scope)
            return store.load(Job, stream=stream.id) if stream else []
    finally:
        store.close()


def attempts(path: Path) -> list[int]:
    return [job.lease.attempts for job in load_jobs(path, TALK)]


def kept(memory: Memory, scope: Scope) -> list[str]:
    return sorted(item.text for item in memory.list(scope, kinds=["fact", "observation"], exact=True).items)


def test_one_call_forms_all_streams_and_a_second_run_finds_nothing_to_do(path: Path) -> None:
    model = ScriptedLlm(memories)
    with opened(path, model) as memory:
        receipts = memory.observe(TALK, SAID)
        report = memory.form(TALK)
        assert report.messages == 3
        assert not report.failed
        assert [prompt.operation for prompt in model.prompts] == ["extraction", "consolidation"]
        assert kept(memory, TALK) == kept(memory, ANNA) == sorted(SAID)
        sources = {item.source for item in memory.list(ANNA, exact=True).items}
        assert sources == {(f"@{TALK}#{receipt.id}",) for receipt in receipts}
        assert report.consolidated == (ANNA,)
        assert memory.form(TALK).messages == 0
        assert len(model.prompts) == 2


def test_without_a_model_the_same_path_runs_extractively(path: Path) -> None:
    with opened(path) as memory:
        memory.observe(TALK, [{"role": "user", "speaker": "Anna", "content": text} for text in SAID])
        report = memory.form(TALK)
        assert report.messages == 3
        assert report.stored
        assert any("peanuts" in text for text in kept(memory, ANNA))


def test_a_scope_without_streams_and_an_unknown_one_have_nothing_to_form(path: Path) -> None:
    with opened(path) as memory:
        memory.observe({"discussion": "x"}, SAID)
        assert memory.form({"discussion": "x"}) == memory.form({"user": "nobody"}) == FormReport()


def test_without_force_the_triggers_decide(path: Path) -> None:
    with opened(path) as memory:
        memory.streams.set_preset("session", formation_messages=3, formation_minimum=2)
        memory.observe(TALK, SAID[:2])
        assert memory.form(TALK, force=False).messages == 0
        memory.observe(TALK, SAID[2:])
        assert memory.form(TALK, force=False).messages == 3


@pytest.mark.parametrize("step", range(1, 7))
def test_a_model_that_fails_at_any_step_leaves_all_due_and_the_next_run_completes_it(path: Path, step: int) -> None:
    calls = 0

    def failing(prompt: Prompt) -> Any:
        nonlocal calls
        calls += 1
        return LlmError("the model is away") if calls == step else memories(prompt)

    with opened(path, ScriptedLlm(failing)) as memory:
        memory.streams.set_preset("session", chunk_tokens=8)
        memory.observe(TALK, SAID)
        first = memory.form(TALK)
        due = memory.status().due_messages
        assert first.messages + due == 3
        assert bool(first.failed) == (calls >= step)
        second = memory.form(TALK)
        assert not second.failed
        assert first.messages + second.messages == 3
        assert kept(memory, ANNA) == sorted(SAID)
        assert len(memory.list(ANNA, kinds=["observation"], exact=True).items) == 3
        assert memory.summaries.revisions(ANNA)[-1].current
        assert memory.status().failing == memory.status().due_messages == 0


def test_a_failed_job_waits_for_its_time_and_does_not_stop_the_later_ones(path: Path) -> None:
    def failing(prompt: Prompt) -> Any:
        is_this_one = "peanuts" in prompt.text.partition("<conversation>")[2]
        return LlmError("not this one") if is_this_one else memories(prompt)

    with opened(path, ScriptedLlm(failing)) as memory:
        memory.streams.set_preset("session", chunk_tokens=8, formation_messages=1)
        memory.observe(TALK, SAID)
        report = memory.form(TALK, force=False)
        assert report.messages == 2
        assert len(report.failed) == 1
        assert "not this one" in report.failed[0]
        left = load_jobs(path, TALK)
        assert attempts(path) == [1]
        assert memory.form(TALK, force=False).failed == ()
        assert load_jobs(path, TALK) == left


def astray(prompt: Prompt) -> Any:
    """Memories for streams that are not there."""
    return {"memories": [{**item, "stream": 99} for item in memories(prompt)["memories"]]}


def test_an_answer_of_which_nothing_can_be_used_leaves_the_messages_due(path: Path) -> None:
    model = ScriptedLlm(astray)
    with opened(path, model) as memory:
        memory.observe(TALK, SAID)
        report = memory.form(TALK)
        assert (report.messages, report.refused, len(report.failed)) == (0, 0, 1)
        assert "from 1 to 2" in report.failed[0]
        assert len(model.prompts) == 2
        assert attempts(path) == [1]
        status = memory.status()
        assert (status.due_messages, status.failing, "from 1 to 2" in status.error) == (3, 1, True)
        assert memory.form(TALK, force=False).failed == ()  # not before the pause is over
        assert len(model.prompts) == 2


def test_items_that_cannot_be_used_are_counted(path: Path) -> None:
    def answer(prompt: Prompt) -> Any:
        given = memories(prompt)
        if prompt.operation == "extraction":
            given["memories"] += astray(prompt)["memories"][:4]
        return given

    with opened(path, ScriptedLlm(answer)) as memory:
        memory.observe(TALK, SAID)
        report = memory.form(TALK)
        assert (report.messages, report.refused, report.failed) == (3, 4, ())
        assert kept(memory, ANNA) == sorted(SAID)


def test_an_empty_answer_is_one(path: Path) -> None:
    with opened(path, ScriptedLlm([{"memories": []}])) as memory:
        memory.observe(TALK, SAID)
        assert memory.form(TALK) == FormReport(messages=3)
        assert memory.status().due_messages == 0


def test_what_a_model_never_answers_well_is_formed_without_it_in_the_end(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = ScriptedLlm(astray)
    with opened(path, model) as memory:
        memory.streams.set_preset("user", consolidation_prompt="")
        memory.observe(TALK, SAID)
        for attempt in range(1, 3):
            assert memory.form(TALK).messages == 0
            assert attempts(path) == [attempt]
        report = memory.form(TALK)
        assert (report.messages, len(report.failed)) == (3, 1)
        assert report.failed[0].endswith("after 3 attempts, formed without the model")
        assert report.failed[0] in caplog.text
        assert any("peanuts" in text for text in kept(memory, ANNA))
        assert {item.metadata["author"] for item in memory.list(ANNA, kinds=["observation"], exact=True).items} == {
            "extractive"
        }
        assert (memory.status().due_messages, memory.status().failing) == (0, 0)
        assert memory.form(TALK) == FormReport()
        assert len(model.prompts) == 6


def test_a_server_that_is_away_is_waited_for(path: Path) -> None:
    faults = [*[LlmError("away")] * 8, "no", "no", *[LlmError("away")] * 3]
    with opened(path, ScriptedLlm([*faults, {"memories": []}])) as memory:
        memory.observe(TALK, SAID)
        for attempt in range(1, 13):
            assert memory.form(TALK).messages == 0
            assert attempts(path) == [attempt]
        assert memory.form(TALK) == FormReport(messages=3)


def test_a_summary_that_fails_is_reported_and_the_memories_are_kept(path: Path) -> None:
    def failing(prompt: Prompt) -> Any:
        return memories(prompt) if prompt.operation == "extraction" else LlmError("no summary today")

    with opened(path, ScriptedLlm(failing)) as memory:
        memory.observe(TALK, SAID)
        report = memory.form(TALK)
        assert report.messages == 3
        assert any("no summary today" in fault for fault in report.failed)
        assert kept(memory, ANNA) == sorted(SAID)


@pytest.mark.parametrize("new", [[], ["My cat is called Ferdinand."]])
def test_a_summary_that_failed_is_tried_again_with_and_without_new_messages(path: Path, new: list[str]) -> None:
    is_away = True

    def answer(prompt: Prompt) -> Any:
        return LlmError("no summary today") if is_away and prompt.operation != "extraction" else memories(prompt)

    with opened(path, ScriptedLlm(answer)) as memory:
        memory.observe(TALK, SAID)
        assert memory.form(TALK).failed
        is_away = False
        if new:
            memory.observe(TALK, new)
        assert memory.form(TALK, force=False).consolidated == ()
        report = memory.form(TALK)
        assert (report.messages, report.failed) == (len(new), ())
        assert ANNA in report.consolidated


def test_one_call_asks_for_a_summary_that_fails_once_however_many_chunks_there_are(path: Path) -> None:
    def failing(prompt: Prompt) -> Any:
        return memories(prompt) if prompt.operation == "extraction" else LlmError("no summary today")

    llm = ScriptedLlm(failing)
    with opened(path, llm) as memory:
        memory.streams.set_preset("session", chunk_tokens=8, consolidation_prompt="")
        memory.observe(TALK, SAID)
        memory.form(TALK)
        memory.observe(TALK, SAID_LATER)
        llm.prompts.clear()
        assert memory.form(TALK).messages == len(SAID_LATER)
        assert [prompt.operation for prompt in llm.prompts].count("consolidation") == 1


def test_a_fault_in_the_program_is_logged_and_the_messages_stay_due(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> list[Any]:
        raise ZeroDivisionError("I am allergic to peanuts.")

    with opened(path) as memory, caplog.at_level(logging.ERROR, "eunoe"):
        memory.observe(TALK, SAID)
        with monkeypatch.context() as patched:
            patched.setattr(extraction, "extract_extractively", broken)
            report = memory.form(TALK)
        assert report.messages == 0
        assert "ZeroDivisionError" in report.failed[0]
        assert "peanuts" not in report.failed[0] + load_jobs(path, TALK)[0].lease.error
        assert "forming failed" in caplog.text
        assert memory.form(TALK).messages == 3


def test_an_interrupted_run_gives_its_job_back_at_once(path: Path) -> None:
    with opened(path, ScriptedLlm(lambda _: KeyboardInterrupt())) as memory:
        memory.observe(TALK, SAID)
        with pytest.raises(KeyboardInterrupt):
            memory.form(TALK)
        assert [job.lease for job in load_jobs(path, TALK)] == [Lease()]


def test_a_message_of_another_conversation_with_the_same_id_bears_nothing_out(path: Path) -> None:
    elsewhere = Scope(agent="cook", session="s9", user="cleo")

    def slow(prompt: Prompt) -> Any:
        with opened(path) as other:
            if "peanuts" in prompt.text:
                other.forget(TALK, "m0")
        return memories(prompt)

    with opened(path, ScriptedLlm(slow)) as memory:
        for scope, texts in ((elsewhere, ["Hello.", "Hi.", "Bye."]), (TALK, SAID)):
            memory.observe(scope, [{"role": "user", "content": text, "id": f"m{n}"} for n, text in enumerate(texts)])
        assert memory.form(TALK).messages == 2
        assert kept(memory, TALK) == kept(memory, ANNA) == sorted(SAID[1:])


def test_a_memory_that_rests_on_a_forgotten_message_among_others_is_dropped(path: Path) -> None:
    def slow(prompt: Prompt) -> Any:
        answer = memories(prompt)
        if prompt.operation != "extraction" or "peanuts" not in prompt.text:
            return {"memories": []}
        with opened(path) as other:
            other.forget(TALK, next(item.id for item in other.list(TALK, kinds=["message"]).items))
        return {"memories": [{**item, "turns": [1, 2]} for item in answer["memories"]]}

    with opened(path, ScriptedLlm(slow)) as memory:
        memory.observe(TALK, SAID)
        assert memory.form(TALK).messages == 2
        assert kept(memory, TALK) == kept(memory, ANNA) == []


def test_an_error_that_repeats_what_was_forgotten_meanwhile_is_not_kept(path: Path) -> None:
    def failing(prompt: Prompt) -> Any:
        with opened(path) as other:
            other.forget(TALK, next(item.id for item in other.list(TALK, kinds=["message"]).items))
        return LlmError(f"cannot read: {SAID[0]}")

    with opened(path, ScriptedLlm(failing)) as memory:
        memory.observe(TALK, SAID)
        report = memory.form(TALK)
        assert report.failed
        assert "peanuts" not in str(report.failed) + load_jobs(path, TALK)[0].lease.error


def test_a_job_that_went_over_to_somebody_else_writes_nothing(path: Path) -> None:
    def slow(prompt: Prompt) -> Any:
        store = Steps(SqliteStore(path))
        with store.writing():
            jobs = store.load(Job)
            store.save([job._replace(lease=job.lease._replace(owner="somebody")) for job in jobs])
        store.close()
        return memories(prompt)

    with opened(path, ScriptedLlm(slow)) as memory:
        memory.observe(TALK, SAID)
        assert memory.form(TALK).messages == 0
        assert kept(memory, TALK) == kept(memory, ANNA) == []
        assert [job.lease.owner for job in load_jobs(path, TALK)] == ["somebody"]


def test_a_lease_is_renewed_while_the_model_thinks(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(leases.LEASE_VARIABLE, "0.3")

    def dawdling(prompt: Prompt) -> Any:
        if prompt.operation == "extraction":
            (first,), deadline = load_jobs(path, TALK), time.monotonic() + 60
            held = first
            while held.lease.until == first.lease.until:
                assert time.monotonic() < deadline
                (held,) = load_jobs(path, TALK)
            assert held._replace(lease=held.lease._replace(until=first.lease.until)) == first
        return memories(prompt)

    with opened(path, ScriptedLlm(dawdling)) as memory:
        memory.observe(TALK, SAID)
        assert memory.form(TALK).messages == 3
        assert load_jobs(path, TALK) == []


def test_in_a_group_each_user_learns_only_from_their_own_words(path: Path) -> None:
    with opened(path, ScriptedLlm(memories)) as memory:
        said = [("anna", SAID[0]), ("ben", SAID[1]), ("", SAID[2])]
        memory.observe(
            GROUP,
            [{"role": "user" if user else "assistant", "user": user or None, "content": text} for user, text in said],
        )
        assert memory.form(GROUP).messages == 3
        assert kept(memory, ANNA) == [SAID[0]]
        assert kept(memory, BEN) == [SAID[1]]
        assert kept(memory, GROUP) == sorted(SAID)


def test_a_memory_that_mixes_users_is_kept_for_the_group_alone(path: Path) -> None:
    """In one user's memory it would show the words of the other, and outlive them when they are forgotten."""

    def mixing(prompt: Prompt) -> Any:
        answer = memories(prompt)
        if prompt.operation == "extraction":
            mixed = " ".join(item["text"] for item in answer["memories"][:2])
            answer["memories"] = [{**item, "text": mixed, "turns": [1, 2]} for item in answer["memories"]]
        return answer

    with opened(path, ScriptedLlm(mixing)) as memory:
        said = [
            {"role": "user", "user": user, "content": text} for user, text in zip(("anna", "ben"), SAID, strict=False)
        ]
        receipts = memory.observe(GROUP, said)
        assert memory.form(GROUP).refused
        assert [SAID[0] in text for text in kept(memory, ANNA)] == [True], "in her own words alone"
        assert [SAID[1] in text for text in kept(memory, BEN)] == [True]
        assert not any(SAID[1] in text for text in kept(memory, ANNA))
        sources = {item.source for item in memory.list(GROUP, kinds=["observation"]).items}
        assert sources == {tuple(receipt.id for receipt in receipts)}


def test_what_was_settled_with_one_of_a_group_rests_on_both_sides(path: Path) -> None:
    def settled(prompt: Prompt) -> Any:
        item = {"stream": 2, "kind": "observation", "text": "Anna takes the boat.", "turns": [1, 2], "key": None}
        return {"memories": [item]} if prompt.operation == "extraction" else "Anna takes the boat."

    with opened(path, ScriptedLlm(settled)) as memory:
        memory.observe(GROUP, {"role": "user", "user": "ben", "content": "Hello."})
        memory.form(GROUP)
        offer = {"role": "assistant", "content": "The boat?"}
        asked, _ = memory.observe(GROUP, [offer, {"role": "user", "user": "anna", "content": "Yes."}])
        memory.form(GROUP)
        assert kept(memory, ANNA) == ["Anna takes the boat."]
        memory.forget(GROUP, asked.id)
        assert kept(memory, ANNA) == []


def test_the_model_is_shown_what_is_known_already(path: Path) -> None:
    model = ScriptedLlm(memories)
    with opened(path, model) as memory:
        memory.remember(ANNA, "Anna's sister Clara lives in Bergen.")
        memory.observe(TALK, SAID[1])
        memory.form(TALK)
        assert "Bergen" in model.prompts[0].text


def test_streams_that_name_another_model_are_asked_for_apart(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow, fast = ScriptedLlm(memories, "slow"), ScriptedLlm(memories, "fast")
    with eunoe.open(path, embedder="none", llm=slow, fast_llm=fast, form=False) as memory:
        memory.streams.set_preset("user", extraction_model="fast")
        memory.observe(TALK, SAID)
        report = memory.form(TALK)
        assert report.messages == 3
        assert [model.prompts[0].text.count("<stream ") for model in (slow, fast)] == [1, 1]
        assert kept(memory, ANNA)


def test_long_talk_is_formed_in_chunks_each_with_a_call_of_its_own(path: Path) -> None:
    model = ScriptedLlm(memories)
    with opened(path, model) as memory:
        memory.streams.set_preset("session", chunk_tokens=100)
        memory.observe(TALK, [f"Item {place:02}: " + "many words " * 5 for place in range(20)])
        assert memory.form(TALK).messages == 20
        asked = [prompt for prompt in model.prompts if prompt.operation == "extraction"]
        assert [prompt.text.count("<turn ") for prompt in asked] == [6, 6, 6, 2]


def test_two_processes_form_every_message_once(path: Path) -> None:
    child = Path(__file__).parents[1] / "support" / "forming_child.py"
    subprocess.run([sys.executable, str(child), "fill", str(path), "40"], check=True)
    calls = path.with_suffix(".calls")
    command = [sys.executable, "-W", "error", str(child), "rival", str(path), str(calls)]
    rivals = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    for rival in rivals:
        assert rival.stdout
        assert json.loads(rival.stdout.readline()) == {"ready": True}
    for rival in rivals:
        assert rival.stdin
        rival.stdin.write("\n")
        rival.stdin.flush()
    said = [json.loads(rival.communicate()[0]) for rival in rivals]
    asked = calls.read_text().split()
    assert sorted(asked) == sorted(set(asked))
    assert len(asked) == sum(line["messages"] for line in said) == 80
    assert [line["failed"] for line in said] == [[], [], []]
    look = subprocess.run([sys.executable, str(child), "look", str(path)], check=True, stdout=subprocess.PIPE)
    assert json.loads(look.stdout) == {"faults": [], "stored": 80, "formed": 80}


def test_a_forked_process_works_under_a_name_of_its_own() -> None:
    read, write = os.pipe()
    script = (
        "import os; from eunoe.work import leases; mine = leases.current_owner()\n"
        "assert leases.current_owner() == mine\n"
        f"if os.fork() == 0: os.write({write}, leases.current_owner().encode()); os._exit(0)\n"
        "os.wait(); print(mine)"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, pass_fds=[write], stdout=subprocess.PIPE)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        assert pipe.read() != done.stdout.strip()


def test_a_stream_keeps_no_more_than_its_limit(path: Path) -> None:
    with eunoe.open(path, embedder="none", llm="none", form=False) as memory:
        memory.streams.configure("user=anna", keep_best=3, consolidation_prompt="")
        for number in range(4):
            lines = [f"I bought boat number {number * 5 + n} in 19{number}{n}." for n in range(5)]
            memory.observe("user=anna", lines)
            memory.form("user=anna")
        living = memory.list("user=anna", kinds=["fact", "observation"], exact=True).items
        everything = memory.list("user=anna", kinds=["fact", "observation"], retired=True, exact=True).items
        assert len(living) == 3
        assert len(everything) > 3
