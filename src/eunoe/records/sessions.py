"""How far a conversation has been formed: its cursor, the messages after it, and the users who take part."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from eunoe.errors import ScopeError
from eunoe.model.atom import Record
from eunoe.model.scope import Scope
from eunoe.model.stream import Settings
from eunoe.model.turn import Turn, turns_to_form, weighted_tokens
from eunoe.records.leases import CLEARED
from eunoe.records.streams import SettingsReader
from eunoe.store.contract import Store, all_items
from eunoe.store.query import ItemQuery
from eunoe.store.tables import Job, SessionState, StreamLink, StreamState, SummaryState
from eunoe.text.normalize import normalize_name

FORGOTTEN_USER = "(forgotten)"
"""Stands for a user whose name was forgotten."""


def load_session(store: Store, stream: StreamState | None) -> SessionState | None:
    found = store.load(SessionState, stream=stream.id) if stream else []
    return found[0] if found else None


def log_after(store: Store, stream: int, seq: int, limit: int = 0) -> Iterator[Record]:
    """The messages of a log after a number, in order, without those that were taken back."""
    query = ItemQuery(stream, kinds=("message",), after=seq, open=True)
    return iter(store.select(query._replace(limit=limit))) if limit else all_items(store, query)


class Formation(NamedTuple):
    """When a conversation is to be formed."""

    seconds: float | None = None
    """After so many seconds without a new message, 0 for at once; None while too little was said."""
    is_new: bool = False
    """Whether it has just begun."""


def note_messages(store: Store, stream: StreamState, records: Sequence[Record], now: datetime) -> Formation:
    """Count new messages in the step that stores them; return when the conversation is to be formed."""
    reader = SettingsReader(store, stream)
    if not records or not reader.may_feed(stream.scope):
        return Formation()
    known = load_session(store, stream)
    before = known or SessionState(stream.id)
    # What came before anybody counted is due as well.
    uncounted = log_after(store, stream.id, 0) if known is None and stream.position else records
    turns = turns_to_form(uncounted, stream.scope)
    users = join_users(before.users, stream.scope, turns)
    settings = reader.forming(stream.scope, users)
    if settings is None and known is None:
        return Formation()
    session = add_turns(before, turns, settings)._replace(active=max(before.active or now, now), users=users)
    save_session(store, reader, stream, known, session)
    return Formation(_seconds_to_wait(session, settings) if settings else None, known is None)


def _seconds_to_wait(session: SessionState, settings: Settings) -> float | None:
    if is_due(session, settings):
        return 0.0
    is_enough = session.messages >= settings.formation_minimum
    return settings.formation_idle_seconds or None if is_enough else None


def find_ended(store: Store, stream: StreamState) -> list[Scope]:
    """Earlier conversations of the same users that have messages left to form: they ended when this one began."""
    session = load_session(store, stream)
    users = set(session.users) if session else set()
    conversations = _conversations_of(store, stream, sorted(users)) - {stream.id}
    sessions = store.load(SessionState, stream=sorted(conversations)) if conversations else []
    ended = [each.stream for each in sessions if each.messages and set(each.users) == users]
    return [each.scope for each in store.streams(ids=ended)] if ended else []


def _conversations_of(store: Store, stream: StreamState, users: Sequence[str]) -> set[int]:
    """Numbers of the conversations that feed the same streams of these users' own."""
    targets = SettingsReader(store, stream).targets(stream.scope, users)
    owned = [found.id for target in targets if target.user and (found := store.stream(target.scope))]
    return {link.source for link in store.load(StreamLink, stream=owned)} if owned else set()


def add_turns(session: SessionState, turns: Sequence[Turn], settings: Settings | None) -> SessionState:
    """Count new turns."""
    weight = weighted_tokens(turns, settings) if settings else 0.0
    return session._replace(messages=session.messages + len(turns), weight=session.weight + weight)


def is_due(session: SessionState, settings: Settings) -> bool:
    """Whether enough was said to form memories from."""
    if session.messages < settings.formation_minimum:
        return False
    return session.messages >= settings.formation_messages or session.weight >= settings.formation_tokens


def join_users(known: Sequence[str], scope: Scope, turns: Sequence[Turn]) -> tuple[str, ...]:
    """The users who took part so far, with those of new turns."""
    named = [scope.pairs.get("user", ""), *(turn.user for turn in turns)]
    return tuple(dict.fromkeys([*known, *filter(is_user_name, named)]))


def is_user_name(user: str) -> bool:
    """Whether a user can have a memory under this name."""
    try:
        return bool(Scope(user=user))
    except ScopeError:
        return False


def save_session(
    store: Store, reader: SettingsReader, stream: StreamState, known: SessionState | None, session: SessionState
) -> None:
    """Save a session, known or new, and link its users if they are others than before."""
    store.save([session])
    if known is None or session.users != known.users:
        link_users(store, reader, stream, session.users)


def link_users(store: Store, reader: SettingsReader, stream: StreamState, users: Sequence[str]) -> None:
    """Let a conversation be found from its users' own streams, also where nothing was formed from it."""
    targets = reader.targets(stream.scope, users)
    owned = [target.scope for target in targets if target.user and target.scope != stream.scope]
    store.save([StreamLink(stream.id, store.create_stream(scope).id) for scope in owned])


def recount(store: Store, stream: StreamState, session: SessionState, settings: Settings | None) -> SessionState:
    """Count a session anew from the messages after its cursor."""
    turns = turns_to_form(log_after(store, stream.id, session.cursor), stream.scope)
    return add_turns(session._replace(messages=0, weight=0.0), turns, settings)


def forget_in_session(store: Store, stream: StreamState, whole: bool, person: str) -> None:
    """Take what was forgotten out of a stream's session: its counts, a person among its users, and errors, which may
    repeat words. Runs in the step that removes the records, after they are gone."""
    for number in {stream.id, *linked_streams(store, stream.id)}:
        _clear_errors(store, number)
    if whole:
        store.drop(SessionState, stream=stream.id)
        store.drop(Job, stream=stream.id)
        return
    session = load_session(store, stream)
    if session:
        users = _users_without(session.users, person, stream.scope)
        settings = SettingsReader(store, stream).forming(stream.scope, users)
        store.save([recount(store, stream, session._replace(users=users), settings)])


def linked_streams(store: Store, stream: int) -> set[int]:
    """Streams whose atoms rest on this one, and those that its own rest on."""
    above = {link.stream for link in store.load(StreamLink, source=stream)}
    return above | {link.source for link in store.load(StreamLink, stream=stream)}


def _users_without(users: Sequence[str], person: str, scope: Scope) -> tuple[str, ...]:
    """Who takes part, without a person's name. Their place stays taken: a group must not pass for one user who is
    alone, since that one's own memory would be shown to all."""
    gone = {user for user in users if person and normalize_name(user) == normalize_name(person)}
    named = [FORGOTTEN_USER if user in gone and user != scope.pairs.get("user") else user for user in users]
    return tuple(dict.fromkeys(user for user in named if user not in gone))


def _clear_errors(store: Store, stream: int) -> None:
    tables: tuple[type[Any], ...] = (Job, SummaryState)
    for table in tables:
        failed = [each for each in store.load(table, stream=stream) if each.lease.error]
        store.save([each._replace(lease=each.lease._replace(error=CLEARED)) for each in failed])
