"""What an atom rests on: sources in its own scope or another one, in groups that each bear it out."""

from collections.abc import Iterable

from eunoe.errors import InputError, ScopeError
from eunoe.model.scope import Scope, Scopes, parse_scopes
from eunoe.model.validation import show

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
