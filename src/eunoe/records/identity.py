"""What a message or an atom is recognised by: new ids, and fingerprints of its id, words, time and place."""

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from hashlib import sha256
from typing import Any, Final

from eunoe.model.arguments import ATOM_KINDS, to_micros
from eunoe.model.atom import MEMORY_KEY, Atom, Record
from eunoe.model.message import Message
from eunoe.model.turn import user_named_by
from eunoe.store.contract import ItemQuery, Reading
from eunoe.text.normalize import bare_form, fingerprint, look_alike_form, normalize, normalize_name

Known = dict[bytes, tuple[str, bytes]]
"""By identity: the id that has it, and the fingerprint of its words."""

_SEVERAL_PEOPLE: Final = fingerprint("several people")


def id_identity(id: str) -> bytes:
    return fingerprint("id", id)


def atom_identity(kind: str, text: str) -> bytes:
    return fingerprint(kind, normalize(text))


def given_identity(atom: Atom) -> bytes:
    """What an atom is recognised by: the id that it was given, else its words."""
    return id_identity(atom.id) if atom.id else atom_identity(atom.kind, atom.text)


def message_content(message: Message | Record) -> bytes:
    """What was said, by whom and in which session, whenever that was."""
    user = user_named_by(message)
    who = (user,) if user else ()  # without one, the fingerprint is that of a message which never had any
    return fingerprint("said", message.role, message.speaker, message.session, message.text, message.caption, *who)


def record_content(record: Record) -> bytes:
    return message_content(record) if record.kind == "message" else atom_identity(record.kind, record.text)


def time_identity(time: datetime, content: bytes) -> bytes:
    """Words said at a moment."""
    return fingerprint("at", str(to_micros(time)), content.hex())


def nth_identity(identity: bytes, count: int) -> bytes:
    """The same words said at the same moment once more."""
    return fingerprint("nth", identity.hex(), str(count))


def place_identity(position: int, content: bytes) -> bytes:
    """Words at a position in the log."""
    return fingerprint("place", str(position), content.hex())


def gap_identity(position: int) -> bytes:
    """A position in the log whose message was forgotten before it came."""
    return fingerprint("gap", str(position))


def words_identity(content: bytes) -> bytes:
    """A forgotten message by its words alone."""
    return fingerprint("words", content.hex())


def look_alike_identity(text: str) -> bytes:
    """A forgotten atom by what a reader takes from its words."""
    return fingerprint("reads", look_alike_form(text))


def bare_identity(text: str) -> bytes:
    """A forgotten atom by its bare letters, as older stores kept it. No new tombstone is made of it."""
    return fingerprint("looks", bare_form(text))


def tombstone_identities(kind: str, text: str) -> tuple[bytes, ...]:
    """What a tombstone could recognise the words of an atom by; its own identity first."""
    return atom_identity(kind, text), look_alike_identity(text), bare_identity(text)


def new_tombstone_identities(text: str) -> list[bytes]:
    """What a forgotten text is recognised by as an atom of any kind, and in any disguise that reads the same."""
    return [*(atom_identity(kind, text) for kind in ATOM_KINDS), look_alike_identity(text)]


def all_tombstone_identities(text: str) -> list[bytes]:
    """What a tombstone could recognise a text by as an atom of any kind."""
    return [*new_tombstone_identities(text), bare_identity(text)]


def find_known(store: Reading, stream: int, identities: Sequence[bytes], ids: Sequence[str]) -> Known:
    """What a stream holds under these identities and ids; of what is closed only what has one of the ids."""
    records = store.select(ItemQuery(stream, identities=identities, open=True))
    known = {record.identity: (record.id, record_content(record)) for record in records}
    named = store.select(ItemQuery(stream, ids=ids)) if ids else []
    return known | {id_identity(record.id): (record.id, record_content(record)) for record in named}


def session_hash(session: str) -> bytes:
    return fingerprint("lane", session)


def memory_key(metadata: Mapping[str, Any]) -> str:
    """The memory key as keys are compared; empty if there is none.

    >>> memory_key({"memory_key": " Home "})
    'home'
    """
    key = metadata.get(MEMORY_KEY)
    return normalize_name(key) if isinstance(key, str) else ""


def topic_of(kind: str, metadata: Mapping[str, Any], people: Iterable[str]) -> bytes | None:
    """Return the fingerprint of the kind and the memory key, followed by that of the person the atom is about.

    Many people may share one key: the second part lets those of one person be found without a look at the others.
    """
    key = memory_key(metadata) if metadata else ""
    if not key:
        return None
    names = set(map(normalize_name, people))
    about = b"" if not names else _SEVERAL_PEOPLE if len(names) > 1 else fingerprint("person", *names)
    return fingerprint("topic", kind, key) + about


def related_topics(record: Record) -> list[bytes]:
    """The topics of atoms with the same key that may be about the same people."""
    key = topic_of(record.kind, record.metadata, ()) or b""
    people = [fingerprint("person", normalize_name(name)) for name in record.people]
    return [key + about for about in (b"", _SEVERAL_PEOPLE, *people)]


_RANDOM_BITS = 48
_first: ContextVar[int | None] = ContextVar("first", default=None)


def new_ids(count: int) -> list[str]:
    """Fresh ids of 24 characters, ascending within one call.

    >>> ids = new_ids(3)
    >>> ids == sorted(set(ids)) and len(ids[0]) == 24
    True
    """
    return _count_from(_first_id(time.time_ns() // 1_000_000, os.urandom(8)), count)


@contextmanager
def repeatable(name: bytes, moment: float) -> Iterator[None]:
    """Give the messages that are stored in this block ids by which another block of the same name and moment, in
    seconds since 1970, knows them again."""
    token = _first.set(_first_id(int(moment * 1000), sha256(name).digest()[:8]))
    try:
        yield
    finally:
        _first.reset(token)


def repeatable_ids(count: int) -> list[str]:
    """The same ids each time; none outside a repeatable block."""
    first = _first.get()
    return [] if first is None else _count_from(first, count)


def _first_id(millis: int, random: bytes) -> int:
    # The top random bit stays clear so that counting up from it cannot overflow into the time.
    return (millis << _RANDOM_BITS) + (int.from_bytes(random) >> (64 - _RANDOM_BITS + 1))


def _count_from(first: int, count: int) -> list[str]:
    return [f"{number:024x}" for number in range(first, first + count)]
