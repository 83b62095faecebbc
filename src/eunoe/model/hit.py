"""What recall gives back: memories with their scores and reasons."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from eunoe.model.choices import Kind
from eunoe.model.message import Message
from eunoe.model.record import Item, Record
from eunoe.model.scope import Scope
from eunoe.model.validation import shorten


class Reason(NamedTuple):
    """One signal that spoke for a hit, and its share of the score."""

    name: str
    share: float
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.share:.2f}" + (f" ({self.detail})" if self.detail else "")


@dataclass(eq=False, repr=False)
class Hit:
    """A memory that was recalled, its score from 0 to 1, and why.

    Its item and its reasons are made when somebody looks at them: most callers read only the text.
    """

    record: Record
    scope: Scope
    score: float
    explain: Callable[[], tuple[Reason, ...]]

    @cached_property
    def item(self) -> Item:
        """The message or atom."""
        return self.record.item(self.scope)

    @cached_property
    def reasons(self) -> tuple[Reason, ...]:
        """What spoke for it, the most important first."""
        return self.explain()

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def kind(self) -> Kind:
        return self.record.kind

    @property
    def text(self) -> str:
        return self.record.text

    @property
    def time(self) -> datetime | None:
        return self.record.time

    @property
    def source(self) -> tuple[str, ...]:
        """Ids of the messages it rests on: its own for a message."""
        return (self.id,) if self.kind == Message.kind else self.record.sources

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Hit):
            return False
        return (self.item, self.score, self.reasons) == (other.item, other.score, other.reasons)

    def __hash__(self) -> int:
        return hash((self.id, self.score))

    def __repr__(self) -> str:
        return f"Hit({self.score:.2f}, {self.kind}, {shorten(self.text)!r})"


class Hits(list[Hit]):
    """Hits, best first, and what there is to say about the search."""

    def __init__(self, hits: Iterable[Hit] = (), notes: tuple[str, ...] = ()) -> None:
        super().__init__(hits)
        self.notes = notes
        """Hints for the caller, such as a near scope that holds something where this one holds nothing."""

    def __repr__(self) -> str:
        return super().__repr__() + "".join(f"\nnote: {note}" for note in self.notes)

    def _repr_html_(self) -> str:
        """A table, for notebooks."""
        from html import escape

        head = "".join(f"<th>{name}</th>" for name in ("score", "kind", "text", "time", "scope", "why"))
        rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in _cells(hit))}</tr>" for hit in self)
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{notes}"


def _cells(hit: Hit) -> tuple[str, ...]:
    time = f"{hit.time:%Y-%m-%d %H:%M}" if hit.time else ""
    return f"{hit.score:.2f}", hit.kind, hit.text, time, hit.scope.text, ", ".join(map(str, hit.reasons))
