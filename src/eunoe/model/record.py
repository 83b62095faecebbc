"""A message or an atom as the store keeps it. The store's columns follow from the fields of `Record`."""

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any, Final, NamedTuple

from eunoe.model.atom import Atom
from eunoe.model.choices import Kind
from eunoe.model.message import Message
from eunoe.model.scope import Scope

Item = Message | Atom

NO_METADATA: Final[Mapping[str, Any]] = {}
"""Shared by all records without metadata; `Record.item` gives callers a mapping of their own."""


class Record(NamedTuple):
    """A message or an atom at rest, with its number, its stream and its identity."""

    kind: Kind
    id: str
    identity: bytes
    """The fingerprint by which it is recognised; unique among the open records of a stream."""
    text: str
    recorded: datetime
    seq: int = 0
    """Its number in the store; 0 before it is inserted."""
    stream: int = 0
    version: int = 0
    """The stream version at which it was last written."""
    pending: bool = False
    """Whether its vector for the store's model is still to be made."""
    caption: str = ""
    time: datetime | None = None
    session: str = ""
    speaker: str = ""
    role: str = ""
    label: str = ""
    people: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    retired: datetime | None = None
    pinned: bool = False
    position: int | None = None
    """The place of a message in its log."""
    supersedes: str = ""
    superseded_by: str = ""
    supports: tuple[tuple[str, ...], ...] = ()
    """Groups of sources; each group is enough to bear the atom out."""
    metadata: Mapping[str, Any] = NO_METADATA
    in_review: bool = False
    """Whether it waits to be looked at; nothing but listing finds it until then."""
    replaces: tuple[str, ...] = ()
    """Ids of the atoms that it is to close when it is kept."""
    topic: bytes | None = None
    """The fingerprint of its kind and memory key, if it has a memory key."""

    @property
    def sources(self) -> tuple[str, ...]:
        """All it rests on, each once."""
        return tuple(dict.fromkeys([name for group in self.supports for name in group]))

    @property
    def content(self) -> str:
        """The text that is embedded and indexed."""
        return f"{self.text}\n{self.caption}" if self.caption else self.text

    @property
    def happened(self) -> datetime:
        """When it was said or happened; when it was recorded, if that is not known."""
        return self.recorded if self.time is None else self.time

    def item(self, scope: Scope) -> Item:
        """The message or atom, as callers see it."""
        if self.kind == "message":
            own: dict[str, Any] = {"scope": scope, "metadata": dict(self.metadata)}
            return Message(**{name: getattr(self, name) for name in _MESSAGE_FIELDS}, **own)
        # Field by field: to call the class takes three times as long, and lists are made of thousands of atoms.
        atom = object.__new__(Atom)
        for place, assign in _ATOM_FIELDS:
            assign(atom, self[place])
        for value, assign in zip(
            (self.sources if self.supports else (), scope, dict(self.metadata)), _OWN, strict=True
        ):
            assign(atom, value)
        return atom


_COPIED: Final = frozenset(Record._fields) - {"metadata"}
_MESSAGE_FIELDS: Final = tuple(field.name for field in fields(Message) if field.name in _COPIED)
_ATOM_FIELDS: Final = [
    (Record._fields.index(field.name), getattr(Atom, field.name).__set__)
    for field in fields(Atom)
    if field.name in _COPIED
]
"""Where a record has what an atom has too, and what assigns it."""
_OWN: Final = [getattr(Atom, name).__set__ for name in ("source", "scope", "metadata")]
