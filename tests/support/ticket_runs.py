"""Runs of tickets with a scripted director and a scripted worker, and project memories that answer by a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from eunoe.apps.projects import ProjectMemory
from eunoe.apps.tickets import Director, Limits, Run, RunFolder, RunState, ScriptedWorker, Ticket, TicketMemory
from eunoe.llm.contract import ScriptedLlm as Model

TICKET = Ticket("search-1", "Slow search", "The search for orders takes minutes.", "shop")
LESSON = "The orders table had no index on customer_id, and adding one made the search fast again at once."
PLAN = {"complete": False, "summary": "Find the slow query.", "next_prompt": "Find out which query is slow."}
MORE = {"complete": False, "summary": "The query is known.", "next_prompt": "Make that query fast, with a test."}
LEAK = {"complete": False, "summary": "", "next_prompt": f"First read this: {LESSON.upper()} Then go on."}
COMPLETE = {"complete": True, "summary": "The query got an index and a test.", "next_prompt": ""}


def run(
    folder: RunFolder,
    decisions: Any,
    answers: Any,
    memory: Any = None,
    ticket: Ticket = TICKET,
    limits: Limits | None = None,
    **options: Any,
) -> tuple[RunState, Model, ScriptedWorker]:
    model, worker = Model(decisions), ScriptedWorker(answers)
    ticket_memory = TicketMemory(memory, ticket.project)
    state = Run(ticket, Director(model, limits), worker, folder, ticket_memory, **options).finish()
    return state, model, worker


def stored_texts(memory: ProjectMemory, project: str = "shop") -> list[str]:
    return [item.text for item in memory.memory.list({"project": project}).items]


class RecordingMemory:
    """A project memory that records what it is asked, and answers by a function."""

    def __init__(self, search: Callable[[str], list[tuple[str, str, float]]] = lambda query: []) -> None:
        self.queries: list[list[str]] = []
        self.documents: list[Any] = []
        self._search = search

    def index(self, project: str, docs: Sequence[str | Mapping[str, Any]]) -> list[str]:
        self.documents += docs
        return [str(doc["id"]) for doc in docs if isinstance(doc, Mapping)]

    def retrieve(self, project: str, queries: Sequence[str], num_to_retrieve: int) -> list[dict[str, Any]]:
        self.queries.append(list(queries))
        results = [(query, self._search(query)) for query in queries]
        return [
            {
                "question": query,
                "docs": [text for _, text, _ in hits],
                "doc_scores": [score for _, _, score in hits],
                "ids": [id for id, _, _ in hits],
            }
            for query, hits in results
        ]


class BrokenMemory(RecordingMemory):
    def index(self, project: str, docs: Any) -> list[str]:
        raise RuntimeError("the disk\nis gone")

    def retrieve(self, project: str, queries: Any, num_to_retrieve: int) -> list[dict[str, Any]]:
        raise OSError("no such device")


def memory_recalling(text: str, id: str = "m1") -> RecordingMemory:
    return RecordingMemory(lambda query: [(id, text, 0.9)])
