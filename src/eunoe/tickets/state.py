"""How far a ticket has come, kept on disk after every step, so that a killed run goes on where it stood."""

from __future__ import annotations

import json
import os
import re
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from eunoe.errors import ConflictError, InputError, NotFoundError
from eunoe.model.time import utc_now
from eunoe.text.normalize import fingerprint
from eunoe.tickets.ticket import Ticket

RUNNING, COMPLETED, FAILED, CANCELLED, REVERTED = "running", "completed", "failed", "cancelled", "reverted"
INTERRUPTED = "interrupted"
"""What a run is called that is neither ended nor worked on; it can be taken up."""

_STATE = "state.json"
_PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}")
_ODD = re.compile(r"[^a-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Recalled:
    """A memory that the director was shown."""

    id: str
    text: str
    score: float
    ticket: str = ""
    """The ticket it comes from."""
    date: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """What the calls of the director's model took."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, name.name) + getattr(other, name.name) for name in fields(self)))


@dataclass(slots=True)
class Step:
    """One turn: what was recalled, what the director decided, what the worker was sent and what it answered."""

    began: str = ""
    recalled: list[Recalled] = field(default_factory=list)
    complete: bool = False
    summary: str = ""
    """What the director says of where the work stands; in the first step its plan."""
    prompt: str = ""
    decided: bool = False
    sent: bool = False
    """The worker was given the prompt, or it was withheld."""
    answer: str | None = None
    failed: bool = False
    seconds: float = 0.0
    """How long the worker took."""
    worker_cost: float = 0.0
    usage: Usage = field(default_factory=Usage)
    notes: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, value: Mapping[str, Any]) -> Self:
        known = dict(value)
        known["recalled"] = [Recalled(**one) for one in known.get("recalled", [])]
        known["usage"] = Usage(**known.get("usage", {}))
        return cls(**known)


@dataclass(slots=True)
class Progress:
    """One run of a ticket."""

    ticket: Ticket
    run: int = 1
    token: str = field(default_factory=lambda: secrets.token_hex(6))
    """Tells this run from every other, on any machine."""
    began: str = field(default_factory=lambda: moment())
    ended: str = ""
    outcome: str = RUNNING
    reason: str = ""
    summary: str = ""
    session: str = ""
    worker: str = ""
    model: str = ""
    steps: list[Step] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    due: str = ""
    """What is to be remembered of it and is not yet."""
    memories: list[str] = field(default_factory=list)
    """Ids of the memories it left."""
    memory_failures: int = 0
    log: str = ""

    @classmethod
    def read(cls, value: Mapping[str, Any]) -> Self:
        known = {**value, "ticket": Ticket(**value["ticket"]), "steps": [Step.read(one) for one in value["steps"]]}
        return cls(**known)

    @property
    def turns(self) -> list[Step]:
        """The steps that the worker answered."""
        return [step for step in self.steps if step.answer is not None]

    @property
    def recalled(self) -> list[Recalled]:
        """All that the director was shown, each memory once."""
        return list({(one.id, one.text): one for step in self.steps for one in step.recalled}.values())

    @property
    def usage(self) -> Usage:
        return sum((step.usage for step in self.steps), Usage())

    @property
    def memory_id(self) -> str:
        return f"ticket/{self.ticket.id}/{self.token}"


@dataclass(frozen=True, slots=True)
class Damaged:
    """A ticket whose state cannot be read, by the names of its folders."""

    project: str
    ticket: str
    reason: str


class Shelf:
    """The folder of all logs: one folder for each ticket of each project, with its state and a log of each run."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder).expanduser()

    def place(self, project: str, ticket: str) -> Path:
        return self.folder / folder_name(project) / folder_name(ticket)

    def load(self, project: str, ticket: str) -> Progress | None:
        """The last run of a ticket; None if it was never begun."""
        path = self.place(project, ticket) / _STATE
        return _loaded(path) if path.exists() else None

    def found(self, project: str, ticket: str) -> Progress:
        known = self.load(project, ticket)
        if known is None:
            raise NotFoundError(f"there is no ticket {ticket} in project {project}: `eunoe ticket list` shows them")
        return known

    def save(self, progress: Progress, log: str) -> None:
        """Keeps the state and the log as they are at this moment: after a kill the old or the new ones are there."""
        place = self.place(progress.ticket.project, progress.ticket.id)
        path = place / f"run-{progress.run:03}.md"
        progress.log = str(path)
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        _written(place / _STATE, json.dumps(asdict(progress), indent=1))
        _written(path, log)

    def all(self, project: str = "") -> Iterator[Progress | Damaged]:
        """The last run of every ticket, or of those of a project."""
        wanted = folder_name(project) if project else "*"
        for path in sorted(self.folder.glob(f"{wanted}/*/{_STATE}")):
            try:
                yield _loaded(path)
            except (InputError, OSError) as error:
                yield Damaged(path.parent.parent.name, path.parent.name, str(error))

    def outcome(self, progress: Progress) -> str:
        """How a run ended; one that did not and that no process works on was interrupted."""
        if progress.outcome != RUNNING or self._is_claimed(progress.ticket):
            return progress.outcome
        return INTERRUPTED

    def _is_claimed(self, ticket: Ticket) -> bool:
        try:
            with (self.place(ticket.project, ticket.id) / ".lock").open("rb") as file:
                return not _locked(file.fileno(), shared=True)
        except OSError:
            return False

    @contextmanager
    def claimed(self, project: str, ticket: str) -> Iterator[None]:
        """Holds a ticket, so that no other process drives it meanwhile; the end of this process lets it go."""
        place = self.place(project, ticket)
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (place / ".lock").open("ab") as file:
            if not any(_locked(file.fileno()) for _ in _tries()):
                raise ConflictError(f"the ticket {ticket} is being worked on by another process")
            yield


def folder_name(name: str) -> str:
    """A name as one of a folder: a plain one as it is, any other changed so that it stays in its place.

    >>> folder_name("web-shop"), folder_name("../Web Shop")
    ('web-shop', 'web-shop~b54c8806bbf3')
    """
    if _PLAIN.fullmatch(name):
        return name
    if not name.strip():
        raise InputError("a project and a ticket need a name")
    return f"{_ODD.sub('-', name.lower()).strip('-')[:40]}~{fingerprint(name).hex()[:12]}"


def moment(time: datetime | None = None) -> str:
    """A time as it is written down."""
    return (time or utc_now()).isoformat(timespec="seconds")


def _loaded(path: Path) -> Progress:
    try:
        return Progress.read(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise InputError(f"{path} is not the state of a ticket ({type(error).__name__}): move it away") from None


def _written(path: Path, text: str) -> None:
    """Writes a file whole or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.touch(mode=0o600)
        with draft.open("w", encoding="utf-8", errors="replace", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


def _tries() -> Iterator[int]:
    """A few tries with short waits: who only looks whether a ticket is claimed holds it for a moment, too."""
    for number in range(3):
        yield number
        time.sleep(0.02)


def _locked(descriptor: int, *, shared: bool = False) -> bool:
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
