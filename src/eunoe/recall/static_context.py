"""What always stands in a context: whose memory it shows, and each stream's summary, observations and facts."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from threading import Lock
from typing import Final

from eunoe.model.scope import Scope
from eunoe.model.stream import Target
from eunoe.model.time import from_micros, micros
from eunoe.records import jobs, streams
from eunoe.records.rows import source_place, sources
from eunoe.records.streams import LAYERS
from eunoe.store.contract import Row, Store, StreamRow

COLLECTIVE: Final = "collective"
USER: Final = "user"
SESSION: Final = "session"
KINDS_OF_MEMORY: Final = (SESSION, USER, COLLECTIVE)
_EARLIER: Final = 20
_LIFETIME: Final = timedelta(seconds=300)
_SLOTS: Final = 128
_FEW: Final = 10
"""So many times what a window holds are read at once; from more than that only the latest are."""


@dataclass(frozen=True)
class Scene:
    """Who is present, and which streams may be shown to them. Read from the store for every context anew."""

    scope: Scope
    users: tuple[str, ...]
    hidden: bool
    """An incognito session: it is read for, and leaves no trace."""
    here: StreamRow | None
    """The conversation's own stream."""
    shown: tuple[Target, ...]
    rows: tuple[StreamRow | None, ...]
    """The streams of the targets."""
    earlier: tuple[Scope, ...]
    """This user's earlier sessions with the same agent, the latest first."""
    private: frozenset[Scope]
    """Streams of one user's own that this company may not see."""

    @cached_property
    def searched(self) -> dict[str, tuple[Scope, ...]]:
        """Where a message is looked up, by the kind of memory."""
        found: dict[str, list[Scope]] = {SESSION: [], USER: [*self.earlier], COLLECTIVE: []}
        if self.scope not in self.private:
            found[SESSION].append(self.scope)
        for target in self.shown:
            if target.settings.fact_rag_enabled:
                found[layer_of(target, self.scope)].append(target.scope)
        return {layer: tuple(dict.fromkeys(scopes)) for layer, scopes in found.items()}

    @cached_property
    def covered(self) -> frozenset[Scope]:
        """Every scope whose memories this company may see."""
        searched = (scope for scopes in self.searched.values() for scope in scopes)
        return frozenset([*searched, *(target.scope for target in self.shown)])


@dataclass(frozen=True, slots=True)
class Note:
    """One memory as it is told."""

    text: str
    when: datetime
    kind: str = "fact"
    speaker: str = ""
    sources: tuple[str, ...] = ()
    pinned: bool = False
    until: datetime | None = None
    """When it ceases to be true, if that is known."""
    seq: int = 0


@dataclass(frozen=True, slots=True)
class Part:
    """One stream as it stands in a context."""

    layer: str
    name: str
    summary: str = ""
    observations: tuple[Note, ...] = ()
    facts: tuple[Note, ...] = ()

    @property
    def notes(self) -> tuple[Note, ...]:
        return self.observations + self.facts


def scene(store: Store, scope: Scope, users: Iterable[str]) -> Scene:
    """Who is present and what they may see, all from one moment."""
    with store.reading():
        here = store.stream(str(scope))
        named = tuple(users)
        present = _present(store, scope, here, named)
        # Who has spoken so far does not tell who asks: only the caller does, by the scope or by name.
        alone = len(present) == 1 and ("user" in scope or bool(named))
        targets = streams.targets(store, scope, present)
        private = frozenset(target.scope for target in targets if not alone and _is_private(target, scope))
        shown = _in_order([target for target in targets if target.scope not in private], scope)
        return Scene(
            scope=scope,
            users=present,
            hidden=jobs.is_hidden(store, scope),
            here=here,
            shown=shown,
            rows=tuple(store.stream(str(target.scope)) for target in shown),
            earlier=_earlier(store, scope, shown) if alone else (),
            private=private,
        )


def _present(store: Store, scope: Scope, here: StreamRow | None, users: Iterable[str]) -> tuple[str, ...]:
    """Everyone who takes part: named by the conversation, by the caller, or by a message of the log; also of the log
    of the same session that is kept under no user."""
    shared = store.stream(str(_shared(scope))) if _is_talk(scope) else None
    spoke = [user for row in (here, shared) if row for user in jobs.users_of(store.books.session(row.id))]
    own = [scope["user"]] if "user" in scope else []
    return tuple(dict.fromkeys([*own, *users, *spoke]))


def _is_talk(scope: Scope) -> bool:
    return "session" in scope or "thread" in scope


def _shared(scope: Scope) -> Scope:
    return Scope(**{key: value for key, value in scope.items() if key != "user"})


def _is_private(target: Target, conversation: Scope) -> bool:
    return bool(target.user) or ("user" in target.scope and target.scope != conversation)


def _in_order(targets: Sequence[Target], conversation: Scope) -> tuple[Target, ...]:
    """What changes least comes first, so that a prompt's beginning stays the same for longest."""
    order = (COLLECTIVE, USER, SESSION)
    return tuple(sorted(targets, key=lambda target: order.index(layer_of(target, conversation))))


def layer_of(target: Target, conversation: Scope) -> str:
    if target.user:
        return USER
    if target.scope == conversation or target.settings.owner[-1] in ("session", "thread"):
        return SESSION
    return USER if "user" in target.scope else COLLECTIVE


def _earlier(store: Store, conversation: Scope, shown: Sequence[Target]) -> tuple[Scope, ...]:
    found: list[Scope] = []
    for target in (target for target in shown if target.user):
        row = store.stream(str(target.scope))
        linked = sorted(store.books.rests_on(row.id), key=lambda each: -each.id) if row else []
        for stream in linked:
            if len(found) < _EARLIER and _is_earlier(store, stream, conversation, target.user):
                found.append(Scope.parse(stream.scope))
    return tuple(dict.fromkeys(found))


def _is_earlier(store: Store, stream: StreamRow, conversation: Scope, user: str) -> bool:
    """A session that this user had alone, with the same agent, in the same tenant or project."""
    scope = Scope.of(stream.scope)
    if scope == conversation or not _is_talk(scope) or _around(scope) != _around(conversation):
        return False
    return _present(store, scope, stream, ()) == (user,)


def _around(scope: Scope) -> dict[str, str]:
    return {key: value for key, value in scope.items() if key == "agent" or key not in LAYERS}


def parts(store: Store, scene: Scene, now: datetime, named: bool) -> list[Part]:
    """What each stream has to say; `named` with the sources of each memory."""
    pairs = zip(scene.shown, scene.rows, strict=True)
    with store.reading():
        return [_part(store, scene, target, row, now, named) for target, row in pairs if row is not None]


def _part(store: Store, scene: Scene, target: Target, row: StreamRow, now: datetime, named: bool) -> Part:
    settings, instant = target.settings, micros(now)
    facts = store.books.latest(row.id, "fact", settings.fact_buffer_max)
    waiting = _waiting(store, row, settings.observation_buffer_max)

    def told(rows: Iterable[Row]) -> tuple[Note, ...]:
        standing = (each for each in rows if each.valid_to is None or each.valid_to > instant)
        return tuple(note_of(each, target.scope, scene.covered if named else frozenset()) for each in standing)

    return Part(
        layer=layer_of(target, scene.scope),
        name=target.scope.get(target.settings.owner[-1]) or str(target.scope),
        summary=_summary(store, row),
        observations=told(waiting),
        facts=told(reversed(facts)),
    )


def _waiting(store: Store, row: StreamRow, most: int) -> list[Row]:
    """The latest observations that no summary holds, oldest first."""
    count = store.books.unabsorbed_count(row.id) if most else 0
    if count <= _FEW * most:
        return store.books.unabsorbed(row.id)[-most:] if count else []
    absorbed, asked, found = store.books.absorbed(row.id), most, list[Row]()
    while len(found) < most:
        asked *= 2
        found = [each for each in store.books.latest(row.id, "observation", asked) if each.id not in absorbed]
    return found[most - 1 :: -1]


def _summary(store: Store, row: StreamRow) -> str:
    summary = store.books.summary(row.id)
    revision = store.books.revision(row.id, summary.revision) if summary and summary.revision else None
    return revision.text.strip() if revision else ""


def note_of(row: Row, scope: Scope, covered: frozenset[Scope]) -> Note:
    """A row as it is told; of its sources only those that the company may see are named."""
    return Note(
        text=row.text,
        when=from_micros(row.recorded if row.time is None else row.time),
        kind=row.kind,
        sources=tuple(_named(row, scope, covered)) if covered else (),
        pinned=bool(row.pinned),
        until=None if row.valid_to is None else from_micros(row.valid_to),
        seq=row.seq,
    )


def _named(row: Row, scope: Scope, covered: frozenset[Scope]) -> Iterator[str]:
    for name in (row.id,) if row.kind == "message" else sources(row):
        place, id = source_place(name, scope)
        if place in covered:
            yield id


@dataclass(frozen=True, slots=True)
class Static:
    """The part of a context that stays: written out, with the rows it shows."""

    body: str = ""
    seqs: frozenset[int] = frozenset()
    words: frozenset[str] = frozenset()
    """What it says, summaries by line and by sentence, as duplicates are compared."""
    until: datetime | None = None
    """When the first of it ceases to be true."""


@dataclass(frozen=True, slots=True)
class _Slot:
    stamp: Hashable
    clock: datetime
    parts: Sequence[Part]
    static: Static


class Statics:
    """Static layers at hand: for five minutes, and only while no stream in them moves."""

    def __init__(self) -> None:
        self._slots: OrderedDict[Hashable, _Slot] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._slots)

    def clear(self) -> None:
        with self._lock:
            self._slots.clear()

    def get(
        self,
        key: Hashable,
        stamp: Hashable,
        now: datetime,
        read: Callable[[], Sequence[Part]],
        write: Callable[[Sequence[Part], datetime], Static],
    ) -> Static:
        """The layer under this key if its stamp is still the same, else as it is read and written anew.

        Ages are told as of one moment for five minutes, so that what did not change keeps its bytes.
        """
        with self._lock:
            slot = self._slots.get(key)
        if slot and not timedelta(0) <= now - slot.clock < _LIFETIME:
            slot = None
        if slot and slot.stamp == stamp and (slot.static.until is None or now < slot.static.until):
            return slot.static
        parts, clock = read(), slot.clock if slot else now
        same = slot is not None and slot.parts == parts
        static = slot.static if slot and same else write(parts, clock)
        self._keep(key, _Slot(stamp, clock, parts, static))
        return static

    def _keep(self, key: Hashable, slot: _Slot) -> None:
        with self._lock:
            self._slots[key] = slot
            self._slots.move_to_end(key)
            while len(self._slots) > _SLOTS:
                self._slots.popitem(last=False)
