"""Questions about a project as a whole get what was indexed last."""

import pytest

from eunoe.apps.projects import ProjectMemory
from eunoe.apps.projects.memory import SCORE, asks_for_overview
from eunoe.apps.tickets.memory import COMPLETED_WORK_QUERY

DOCUMENTS = [f"Ticket: {word}. The {word} broke because of its {word} cache." for word in ("Login", "Cart", "Search")]


@pytest.mark.parametrize(
    "question",
    [
        COMPLETED_WORK_QUERY,
        "What has been done in this project so far?",
        "Summaries of completed tickets",
        "what do we know about this repository",
        "What have we done so far?",
        "history of the project",
    ],
)
def test_it_is_recognised(question: str) -> None:
    assert asks_for_overview(question)


@pytest.mark.parametrize(
    "question",
    [
        "",
        "?",
        "what about the other one",
        "What has been done about the login in this project?",
        "the status of ticket 12",
        "does it work?",
        "How do I start working?",
        "How does the memory work?",
        "what is the status of it?",
        "repo",
        "work " * 41,
        "プロジェクト",
    ],
)
def test_any_other_question_is_not(question: str) -> None:
    assert not asks_for_overview(question)


def test_it_gets_the_documents_that_were_indexed_last() -> None:
    with ProjectMemory.open(":memory:", embedder="none") as memory:
        ids = memory.index("shop", DOCUMENTS)
        (result,) = memory.retrieve("shop", [COMPLETED_WORK_QUERY], 2)
        assert result["ids"] == [ids[2], ids[1]]
        assert result["docs"] == [DOCUMENTS[2], DOCUMENTS[1]]
        assert result["doc_scores"] == [SCORE, SCORE]
        assert memory.retrieve("shop", ["Who painted the Mona Lisa?"])[0]["ids"] == []


def test_a_document_of_many_parts_is_given_whole_and_once() -> None:
    long = "The mill turns. " * 1000
    with ProjectMemory.open(":memory:", embedder="none") as memory:
        ids = memory.index("shop", [*DOCUMENTS, long])
        (result,) = memory.retrieve("shop", [COMPLETED_WORK_QUERY], 3)
        assert result["ids"] == [ids[3], ids[2], ids[1]]
        assert result["docs"][0] == long


def test_an_empty_project_and_a_higher_threshold_give_none() -> None:
    with ProjectMemory.open(":memory:", embedder="none") as memory:
        assert memory.retrieve("shop", [COMPLETED_WORK_QUERY])[0]["ids"] == []
        memory.index("shop", DOCUMENTS)
        strict = ProjectMemory(memory.memory, threshold=0.6)
        assert strict.retrieve("shop", [COMPLETED_WORK_QUERY])[0]["ids"] == []


def test_a_document_with_the_words_of_the_question_comes_first_and_does_not_hide_the_others() -> None:
    with ProjectMemory.open(":memory:") as memory:
        ids = memory.index("shop", ["Project: Shop.", *DOCUMENTS])
        (result,) = memory.retrieve("shop", [COMPLETED_WORK_QUERY], 3)
        assert result["ids"] == [ids[0], ids[3], ids[2]]
        assert result["doc_scores"][0] > result["doc_scores"][1] == SCORE
        assert len(memory.retrieve("shop", [COMPLETED_WORK_QUERY], 50)[0]["ids"]) == 4


def test_what_no_longer_holds_is_left_out() -> None:
    with ProjectMemory.open(":memory:", embedder="none") as memory:
        ids = memory.index("shop", DOCUMENTS)
        memory.memory.expire("project=shop", [ids[2]], at="2020-01-01")
        assert memory.retrieve("shop", [COMPLETED_WORK_QUERY])[0]["ids"] == [ids[1], ids[0]]
