"""Versions of a summary: committed by compare and swap, never overwritten, purged of what is forgotten."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from eunoe.model.stream import Revision
from eunoe.store.contract import Store, StreamRow


def all_of(store: Store, stream: StreamRow | None) -> list[Revision]:
    raise NotImplementedError


def current(store: Store, stream: StreamRow | None) -> Revision | None:
    """The revision that counts, or None."""
    raise NotImplementedError


def commit(
    store: Store, stream: StreamRow, parent: int, text: str, absorbed: Sequence[str], author: str, now: int
) -> Revision:
    """Makes a new revision out of `parent` and these observations; ConflictError if `parent` is not current."""
    raise NotImplementedError


def revise(store: Store, stream: StreamRow, text: str, author: str, parent: int | None, now: int) -> Revision:
    raise NotImplementedError


def restore(store: Store, stream: StreamRow | None, number: int, now: int) -> Revision:
    raise NotImplementedError


def purge(store: Store, stream: StreamRow, gone: Collection[str]) -> bool:
    """Takes back every revision that had taken in one of these atoms; True if the summary must be written anew."""
    raise NotImplementedError
