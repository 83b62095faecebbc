"""The memory of a ticket: what is recalled for the director, and what the ticket leaves behind.

Nothing that goes wrong with memory stops a ticket: it is logged and counted, and the work goes on without.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from eunoe.apps.projects import ProjectMemory
from eunoe.apps.projects.documents import part_of
from eunoe.apps.tickets.redaction import REDACTED, redact
from eunoe.apps.tickets.run_folder import RunFolder
from eunoe.apps.tickets.state import RecalledMemory, RunState, timestamp
from eunoe.apps.tickets.ticket import Ticket
from eunoe.errors import ConflictError, NotFoundError
from eunoe.memory import iterate_atoms
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


_PAGE_FACTS: Final = 2_000
LESSON_ID: Final = re.compile(r"(.*/[0-9a-f]{12})(?:-(\d+))?")
"""Of the lesson of a run, with the number of a clean copy."""


class Lesson(NamedTuple):
    """What one run of a ticket left in memory."""

    id: str
    ticket: str
    time: str
    outcome: str
    text: str
    parts: tuple[str, ...]
    """The ids of the facts that it is kept as."""


def find_lessons(memory: ProjectMemory, project: str, ticket: str = "") -> list[Lesson]:
    """Return what the runs of a ticket, or of all tickets of a project, left in memory; oldest first.

    A document that somebody else indexed under the name of a ticket is not among them.
    """
    texts: dict[str, dict[int, str]] = {}
    first_parts: dict[str, Atom] = {}
    for fact in iterate_atoms(memory.memory, {"project": project}, kinds=["fact"], limit=_PAGE_FACTS):
        part = part_of(fact)
        texts.setdefault(part.document, {})[part.number] = fact.text
        if part.number == 1:
            first_parts[part.document] = fact
    lessons = [_lesson(fact, texts[id]) for id, fact in first_parts.items() if _is_of_a_run(fact)]
    return [lesson for lesson in lessons if not ticket or lesson.ticket == ticket]


def revert(folder: RunFolder, memory: ProjectMemory, project: str, ticket: str) -> list[str]:
    """Remove what the runs of a ticket left in a project memory, and nothing else; return the ids removed.

    The ticket can then be run again, also if its state was damaged: that is set aside.
    """
    if not folder.has(project, ticket):
        removed = _delete_lessons(memory, project, ticket)
        if not removed:
            raise NotFoundError(f"there is no ticket {ticket} in project {project}, and no memory of it")
        return removed
    with folder.lock(project, ticket):
        state = folder.load_or_set_aside(project, ticket)
        removed = _delete_lessons(memory, project, ticket)
        if state is not None and (removed or state.outcome != "reverted"):
            state.outcome, state.memories, state.due = "reverted", [], ""
            state.notes.append(f"{timestamp()}: reverted, {len(removed)} memories removed")
            folder.save(state)
        return removed


def _delete_lessons(memory: ProjectMemory, project: str, ticket: str) -> list[str]:
    ids = [lesson.id for lesson in find_lessons(memory, project, ticket)]
    return memory.delete(project, ids) if ids else []


def _is_of_a_run(fact: Atom) -> bool:
    match = LESSON_ID.fullmatch(fact.id)
    ticket = fact.metadata.get("ticket")
    return match is not None and match[1].rpartition("/")[0] == f"ticket/{ticket}"


def _lesson(fact: Atom, parts: dict[int, str]) -> Lesson:
    text = "".join(text for _, text in sorted(parts.items()))
    outcome = str(fact.metadata.get("outcome") or ("failed" if fact.label == "lesson" else "completed"))
    time = fact.time.isoformat() if fact.time else ""
    return Lesson(fact.id, str(fact.metadata["ticket"]), time, outcome, text, tuple(part_of(fact).ids))


_NAMES: Final = frozenset(["id", "token", "session", "memories", "file", "log", "folder", "commit"])
"""Fields of a state by which something is found again."""
_OWN_TOKEN: Final = re.compile(r'(^ {0,9}"token": "[0-9a-f]{12}",?$)', re.MULTILINE)
"""That of a state which is damaged."""


class Cleaning(NamedTuple):
    """A lesson or file that held secrets: how many, and what is still to be done about it."""

    what: str
    secrets: int
    trouble: str = ""


def redact_lessons(memory: ProjectMemory, project: str, *, dry_run: bool = False) -> list[Cleaning]:
    """Take the secrets out of all lessons of a project. The old words are forgotten, and searched for.

    The clean copies are kept before the old ones are forgotten: a process that is killed in between loses nothing, and
    the next one goes on.
    """
    texts = [(lesson, redact(lesson.text)) for lesson in find_lessons(memory, project)]
    unclean = [(lesson, text) for lesson, text in texts if text != lesson.text]
    trouble = ""
    if unclean and not dry_run:
        copies = []
        for lesson, text in unclean:
            match = LESSON_ID.fullmatch(lesson.id)
            id = f"{match[1]}-{int(match[2] or 0) + 1}" if match else f"{lesson.id}-1"
            copy = {"text": text, "id": id, "ticket": lesson.ticket, "time": lesson.time or None}
            label = "" if lesson.outcome == "completed" else "lesson"
            copies.append({**copy, "label": label, "metadata": {"outcome": lesson.outcome}})
        memory.index(project, copies)
        parts = [id for lesson, _ in unclean for id in lesson.parts]
        report = memory.memory.forget({"project": project}, parts, verify=True)
        if not report.verified:
            held = (f"{id} in {scope}" for scope, ids in report.held_by.items() for id in ids)
            trouble = f"not all of the old words are gone yet: {', '.join([*report.traces, *held])}"
    return [Cleaning(f"lesson {lesson.id}", _count(lesson.text, text), trouble) for lesson, text in unclean]


def redact_runs(folder: RunFolder, project: str = "", *, dry_run: bool = False) -> Iterator[Cleaning]:
    """Take the secrets out of the states and logs of a project, or of all. A draft that holds one is removed."""
    for path in folder.files(project):
        with suppress(FileNotFoundError):  # a draft that was removed with another, or has become a state
            text, trouble = path.read_text(encoding="utf-8", errors="replace"), ""
            clean = _redact_state(text) if "state" in path.name else redact(text)
            if clean == text:
                continue
            if not dry_run:
                try:
                    folder.rewrite(path, clean)
                except ConflictError as error:
                    trouble = str(error)
            yield Cleaning(f"file {path}", _count(text, clean), trouble)


def _redact_state(text: str) -> str:
    """A state without secrets, in the same form; one that is damaged is taken as a text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return "".join(part if _OWN_TOKEN.fullmatch(part) else redact(part) for part in _OWN_TOKEN.split(text))
    clean = _redact_value(value)
    return text if clean == value else json.dumps(clean, indent=1)


def _redact_value(value: Any, name: str = "") -> Any:
    if isinstance(value, str):
        return value if name in _NAMES else redact(value)
    if isinstance(value, list):
        return [_redact_value(item, name) for item in value]
    return {key: _redact_value(item, key) for key, item in value.items()} if isinstance(value, dict) else value


def _count(text: str, clean: str) -> int:
    return max(1, clean.count(REDACTED) - text.count(REDACTED))
