"""The files that a server keeps beside its store, by which local clients find it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """Where they lie."""

    state: Path
    """What the server keeps of its own: keys, audit, jobs."""
    token: Path
    """The token of whoever owns the store."""
    address: Path
    """Where the server listens, as long as it runs."""

    @classmethod
    def beside(cls, store: str | Path) -> LocalFiles:
        path = Path(store)
        return cls(*(path.with_suffix(suffix) for suffix in (".server.db", ".token", ".server.json")))
