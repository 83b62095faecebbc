"""An atom, one thing remembered: what it rests on, how the store keeps it (as it keeps messages), how it is corrected,
and the bounds within which a restricted memory sees it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Final, NamedTuple, TypedDict

from eunoe.errors import InputError, ScopeError
from eunoe.model.arguments import (
    ATOM_KINDS,
    AtomKind,
    Kind,
    TimeLike,
    Verdict,
    check_flag,
    check_metadata,
    check_name,
    check_names,
    check_text,
    normalize_path,
    parse_each,
    parse_time,
    shorten,
    show,
)
from eunoe.model.message import Message
from eunoe.model.scope import Scope, Scopes, parse_scopes

Support = tuple[str, ...]
SourcePlace = tuple[Scope, str]
"""The scope and the id of a source."""


def unique_supports(groups: Iterable[Iterable[str]]) -> tuple[Support, ...]:
    """Each group once; empty ones are left out."""
    return tuple(dict.fromkeys(group for group in map(tuple, groups) if group))


def source_name(source: Scope, id: str, owner: Scope) -> str:
    """How an atom of `owner` names its source: by its id alone if both have the same scope."""
    return id if source == owner else f"@{source.text.replace('#', '%23')}#{id}"


def source_place(name: str, owner: Scope) -> SourcePlace:
    """The scope and the id of what an atom of `owner` names as its source."""
    if not name.startswith("@"):
        return owner, name
    place, sign, id = name[1:].partition("#")
    if not sign:
        return owner, name
    try:
        return Scope.stored(place.replace("%23", "#")), id
    except ScopeError:
        return owner, name


def check_sources(names: Iterable[str], owner: Scope, scopes: Scopes) -> None:
    """Refuse a source in another scope that the caller does not name: who may not read a scope must not learn from
    its memories when something was said there, nor whether it was."""
    try:
        named = {owner, *(parse_scopes(scopes) if scopes not in ((), []) else ())}
    except ScopeError as error:
        raise InputError(f"source_scopes: {error}") from None
    for name in names:
        if source_place(name, owner)[0] not in named:
            raise InputError(f"source {show(name)} is in another scope: name that scope in source_scopes too")


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


class AtomFields(TypedDict, total=False):
    """What may be said of an atom beside its words and its id."""

    kind: AtomKind
    label: str
    files: Iterable[str]
    pages: Iterable[str]
    people: Iterable[str]
    source: Iterable[str]
    time: TimeLike | None
    valid_from: TimeLike | None
    valid_to: TimeLike | None
    pinned: bool
    metadata: Mapping[str, Any] | None


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


_FIELDS = frozenset(AtomFields.__annotations__) | {"text", "id", "vector"}


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


CORRECTION = "correction"
"""The label of the archived atom that a correction is kept as, and the field of its metadata."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """Sentences that are worth keeping, are not, or are of another kind. It counts for those that are like them."""

    id: str
    verdict: Verdict
    sentences: tuple[str, ...]
    source: tuple[str, ...]
    """Ids of the messages and memories that were corrected. It is forgotten with them."""
    scope: Scope
    """The stream that it counts in: a user's own, and with it all conversations of that user."""
    recorded: datetime
    changed: tuple[str, ...] = ()
    """Ids of the memories that came, were closed or were archived by it at once; empty where corrections are listed."""

    def __repr__(self) -> str:
        return f"Correction({self.verdict!r}, {shorten(' '.join(self.sentences))!r}, id={self.id!r})"


_TENANT: Final = "tenant"


@dataclass(frozen=True, slots=True)
class Bounds:
    """Scopes, each with all that have more keys, but for a tenant. None means that there are no bounds.

    >>> Bounds((Scope(user="anna"),)).covers(Scope(user="anna", session="s1"))
    True
    >>> Bounds((Scope(user="anna"),)).covers(Scope(user="anna", tenant="acme"))
    False
    """

    scopes: tuple[Scope, ...] = ()

    def covers(self, scope: Scope) -> bool:
        """Whether a scope has all the keys and values of one of these, and a tenant only if that has it."""
        pairs, has_tenant = scope.pairs.items(), _TENANT in scope.pairs
        fitting = (each for each in self.scopes if each.pairs.items() <= pairs)
        return not self.scopes or any((_TENANT in each.pairs) == has_tenant for each in fitting)

    @property
    def keys(self) -> Mapping[str, str]:
        """The keys and values that every scope within the bounds has."""
        if not self.scopes:
            return {}
        first, *others = (each.pairs.items() for each in self.scopes)
        return {key: value for key, value in first if all((key, value) in other for other in others)}

    def narrowed(self, keys: Mapping[str, str]) -> list[Scope] | None:
        """The scopes within which all have these keys too; None if that is everything."""
        if not self.scopes:
            return [Scope.of_pairs(keys)] if keys else None
        fitting = (
            each for each in self.scopes if all(each.pairs.get(key, value) == value for key, value in keys.items())
        )
        return [each.extended(keys) for each in fitting]

    def record(self, record: Record, owner: Scope) -> Record:
        """Return a record with those of its sources that are within the bounds: a name tells that its scope exists."""
        return record._replace(supports=unique_supports(self.sources(group, owner) for group in record.supports))

    def sources(self, names: Iterable[str], owner: Scope) -> tuple[str, ...]:
        """Return those of an atom's sources that are within the bounds."""
        return tuple(name for name in names if self.covers(source_place(name, owner)[0]))


NO_BOUNDS: Final = Bounds()
