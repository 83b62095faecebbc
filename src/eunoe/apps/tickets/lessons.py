"""What the runs of tickets left in a project memory: to be looked at, and to be taken out again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from eunoe.apps.projects import ProjectMemory
from eunoe.apps.projects.documents import part_of
from eunoe.apps.tickets.run_folder import RunFolder
from eunoe.apps.tickets.state import timestamp
from eunoe.errors import NotFoundError
from eunoe.model.atom import Atom

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
    for fact in _all_facts(memory, project):
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


def _all_facts(memory: ProjectMemory, project: str) -> Iterator[Atom]:
    after = ""
    while True:
        page = memory.memory.list({"project": project}, kinds=["fact"], limit=_PAGE_FACTS, after=after)
        yield from (fact for fact in page.items if isinstance(fact, Atom))
        after = page.next
        if not after:
            return
