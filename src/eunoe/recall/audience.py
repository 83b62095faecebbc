"""Who is present in a conversation, and which streams may be shown to them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from eunoe.model.arguments import MemoryType
from eunoe.model.atom import Bounds
from eunoe.model.scope import Scope
from eunoe.model.stream import Target
from eunoe.records.log import load_session
from eunoe.records.streams import LAYERS, SettingsReader, is_incognito
from eunoe.store.contract import Reading, Store
from eunoe.store.schema import StreamLink, StreamState

MAX_EARLIER_SESSIONS: Final = 20
"""Sessions of the same user that a message is looked up in; older ones speak through the user's own stream."""

_LAYER_ORDER: Final[tuple[MemoryType, ...]] = ("collective", "user", "session")
"""What changes least comes first, so that a prompt's beginning stays the same for longest."""


@dataclass(frozen=True)
class Audience:
    """Who is present, and which streams they may see. Read from the store for every context anew."""

    scope: Scope
    users: tuple[str, ...]
    incognito: bool
    """An incognito session: it is read for, and leaves no trace."""
    stream: StreamState | None
    """The conversation's own stream."""
    targets: tuple[Target, ...]
    """The streams that they may see, in the order in which a context shows them."""
    streams: tuple[StreamState | None, ...]
    """The state of each of them; None where nothing was written yet."""
    earlier: tuple[Scope, ...]
    """This user's earlier sessions with the same agent, the latest first."""
    private: frozenset[Scope]
    """Streams of one user's own that they may not see."""

    @cached_property
    def searched(self) -> dict[MemoryType, tuple[Scope, ...]]:
        """Where a message is looked up, by the type of memory."""
        scopes: dict[MemoryType, list[Scope]] = {"session": [], "user": [*self.earlier], "collective": []}
        if self.scope not in self.private:
            scopes["session"].append(self.scope)
        for target in self.targets:
            if target.settings.fact_rag_enabled:
                scopes[layer_of(target, self.scope)].append(target.scope)
        return {layer: tuple(dict.fromkeys(found)) for layer, found in scopes.items()}

    def searched_in(self, memory_types: Iterable[MemoryType]) -> list[Scope]:
        """Where a message is looked up in these types of memory, each scope once."""
        return list(dict.fromkeys(scope for each in memory_types for scope in self.searched[each]))

    def asked_in(self, memory_types: Sequence[MemoryType]) -> list[Scope]:
        """The same for a question: of a user's scope that is no conversation, everything within."""
        scopes, whole = self.searched_in(memory_types), self.scope.everything
        if self.scope not in scopes or "user" not in self.scope.pairs or is_conversation(self.scope):
            return scopes
        return [whole, *(scope for scope in scopes if not whole.covers(scope))]

    @cached_property
    def visible(self) -> frozenset[Scope]:
        """Every scope whose memories they may see."""
        return frozenset([*self.searched_in(self.searched), *(target.scope for target in self.targets)])


def find_audience(store: Store, scope: Scope, users: Iterable[str], bounds: Bounds) -> Audience:
    """Find out who is present and what they may see within the bounds, all from one moment."""

    def find(store: Reading) -> Audience:
        stream = store.stream(scope)
        named = tuple(users)
        present = _present_users(store, scope, stream, named)
        # Who has spoken so far does not tell who asks: only the caller does, by the scope or by name.
        is_alone = len(present) == 1 and ("user" in scope.pairs or bool(named))
        targets = SettingsReader(store).targets(scope, present)
        own = (each for each in targets if each.user or ("user" in each.scope.pairs and each.scope != scope))
        private = frozenset[Scope]() if is_alone else frozenset(target.scope for target in own)
        shown = [target for target in targets if target.scope not in private and bounds.covers(target.scope)]
        shown.sort(key=lambda target: _LAYER_ORDER.index(layer_of(target, scope)))
        return Audience(
            scope=scope,
            users=present,
            incognito=is_incognito(store, scope),
            stream=stream,
            targets=tuple(shown),
            streams=tuple(store.stream(target.scope) for target in shown),
            earlier=_earlier_sessions(store, scope, shown, bounds) if is_alone else (),
            private=private,
        )

    return store.read([scope], find)


def layer_of(target: Target, conversation: Scope) -> MemoryType:
    """Which type of memory a stream is for a conversation."""
    if target.user:
        return "user"
    if target.scope == conversation or target.settings.owner[-1] in ("session", "thread"):
        return "session"
    return "user" if "user" in target.scope.pairs else "collective"


def _present_users(store: Reading, scope: Scope, stream: StreamState | None, users: Iterable[str]) -> tuple[str, ...]:
    """Everyone who takes part: named by the conversation, by the caller, or by a message of the log; also of the log
    of the same session that is kept under no user."""
    shared = None
    if is_conversation(scope) and "user" in scope.pairs:
        shared = store.stream(scope.only([key for key in scope.pairs if key != "user"]))
    sessions = [load_session(store, each) for each in (stream, shared)]
    spoke = [user for session in sessions if session for user in session.users]
    own = [scope.pairs["user"]] if "user" in scope.pairs else []
    return tuple(dict.fromkeys([*own, *users, *spoke]))


def is_conversation(scope: Scope) -> bool:
    return "session" in scope.pairs or "thread" in scope.pairs


def _earlier_sessions(
    store: Reading, conversation: Scope, shown: Sequence[Target], bounds: Bounds
) -> tuple[Scope, ...]:
    """Sessions that a user had alone, with the same agent, in the same tenant or project; the latest first."""

    def outer_keys(scope: Scope) -> dict[str, str]:
        return {key: value for key, value in scope.pairs.items() if key == "agent" or key not in LAYERS}

    earlier: list[Scope] = []
    for target in (target for target in shown if target.user):
        stream = store.stream(target.scope)
        links = store.load(StreamLink, stream=stream.id) if stream else []
        linked = store.streams(ids=[link.source for link in links]) if links else []
        for source in sorted(filter(lambda each: bounds.covers(each.scope), linked), key=lambda each: -each.id):
            scope = source.scope
            is_like = scope != conversation and is_conversation(scope) and outer_keys(scope) == outer_keys(conversation)
            if len(earlier) < MAX_EARLIER_SESSIONS and is_like:
                earlier += [scope] if _present_users(store, scope, source, ()) == (target.user,) else []
    return tuple(dict.fromkeys(earlier))
