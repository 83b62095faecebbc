"""One thing remembered: a fact, kept and searched, or an observation, waiting to be consolidated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from eunoe.errors import InputError
from eunoe.model.message import as_object
from eunoe.model.scope import Scope
from eunoe.model.time import TimeLike, moment
from eunoe.text.normalize import checked

KINDS = ("fact", "observation")


@dataclass(frozen=True, slots=True, kw_only=True)
class Atom:
    """One thing remembered, with where it came from and when it holds.

    `valid_from` and `valid_to` say when it is true in the world; `recorded` and `retired` say when the store
    learned and closed it. An atom is never overwritten: `update` closes it and links to the next one.
    """

    text: str
    kind: str = "fact"
    id: str = ""
    label: str = ""
    files: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()
    people: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    """Ids of the messages it came from."""
    time: datetime | None = None
    """When it happened."""
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    pinned: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)
    scope: Scope | None = None
    recorded: datetime | None = None
    retired: datetime | None = None
    supersedes: str = ""
    superseded_by: str = ""


def atom_of(
    text: str,
    *,
    kind: str = "fact",
    id: str = "",
    label: str = "",
    files: Iterable[str] = (),
    pages: Iterable[str] = (),
    people: Iterable[str] = (),
    source: Iterable[str] = (),
    time: TimeLike | None = None,
    valid_from: TimeLike | None = None,
    valid_to: TimeLike | None = None,
    pinned: bool = False,
    metadata: Mapping[str, Any] | None = None,
) -> Atom:
    """Checks what a caller wants remembered."""
    if not checked(text).strip():
        raise InputError("there is nothing to remember: the text is empty or only blanks")
    if kind not in KINDS:
        raise InputError(f"kind {kind!r} is not one of {', '.join(KINDS)}")
    start = None if valid_from is None else moment(valid_from, "valid_from")
    end = None if valid_to is None else moment(valid_to, "valid_to")
    if start and end and end < start:
        raise InputError(f"valid_to {end.isoformat()} is before valid_from {start.isoformat()}")
    return Atom(
        text=text,
        kind=kind,
        id=name_of(id, "id") if id != "" else "",
        label=name_of(label, "label") if label != "" else "",
        files=tuple(dict.fromkeys(path_of(path) for path in names_of(files, "files"))) if files else (),
        pages=names_of(pages, "pages") if pages else (),
        people=names_of(people, "people") if people else (),
        source=names_of(source, "source") if source else (),
        time=None if time is None else moment(time),
        valid_from=start,
        valid_to=end,
        pinned=bool(pinned),
        metadata=as_object(metadata) if metadata else {},
    )


def atom_and_vector(item: str | Mapping[str, Any]) -> tuple[Atom, Any]:
    """Reads a text or a dict of what `atom_of` takes, which may carry its vector."""
    if isinstance(item, str):
        return atom_of(item), None
    if not isinstance(item, Mapping):
        raise InputError(f"it is a {type(item).__name__}, not a text or a dict")
    if not _FIELDS.issuperset(item) or "text" not in item:
        unknown = sorted(map(str, set(item) - _FIELDS))
        raise InputError(f"unknown field {', '.join(unknown)}" if unknown else "it has no 'text'")
    fields = dict(item)
    vector = fields.pop("vector", None)
    return atom_of(**fields), vector


def path_of(path: str) -> str:
    """One spelling for one file: forward slashes, no `./`, no doubled slashes.

    >>> path_of("./src//a\\\\b.py")
    'src/a/b.py'
    """
    return str(PurePosixPath(path.replace("\\", "/")))


_FIELDS = frozenset(atom_of.__annotations__) - {"return"} | {"vector"}


def name_of(value: str, name: str) -> str:
    if value and (len(checked(value, name)) > 1024 or not value.strip()):
        raise InputError(f"{name} {value[:40]!r} is blank or longer than 1024 characters")
    if not isinstance(value, str):
        raise InputError(f"{name} must be text, not {type(value).__name__}")
    return value


def names_of(values: Iterable[str], name: str) -> tuple[str, ...]:
    """Several names, each once, in the order given."""
    if isinstance(values, str):
        raise InputError(f"{name} must be a list of texts; did you mean [{values!r}]?")
    if not isinstance(values, Iterable):
        raise InputError(f"{name} must be a list of texts, not {type(values).__name__}")
    names = list(values)
    if any(not isinstance(value, str) or not value.strip() for value in names):
        raise InputError(f"{name} holds something that is not a name: {names!r}")
    return tuple(dict.fromkeys(checked(value, name) for value in names))
