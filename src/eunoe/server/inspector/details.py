"""What a page shows of one memory, one scope or one name, gathered in one go."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from eunoe.errors import AccessError, NotFoundError
from eunoe.memory import Memory
from eunoe.model.atom import Atom, Item, source_place
from eunoe.model.json import json_value
from eunoe.model.result import Context, Neighbourhood
from eunoe.model.scope import Scope

_MAX_SOURCES: Final = 50
_MAX_PASSAGES: Final = 20
_MAX_LINKS: Final = 600
"""Among a hundred names there can be thousands of links; more than this nobody can tell apart."""
_MAX_REVISIONS: Final = 200
_MAX_ABSORBED: Final = 40
_MAX_HIT_CHARACTERS: Final = 800


def describe_item(memory: Memory, scope: Scope, id: str) -> dict[str, Any]:
    """A memory with its versions, what it rests on word for word, and how often it was recalled."""
    item = memory.get(scope, id)
    is_atom, owner = isinstance(item, Atom), item.scope or scope
    sources = find_sources(memory, item) if isinstance(item, Atom) else []
    return {
        "item": item,
        "versions": memory.history(owner, id, exact=True) if is_atom else [],
        "sources": sources,
        "access": memory.admin.access_counts(owner, [id], exact=True)[id]._asdict(),
    }


def find_sources(memory: Memory, atom: Atom) -> list[dict[str, Any]]:
    """The messages that an atom rests on; None for one that is gone or out of the caller's reach."""
    assert atom.scope
    places = [source_place(name, atom.scope) for name in atom.source[:_MAX_SOURCES]]
    return [{"scope": scope, "id": id, "item": _find(memory, scope, id)} for scope, id in places]


def _find(memory: Memory, scope: Scope, id: str) -> Item | None:
    try:
        return memory.get(scope, id, exact=True)
    except (NotFoundError, AccessError):
        return None


def strongest_links(near: Neighbourhood) -> Neighbourhood:
    """The same with the links and passages that a picture has room for. Those of the name asked about come first."""
    links = sorted(near.links, key=lambda link: (near.entity not in (link.a, link.b), -link.weight))
    return replace(near, links=tuple(links[:_MAX_LINKS]), passages=near.passages[:_MAX_PASSAGES], relations=())


def latest_revisions(memory: Memory, scope: Scope) -> list[dict[str, Any]]:
    """Revisions of a summary, the latest first, without their texts."""
    revisions = memory.summaries.revisions(scope)[::-1][:_MAX_REVISIONS]
    fields = ("number", "parent", "author", "recorded", "current")
    return [
        {name: getattr(revision, name) for name in fields} | {"absorbed": len(revision.absorbed)}
        for revision in revisions
    ]


def absorbed_items(memory: Memory, scope: Scope, number: int) -> list[dict[str, Any]]:
    """The atoms that a revision absorbed, each with the messages it came from."""
    ids = next((each.absorbed for each in memory.summaries.revisions(scope) if each.number == number), ())
    found = (_find(memory, scope, id) for id in ids[:_MAX_ABSORBED])
    return [{"item": atom, "sources": find_sources(memory, atom)} for atom in found if isinstance(atom, Atom)]


def summary_scope(memory: Memory) -> str:
    """A scope whose summary has been written, or nothing."""
    return next((stream.scope.text for stream in memory.streams.list() if stream.revision), "")


def context_summary(context: Context) -> dict[str, Any]:
    """A context whole, and of its hits as much as a list shows."""
    hits = json_value(context.hits)
    for hit in hits:
        if len(hit["text"]) > _MAX_HIT_CHARACTERS:
            hit["text"] = {"cut": hit["text"][:_MAX_HIT_CHARACTERS], "length": len(hit["text"])}
        hit["metadata"] = {}
    names = ("text", "tokens", "query", "faults", "notes")
    static_length = len(context.static) if context.text.startswith(context.static) else 0
    return {name: getattr(context, name) for name in names} | {"static_length": static_length, "hits": hits}
