"""One thing remembered: a fact, kept and searched, or an observation, waiting to be consolidated."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from eunoe.errors import InputError
from eunoe.model.choices import ATOM_KINDS, AtomKind
from eunoe.model.scope import Scope
from eunoe.model.time import TimeLike, parse_time
from eunoe.model.validation import (
    check_flag,
    check_metadata,
    check_name,
    check_names,
    check_text,
    normalize_path,
    parse_each,
    shorten,
    show,
)

MEMORY_KEY = "memory_key"
"""The field of an atom's metadata that holds its memory key."""
AUTHOR = "author"
"""The field of a formed atom's metadata that says who put it in words: an LLM, or `extractive`."""
WORTH = "worth"
"""The field of a formed atom's metadata that says how likely it was worth keeping, from 0 to 1, if that was judged."""
EXTRACTIVE = "extractive"
"""The author of what was put together from what was said, without an LLM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Atom:
    """One thing remembered, with where it came from and when it holds.

    `valid_from` and `valid_to` say when it is true in the world; `recorded` and `retired` say when the store
    learned and closed it. An atom is never overwritten: `update` closes it and links to the next one.

    >>> Atom(text="Anna likes tea.", id="a1")
    Atom('Anna likes tea.', id='a1')
    """

    text: str
    kind: AtomKind = "fact"
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
    in_review: bool = False
    """Whether it waits to be looked at: until `review` keeps it, only `get`, `list` and `recent` show it."""
    replaces: tuple[str, ...] = ()
    """Ids of the memories whose place it takes once it is kept."""

    def __repr__(self) -> str:
        kind = "" if self.kind == "fact" else f", kind={self.kind!r}"
        closed = f", retired={self.retired:%Y-%m-%d}" if self.retired else ""
        return f"Atom({shorten(self.text)!r}, id={self.id!r}{kind}{closed})"


def parse_atoms(items: Iterable[str | Mapping[str, Any]]) -> tuple[list[Atom], dict[int, Any]]:
    """Read several texts or dicts; return the atoms, and the vectors that some of them brought, by their places."""
    pairs = parse_each(items, "item", str | Mapping, parse_item)
    vectors = {place: vector for place, (_, vector) in enumerate(pairs) if vector is not None}
    return [atom for atom, _ in pairs], vectors


def parse_item(item: str | Mapping[str, Any]) -> tuple[Atom, Any]:
    """Read a text or a dict of what `parse_atom` takes, which may bring its vector."""
    if isinstance(item, str):
        return parse_atom(item), None
    if not isinstance(item, Mapping):
        raise InputError(f"it is a {type(item).__name__}, not a text or a dict")
    if not _FIELDS.issuperset(item) or "text" not in item:
        unknown = sorted(map(str, set(item) - _FIELDS))
        raise InputError(f"unknown field {shorten(', '.join(unknown))}" if unknown else "it has no 'text'")
    fields = dict(item)
    vector = fields.pop("vector", None)
    return parse_atom(**fields), vector


def parse_atom(
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
    """Check what a caller wants remembered."""
    if not check_text(text).strip():
        raise InputError("there is nothing to remember: the text is empty or only blanks")
    if not isinstance(kind, str) or kind not in ATOM_KINDS:
        raise InputError(f"kind {show(kind)} is not one of {', '.join(ATOM_KINDS)}")
    start = None if valid_from is None else parse_time(valid_from, "valid_from")
    end = None if valid_to is None else parse_time(valid_to, "valid_to")
    if start and end and end < start:
        raise InputError(f"valid_to {end.isoformat()} is before valid_from {start.isoformat()}")
    return Atom(
        text=text,
        kind=kind,
        id=check_name(id, "id"),
        label=check_name(label, "label"),
        files=tuple(dict.fromkeys(map(normalize_path, check_names(files, "files")))),
        pages=check_names(pages, "pages"),
        people=check_names(people, "people"),
        source=check_names(source, "source"),
        time=None if time is None else parse_time(time),
        valid_from=start,
        valid_to=end,
        pinned=check_flag(pinned, "pinned"),
        metadata={} if metadata is None else check_metadata(metadata),
    )


_FIELDS = frozenset(parse_atom.__annotations__) - {"return"} | {"vector"}
