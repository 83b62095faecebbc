"""What a page shows of one memory, one scope or one name, gathered in one go."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from eunoe.errors import AccessError, NotFoundError
from eunoe.memory import Memory
from eunoe.model.atom import Atom
from eunoe.model.graph import Neighbourhood
from eunoe.model.record import Item
from eunoe.model.scope import Scope
from eunoe.model.source import source_place

_MAX_SOURCES: Final = 50
_MAX_PASSAGES: Final = 20
_MAX_LINKS: Final = 600
"""Among a hundred names there can be thousands of links; more than this nobody can tell apart."""


def describe_item(memory: Memory, scope: Scope, id: str) -> dict[str, Any]:
    """A memory with its versions, what it rests on word for word, and how often it was recalled."""
    item = memory.get(scope, id)
    is_atom = isinstance(item, Atom)
    sources = find_sources(memory, item) if isinstance(item, Atom) else []
    return {
        "item": item,
        "versions": memory.history(scope, id) if is_atom else [],
        "sources": sources,
        "access": memory.admin.access_counts(scope, [id])[id]._asdict(),
    }


def find_sources(memory: Memory, atom: Atom) -> list[dict[str, Any]]:
    """The messages that an atom rests on; None for one that is gone or out of the caller's reach."""
    assert atom.scope
    places = [source_place(name, atom.scope) for name in atom.source[:_MAX_SOURCES]]
    return [{"scope": scope, "id": id, "item": _find(memory, scope, id)} for scope, id in places]


def _find(memory: Memory, scope: Scope, id: str) -> Item | None:
    try:
        return memory.get(scope, id)
    except (NotFoundError, AccessError):
        return None


def strongest_links(near: Neighbourhood) -> Neighbourhood:
    """The same with the links and passages that a picture has room for. Those of the name asked about come first."""
    links = sorted(near.links, key=lambda link: (near.entity not in (link.a, link.b), -link.weight))
    return replace(near, links=tuple(links[:_MAX_LINKS]), passages=near.passages[:_MAX_PASSAGES])
