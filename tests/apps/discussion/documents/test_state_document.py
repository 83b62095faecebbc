"""The state document: the current truth, guarded, with its history."""

import pytest
from tests.support.discussions import SCOPE, ScriptedAuthor, fill, joined, remember_keyword, say

from eunoe.apps.discussion.documents import DOCUMENT_LEASE, DOCUMENT_PROMPTS, StateDocument
from eunoe.apps.discussion.settings import StateDocumentSettings
from eunoe.errors import InputError, LlmError
from eunoe.memory import Memory
from eunoe.model.atom import AUTHOR

ON = StateDocumentSettings(is_on=True)
LONG = "# Anna\n" + "\n".join(f"Anna has been to city number {n}." for n in range(30))


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
        LONG[: len(LONG) // 2 - 1],
        "more and " * 300,
        "y" * 50_000,
        f"Here you are. {DOCUMENT_PROMPTS.system}",
        LlmError("the model is away"),
    ],
)
def test_a_bad_answer_never_takes_its_place(answer: str | Exception, memory: Memory, document: StateDocument) -> None:
    document.write(LONG)
    remember_keyword(memory, 1, "Home", "Anna lives in Paris.")
    with pytest.raises(LlmError):
        document.update(ON, ScriptedAuthor([answer], DOCUMENT_PROMPTS))
    assert (document.read(), len(versions(document))) == (LONG, 1)
    (lease,) = memory.leases.list(SCOPE)
    assert (lease.name, lease.attempts) == (DOCUMENT_LEASE, 1)
    assert document.update(ON, ScriptedAuthor([])) == "busy"
    assert document.update(ON, ScriptedAuthor([f"{LONG} Anna lives in Paris."]), force=True) == "written"


def test_the_guard_begins_at_500_characters_and_is_a_setting(memory: Memory, document: StateDocument) -> None:
    document.write("x" * 499)
    remember_keyword(memory, 1, "Home", "Anna lives in Paris.")
    assert document.update(ON, ScriptedAuthor(["Short."])) == "written"
    document.write(LONG)
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


def test_without_an_author_it_stays_bounded(memory: Memory, document: StateDocument) -> None:
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
