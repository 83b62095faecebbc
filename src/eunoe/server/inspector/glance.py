"""One scope at a glance, with its sessions: how it stands, what is pinned, what came last, when it was busy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from eunoe.memory import Memory
from eunoe.model.atom import Atom
from eunoe.model.scope import Scope

_MAX_ATOMS: Final = 2_000
"""So many of the latest are looked through for what is pinned and for the chart."""
_SHOWN: Final = 10
_MAX_SCOPES: Final = 50
_MAX_BINS: Final = 48
_SHORTEST_BIN: Final = 60.0
"""Seconds: below that nobody asks when something was learned."""


def glance_at(memory: Memory, scope: Scope) -> dict[str, Any]:
    page = memory.recent(retired=True, limit=_MAX_ATOMS, within=scope)
    atoms = [item for item in page.items if isinstance(item, Atom)]
    is_open = [atom for atom in atoms if not atom.retired]
    bound = memory.guard.scope(scope.alone, "read")
    within = memory.streams.list(**scope.pairs)
    return {
        "stream": next((stream for stream in within if stream.scope == bound), None),
        "pinned": [atom for atom in is_open if atom.pinned][:_SHOWN],
        "latest": [atom for atom in is_open if not atom.pinned][:_SHOWN],
        "activity": {"bins": _bins(atoms), "counted": len(atoms), "complete": not page.next},
        "scopes": [each.scope for each in within if each.scope != bound][:_MAX_SCOPES],
        "notes": page.notes,
    }


def _bins(atoms: Sequence[Atom]) -> list[dict[str, Any]]:
    """How many were learned and retired, in equal steps of time."""
    learned = [atom.recorded.timestamp() for atom in atoms if atom.recorded]
    retired = [atom.retired.timestamp() for atom in atoms if atom.retired]
    if not learned:
        return []
    start, end = min(learned), max(learned + retired)
    width = max((end - start) / _MAX_BINS, _SHORTEST_BIN)
    count = min(int((end - start) / width) + 1, _MAX_BINS)

    def counted(moments: list[float]) -> Counter[int]:
        return Counter(min(int((moment - start) / width), count - 1) for moment in moments)

    by_name = {"learned": counted(learned), "retired": counted(retired)}
    starts = [datetime.fromtimestamp(start + width * place, UTC) for place in range(count)]
    return [
        {"start": begin} | {name: counts[place] for name, counts in by_name.items()}
        for place, begin in enumerate(starts)
    ]
