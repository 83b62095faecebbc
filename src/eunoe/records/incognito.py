"""Incognito sessions: nothing of them is kept but a fingerprint of their scope."""

from collections.abc import Sequence, Set
from contextlib import suppress

from eunoe.errors import ConflictError, ScopeError
from eunoe.model.atom import NO_BOUNDS, Bounds
from eunoe.model.message import Message
from eunoe.model.result import Receipt
from eunoe.model.scope import Scope
from eunoe.records.streams import LAYERS
from eunoe.store.contract import Store
from eunoe.store.query import ItemQuery
from eunoe.store.tables import IncognitoMark, StreamState
from eunoe.text.normalize import fingerprint

_ALL_STREAMS = 2**62


def is_incognito(store: Store, scope: Scope, session: str = "") -> bool:
    """Whether the session of this scope is incognito, or the one that a message in it names."""
    return bool(store.load(IncognitoMark, key=_marks(scope, session)))


def incognito_places(store: Store, scope: Scope, messages: Sequence[Message]) -> set[int]:
    """The places of the messages that belong to an incognito session."""
    sessions = {message.session for message in messages}
    hidden = {session for session in sessions if is_incognito(store, scope, session)}
    return {place for place, message in enumerate(messages) if message.session in hidden} if hidden else set()


def all_receipts(messages: Sequence[Message], hidden: Set[int], kept: Sequence[Receipt]) -> list[Receipt]:
    """Receipts for all messages, also for those of an incognito session."""
    rest = iter(kept)
    return [Receipt("ignored", message.id) if place in hidden else next(rest) for place, message in enumerate(messages)]


def check_not_incognito(store: Store, scope: Scope) -> None:
    """Refuse what would leave something behind in a session that is incognito."""
    if is_incognito(store, scope):
        raise ConflictError(f"{scope} is incognito, so that nothing of it is kept: take that mark off first")


def set_incognito(store: Store, scope: Scope, on: bool, bounds: Bounds = NO_BOUNDS) -> None:
    """Mark a session as incognito, or take the mark off. Where the session is out of bounds, others have a part in it:
    then only the scope itself is marked."""
    session = _session_scope(scope)
    marked = [each for each in (session, scope) if bounds.covers(each)]
    if on and (_has_messages(store, session) if session in marked else _holds_messages(store, store.stream(scope))):
        raise ConflictError(f"{scope} has messages already: forget them first, then make it incognito")
    marks = [fingerprint(each.text) for each in marked]
    if on:
        store.save([IncognitoMark(marks[0])])
    else:
        store.drop(IncognitoMark, key=marks)


def _marks(scope: Scope, session: str = "") -> list[bytes]:
    """What a session may be marked by: itself, or the very scope that was given."""
    marked = [_session_scope(scope), scope]
    if session and session != scope.pairs.get("session"):
        with suppress(ScopeError):  # it is no name that a scope could have
            marked.append(_session_scope(scope.extended({"session": session})))
    return [fingerprint(each.text) for each in marked]


def _session_scope(scope: Scope) -> Scope:
    """A session whoever takes part in it: the same for each user and each thread."""
    last = next((key for key in ("session", "thread") if key in scope.pairs), "")
    return scope.only([key for key in scope.pairs if key == last or _is_outer(key)]) if last else scope


def _is_outer(key: str) -> bool:
    """Whether a key says where a session belongs, and not who takes part in it."""
    return key == "agent" or key not in LAYERS


def _holds_messages(store: Store, stream: StreamState | None) -> bool:
    return bool(stream and store.select(ItemQuery(stream.id, kinds=("message",), limit=1)))


def _has_messages(store: Store, session: Scope) -> bool:
    outer = {key: value for key, value in session.pairs.items() if _is_outer(key)}
    parts = [Scope(**{key: value}).text for key, value in outer.items()]
    streams = store.streams(limit=_ALL_STREAMS, containing=parts or ("=",), tenant=outer.get("tenant", ""))
    return any(_is_in_session(store, stream, session, outer) for stream in streams)


def _is_in_session(store: Store, stream: StreamState, session: Scope, outer: dict[str, str]) -> bool:
    if _session_scope(stream.scope) == session:
        return _holds_messages(store, stream)
    own = {key: value for key, value in stream.scope.pairs.items() if _is_outer(key)}
    name = session.pairs.get("session")
    return bool(name and own == outer and store.select(ItemQuery(stream.id, session=name, limit=1)))
