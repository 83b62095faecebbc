"""What the verbs give back: receipts, hits, pages and reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from eunoe.model.atom import Atom
from eunoe.model.message import Message
from eunoe.model.scope import Scope

Item = Message | Atom
T = TypeVar("T")

Outcome = Literal["stored", "duplicate", "superseded", "forgotten", "conflict", "ignored"]


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a write did with one item.

    `stored`: it is durable now. `duplicate`: it was there already, as `id`. `superseded`: it is durable and closed
    the memory `closed`. `forgotten`: it was refused, because it had been forgotten on purpose. `conflict`: it was
    refused, because `id` is taken by other words, which stay as they are. `ignored`: the session is incognito, nothing
    was written.
    """

    outcome: Outcome
    id: str
    embedded: bool = True
    """False while its vector is still to be made: behind the reply, or once an embedder that failed works again."""
    closed: str = ""

    def __bool__(self) -> bool:
        """True if the item is in the store now, whether this call put it there or an earlier one."""
        return self.outcome not in ("forgotten", "conflict", "ignored")


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that spoke for a hit, and how much of its score it gave."""

    name: str
    share: float
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.share:.2f}" + (f" ({self.detail})" if self.detail else "")


class _Late:
    """What a hit is made from when somebody looks closer: a row, and how to make its item and its reasons."""

    __slots__ = ("_explain", "_make", "_row")

    _row: Any
    _make: Callable[[], Item]
    _explain: Callable[[], tuple[Reason, ...]]


@dataclass(frozen=True, slots=True)
class Hit(_Late):
    """A message or atom that was recalled, its score from 0 to 1, and why."""

    item: Item
    score: float
    reasons: tuple[Reason, ...] = ()

    @classmethod
    def late(cls, row: Any, score: float, make: Callable[[], Item], explain: Callable[[], tuple[Reason, ...]]) -> Hit:
        """A hit that has its item and its reasons made when somebody asks for them.

        `row` has the item's id, kind and text.
        """
        hit = cls.__new__(cls)
        object.__setattr__(hit, "_row", row)
        object.__setattr__(hit, "score", score)
        object.__setattr__(hit, "_make", make)
        object.__setattr__(hit, "_explain", explain)
        return hit

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name == "_row":
                return self.item
            if name not in ("item", "reasons"):
                raise AttributeError(f"a hit has no {name!r}")
            value = self._make() if name == "item" else self._explain()
            object.__setattr__(self, name, value)
            return value

    def __hash__(self) -> int:
        """By id and score: an item may hold what cannot be hashed."""
        return hash((self.id, self.score))

    @property
    def id(self) -> str:
        return str(self._row.id)

    @property
    def kind(self) -> str:
        return str(self._row.kind)

    @property
    def text(self) -> str:
        return str(self._row.text)

    @property
    def time(self) -> datetime | None:
        return self.item.time

    @property
    def scope(self) -> Scope | None:
        return self.item.scope

    @property
    def source(self) -> tuple[str, ...]:
        """Ids of the messages it rests on: its own for a message."""
        return (self.item.id,) if isinstance(self.item, Message) else self.item.source


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A part of a longer list; pass `next` as `after` to read on. Empty `next` means there is no more."""

    items: tuple[T, ...]
    next: str = ""


@dataclass(frozen=True, slots=True)
class ForgetReport:
    """What was removed, and whether a search of everything still finds a trace of it."""

    messages: tuple[str, ...] = ()
    atoms: tuple[str, ...] = ()
    vectors: int = 0
    scopes: tuple[Scope, ...] = ()
    mentions: tuple[str, ...] = ()
    """Ids that stay but mention the forgotten person by name."""
    verified: bool | None = None
    """None if no search was asked for."""
    traces: tuple[str, ...] = ()
    revisions: int = 0
    """Versions of summaries that had taken in what was forgotten, and went with it."""
    rebuilt: tuple[Scope, ...] = ()
    """Scopes whose summary was written anew at once. Where a language model writes it, it follows in the background."""

    @property
    def total(self) -> int:
        return len(self.messages) + len(self.atoms)


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import brought in."""

    stored: int = 0
    duplicates: int = 0
    forgotten: int = 0
    """Lines refused because they had been forgotten here."""
    tombstones: int = 0
    closed: int = 0
    """Memories that were still open here and had been superseded by the time of the export."""
    conflicts: int = 0
    """Lines refused because their id stands for other words here, which stay as they are."""

    @property
    def lines(self) -> int:
        return sum(astuple(self))

    def __add__(self, other: ImportReport) -> ImportReport:
        return ImportReport(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True, slots=True)
class Usage:
    """What calls of one model for one operation have taken together."""

    operation: str
    model: str
    calls: int
    failures: int
    input_tokens: int
    output_tokens: int
    seconds: float
    cost: float
    """0 where no price is known."""


@dataclass(frozen=True, slots=True)
class Status:
    """How the store stands."""

    target: str
    schema: int
    scopes: int
    messages: int
    facts: int
    observations: int
    retired: int
    tombstones: int
    embedder: str
    unembedded: int
    """Items whose vector is still to be made."""
    bytes: int
    cached_streams: int = 0
    cached_bytes: int = 0
    embedder_error: str = ""
    reranker_error: str = ""
    """Why the last recall that asked for the reranker did without."""
    vectors: Mapping[str, int] = field(default_factory=dict)
    """Vectors kept, by model."""
    llm: str = ""
    """The models that form and consolidate, if any."""
    due_messages: int = 0
    """Messages that were not yet turned into memories."""
    work: int = 0
    """Pieces of conversations that wait or are under way."""
    failing: int = 0
    """Pieces and summaries whose last attempt failed; they are tried again."""
    error: str = ""
    """What the last of these said."""
    revisions: int = 0
    usage: tuple[Usage, ...] = ()
    """What language models have taken so far."""
    faults: Mapping[str, int] = field(default_factory=dict)
    """Faults of this process that cost a context a part, by kind."""
