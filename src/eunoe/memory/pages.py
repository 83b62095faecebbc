"""What a scope holds, all of it, read page by page."""

from collections.abc import Iterator
from typing import Any, Final

from eunoe.memory.memory import Memory
from eunoe.model.atom import Atom, Item
from eunoe.model.scope import ScopeLike

_PAGE: Final = 1000


def iterate(memory: Memory, scope: ScopeLike, *, after: str = "", limit: int = _PAGE, **wanted: Any) -> Iterator[Item]:
    """All that `memory.list` gives for a scope, read in pages of `limit`."""
    while True:
        page = memory.list(scope, limit=limit, after=after, **wanted)
        yield from page.items
        if not (after := page.next):
            return


def iterate_atoms(memory: Memory, scope: ScopeLike, *, limit: int = _PAGE, **wanted: Any) -> Iterator[Atom]:
    """The atoms among them."""
    return (item for item in iterate(memory, scope, limit=limit, **wanted) if isinstance(item, Atom))
