"""A lease: that one worker, and no other, does a piece of work in a scope for a while."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from eunoe.errors import InputError
from eunoe.model.validation import show


@dataclass(frozen=True, slots=True)
class Lease:
    """What a worker holds. Whoever has it may write what the work gave."""

    name: str
    owner: str
    """Random; it tells this lease from all others of the same name."""
    data: Mapping[str, Any] = field(default_factory=dict)
    attempts: int = 0
    """How often the work has failed."""
    seconds: float = 0.0
    """How long it lasts without being renewed."""


@dataclass(frozen=True, slots=True)
class LeaseStatus:
    """How a piece of work stands."""

    name: str
    data: Mapping[str, Any] = field(default_factory=dict)
    is_held: bool = False
    until: datetime | None = None
    """Until when it is held."""
    attempts: int = 0
    retry: datetime | None = None
    """Not to be tried again before this moment."""
    error: str = ""
    """How the last attempt failed."""


def check_lease(lease: object) -> Lease:
    if not isinstance(lease, Lease):
        raise InputError(f"lease is {show(lease)}: give one that memory.leases.acquire returned")
    return lease


def check_optional_lease(lease: object) -> Lease | None:
    return None if lease is None else check_lease(lease)
