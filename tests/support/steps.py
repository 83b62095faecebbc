"""Steps of a store that a test takes one by one: it looks between what one does and what another sees."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from queue import Queue
from typing import Any
from weakref import WeakKeyDictionary

from eunoe.store.contract import Store


class Steps:
    """A store, and within `reading` and `writing` also what a step is given, as one object.

    Each thread is in at most one block, and `reading` within it is part of that. The step itself waits in a thread of
    its own until the block ends.
    """

    def __init__(self, store: Store) -> None:
        self.opened = store
        self._local = threading.local()

    def reading(self) -> Any:
        if given := getattr(self._local, "given", None):
            return nullcontext(given)
        return self._block(lambda step: self.opened.read((), step))

    def writing(self, timeout: float | None = None) -> Any:
        return self._block(lambda step: self.opened.write((), step, timeout=timeout))

    def __getattr__(self, name: str) -> Any:
        given = getattr(self._local, "given", None)
        return getattr(given if hasattr(given, name) else self.opened, name)

    @contextmanager
    def _block(self, run: Callable[[Callable[[Any], None]], None]) -> Iterator[Any]:
        given, ended = Queue[Any](), Queue[BaseException | None]()

        def step(store: Any) -> None:
            given.put(store)
            if error := ended.get():
                raise error

        with ThreadPoolExecutor(1) as thread:
            future: Future[None] = thread.submit(run, step)
            future.add_done_callback(given.put)
            first = given.get()
            if first is future:
                future.result()
            self._local.given = first
            try:
                yield first
            except BaseException as error:
                ended.put(error)
                future.result()
                raise
            else:
                ended.put(None)
                future.result()
            finally:
                self._local.given = None


_known: WeakKeyDictionary[Store, Steps] = WeakKeyDictionary()


def steps_of(memory: Any) -> Steps:
    """The steps of a memory's store."""
    store = memory._engine.store
    return _known.setdefault(store, Steps(store))
