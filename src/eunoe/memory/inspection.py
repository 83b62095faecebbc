"""The verbs of `Memory` for whoever looks after it: what it holds, what was learned last, what waits for
review, and what would be learned."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, TypeVar

from eunoe.engine import Engine
from eunoe.errors import InputError, ScopeError
from eunoe.memory.guard import Guard
from eunoe.model.arguments import (
    ATOM_KINDS,
    KINDS,
    AtomKind,
    Kind,
    TimeLike,
    as_list,
    check_choices,
    check_count,
    check_flag,
    check_id,
    check_names,
    normalize_path,
    parse_optional_time,
)
from eunoe.model.atom import Atom, Item
from eunoe.model.message import MessageLike, parse_messages
from eunoe.model.result import Page, Preview, Receipt
from eunoe.model.scope import Scope, ScopeLike
from eunoe.model.turn import user_named_by
from eunoe.records.pages import Choice, list_page, recent_page
from eunoe.records.reading import find_history, find_item, find_items
from eunoe.store.query import ItemQuery

if TYPE_CHECKING:
    from eunoe.recall.metadata_filter import Condition, Parts, Where

T = TypeVar("T")

_MAX_PAGE: Final = 10_000


class Inspection:
    """A part of `Memory`."""

    def __init__(self, engine: Engine, guard: Guard) -> None:
        self._engine = engine
        self._guard = guard

    def get(self, scope: ScopeLike, id: str, *, exact: bool = False) -> Item:
        """Return one message or atom, closed ones too. Raise NotFoundError if the scope has no such id.

        A user's scope means everything within, here and below, unless `exact` is set. Raise ConflictError if the id is
        not the user's own and several scopes within have it.
        """
        owner = self._guard.reach(scope, "read", exact)
        return self._guard.redact(self._engine.run(find_item, self._engine.store, owner, check_id(id)))

    def get_many(self, scope: ScopeLike, ids: str | Iterable[str], *, exact: bool = False) -> builtins.list[Item]:
        """Return those of several messages and atoms that are there, in the order of their ids; closed ones too.

        >>> with eunoe.open(":memory:") as memory:
        ...     _ = memory.remember("user=anna", "Anna likes tea.", id="tea")
        ...     [item.id for item in memory.get_many("user=anna", ["coffee", "tea"])]
        ['tea']
        """
        owner = self._guard.reach(scope, "read", exact)
        wanted = check_names(as_list(ids, "ids"), "ids")
        return self._guard.redact(self._engine.run(find_items, self._engine.store, owner, wanted))

    def view(self, scope: ScopeLike, name: str, build: Callable[[], T]) -> T:
        """Return what `build()` makes of a scope, kept in memory until something is said, remembered, changed or
        forgotten there, by whichever process.

        `build` reads this scope and nothing else. All callers get the same object: leave it as it is.

        >>> with eunoe.open(":memory:") as memory:
        ...     _ = memory.remember("user=anna", "Anna likes tea.")
        ...     memory.view("user=anna", "count", lambda: len(memory.list("user=anna").items))
        1
        """
        owner, checked = self._guard.scope(scope, "read"), check_id(name, "name")
        if not callable(build):
            raise InputError(f"build must be a function, not {type(build).__name__}")
        view: T = self._engine.run(self._engine.views.view, owner, self._guard.bounds, checked, build)
        return view

    def by_files(self, scope: ScopeLike, paths: Iterable[str], *, exact: bool = False) -> builtins.list[Atom]:
        """Return what is remembered about these files, or about files in these folders; latest first."""
        owner = self._guard.reach(scope, "read", exact)
        if paths is None:
            raise InputError("paths is None: name a file, or several in a list")
        wanted = [normalize_path(path) for path in check_names(as_list(paths, "paths"), "paths")]
        return self._guard.redact(self._engine.run(self._engine.by_files, owner, wanted))

    def scopes(self, /, **keys: str) -> builtins.list[Scope]:
        """Return all scopes that hold something, or those of them that have these keys with these values.

        Fingerprints of what was forgotten count too: they move with an export.

        >>> with eunoe.open(":memory:") as memory:
        ...     _ = memory.remember({"user": "anna", "agent": "cook"}, "Anna likes garlic.")
        ...     memory.scopes(user="anna")
        [Scope(agent='cook', user='anna')]
        """
        return self._engine.run(self._engine.scopes, self._guard.keys(keys, "read"), self._guard.bounds)

    def history(self, scope: ScopeLike, id: str, *, exact: bool = False) -> builtins.list[Atom]:
        """Return all versions of an atom, oldest first."""
        checked = self._guard.reach(scope, "read", exact), check_id(id)
        return self._guard.redact(self._engine.run(find_history, self._engine.store, *checked))

    def list(
        self,
        scope: ScopeLike,
        *,
        kinds: Iterable[Kind] = KINDS,
        labels: Iterable[str] = (),
        limit: int = 50,
        after: str = "",
        retired: bool = False,
        newest: bool = False,
        known_at: TimeLike | None = None,
        where: Where | None = None,
        offset: int = 0,
        exact: bool = False,
    ) -> Page[Item]:
        """Return what the scope holds, oldest first or newest first, a page at a time.

        What no longer holds is there too. Each item says its scope.

        Args:
            retired: what was superseded, archived or retracted too.
            where: conditions on metadata, as in `recall`.
            offset: so many that fit are passed over first.
            known_at: what the store held at that moment.
            exact: the one scope that is named, where a user's would mean everything within.
        """
        owner = self._guard.reach(scope, "read", exact)
        condition, parts = (None, ()) if where is None else _parse_where(where)
        query = ItemQuery(
            kinds=check_choices(kinds, "kinds", KINDS),
            open=not check_flag(retired, "retired"),
            known_at=parse_optional_time(known_at, "known_at"),
            order="newest" if check_flag(newest, "newest") else "seq",
            limit=check_count(limit, "limit", most=_MAX_PAGE),
            offset=check_count(offset, "offset", least=0),
            metadata_parts=parts,
        )
        chosen = Choice(frozenset(check_names(as_list(labels, "labels"), "labels")), condition)
        page = self._engine.run(list_page, self._engine.store, owner, query, chosen, after, self._guard.bounds)
        return self._guard.redact(page)

    def recent(
        self,
        /,
        *,
        since: TimeLike | None = None,
        until: TimeLike | None = None,
        limit: int = 50,
        after: str = "",
        kinds: Iterable[AtomKind] = ATOM_KINDS,
        retired: bool = False,
        in_review: bool | None = None,
        within: ScopeLike | None = None,
        exact: bool = False,
        **keys: str,
    ) -> Page[Item]:
        """Return the facts and observations that were learned last, of all scopes or of one.

        The latest comes first, a page at a time; each says its scope. Keys name a scope as they do for `recall`: a
        user's means everything within, any other itself alone.

        Args:
            since, until: when they were recorded, `until` itself not included.
            retired: what was superseded or archived too.
            in_review: only those that wait to be looked at, or only the others.
            within: the scope, in place of its keys; `agent=cook/*` means everything within.
            exact: the one scope that is named, where a user's would mean everything within.

        >>> with eunoe.open(":memory:") as memory:
        ...     _ = memory.remember("user=anna", "Anna likes tea.")
        ...     _ = memory.remember("user=ben", "Ben likes coffee.")
        ...     [item.text for item in memory.recent().items], [item.text for item in memory.recent(user="anna").items]
        (['Ben likes coffee.', 'Anna likes tea.'], ['Anna likes tea.'])
        """
        asked, bounds = _parse_within(within, keys), self._guard.bounds
        if asked is None:
            whole = bounds.narrowed(self._guard.keys({}, "read"))
            scopes = whole and [scope.everything for scope in whole]
        else:
            scopes = [self._guard.reach(asked, "read", exact)]
        query = ItemQuery(
            kinds=check_choices(kinds, "kinds", ATOM_KINDS),
            open=not check_flag(retired, "retired"),
            since=parse_optional_time(since, "since"),
            before=parse_optional_time(until, "until"),
            in_review=in_review is not None and check_flag(in_review, "in_review"),
            reviewed=in_review is False,
            limit=check_count(limit, "limit", most=_MAX_PAGE),
        )
        return self._guard.redact(self._engine.run(recent_page, self._engine.store, scopes, query, after, bounds))

    def review(
        self, scope: ScopeLike, ids: str | Iterable[str], keep: bool = True, *, exact: bool = False
    ) -> builtins.list[Receipt]:
        """Keep new memories that wait for review: from then on they are recalled, and close what they were to close.

        With `keep=False` they wait again, and what they had closed is in force again. To correct or to pin one keeps
        it too; `forget` rejects it. Which streams have new memories wait is a setting, see docs/forming.md.

        >>> with eunoe.open(":memory:", llm="none") as memory:
        ...     _ = memory.streams.configure("user=anna", review="all")
        ...     _ = memory.observe("user=anna", "I am allergic to peanuts.")
        ...     _ = memory.form("user=anna")
        ...     (atom,) = memory.recent(in_review=True).items
        ...     before = len(memory.recall("user=anna", "peanuts", kinds=["fact", "observation"]))
        ...     _ = memory.review("user=anna", atom.id)
        ...     before, len(memory.recall("user=anna", "peanuts", kinds=["fact", "observation"]))
        (0, 1)
        """
        owner = self._guard.reach(scope, "write", exact)
        wanted = [check_id(id, "ids") for id in check_names(as_list(ids, "ids"), "ids")]
        return self._engine.run(self._engine.review, owner, wanted, check_flag(keep, "keep"))

    def preview(self, scope: ScopeLike, messages: MessageLike | Iterable[MessageLike] | None = None) -> Preview:
        """Return what would be learned from messages in this scope, and is not known yet; nothing is kept.

        They are formed as `observe` and `form` would, with the settings of the streams that they feed, each on its own:
        what came before is not looked at. A language model is asked, and what that takes is counted. The answer also
        names the atoms that are doubtful, and the messages that were passed over, each with the reason.

        Args:
            messages: without any, those of the conversation that are still to be formed.

        >>> with eunoe.open(":memory:", llm="none") as memory:
        ...     found = memory.preview("user=anna", ["I am allergic to peanuts.", "What time is it?"])
        ...     [atom.text for atom in found.items], memory.scopes()
        (['anna: I am allergic to peanuts.'], [])
        >>> [(message.text, message.reason) for message in found.passed_over]
        [('What time is it?', 'it only asks')]
        """
        from eunoe.memory.preview import preview

        owner = self._guard.scope(scope, "write")
        if messages is None:
            self._guard.allow("read")  # it shows what was said
        parsed = None if messages is None else parse_messages(messages, owner.pairs.get("session", ""))
        self._guard.allow_users(filter(None, map(user_named_by, parsed or ())), owner)
        return self._guard.redact(self._engine.run(preview, self._engine, owner, parsed, self._guard.bounds))


def _parse_where(where: Where) -> tuple[Condition, tuple[Parts, ...]]:
    from eunoe.recall.metadata_filter import needed_parts, parse_where

    return parse_where(where), needed_parts(where)


def _parse_within(within: ScopeLike | None, keys: Mapping[str, str]) -> Scope | None:
    if within is None:
        return Scope(**keys) if keys else None
    try:
        scope = Scope.of(within)
    except ScopeError as error:
        raise InputError(f"within: {error}") from None
    return (scope.extended(keys).everything if scope.within else scope.extended(keys)) if keys else scope
