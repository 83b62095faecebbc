"""The memory of a ticket: what is recalled for the director, and what the ticket leaves behind.

Nothing that goes wrong with memory stops a ticket: it is logged and counted, and the work goes on without.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from eunoe.errors import NotFoundError
from eunoe.model.atom import Atom
from eunoe.tickets.state import COMPLETED, Progress, Recalled
from eunoe.tickets.ticket import Ticket

DONE = "What has been done in this project? Completed work and summaries."
LESSON = "lesson"

# What an embedder reads of a query anyway; errors stand at the end of an answer.
_LONGEST = 1500
_log = logging.getLogger(__name__)

T = TypeVar("T")


class Documents(Protocol):
    """What is asked of a project memory; `eunoe.projects.ProjectMemory` is one.

    Where it also has `memory`, dates and tickets of memories are read from that.
    """

    def index(self, project: str, docs: Sequence[str | Mapping[str, Any]], /) -> list[str]: ...

    def retrieve(self, project: str, queries: Sequence[str], num_to_retrieve: int, /) -> list[dict[str, Any]]: ...

    def delete(self, project: str, docs_or_ids: Sequence[str], /) -> list[str]: ...


class Unavailable:
    """A memory that cannot be opened: it fails whenever it is asked, so that what is due of a ticket stays due."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def index(self, project: str, docs: Sequence[str | Mapping[str, Any]], /) -> list[str]:
        raise self._error

    def retrieve(self, project: str, queries: Sequence[str], num_to_retrieve: int, /) -> list[dict[str, Any]]:
        raise self._error

    def delete(self, project: str, docs_or_ids: Sequence[str], /) -> list[str]:
        raise self._error


class Recollection:
    """What a director remembers of a project; without documents it remembers nothing.

    Args:
        first: is called once, when something is recalled for the first time.
    """

    def __init__(
        self,
        documents: Documents | None,
        project: str,
        *,
        each: int = 5,
        first: Callable[[], None] | None = None,
    ) -> None:
        self.project = project
        self.failures: list[str] = []
        """What went wrong with memory, one line for each time."""
        self._documents = documents
        self._each = each
        self._first = first

    def __bool__(self) -> bool:
        return self._documents is not None

    def at_start(self, ticket: Ticket) -> list[Recalled]:
        """What bears on a ticket, and what was done in its project."""
        return self._recalled([ticket.words[:_LONGEST], DONE])

    def at_turn(self, prompt: str, answer: str) -> list[Recalled]:
        """What bears on what was asked of the worker, and on the end of what it answered."""
        return self._recalled([prompt[:_LONGEST], answer[-_LONGEST:]])

    def keep(self, progress: Progress) -> list[str]:
        """Remembers what is due of a run, once however often it is asked to; gives the ids, none if that failed."""
        if self._documents is None:
            return []
        document = {
            "text": progress.due,
            "id": progress.memory_id,
            "ticket": progress.ticket.id,
            "label": "" if progress.outcome == COMPLETED else LESSON,
            "time": progress.ended,
            "metadata": {"outcome": progress.outcome},
        }
        documents = self._documents
        return self._tried(lambda: documents.index(self.project, [document]), "keep what the ticket taught", [])

    def _recalled(self, queries: Sequence[str]) -> list[Recalled]:
        if self._documents is None:
            return []
        documents = self._documents
        asked = [query for query in dict.fromkeys(queries) if query.strip()]
        found: list[Recalled] = self._tried(lambda: self._found(documents, asked), "recall", [])
        if found and self._first:
            first, self._first = self._first, None
            first()
        return found

    def _found(self, documents: Documents, queries: Sequence[str]) -> list[Recalled]:
        best: dict[str, tuple[float, str]] = {}
        for result in documents.retrieve(self.project, queries, self._each):
            for id, text, score in zip(result["ids"], result["docs"], result["doc_scores"], strict=True):
                best[id] = max(best.get(id, (0.0, text)), (float(score), text))
        ordered = sorted(best.items(), key=lambda one: -one[1][0])
        described = (self._described(id, text, score) for id, (score, text) in ordered)
        return [one for one in described if one is not None]

    def _described(self, id: str, text: str, score: float) -> Recalled | None:
        """A memory with its date and ticket; None if it was forgotten meanwhile."""
        try:
            atom = self._atom(id)
        except NotFoundError:
            return None
        if atom is None:
            return Recalled(id, text, score)
        when = atom.time or atom.recorded
        date = when.date().isoformat() if when else ""
        return Recalled(id, text, score, str(atom.metadata.get("ticket", "")), date, atom.label)

    def _atom(self, id: str) -> Atom | None:
        memory = getattr(self._documents, "memory", None)
        found = memory.get({"project": self.project}, id) if memory else None
        return found if isinstance(found, Atom) else None

    def _tried(self, work: Callable[[], T], what: str, otherwise: T) -> T:
        try:
            return work()
        except Exception as error:
            trouble = f"memory could not {what}: {' '.join(str(error).split()) or type(error).__name__}"
            self.failures.append(trouble)
            _log.warning("%s; the ticket goes on without", trouble)
            return otherwise


def memories_of(memory: Any, project: str, ticket: str) -> list[str]:
    """The ids of all memories that a ticket left in a project memory, in any of its runs."""
    from eunoe.projects.documents import place_of

    marked = (atom for atom in _atoms(memory, project) if atom.metadata.get("ticket") == ticket)
    return list(dict.fromkeys(place_of(atom)[0] for atom in marked))


def _atoms(memory: Any, project: str) -> Iterable[Atom]:
    after = ""
    while True:
        page = memory.memory.list({"project": project}, kinds=["fact"], limit=1000, after=after)
        yield from (item for item in page.items if isinstance(item, Atom))
        after = page.next
        if not after:
            return
