"""Guard: what a memory may be used for. Every verb asks it, so that nothing above the verbs has to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar, cast

from eunoe.errors import AccessError, InputError, ScopeError
from eunoe.model.arguments import RIGHTS, Right, as_list, check_choices, check_flag, check_name, show
from eunoe.model.atom import NO_BOUNDS, Atom, Bounds, check_sources, source_name, source_place
from eunoe.model.result import Context, Hit, Hits, Page
from eunoe.model.scope import Scope, ScopeLike, Scopes, parse_keys, parse_scopes
from eunoe.model.stream import MODEL_SETTINGS
from eunoe.model.turn import user_named_by
from eunoe.records.log import is_user_name
from eunoe.store.schema import Tombstone
from eunoe.transfer.lines import ItemLine, ScopedLine, SessionLine, SettingsLine

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Guard:
    """A tenant, the bounds within it, and the rights there. It reads nothing, and so has nothing to tell."""

    tenant: str = ""
    """Part of every scope that is named; empty for none."""
    bounds: Bounds = NO_BOUNDS
    rights: frozenset[Right] = frozenset(RIGHTS)

    def allow(self, right: Right) -> None:
        """Refuse a verb whose right is missing."""
        if right not in self.rights:
            raise AccessError(f"the right {right!r} is missing: use a key, or a memory, that has it")

    def allow_store(self, right: Right) -> None:
        """Refuse what is about the whole store to whoever lacks the right, or has only a part of it."""
        self.allow(right)
        self.allow_whole()

    def allow_whole(self) -> None:
        """Refuse a verb about the whole store to whoever has only a part of it."""
        if self.bounds.scopes:
            raise AccessError("this is about the whole store: use a memory without a tenant and without scopes")

    def scope(self, scope: ScopeLike) -> Scope:
        """Return one scope alone, with the tenant, if it is within the bounds."""
        parsed = Scope.of(scope)
        if parsed.within:
            raise ScopeError(f"{show(parsed.text)} means many scopes, and this is about one: leave out '/*'")
        return self._within(parsed)

    def reach(self, scope: ScopeLike, exact: bool = False) -> Scope:
        """Return what a scope means to a verb that reads or forgets: of a user, everything within, unless it is to be
        exact. What lies within other scopes may be of other people: that takes `/*`, and the right "admin"."""
        parsed = Scope.of(scope)
        if check_flag(exact, "exact"):
            if parsed.within:
                raise ScopeError(f"{show(parsed.text)} means everything within, so it cannot be exact: leave out '/*'")
            return self._within(parsed)
        if "user" in parsed.pairs:
            return self._within(parsed).everything
        if parsed.within:
            self.allow("admin")
            return self._within(parsed).everything
        return self._within(parsed)

    def reaches(self, scopes: Scopes, exact: bool = False) -> list[Scope]:
        """Return what one scope or several mean, as `reach` does, each once; one that is out of bounds refuses them
        all."""
        meant = list(dict.fromkeys(self.reach(scope, exact) for scope in parse_scopes(scopes)))
        wide = [scope for scope in meant if scope.within]
        return [scope for scope in meant if not any(each != scope and each.covers(scope) for each in wide)]

    def keys(self, keys: Mapping[str, str]) -> Mapping[str, str]:
        """Return keys that scopes are to have, with the tenant."""
        wanted = parse_keys(keys)
        if self.tenant and wanted.get("tenant", self.tenant) != self.tenant:
            raise AccessError(_OTHER_TENANT)
        return {**wanted, "tenant": self.tenant} if self.tenant else wanted

    def source_scopes(self, scopes: Scopes) -> list[Scope]:
        """Return the scopes that sources may be in. Who names one has to have the right to read it."""
        named = _parse_scopes(scopes, "source_scopes")
        if named:
            self.allow("read")
        return [self._within(scope) for scope in named]

    def sources(self, names: Iterable[str], owner: Scope) -> tuple[str, ...]:
        """Return the names of an atom's sources, each with its whole scope, which has to be within the bounds."""
        return tuple(self._source(name, owner) for name in names) if self.bounds.scopes else tuple(names)

    def atoms(self, atoms: Sequence[Atom], owner: Scope, source_scopes: Scopes) -> Sequence[Atom]:
        """Return atoms that are to be kept, if every source is in their own scope or in one that is named."""
        named = self.source_scopes(source_scopes)
        if self.bounds.scopes:
            atoms = [replace(atom, source=self.sources(atom.source, owner)) for atom in atoms]
        check_sources([name for atom in atoms for name in atom.source], owner, [*named])
        return atoms

    def changes(self, changes: Mapping[str, Any], owner: Scope) -> Mapping[str, Any]:
        """Return the changes of an atom, its sources with their whole scopes."""
        names = changes.get("source")
        if not self.bounds.scopes or not isinstance(names, list | tuple | set | frozenset):
            return changes
        return {**changes, "source": [self._source(name, owner) for name in names]}

    def allow_users(self, users: Iterable[str], owner: Scope) -> None:
        """Refuse the words of other users in a conversation of somebody's own: their memory would learn from them."""
        if self.bounds.scopes:
            for user in filter(is_user_name, users):
                self._within(owner.extended({"user": user}))

    def allow_settings(self, changes: Mapping[str, Any]) -> None:
        """Refuse a model that is not the store's own: what a stream holds would be sent there."""
        if any(changes.get(name) for name in MODEL_SETTINGS):
            self.allow_whole()

    def line(self, line: ScopedLine) -> ScopedLine:
        """Return a line of an import with its whole scope, if it may be imported."""
        scope, content = line
        if scope is None:  # a preset, which is the store's own
            self.allow_store("admin")
            return line
        owner = self._within(scope)
        match content:
            case ItemLine(record=record):
                self.allow_users([user_named_by(record)], owner)
                groups = tuple(tuple(self._source(name, owner) for name in group) for group in record.supports)
                content = content._replace(record=record._replace(supports=groups))
            case SessionLine(users=users):
                self.allow_users(users, owner)
            case SettingsLine(changes=changes):
                self.allow_settings(changes)
            case Tombstone():  # it keeps words out for good, as forgetting them does
                self.allow("forget")
        return owner, content

    def redact(self, result: T) -> T:
        """Return what a verb gives, without the names of sources that are out of bounds."""
        return cast("T", _redact(result, self.bounds)) if self.bounds.scopes else result

    def narrowed(self, tenant: str, scopes: Scopes, rights: Iterable[Right]) -> Guard:
        """Return a guard that allows what this one does and the other three do."""
        chosen = frozenset(check_choices(as_list(rights, "rights"), "rights", RIGHTS))
        own = _parse_tenant(tenant) or self.tenant
        if self.tenant and own != self.tenant:
            raise AccessError(_OTHER_TENANT)
        whole = self.bounds.scopes or ((Scope(tenant=own),) if own else ())
        named = _parse_scopes(scopes, "scopes") or whole
        bounds = Bounds(tuple(_with_tenant(scope.alone, own) for scope in named))
        outer = self.bounds, Bounds((Scope(tenant=own),) if own else ())
        if not all(each.covers(scope) for each in outer for scope in bounds.scopes):
            raise AccessError("a scope is out of reach: name scopes of this tenant, within those there are")
        return Guard(own, bounds, chosen & self.rights)

    def _within(self, scope: Scope) -> Scope:
        if not self.bounds.scopes:
            return scope
        whole = _with_tenant(scope, self.tenant)
        if not self.bounds.covers(whole):
            raise AccessError(f"{show(scope.text)} is out of reach: name a scope within those of the key")
        return whole

    def _source(self, name: object, owner: Scope) -> Any:
        if not isinstance(name, str):
            return name  # whoever reads the changes says what is wrong with it
        scope, id = source_place(name, owner)
        return name if scope == owner else source_name(self._within(scope), id, owner)


def _redact(result: object, bounds: Bounds) -> object:
    match result:
        case Atom(scope=Scope() as owner):
            return replace(result, source=bounds.sources(result.source, owner))
        case Hits():
            return Hits(_shown_hits(result, bounds), result.notes)
        case Context():
            return replace(result, hits=_shown_hits(result.hits, bounds))
        case Page():
            return replace(result, items=tuple(_redact(item, bounds) for item in result.items))
        case list():
            return [_redact(item, bounds) for item in result]
        case _:
            return result


def _shown_hits(hits: Iterable[Hit], bounds: Bounds) -> tuple[Hit, ...]:
    return tuple(replace(hit, record=bounds.record(hit.record, hit.scope)) for hit in hits)


def _parse_scopes(scopes: Scopes, name: str) -> list[Scope]:
    try:
        return parse_scopes(scopes) if scopes not in ((), []) else []
    except ScopeError as error:
        raise InputError(f"{name}: {error}") from None


def _parse_tenant(tenant: str) -> str:
    try:
        return Scope(tenant=check_name(tenant, "tenant")).pairs["tenant"] if tenant != "" else ""
    except ScopeError as error:
        raise InputError(f"tenant: {error}") from None


def _with_tenant(scope: Scope, tenant: str) -> Scope:
    return scope.extended({"tenant": tenant}) if tenant and "tenant" not in scope.pairs else scope


_OTHER_TENANT: Final = "another tenant is out of reach: leave the tenant out, it is added by itself"
OPEN: Final = Guard()
"""The guard of a memory that nothing restricts."""
