"""The memory of a ticket: what is recalled for the director, and what the ticket leaves behind.

Nothing that goes wrong with memory stops a ticket: it is logged and counted, and the work goes on without.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

from eunoe.apps.tickets.redaction import redact
from eunoe.apps.tickets.state import RecalledMemory, RunState
from eunoe.apps.tickets.ticket import Ticket
from eunoe.errors import NotFoundError
from eunoe.model.arguments import check_count, check_text
from eunoe.model.atom import Atom

COMPLETED_WORK_QUERY: Final = "What has been done in this project? Completed work and summaries."
_MAX_QUERY_CHARACTERS: Final = 1500
"""An embedder reads no more of a query anyway."""
_log = logging.getLogger(__name__)

T = TypeVar("T")


class DocumentMemory(Protocol):
    """What is asked of a project memory; `eunoe.apps.projects.ProjectMemory` is one.

    Where it also has `memory`, dates and tickets of memories are read from that.
    """

    def index(self, project: str, docs: Sequence[str | Mapping[str, Any]], /) -> list[str]: ...

    def retrieve(self, project: str, queries: Sequence[str], num_to_retrieve: int, /) -> list[dict[str, Any]]: ...


class UnavailableMemory:
    """A memory that cannot be opened. It fails whenever it is asked, so that what is due of a ticket stays due."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def index(self, *_: object) -> list[str]:
        raise self._error

    def retrieve(self, *_: object) -> list[dict[str, Any]]:
        raise self._error


class TicketMemory:
    """What a director remembers of a project; without documents it remembers nothing.

    Args:
        limit: how many memories are asked for with each query.
        on_first_recall: is called once, when something is recalled for the first time.
    """

    def __init__(
        self,
        documents: DocumentMemory | None,
        project: str,
        *,
        limit: int = 5,
        on_first_recall: Callable[[], None] | None = None,
    ) -> None:
        self.project = check_text(project, "project")
        self.failures: list[str] = []
        self._documents = documents
        self._limit = check_count(limit, "limit")
        self._on_first_recall = on_first_recall

    def __bool__(self) -> bool:
        return self._documents is not None

    def recall_for_ticket(self, ticket: Ticket) -> list[RecalledMemory]:
        """Recall what bears on a ticket, and what was done in its project."""
        return self._recall([ticket.words[:_MAX_QUERY_CHARACTERS], COMPLETED_WORK_QUERY])

    def recall_for_turn(self, prompt: str, answer: str) -> list[RecalledMemory]:
        """Recall what bears on what the worker was asked, and on the end of its answer, where errors stand."""
        return self._recall([prompt[:_MAX_QUERY_CHARACTERS], answer[-_MAX_QUERY_CHARACTERS:]])

    def keep(self, state: RunState) -> list[str]:
        """Remember what is due of a run, once however often it is called; return the ids, none if that failed."""
        document = {
            "text": redact(state.due),
            "id": f"ticket/{state.ticket.id}/{state.token}",
            "ticket": state.ticket.id,
            "label": "" if state.outcome == "completed" else "lesson",
            "time": state.ended,
            "metadata": {"outcome": state.outcome},
        }
        return self._attempt("keep what the ticket taught", lambda memory: memory.index(self.project, [document]))

    def _recall(self, queries: Sequence[str]) -> list[RecalledMemory]:
        unique = [query for query in dict.fromkeys(queries) if query.strip()]
        recalled = self._attempt("recall", lambda memory: self._retrieve(memory, unique))
        if recalled and self._on_first_recall:
            callback, self._on_first_recall = self._on_first_recall, None
            callback()
        return recalled

    def _retrieve(self, memory: DocumentMemory, queries: Sequence[str]) -> list[RecalledMemory]:
        best: dict[str, tuple[float, str]] = {}
        for result in memory.retrieve(self.project, queries, self._limit):
            for id, text, score in zip(result["ids"], result["docs"], result["doc_scores"], strict=True):
                best[id] = max(best.get(id, (0.0, text)), (float(score), text))
        ranked = sorted(best.items(), key=lambda item: -item[1][0])
        described = (self._describe(memory, id, text, score) for id, (score, text) in ranked)
        return [recalled for recalled in described if recalled is not None]

    def _describe(self, memory: DocumentMemory, id: str, text: str, score: float) -> RecalledMemory | None:
        """Add its date and ticket to a memory; None if it was forgotten meanwhile."""
        facts = getattr(memory, "memory", None)
        try:
            fact = facts.get({"project": self.project}, id) if facts else None
        except NotFoundError:
            return None
        if not isinstance(fact, Atom):
            return RecalledMemory(id, redact(text), score)
        time = fact.time or fact.recorded
        date = time.date().isoformat() if time else ""
        return RecalledMemory(id, redact(text), score, str(fact.metadata.get("ticket", "")), date, fact.label)

    def _attempt(self, purpose: str, action: Callable[[DocumentMemory], list[T]]) -> list[T]:
        if self._documents is None:
            return []
        try:
            return action(self._documents)
        except Exception as error:
            failure = redact(f"memory could not {purpose}: {' '.join(str(error).split()) or type(error).__name__}")
            self.failures.append(failure)
            _log.warning("%s; the ticket goes on without", failure)
            return []
