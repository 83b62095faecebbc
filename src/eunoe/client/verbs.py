"""From a verb of `Memory` to one that asks a server: same signature, same checks, same documentation."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from string import Formatter
from typing import Any, Concatenate, Final, ParamSpec, Protocol, Self, TypeVar
from urllib.parse import quote

from eunoe.client.arguments import hold, plain_arguments
from eunoe.client.transport import Transport
from eunoe.errors import AccessError
from eunoe.model.result import Page
from eunoe.wire.decoding import noun_of

_PAGE_ITEMS: Final = 500
"""What a server gives at once, if it is not set up otherwise."""

P = ParamSpec("P")
R = TypeVar("R")


class Remote(Protocol):
    """An object whose verbs ask a server."""

    _transport: Transport


class _Checked(Exception):
    """A verb has checked its arguments and would begin."""


class NoEngine:
    """Stands where verbs expect an engine. They check their arguments, and then it stops them."""

    def __init__(self, target: str) -> None:
        self.target = target

    def __getattr__(self, name: str) -> Self:
        return self

    def run(self, *_: object) -> None:
        raise _Checked


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Where a verb is answered, and how."""

    method: str
    path: str
    """With the names of arguments that are part of it, in braces."""
    returns: Any
    """The type of what comes back."""
    answer: tuple[str | int, ...] = ()
    """Where in the answer it stands; nothing if it is the whole answer."""
    shape: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    """Makes the request's fields out of the verb's arguments, where they differ."""
    reshape: Callable[[Any], Any] | None = None
    """Makes what the type reads out of the answer, where it differs."""
    keywords: str = ""
    """The field that holds a verb's further keywords; empty if they stand beside the others."""
    reads: bool = False
    """Whether it changes nothing, so that it may be repeated."""
    is_keyed: bool = False
    is_slow: bool = False
    is_paged: bool = False
    """Whether it gives a page, which may be larger than what a server gives at once."""

    def ask(self, transport: Transport, fields: dict[str, Any], keywords: dict[str, Any]) -> Any:
        names = [name for _, name, _, _ in Formatter().parse(self.path) if name]
        path = self.path.format(**{name: quote(str(fields.pop(name)), safe="") for name in names})
        fields = self.shape(fields) if self.shape else fields
        given = fields | ({self.keywords: keywords} if self.keywords and keywords else keywords)
        if self.is_paged and given.get("limit", 0) > _PAGE_ITEMS:
            return self._ask_for_pages(transport, path, given)
        return self._ask_once(transport, path, given)

    def _ask_once(self, transport: Transport, path: str, given: dict[str, Any]) -> Any:
        answer = transport.call(
            self.method,
            path,
            **{"query" if self.method == "GET" else "body": given},
            is_repeatable=self.reads or self.method == "GET",
            is_keyed=self.is_keyed,
            is_slow=self.is_slow,
        )
        for key in self.answer:
            answer = answer[key]
        return noun_of(self.returns, self.reshape(answer) if self.reshape else answer)

    def _ask_for_pages(self, transport: Transport, path: str, given: dict[str, Any]) -> Page[Any]:
        """Put a large page together from several."""
        page = self._ask_once(transport, path, given | {"limit": _PAGE_ITEMS})
        items, notes = list(page.items), page.notes
        given.pop("offset", None)
        while page.next and len(items) < given["limit"]:
            wanted = min(given["limit"] - len(items), _PAGE_ITEMS)
            page = self._ask_once(transport, path, given | {"limit": wanted, "after": page.next})
            items += page.items
        return Page(tuple(items), page.next, notes)


def check_arguments(verb: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Raise what the verb raises for these arguments; nothing else happens."""
    with suppress(_Checked):
        verb(*args, **kwargs)


def remote_verb(
    verb: Callable[Concatenate[Any, P], R], route: str, returns: Any, *answer: str | int, **options: Any
) -> Callable[Concatenate[Any, P], R]:
    """The twin of a verb that asks a server. `route` is its method and its path."""
    method, _, path = route.partition(" ")
    where = Route(method=method, path=path, returns=returns, answer=answer, **options)
    signature = inspect.signature(verb)

    @functools.wraps(verb)
    def call(self: Remote, /, *args: P.args, **kwargs: P.kwargs) -> R:
        bound = signature.bind(self, *args, **kwargs)
        hold(bound)
        check_arguments(verb, *bound.args, **bound.kwargs)
        result: R = where.ask(self._transport, *plain_arguments(bound))
        return result

    call.__qualname__ = f"Remote{verb.__qualname__}"
    return call


def missing_verb(verb: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """The twin of a verb that a server does not have: it checks its arguments, and says so."""

    @functools.wraps(verb)
    def call(self: Remote, /, *args: P.args, **kwargs: P.kwargs) -> R:
        check_arguments(verb, self, *args, **kwargs)
        raise AccessError(f"a server has no {verb.__qualname__}: open its store with eunoe.open, beside the server")

    call.__qualname__ = f"Remote{verb.__qualname__}"
    return call
