"""The rolling summary and the state document: they take in what is new, once, and no bad answer takes their place."""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.support.discussions import (
    SCOPE,
    ScriptedAuthor,
    chunk_memory,
    fill,
    joined,
    remember_chunks,
    remember_keyword,
    say,
)

import eunoe
from eunoe.apps.discussion import Discussion, DiscussionSettings
from eunoe.apps.discussion.documents import (
    DOCUMENT_LEASE,
    DOCUMENT_PROMPTS,
    SUMMARY_LEASE,
    SUMMARY_PROMPTS,
    StateDocument,
    current_summary,
    new_since_summary,
    update_summary,
    write_summary,
)
from eunoe.apps.discussion.model import chunk_memories
from eunoe.apps.discussion.settings import StateDocumentSettings, SummarySettings
from eunoe.errors import InputError, LlmError
from eunoe.llm.contract import Prompt, ScriptedLlm
from eunoe.memory import Memory
from eunoe.model.atom import AUTHOR

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


ON = StateDocumentSettings(is_on=True)


LONG_DOCUMENT = "# Anna\n" + "\n".join(f"Anna has been to city number {n}." for n in range(30))


@pytest.fixture
def document(memory: Memory) -> StateDocument:
    say(memory, *range(1, 10))
    return StateDocument(memory, SCOPE)


def versions(document: StateDocument) -> list[str]:
    return [version.text for version in document.history()]


def test_it_is_replaced_and_keeps_its_history(memory: Memory, document: StateDocument) -> None:
    remember_keyword(memory, 1, "Home", "Anna lives in Paris.")
    author = ScriptedAuthor(["Anna lives in Paris.", "Anna lives in Rome."])
    assert document.update(ON, author) == "written"
    remember_keyword(memory, 2, "Journey", "Anna moved to Rome.")
    assert document.update(ON, author) == "written"
    assert document.update(ON, author) == "unchanged"
    assert document.read() == "Anna lives in Rome."
    assert versions(document) == ["Anna lives in Paris.", "Anna lives in Rome."]
    assert author.inputs == [
        {"NEW_FACTS": "- Home: Anna lives in Paris.", "STATE_DOCUMENT": ""},
        {"NEW_FACTS": "- Journey: Anna moved to Rome.", "STATE_DOCUMENT": "Anna lives in Paris."},
    ]
    assert [*author.inputs[0]] == ["NEW_FACTS", "STATE_DOCUMENT"]


def test_what_is_no_longer_true_is_told_to_the_author(memory: Memory, document: StateDocument) -> None:
    remember_keyword(memory, 1, "Home", "Anna lives in Paris.")
    gone = remember_keyword(memory, 2, "Pet", "Anna has a cat.")
    author = ScriptedAuthor(joined)
    document.update(ON, author)
    remember_keyword(memory, 1, "Home", "Anna lives in Rome.")
    memory.expire(SCOPE, gone, "2020-01-01")
    assert document.update(ON, author) == "written"
    assert author.inputs[-1]["NEW_FACTS"].splitlines() == [
        "- (no longer true) Home: Anna lives in Paris.",
        "- (no longer true) Pet: Anna has a cat.",
        "- Home: Anna lives in Rome.",
    ]
    assert document.update(ON, author) == "unchanged"


def test_chunk_memories_are_facts_where_there_are_no_keyword_memories(memory: Memory, document: StateDocument) -> None:
    fill(memory, 1, 2, 3)
    author = ScriptedAuthor(joined)
    document.update(ON, author)
    assert author.inputs[0]["NEW_FACTS"].count("tells of stop") == 3


def test_where_keyword_memories_come_later_nothing_becomes_untrue(memory: Memory, document: StateDocument) -> None:
    fill(memory, 1, 2)
    document.update(ON, ScriptedAuthor(joined))
    remember_keyword(memory, 3, "Home", "Anna lives in Paris.")
    author = ScriptedAuthor(joined)
    document.update(ON, author)
    assert [each["NEW_FACTS"] for each in author.inputs] == ["- Home: Anna lives in Paris."]
    assert document.update(ON, author) == "unchanged"


def test_many_facts_are_taken_in_piece_by_piece(memory: Memory, document: StateDocument) -> None:
    say(memory, *range(10, 51))
    for number in range(10, 51):
        remember_keyword(memory, number, f"Stop {number}", "A stop.")
    author = ScriptedAuthor(joined)
    assert document.update(ON, author) == "written"
    assert [each["NEW_FACTS"].count("\n") + 1 for each in author.inputs] == [20, 20, 1]


@pytest.mark.parametrize(
    "answer",
    [
        "",
        " \n",
        "---",
        "I forgot everything.",
        LONG_DOCUMENT[: len(LONG_DOCUMENT) // 2 - 1],
        "more and " * 300,
        "y" * 50_000,
        f"Here you are. {DOCUMENT_PROMPTS.system}",
        LlmError("the model is away"),
    ],
)
def test_a_bad_answer_never_takes_the_place_of_the_document(
    answer: str | Exception, memory: Memory, document: StateDocument
) -> None:
    document.write(LONG_DOCUMENT)
    remember_keyword(memory, 1, "Home", "Anna lives in Paris.")
    with pytest.raises(LlmError):
        document.update(ON, ScriptedAuthor([answer], DOCUMENT_PROMPTS))
    assert (document.read(), len(versions(document))) == (LONG_DOCUMENT, 1)
    (lease,) = memory.leases.list(SCOPE)
    assert (lease.name, lease.attempts) == (DOCUMENT_LEASE, 1)
    assert document.update(ON, ScriptedAuthor([])) == "busy"
    assert document.update(ON, ScriptedAuthor([f"{LONG_DOCUMENT} Anna lives in Paris."]), force=True) == "written"


def test_the_guard_begins_at_500_characters_and_is_a_setting(memory: Memory, document: StateDocument) -> None:
    document.write("x" * 499)
    remember_keyword(memory, 1, "Home", "Anna lives in Paris.")
    assert document.update(ON, ScriptedAuthor(["Short."])) == "written"
    document.write(LONG_DOCUMENT)
    remember_keyword(memory, 2, "Pet", "Anna has a cat.")
    assert document.update(StateDocumentSettings(is_on=True, least_share=0), ScriptedAuthor(["Short."])) == "written"


def test_without_an_author_lines_are_kept_up(memory: Memory, document: StateDocument) -> None:
    document.write("# What I know\nWritten by hand.")
    remember_keyword(memory, 1, "Home", "Anna lives in Paris.")
    gone = remember_keyword(memory, 2, "Pet", "Anna has a cat.")
    document.update(ON, None)
    remember_keyword(memory, 1, "Home", "Anna lives in Rome.")
    memory.expire(SCOPE, gone, "2020-01-01")
    document.update(ON, None)
    assert document.read() == "# What I know\nWritten by hand.\n- Home: Anna lives in Rome."
    assert document.history()[-1].metadata[AUTHOR] == "extractive"


def test_without_an_author_the_document_stays_bounded(memory: Memory, document: StateDocument) -> None:
    document.write("By hand.")
    say(memory, *range(10, 90))
    for number in range(10, 90):
        remember_keyword(memory, number, f"Stop {number}", f"Number {number} " + "was a long stop indeed " * 10)
    document.update(ON, None)
    lines = document.read().splitlines()
    assert len(document.read().split()) <= 1500
    assert lines[0] == "By hand."
    assert "Stop 89" in lines[-1]


def test_a_document_of_which_nothing_is_true_is_empty(memory: Memory, document: StateDocument) -> None:
    only = remember_keyword(memory, 1, "Home", "Anna lives in Paris.")
    document.update(ON, None)
    memory.expire(SCOPE, only, "2020-01-01")
    document.update(ON, None)
    assert document.read() == ""
    assert document.update(ON, None) == "unchanged"
    remember_keyword(memory, 2, "Home", "Anna lives in Rome.")
    document.update(ON, None)
    assert document.read() == "- Home: Anna lives in Rome."


def test_a_blank_text_is_refused(document: StateDocument) -> None:
    with pytest.raises(InputError, match="says nothing"):
        document.write(" \n")


def test_a_hand_edit_while_a_model_writes_is_kept(memory: Memory, document: StateDocument) -> None:
    document.write("Anna lives in Paris.")
    remember_keyword(memory, 1, "Pet", "Anna has a cat.")

    def edit_meanwhile(inputs: object) -> str:
        document.write("Anna lives in Rome.")
        return "Anna lives in Paris. She has a cat."

    assert document.update(ON, ScriptedAuthor(edit_meanwhile)) == "busy"
    assert document.read() == "Anna lives in Rome."
    assert document.update(ON, ScriptedAuthor(["Anna lives in Rome. She has a cat."])) == "written"


@pytest.mark.parametrize("target", ["m2", "keyword_memory:m2:0"])
def test_forgetting_reaches_it_and_it_is_written_again(target: str, memory: Memory, document: StateDocument) -> None:
    author = ScriptedAuthor(joined)
    for number, text in enumerate(["Anna lives in Paris.", "Her code is 4711.", "She likes tea."], 1):
        remember_keyword(memory, number, "", text)
        document.update(ON, author)
    report = memory.forget(SCOPE, target, verify=True)
    assert (report.verified, report.traces, report.held_by) == (
        target == "m2",
        (),
        {} if target == "m2" else {SCOPE: ("m2",)},
    )
    assert document.read() == "- Anna lives in Paris."
    assert document.update(ON, author) == "written"
    assert "4711" not in document.read()
    assert "tea" in document.read()
    assert "4711" not in "".join(versions(document))
    assert author.inputs[-1]["NEW_FACTS"] == "- She likes tea."
    memory.forget(SCOPE, "m1", verify=True)
    assert document.read() == ""
    assert document.update(ON, None) == "written"
    assert document.read() == "- She likes tea."


def test_forgetting_what_an_older_version_of_a_memory_said_reaches_it(memory: Memory, document: StateDocument) -> None:
    remember_keyword(memory, 1, "", "The code is 4711.")
    document.update(ON, ScriptedAuthor(joined))
    memory.remember(SCOPE, "Nothing.", id="keyword_memory:m1:0", label="keyword_memory", source=["m5"], replace=True)
    document.update(ON, ScriptedAuthor(joined))
    memory.forget(SCOPE, "m1", verify=True)
    assert "4711" not in document.read() + "".join(versions(document))


def test_a_title_that_is_the_beginning_of_the_summary_is_not_repeated(memory: Memory, document: StateDocument) -> None:
    remember_keyword(memory, 1, "user: I went to town with…", "user: I went to town with Carla.")
    document.update(ON, None)
    assert document.read() == "- user: I went to town with Carla."


def test_a_fact_that_is_learned_late_is_marked_as_older(memory: Memory, document: StateDocument) -> None:
    remember_keyword(memory, 1, "Tea", "Bob likes tea.")
    remember_keyword(memory, 3, "Home", "Anna lives in Rome.")
    author = ScriptedAuthor(joined)
    document.update(ON, author)
    remember_keyword(memory, 2, "Old home", "Anna lives in Turin.")
    remember_keyword(memory, 4, "Pet", "Anna has a cat.")
    document.update(ON, author)
    assert author.inputs[-1]["NEW_FACTS"].splitlines() == [
        "- (older than the document; what that says counts) Old home: Anna lives in Turin.",
        "- Pet: Anna has a cat.",
    ]


def test_without_a_model_a_late_fact_stands_before_the_later_ones(memory: Memory, document: StateDocument) -> None:
    for number in (1, 3, 2, 4):
        remember_keyword(memory, number, f"Stop {number}", "A stop.")
        document.update(ON, None)
    assert document.read().splitlines() == [f"- Stop {number}: A stop." for number in (1, 2, 3, 4)]


SETTINGS = DiscussionSettings(state_document=StateDocumentSettings(is_on=True))


def chat(count: int) -> list[dict[str, Any]]:
    return [{"role": "user", "content": f"Stop {number} is town {number}."} for number in range(1, count + 1)]


def all_text(discussion: Discussion) -> str:
    """All words of both, with their histories."""
    memory, scope = discussion.memory, discussion.scope
    atoms = memory.list(scope, kinds=["fact", "observation"], retired=True, limit=1000).items
    revisions = memory.summaries.revisions(scope)
    return "\n".join(each.text for each in (*atoms, *revisions))


WORKED_ON = "TextChunk|CHAT_SUMMARY|LATEST_MEMORIES|NEW_FACTS|STATE_DOCUMENT"


def echo(prompt: Prompt) -> str:
    """A model that repeats what it is to work on: so nothing gets lost or comes twice unseen."""
    parts = re.findall(rf"<({WORKED_ON})>\n(.*?)\n</\1>", prompt.text, re.DOTALL)
    lines = [line for _, part in parts for line in part.splitlines() if "no longer true" not in line]
    return "\n".join(dict.fromkeys(lines)) or "Nothing."


@pytest.fixture(params=["with a model", "without a model"])
def discussion(request: pytest.FixtureRequest, memory: Memory) -> Discussion:
    return Discussion(memory, "trip", "anna")


def options(discussion: Discussion, request: pytest.FixtureRequest) -> dict[str, Any]:
    llm = ScriptedLlm(echo) if request.node.callspec.params["discussion"] == "with a model" else None
    return {"find_model": lambda endpoint, preset: llm}


def test_an_edit_reaches_both(discussion: Discussion, request: pytest.FixtureRequest) -> None:
    given, messages = options(discussion, request), chat(28)
    report = discussion.update(messages, SETTINGS, **given)
    assert (report.made, report.state_document) == (5, "written")
    messages[1]["content"] = "Stop 2 is Rome, a large town."
    report = discussion.update(messages, SETTINGS, **given)
    assert (report.redone, report.made, report.failed) == (1, 0, ())
    document = StateDocument(discussion.memory, discussion.scope).read()
    texts = [each.text for each in chunk_memories(discussion.memory, discussion.scope)]
    for text in (current_summary(discussion.memory, discussion.scope), document, "\n".join(texts)):
        assert "Rome" in text
    assert "town 2." not in current_summary(discussion.memory, discussion.scope)
    assert new_since_summary(discussion.memory, discussion.scope) == []
    again = discussion.update(messages, SETTINGS, **given)
    assert (again.made, again.redone, again.summary) == (0, 0, None)


def test_what_is_forgotten_is_nowhere(discussion: Discussion, request: pytest.FixtureRequest) -> None:
    given, messages = options(discussion, request), chat(28)
    messages[1]["content"] = "Stop 2 is the town of code 4711."
    discussion.update(messages, SETTINGS, **given)
    assert "4711" in all_text(discussion)
    (secret,) = [each.id for each in discussion.log.messages() if "4711" in each.text]
    report = discussion.memory.forget(discussion.scope, secret, verify=True)
    assert report.verified, report.traces
    assert "4711" not in all_text(discussion)
    del messages[1]
    discussion.update(messages, SETTINGS, force=True, **given)
    summary = current_summary(discussion.memory, discussion.scope)
    document = StateDocument(discussion.memory, discussion.scope).read()
    assert "4711" not in all_text(discussion)
    for text in (summary, document):
        assert "town 1." in text
        assert "town 3." in text
    assert new_since_summary(discussion.memory, discussion.scope) == []
