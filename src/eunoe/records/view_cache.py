"""Views: what callers made from a scope, kept in memory until the scope changes."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

from eunoe.model.atom import Bounds
from eunoe.model.scope import Scope
from eunoe.store.contract import Store

T = TypeVar("T")

_MAX_VIEWS: Final = 256
"""Those that were used last stay."""
_NO_STREAM: Final = -1


class _View(NamedTuple):
    version: int
    """The stream's version before it was built."""
    value: Any


class ViewCache:
    """Views by scope and name. One that was built in bounds is not shown outside them. Threads may share it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._views: OrderedDict[tuple[str, Bounds, str], _View] = OrderedDict()
        self._lock = threading.Lock()
        self._generation = 0

    def view(self, scope: Scope, bounds: Bounds, name: str, build: Callable[[], T]) -> T:
        """What `build` makes of the scope as it stands, or what it made before, if nothing was written since."""
        key, generation, version = (scope.text, bounds, name), self._generation, self._version(scope)
        with self._lock:
            known = self._views.get(key)
            if known and known.version == version:
                self._views.move_to_end(key)
                value: T = known.value
                return value
        value = build()
        with self._lock:
            if generation == self._generation:  # otherwise it may hold what was forgotten meanwhile
                self._views[key] = _View(version, value)
                if len(self._views) > _MAX_VIEWS:
                    self._views.popitem(last=False)
        return value

    def clear(self) -> None:
        with self._lock:
            self._generation += 1
            self._views.clear()

    def _version(self, scope: Scope) -> int:
        version = self._store.version_at_once(scope)
        if version is not None:
            return version
        with self._store.reading():
            stream = self._store.stream(scope)
        return stream.version if stream else _NO_STREAM
