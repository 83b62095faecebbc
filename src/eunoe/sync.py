"""The blocking face of Memory: the same verbs, run to their end in the caller's own thread."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from eunoe.engine import Memory, here

P = ParamSpec("P")
R = TypeVar("R")


def blocking(verb: Callable[Concatenate[Memory, P], Coroutine[Any, Any, R]]) -> Callable[Concatenate[SyncMemory, P], R]:
    """The blocking twin of an async verb, with its signature and its documentation."""

    @functools.wraps(verb)
    def call(self: SyncMemory, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return _finished(verb(self.memory, *args, **kwargs))

    return call


class SyncMemory:
    """Every verb of `Memory`, blocking. Safe to share between threads."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    @property
    def target(self) -> str:
        """Where the memory rests."""
        return self.memory.target

    observe = blocking(Memory.observe)
    remember = blocking(Memory.remember)
    remember_many = blocking(Memory.remember_many)
    recall = blocking(Memory.recall)
    by_files = blocking(Memory.by_files)
    graph = blocking(Memory.graph)
    associate = blocking(Memory.associate)
    get = blocking(Memory.get)
    list = blocking(Memory.list)
    scopes = blocking(Memory.scopes)
    history = blocking(Memory.history)
    update = blocking(Memory.update)
    pin = blocking(Memory.pin)
    forget = blocking(Memory.forget)
    export = blocking(Memory.export)
    import_ = blocking(Memory.import_)
    form = blocking(Memory.form)
    flush = blocking(Memory.flush)
    process_cold_sessions = blocking(Memory.process_cold_sessions)
    consolidate = blocking(Memory.consolidate)
    context = blocking(Memory.context)
    look_up = blocking(Memory.look_up)
    streams = blocking(Memory.streams)
    configure = blocking(Memory.configure)
    presets = blocking(Memory.presets)
    preset = blocking(Memory.preset)
    revisions = blocking(Memory.revisions)
    restore = blocking(Memory.restore)
    revise = blocking(Memory.revise)
    tidy = blocking(Memory.tidy)
    unarchive = blocking(Memory.unarchive)
    uses = blocking(Memory.uses)
    incognito = blocking(Memory.incognito)
    status = blocking(Memory.status)
    reindex = blocking(Memory.reindex)
    re_embed = blocking(Memory.re_embed)

    close = blocking(Memory.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _finished(work: Coroutine[Any, Any, R]) -> R:
    """Runs a verb to its end. With its blocking parts done here and now it has nothing to wait for, so no event loop
    is needed, and none that may be running is in the way."""
    token = here.set(True)
    try:
        work.send(None)
    except StopIteration as done:
        result: R = done.value
        return result
    finally:
        here.reset(token)
    work.close()
    raise RuntimeError("a blocking verb tried to wait for something")
