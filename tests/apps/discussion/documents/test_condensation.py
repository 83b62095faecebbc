"""Old chunk memories become one; nothing is lost, and nothing is done twice."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from tests.support.discussions import SCOPE, ScriptedAuthor, chunk_memory, fill, joined, remember_chunks, say

import eunoe
from eunoe.apps.discussion.atoms import chunk_memories
from eunoe.apps.discussion.authors import Prompts
from eunoe.apps.discussion.documents import condensation
from eunoe.apps.discussion.documents.condensation import LEASE, condense, settle_condensation
from eunoe.apps.discussion.files import import_discussion
from eunoe.apps.discussion.settings import CondensationSettings
from eunoe.errors import LlmError
from eunoe.memory import Memory

ON = CondensationSettings(is_on=True, memories=3, buffer=1)


def texts(memory: Memory) -> list[str]:
    return [each.text for each in chunk_memories(memory, SCOPE)]


def ids(memory: Memory) -> list[str]:
    return [each.id for each in chunk_memories(memory, SCOPE)]


def test_the_oldest_become_one_and_the_buffer_is_left_alone(memory: Memory) -> None:
    fill(memory, 1, 2, 3, 4)
    author = ScriptedAuthor(["Stops 1 to 3 in short."])
    assert condense(memory, SCOPE, ON, author) == 3
    assert texts(memory) == ["Stops 1 to 3 in short.", "Memory 4 tells of stop 4."]
    first = chunk_memories(memory, SCOPE)[0]
    assert (first.hash, first.place, first.author) == ("hash-3", 3.0, "scripted")
    assert first.condenses == ("chunk_memory:m1", "chunk_memory:m2", "chunk_memory:m3")
    assert author.inputs == [
        {
            "MemoriesToCondense": "\n\n".join(f"Memory {n} tells of stop {n}." for n in (1, 2, 3)),
            "Memories_Before_Memories_to_Condense": "",
        }
    ]


def test_members_stay_in_the_history(memory: Memory) -> None:
    fill(memory, 1, 2, 3, 4)
    condense(memory, SCOPE, ON, ScriptedAuthor(["In short."]))
    assert memory.get(SCOPE, "chunk_memory:m2").text == "Memory 2 tells of stop 2."
    found = memory.recall(SCOPE, "stop 2", kinds=["observation"])
    assert [hit.id for hit in found] == ["chunk_memory:m4"]


@pytest.mark.parametrize(
    "settings",
    [
        CondensationSettings(is_on=False, memories=3),
        CondensationSettings(is_on=True, memories=0),
        CondensationSettings(is_on=True, memories=3, buffer=2),
    ],
)
def test_nothing_is_condensed_before_its_time(settings: CondensationSettings, memory: Memory) -> None:
    fill(memory, 1, 2, 3, 4)
    assert condense(memory, SCOPE, settings, ScriptedAuthor([])) == 0
    assert len(texts(memory)) == 4


def test_a_condensed_memory_is_not_condensed_again(memory: Memory) -> None:
    fill(memory, 1, 2, 3, 4, 5, 6, 7)
    author = ScriptedAuthor(["First.", "Second."])
    assert condense(memory, SCOPE, ON, author) == 6
    assert texts(memory) == ["First.", "Second.", "Memory 7 tells of stop 7."]
    assert author.inputs[1]["Memories_Before_Memories_to_Condense"] == "First."
    assert condense(memory, SCOPE, ON, ScriptedAuthor([])) == 0


def test_without_an_author_each_memory_keeps_a_line(memory: Memory) -> None:
    fill(memory, 1, 2, 3, 4)
    assert condense(memory, SCOPE, ON, None) == 3
    assert texts(memory)[0].splitlines() == [f"- Memory {n} tells of stop {n}." for n in (1, 2, 3)]
    assert chunk_memories(memory, SCOPE)[0].author == "extractive"


@pytest.mark.parametrize(
    "answer",
    ["", " \n\t", "...", "word " * 500, "x" * 20_000, condensation.PROMPTS.prompt, LlmError("the model is away")],
)
def test_a_bad_answer_loses_nothing_and_is_tried_again(answer: str | Exception, memory: Memory) -> None:
    fill(memory, 1, 2, 3, 4)
    with pytest.raises(LlmError):
        condense(memory, SCOPE, ON, ScriptedAuthor([answer], condensation.PROMPTS))
    assert len(texts(memory)) == 4
    (lease,) = memory.leases.list(SCOPE)
    assert (lease.name, lease.attempts, lease.is_held) == (LEASE, 1, False)
    memory.leases.drop(SCOPE, LEASE)
    assert condense(memory, SCOPE, ON, ScriptedAuthor(["In short."])) == 3
    assert memory.leases.list(SCOPE) == []


def test_a_prompt_of_the_settings_that_comes_back_is_refused(memory: Memory) -> None:
    fill(memory, 1, 2, 3, 4)
    prompt = "Please condense all of these memories into one short text: [MemoriesToCondense]"
    author = ScriptedAuthor([f"Sure. {prompt}"], Prompts("", prompt))
    with pytest.raises(LlmError, match="repeated the prompt"):
        condense(memory, SCOPE, ON, author)


def test_two_at_once_condense_once(path: Path) -> None:
    with eunoe.open(path, embedder="none") as one, eunoe.open(path, embedder="none") as two:
        fill(one, 1, 2, 3, 4)
        author, start = ScriptedAuthor(joined), Barrier(2)

        def run(memory: Memory) -> int:
            start.wait(timeout=30)
            return condense(memory, SCOPE, ON, author)

        with ThreadPoolExecutor(2) as pool:
            counts = list(pool.map(run, (one, two)))
        assert (sum(counts), len(author.inputs), len(texts(one))) == (3, 1, 2)


def test_a_kill_between_writing_and_expiring_is_put_right(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*_: object) -> None:
        raise SystemExit

    fill(memory, 1, 2, 3, 4)
    with monkeypatch.context() as patch:
        patch.setattr(condensation, "_end", die)
        with pytest.raises(SystemExit):
            condense(memory, SCOPE, ON, ScriptedAuthor(["In short."]))
    assert len(texts(memory)) == 5
    assert condense(memory, SCOPE, ON, ScriptedAuthor([])) == 0
    settle_condensation(memory, SCOPE, {"m1", "m2", "m3", "m4"})
    assert texts(memory) == ["In short.", "Memory 4 tells of stop 4."]


def test_a_redone_member_brings_the_others_back(memory: Memory) -> None:
    fill(memory, 1, 2, 3, 4)
    condense(memory, SCOPE, ON, ScriptedAuthor(["Stop 2 is Paris."]))
    remember_chunks(memory, chunk_memory(2, "Stop 2 is Rome."))
    settle_condensation(memory, SCOPE, {"m1", "m2", "m3", "m4"})
    assert ids(memory) == [f"chunk_memory:m{n}" for n in (1, 2, 3, 4)]
    assert texts(memory)[1] == "Stop 2 is Rome."
    assert condense(memory, SCOPE, ON, ScriptedAuthor(["Stop 2 is Rome, in short."])) == 3
    assert texts(memory) == ["Stop 2 is Rome, in short.", "Memory 4 tells of stop 4."]


def test_a_member_that_ended_otherwise_brings_the_others_back(memory: Memory) -> None:
    fill(memory, 1, 2, 3, 4)
    condense(memory, SCOPE, ON, ScriptedAuthor(["In short."]))
    memory.expire(SCOPE, "chunk_memory:m2", "2020-01-01")
    settle_condensation(memory, SCOPE, {"m1", "m2", "m3", "m4"})
    assert ids(memory) == [f"chunk_memory:m{n}" for n in (1, 3, 4)]


def test_what_ended_otherwise_does_not_return(memory: Memory) -> None:
    fill(memory, 1, 2, 3, 4)
    memory.expire(SCOPE, "chunk_memory:m4", "2020-01-01")
    condense(memory, SCOPE, CondensationSettings(is_on=True, memories=3), None)
    memory.forget(SCOPE, "m1")
    settle_condensation(memory, SCOPE, {"m3", "m4"})
    assert ids(memory) == ["chunk_memory:m3"]


def test_memories_that_came_condensed_are_left_alone(memory: Memory, tmp_path: Path) -> None:
    folder = tmp_path / "trip"
    folder.mkdir()
    blocks = [{"text_block": f"Memory {n}.", "hash": f"{n}" * 64} for n in range(1, 6)]
    (folder / "memories.json").write_text(json.dumps(blocks))
    (folder / "condensation_tracker.json").write_text(json.dumps({"lastCondensationHash": "2" * 64}))
    import_discussion(memory, folder, id="trip", user="anna")
    assert condense(memory, SCOPE, CondensationSettings(is_on=True, memories=4), None) == 0
    assert condense(memory, SCOPE, CondensationSettings(is_on=True, memories=3), None) == 3
    assert texts(memory) == ["Memory 1.", "Memory 2.", "- Memory 3.\n- Memory 4.\n- Memory 5."]


@pytest.mark.parametrize("target", ["m2", "chunk_memory:m2"])
def test_forgetting_reaches_what_was_condensed(target: str, memory: Memory) -> None:
    fill(memory, 1, 2, 3, 4)
    condense(memory, SCOPE, ON, ScriptedAuthor(joined))
    report = memory.forget(SCOPE, target, verify=True)
    assert (report.verified, report.traces, report.held_by) == (
        target == "m2",
        (),
        {} if target == "m2" else {SCOPE: ("m2",)},
    )
    assert texts(memory) == ["Memory 4 tells of stop 4."]
    settle_condensation(memory, SCOPE, {"m1", "m3", "m4"})
    assert ids(memory) == [f"chunk_memory:m{n}" for n in (1, 3, 4)]
    assert condense(memory, SCOPE, ON, None) == 0


def test_forgetting_reaches_what_was_only_shown_to_the_author(memory: Memory) -> None:
    fill(memory, 1, 2, 3, 4, 5, 6)
    condense(memory, SCOPE, CondensationSettings(is_on=True, memories=3), ScriptedAuthor(joined))
    assert all("stop 2" in text for text in texts(memory))
    memory.forget(SCOPE, "m2", verify=True)
    assert texts(memory) == []
    settle_condensation(memory, SCOPE, {"m1", "m3", "m4", "m5", "m6"})
    assert ids(memory) == [f"chunk_memory:m{n}" for n in (1, 3, 4, 5, 6)]


def test_forgetting_the_old_wording_reaches_what_was_made_of_a_memory_that_was_shown(memory: Memory) -> None:
    fill(memory, *range(1, 7))
    remember_chunks(memory, chunk_memory(3, "Memory 3 tells of tulips."))
    say(memory, 9)
    condense(memory, SCOPE, CondensationSettings(is_on=True, memories=2, buffer=2), ScriptedAuthor(joined))
    assert "tulips" in texts(memory)[1]
    remember_chunks(memory, chunk_memory(3, "Memory 3 tells of another stop.", source=("m9",)))
    memory.forget(SCOPE, "m3")
    assert "tulips" not in " ".join(texts(memory))


def test_settling_changes_nothing_where_all_is_well(memory: Memory) -> None:
    fill(memory, 1, 2, 3, 4)
    condense(memory, SCOPE, ON, None)
    before = memory.streams.list(user="anna")[0].version
    settle_condensation(memory, SCOPE, {"m1", "m2", "m3", "m4"})
    assert memory.streams.list(user="anna")[0].version == before
