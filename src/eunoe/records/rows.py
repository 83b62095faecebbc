"""Between nouns and rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from eunoe.errors import ScopeError
from eunoe.model.atom import KINDS, Atom
from eunoe.model.message import Message
from eunoe.model.result import Item
from eunoe.model.scope import Scope
from eunoe.model.time import from_micros, micros
from eunoe.store.contract import Bearer, Row
from eunoe.text.normalize import digest, normalised, skeleton

encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

_UNPLACED = (0, 0, 0, 0)


def message_row(message: Message, id: str, key: bytes, position: int, recorded: int) -> Row:
    """A row that still lacks its number, stream and version."""
    return Row(
        *_UNPLACED,
        "message",
        id,
        key,
        message.text,
        message.caption,
        _micros(message.time),
        message.session,
        message.speaker,
        message.role,
        "",
        "",
        "",
        None,
        None,
        recorded,
        None,
        0,
        position,
        "",
        "",
        "",
        "",
        _object(message.metadata),
    )


def atom_row(atom: Atom, id: str, key: bytes, recorded: int) -> Row:
    """A row that still lacks its number, stream and version."""
    return Row(
        *_UNPLACED,
        atom.kind,
        id,
        key,
        atom.text,
        "",
        _micros(atom.time),
        "",
        "",
        "",
        atom.label,
        _list(atom.people),
        _list(atom.files),
        _micros(atom.valid_from),
        _micros(atom.valid_to),
        recorded,
        _micros(atom.retired),
        int(atom.pinned),
        None,
        atom.supersedes,
        atom.superseded_by,
        _list(atom.source),
        _list(atom.pages),
        _object(atom.metadata),
    )


def item_of(row: Row, scope: Scope) -> Item:
    return _message(row, scope) if row.kind == "message" else _atom(row, scope)


def atom_content(kind: str, text: str) -> bytes:
    return digest(kind, normalised(text))


def atom_contents(text: str) -> list[bytes]:
    """What a forgotten text is known by as an atom of any kind, and in any disguise that reads the same."""
    return [*(atom_content(kind, text) for kind in KINDS), looks_key(text)]


def atom_marks(kind: str, text: str) -> tuple[bytes, bytes]:
    """What a tombstone could know the words of an atom by."""
    return atom_content(kind, text), looks_key(text)


def looks_key(text: str) -> bytes:
    """Under this the words of a forgotten atom are known by what they look like."""
    return digest("looks", skeleton(text))


def id_key(id: str) -> bytes:
    return digest("id", id)


def message_content(message: Message | Row) -> bytes:
    """What was said, by whom and where, whenever that was."""
    user = said_by(message)
    who = (user,) if user else ()  # without one, the fingerprint is that of a message which never had any
    return digest("said", message.role, message.speaker, message.session, message.text, message.caption, *who)


def said_by(message: Message | Row) -> str:
    """The user named on a message itself; empty if none is."""
    if isinstance(message, Row):
        value = json.loads(message.metadata).get("user") if '"user"' in message.metadata else ""
    else:
        value = message.metadata.get("user")
    return value if isinstance(value, str) else ""


def words_key(content: bytes) -> bytes:
    """Under this a forgotten message is known by its words alone."""
    return digest("words", content.hex())


def time_key(time: int, content: bytes) -> bytes:
    """Words said at a moment."""
    return digest("at", str(time), content.hex())


def row_content(row: Row) -> bytes:
    return message_content(row) if row.kind == "message" else atom_content(row.kind, row.text)


def lane(session: str) -> bytes:
    return digest("lane", session)


def sources(row: Row) -> tuple[str, ...]:
    """All it rests on, each once."""
    return tuple(dict.fromkeys(id for group in supports(row) for id in group))


def supports(row: Row) -> list[tuple[str, ...]]:
    """What bears it out, in groups: each is enough on its own, and falls when one of its members does.

    At rest, texts are the first group and lists are the further ones.
    """
    values = json.loads(row.source) if row.source else []
    first = tuple(value for value in values if isinstance(value, str))
    return [group for group in (first, *(tuple(value) for value in values if isinstance(value, list))) if group]


def rest_on(groups: Sequence[Sequence[str]]) -> str:
    """Groups as they rest in a row."""
    unique = list(dict.fromkeys(tuple(group) for group in groups if group))
    return encode([*unique[0], *map(list, unique[1:])]) if unique else ""


def source_name(source: Scope, id: str, owner: Scope) -> str:
    """How an atom of `owner` names what it rests on: by its id alone if both have the same scope."""
    return id if source == owner else f"@{str(source).replace('#', '%23')}#{id}"


def source_place(name: str, owner: Scope) -> tuple[Scope, str]:
    """Scope and id of what an atom of `owner` names as its source."""
    place, sign, id = name.removeprefix("@").partition("#")
    if not name.startswith("@") or not sign:
        return owner, name
    try:
        return Scope.parse(place.replace("%23", "#")), id
    except ScopeError:
        return owner, name


def people(row: Row | Bearer) -> tuple[str, ...]:
    return _names(row.people)


def passage(row: Row | Message | Atom) -> str:
    """The text that is embedded."""
    if isinstance(row, Atom) or not row.caption:
        return row.text
    return f"{row.text}\n{row.caption}"


def _message(row: Row, scope: Scope) -> Message:
    return Message(
        text=row.text,
        role=row.role,
        speaker=row.speaker,
        time=_moment(row.time),
        id=row.id,
        session=row.session,
        caption=row.caption,
        metadata=json.loads(row.metadata) if row.metadata else {},
        scope=scope,
        position=-1 if row.position is None else row.position,
        recorded=from_micros(row.recorded),
    )


def _atom(row: Row, scope: Scope) -> Atom:
    return Atom(
        text=row.text,
        kind=row.kind,
        id=row.id,
        label=row.label,
        files=_names(row.files),
        pages=_names(row.pages),
        people=_names(row.people),
        source=sources(row),
        time=_moment(row.time),
        valid_from=_moment(row.valid_from),
        valid_to=_moment(row.valid_to),
        pinned=bool(row.pinned),
        metadata=json.loads(row.metadata) if row.metadata else {},
        scope=scope,
        recorded=from_micros(row.recorded),
        retired=_moment(row.retired),
        supersedes=row.supersedes,
        superseded_by=row.superseded_by,
    )


def _micros(value: datetime | None) -> int | None:
    return None if value is None else micros(value)


def _moment(value: int | None) -> datetime | None:
    return None if value is None else from_micros(value)


def _list(values: Iterable[str]) -> str:
    return encode(list(values)) if values else ""


def _names(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text)) if text else ()


def _object(value: Mapping[str, Any]) -> str:
    return encode(dict(value)) if value else ""
