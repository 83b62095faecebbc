"""Bounds: the scopes beyond which a restricted memory neither reads nor writes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from eunoe.model.record import Record
from eunoe.model.scope import Scope
from eunoe.model.source import source_place, unique_supports

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
