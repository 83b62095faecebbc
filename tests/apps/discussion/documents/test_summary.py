"""The rolling summary: it folds in what is new, once, and no bad answer takes its place."""

from pathlib import Path

import pytest
from tests.support.discussions import SCOPE, ScriptedAuthor, chunk_memory, fill, joined, remember_chunks

import eunoe
from eunoe.apps.discussion.documents import (
    SUMMARY_LEASE,
    SUMMARY_PROMPTS,
    current_summary,
    new_since_summary,
    update_summary,
    write_summary,
)
from eunoe.apps.discussion.settings import SummarySettings
from eunoe.errors import InputError, LlmError
from eunoe.memory import Memory

EACH = SummarySettings(least_memories=1, most_memories=1)
LONG = " ".join(f"Anna went to place {n}." for n in range(40))


def new_ids(memory: Memory) -> list[str]:
    return [each.id for each in new_since_summary(memory, SCOPE)]


def numbers(text: str) -> list[int]:
    """Which memories a text tells of, each as often as it does."""
    return [int(line.split()[1]) for line in text.splitlines() if line.startswith("Memory")]


def test_it_is_due_at_so_many_memories(memory: Memory) -> None:
    fill(memory, 1, 2)
    assert update_summary(memory, SCOPE, SummarySettings(), ScriptedAuthor([])) is None
    fill(memory, 3)
    author = ScriptedAuthor(["Anna travels."])
    assert update_summary(memory, SCOPE, SummarySettings(), author) == 1
    assert (current_summary(memory, SCOPE), new_ids(memory)) == ("Anna travels.", [])
    latest = "\n\n".join(f"Memory {n} tells of stop {n}." for n in (1, 2, 3))
    assert author.inputs == [{"CHAT_SUMMARY": "", "LATEST_MEMORIES": latest}]
    (revision,) = memory.summaries.revisions(SCOPE)
    assert (revision.author, len(revision.absorbed)) == ("scripted", 3)


def test_it_folds_in_batches_and_leaves_the_rest_for_later(memory: Memory) -> None:
    fill(memory, *range(1, 9))
    author = ScriptedAuthor(joined)
    assert update_summary(memory, SCOPE, SummarySettings(), author) == 2
    assert new_ids(memory) == ["chunk_memory:m7", "chunk_memory:m8"]
    assert update_summary(memory, SCOPE, SummarySettings(), author, force=True) == 3
    assert new_ids(memory) == []
    assert [numbers(each["LATEST_MEMORIES"]) for each in author.inputs] == [[1, 2, 3], [4, 5, 6], [7, 8]]
    assert update_summary(memory, SCOPE, SummarySettings(), author, force=True) is None


@pytest.mark.parametrize(
    "answer",
    [
        "",
        " \n\t ",
        "***",
        "Anna travels.",
        "and so on " * 200,
        "z" * 50_000,
        SUMMARY_PROMPTS.prompt,
        f"{SUMMARY_PROMPTS.system} {LONG}",
        LlmError("the model is away"),
    ],
)
def test_a_bad_answer_never_takes_its_place(answer: str | Exception, memory: Memory) -> None:
    write_summary(memory, SCOPE, LONG)
    fill(memory, 1)
    with pytest.raises(LlmError):
        update_summary(memory, SCOPE, EACH, ScriptedAuthor([answer], SUMMARY_PROMPTS))
    assert (current_summary(memory, SCOPE), new_ids(memory)) == (LONG, ["chunk_memory:m1"])
    (lease,) = memory.leases.list(SCOPE)
    assert (lease.name, lease.attempts, lease.is_held) == (SUMMARY_LEASE, 1, False)
    assert update_summary(memory, SCOPE, EACH, ScriptedAuthor([])) is None
    assert update_summary(memory, SCOPE, EACH, ScriptedAuthor([f"{LONG} Stop 1."]), force=True) == 2
    assert memory.leases.list(SCOPE) == []


def test_an_edited_chunk_is_told_once_and_what_came_before_is_kept(memory: Memory) -> None:
    fill(memory, 1, 2, 3, 4)
    update_summary(memory, SCOPE, EACH, ScriptedAuthor(joined))
    remember_chunks(memory, chunk_memory(3, "Memory 3 tells of another stop."))
    assert new_ids(memory) == ["chunk_memory:m3", "chunk_memory:m4"]
    author = ScriptedAuthor(joined)
    update_summary(memory, SCOPE, SummarySettings(), author)
    assert numbers(current_summary(memory, SCOPE)) == [1, 2, 3, 4]
    assert "stop 3" not in current_summary(memory, SCOPE)
    assert len(author.inputs) == 1
    assert new_ids(memory) == []


def test_a_chunk_that_was_taken_back_leaves_the_summary(memory: Memory) -> None:
    fill(memory, 1, 2)
    update_summary(memory, SCOPE, EACH, ScriptedAuthor(joined))
    memory.expire(SCOPE, "chunk_memory:m2", "2020-01-01")
    assert update_summary(memory, SCOPE, SummarySettings(), ScriptedAuthor([])) is not None
    assert numbers(current_summary(memory, SCOPE)) == [1]
    assert update_summary(memory, SCOPE, SummarySettings(), ScriptedAuthor([])) is None


def test_a_summary_of_which_all_was_taken_back_is_empty(memory: Memory) -> None:
    fill(memory, 1)
    update_summary(memory, SCOPE, EACH, None)
    memory.expire(SCOPE, "chunk_memory:m1", "2020-01-01")
    assert update_summary(memory, SCOPE, EACH, None) is None
    assert current_summary(memory, SCOPE) == ""
    fill(memory, 2)
    update_summary(memory, SCOPE, EACH, None)
    assert numbers(current_summary(memory, SCOPE)) == [2]


@pytest.mark.parametrize("author", [None, ScriptedAuthor(lambda inputs: inputs["CHAT_SUMMARY"])])
def test_what_says_nothing_new_is_held_all_the_same(author: ScriptedAuthor | None, memory: Memory) -> None:
    fill(memory, 1)
    update_summary(memory, SCOPE, EACH, None)
    remember_chunks(memory, chunk_memory(2, "Memory 1 tells of stop 1."))
    update_summary(memory, SCOPE, EACH, author)
    assert (new_ids(memory), numbers(current_summary(memory, SCOPE))) == ([], [1])


def test_a_summary_written_by_hand_holds_all_there_is(memory: Memory) -> None:
    fill(memory, 1, 2)
    revision = write_summary(memory, SCOPE, "By hand.")
    assert (revision.author, current_summary(memory, SCOPE), new_ids(memory)) == ("hand", "By hand.", [])
    with pytest.raises(InputError, match="says nothing"):
        write_summary(memory, SCOPE, "  ")
    assert current_summary(memory, SCOPE) == "By hand."


def test_a_summary_written_by_hand_meanwhile_is_not_lost(memory: Memory) -> None:
    fill(memory, 1)

    def write_meanwhile(inputs: object) -> str:
        write_summary(memory, SCOPE, "By hand.")
        return "By a model."

    assert update_summary(memory, SCOPE, EACH, ScriptedAuthor(write_meanwhile)) is None
    assert (current_summary(memory, SCOPE), memory.leases.list(SCOPE)) == ("By hand.", [])


def test_two_at_once_write_one_revision(path: Path) -> None:
    with eunoe.open(path, embedder="none") as one, eunoe.open(path, embedder="none") as two:
        fill(one, 1)

        def meanwhile(inputs: object) -> str:
            assert update_summary(two, SCOPE, EACH, ScriptedAuthor([])) is None
            return "Stop 1."

        assert update_summary(one, SCOPE, EACH, ScriptedAuthor(meanwhile)) == 1
        assert [each.text for each in two.summaries.revisions(SCOPE)] == ["Stop 1."]


def test_a_killed_author_changes_nothing(memory: Memory) -> None:
    fill(memory, 1)

    def die(inputs: object) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        update_summary(memory, SCOPE, EACH, ScriptedAuthor(die))
    assert update_summary(memory, SCOPE, EACH, ScriptedAuthor(["Stop 1."])) == 1


def test_without_an_author_it_has_a_line_of_each_memory(memory: Memory) -> None:
    fill(memory, 1, 2, 3)
    remember_chunks(memory, chunk_memory(4, "Memory 4 tells of stop 4. Memory 1 tells of stop 1."))
    update_summary(memory, SCOPE, EACH, None)
    assert current_summary(memory, SCOPE).splitlines() == [f"Memory {n} tells of stop {n}." for n in (1, 2, 3, 4)]
    assert memory.summaries.revisions(SCOPE)[0].author == "extracts"


def test_without_an_author_it_stays_bounded(memory: Memory) -> None:
    for number in range(1, 80):
        remember_chunks(memory, chunk_memory(number, f"Memory {number} " + f"tells word{number} at length " * 20))
    update_summary(memory, SCOPE, SummarySettings(most_memories=20), None, force=True)
    text = current_summary(memory, SCOPE)
    assert len(text.split()) <= 400
    assert numbers(text)[-1] == 79


def test_forgetting_a_message_leaves_nothing_of_it(memory: Memory) -> None:
    fill(memory, 1, 2, 4)
    remember_chunks(memory, chunk_memory(3, "Memory 3 has the code 4711.", source=("m2",)))
    update_summary(memory, SCOPE, EACH, ScriptedAuthor(joined))
    report = memory.forget(SCOPE, "m2", verify=True)
    assert report.verified, report.traces
    update_summary(memory, SCOPE, SummarySettings(), ScriptedAuthor(joined), force=True)
    assert numbers(current_summary(memory, SCOPE)) == [1, 4]
    assert all("4711" not in revision.text for revision in memory.summaries.revisions(SCOPE))
    assert new_ids(memory) == []


def test_a_memory_that_is_made_late_is_folded_in_where_it_stands_in_the_chat(memory: Memory) -> None:
    fill(memory, 1, 2, 4, 5)
    author = ScriptedAuthor(joined)
    update_summary(memory, SCOPE, EACH, author)
    fill(memory, 3)
    author.inputs.clear()
    update_summary(memory, SCOPE, EACH, author)
    assert [numbers(each["LATEST_MEMORIES"]) for each in author.inputs] == [[3], [4], [5]]
    assert [numbers(each["CHAT_SUMMARY"]) for each in author.inputs] == [[1, 2], [1, 2, 3], [1, 2, 3, 4]]
    assert (numbers(current_summary(memory, SCOPE)), new_ids(memory)) == ([1, 2, 3, 4, 5], [])
    assert update_summary(memory, SCOPE, EACH, author) is None
