"""How far a run of a ticket has come: its steps, what was recalled for them, and how it ended."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field, is_dataclass
from types import NoneType, UnionType
from typing import Any, Final, Literal, Self, TypeVar, get_args, get_origin, get_type_hints

from eunoe.apps.tickets.ticket import Ticket
from eunoe.apps.tickets.work import Work
from eunoe.apps.tickets.worker import NO_OUTPUT
from eunoe.model.arguments import utc_now

T = TypeVar("T")
_SCALARS: Final[Mapping[Any, tuple[type, ...]]] = {
    str: (str,),
    bool: (bool,),
    int: (int,),
    float: (int, float),
    NoneType: (NoneType,),
}


def read_typed(kind: type[T], fields: Any) -> T:
    """Return a dataclass with these fields; raise TypeError or ValueError for a value that is not of its type.

    Fields that it does not have, as of another version, are left out.

    >>> from eunoe.apps.tickets.ticket import Ticket
    >>> read_typed(Ticket, {"id": "login", "title": "Fix the login"}).title
    'Fix the login'
    >>> read_typed(Ticket, {"id": "login", "title": None})
    Traceback (most recent call last):
    TypeError: title is not of type str
    """
    if not isinstance(fields, dict):
        raise TypeError(f"{kind.__name__} is no object")
    hints = get_type_hints(kind)
    return kind(**{name: _read(name, hints[name], value) for name, value in fields.items() if name in hints})


def _read(name: str, hint: Any, value: Any) -> Any:
    origin, parts = get_origin(hint), get_args(hint)
    if origin is UnionType:
        return None if value is None and NoneType in parts else _read(name, parts[0], value)
    if origin is Literal and isinstance(value, str) and value in parts:
        return value
    if origin is list and isinstance(value, list):
        return [_read(name, parts[0], item) for item in value]
    if origin is dict and isinstance(value, dict):
        return {key: _read(name, parts[1], item) for key, item in value.items()}
    if is_dataclass(hint) and isinstance(hint, type):
        return read_typed(hint, value)
    if type(value) in _SCALARS.get(hint, ()):
        return value
    raise TypeError(f"{name} is not of type {getattr(hint, '__name__', hint)}")


RunOutcome = Literal["running", "completed", "failed", "cancelled", "reverted", "interrupted"]
"""A run that is neither ended nor worked on is interrupted; it can be taken up."""


def timestamp() -> str:
    return utc_now().isoformat(timespec="seconds")


@dataclass(frozen=True, slots=True)
class RecalledMemory:
    """A memory that the director was shown."""

    id: str
    text: str
    score: float
    ticket: str = ""
    date: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True)
class DirectorUsage:
    """What the calls of the director's LLM took."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0

    def __add__(self, other: DirectorUsage) -> DirectorUsage:
        return DirectorUsage(*map(sum, zip(astuple(self), astuple(other), strict=True)))


@dataclass(slots=True)
class Step:
    """One turn: what was recalled, what the director decided, what the worker was sent and what it answered."""

    began: str = ""
    recalled: list[RecalledMemory] = field(default_factory=list)
    complete: bool = False
    summary: str = ""
    """What the director says of where the work stands; in the first step its plan."""
    prompt: str = ""
    decided: bool = False
    sent: bool = False
    answer: str | None = None
    failed: bool = False
    result: str = ""
    """What was found in the folder after the answer."""
    changed: bool | None = None
    """Whether the worker has changed anything there; None if nobody looked."""
    check: str = ""
    """What the check wrote when the director judged the ticket complete, and what was missing besides."""
    seconds: float = 0.0
    worker_cost: float = 0.0
    usage: DirectorUsage = field(default_factory=DirectorUsage)
    notes: list[str] = field(default_factory=list)

    @property
    def is_answered(self) -> bool:
        """Whether the worker did its part and said something."""
        return not self.failed and self.answer not in (None, NO_OUTPUT)


@dataclass(slots=True)
class RunState:
    """The state of one run of a ticket."""

    ticket: Ticket
    run: int = 1
    token: str = field(default_factory=lambda: secrets.token_hex(6))
    """Tells this run from every other, on any machine."""
    began: str = field(default_factory=timestamp)
    ended: str = ""
    outcome: RunOutcome = "running"
    reason: str = ""
    summary: str = ""
    session: str = ""
    worker: str = ""
    model: str = ""
    steps: list[Step] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    work: Work | None = None
    """What the worker changed in the folder, as far as that can be seen; None if nobody looked."""
    evidence: str = ""
    """What bears the outcome out: what was changed, and whether a check passed."""
    due: str = ""
    """The text that is to be remembered and is not yet."""
    memories: list[str] = field(default_factory=list)
    memory_failures: int = 0
    log: str = ""

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """Read a state that was kept; raise TypeError if a value in it is of another type."""
        return read_typed(cls, fields)

    @property
    def turns(self) -> list[Step]:
        """The steps that the worker answered."""
        return [step for step in self.steps if step.answer is not None]

    @property
    def recalled(self) -> list[RecalledMemory]:
        """All that the director was shown, each memory once."""
        return list({(memory.id, memory.text): memory for step in self.steps for memory in step.recalled}.values())

    @property
    def usage(self) -> DirectorUsage:
        return sum((step.usage for step in self.steps), DirectorUsage())
