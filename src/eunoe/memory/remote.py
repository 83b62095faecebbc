"""RemoteMemory: the verbs of `Memory`, answered by a server. Same signatures, same documentation, same errors.

Each verb is made from its declaration. Only those stand here that are no single request.
"""

from __future__ import annotations

import functools
import inspect
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from http.client import HTTPException, HTTPResponse
from inspect import Parameter
from pathlib import Path
from string import Formatter
from time import monotonic
from typing import Any, Final, TextIO, TypeVar, cast, get_origin
from urllib.parse import quote

from eunoe.errors import AccessError, InputError, RemoteError
from eunoe.memory.face import Watch
from eunoe.memory.groups import Admin, Corrections, Graph, Leases, Streams, Summaries
from eunoe.memory.guard import OPEN
from eunoe.memory.memory import Memory
from eunoe.memory.verb import VERBS, ArgumentKind, Verb
from eunoe.model.arguments import (
    RIGHTS,
    Right,
    check_callback,
    check_flag,
    check_id,
    check_path,
    check_seconds,
    parse_time,
)
from eunoe.model.json import noun_of
from eunoe.model.message import Message
from eunoe.model.result import BackupReport, ImportReport, Lease, Page, Receipt
from eunoe.model.scope import Scope, ScopeLike, Scopes, parse_scopes
from eunoe.net.http import Address
from eunoe.net.local_server import find_local_server
from eunoe.net.transport import Transport, plain_value
from eunoe.store.output_file import open_output
from eunoe.transfer.importing import open_lines

T = TypeVar("T")

KEY_VARIABLE: Final = "EUNOE_KEY"
DEFAULT_TIMEOUT_SECONDS: Final = 30.0
_PAGE_ITEMS: Final = 500
"""What a server gives at once, if it is not set up otherwise."""
_FLUSH_SECONDS: Final = 20.0
"""How long one request waits for the background; then the next one does."""
_JSON_LINES: Final = "application/jsonl"
_PROGRESS_LINES: Final = 1000
"""Progress is told after so many."""
Progress = Callable[[int], None]


class _Remote:
    """What has verbs that ask a server."""

    _transport: Transport

    @property
    def target(self) -> str:
        """The address of the server."""
        return self._transport.address.url

    def _ask(self, verb: Verb, given: dict[str, Any]) -> Any:
        """Send a verb's arguments and return the noun that is answered."""
        method, _, path = verb.route.partition(" ")
        names = [name for _, name, _, _ in Formatter().parse(path) if name]
        path = path.format(**{name: _segment(verb, name, given.pop(name)) for name in names})
        if get_origin(verb.returns) is Page and isinstance(most := given.get("limit"), int) and most > _PAGE_ITEMS:
            return self._ask_for_pages(verb, method, path, given, most)
        return self._ask_once(verb, method, path, given)

    def _ask_once(self, verb: Verb, method: str, path: str, given: dict[str, Any]) -> Any:
        answer = self._transport.call(
            method,
            path,
            **{"query": _query(verb, given)} if method == "GET" else {"body": given},
            is_repeatable=verb.repeatable or method == "GET",
            is_keyed=verb.keyed,
            is_slow=verb.slow and verb.right != "read",  # a context has to be there in time
        )
        return noun_of(verb.returns, answer[verb.answer] if verb.answer else answer)

    def _ask_for_pages(self, verb: Verb, method: str, path: str, given: dict[str, Any], most: int) -> Page[Any]:
        """Put a large page together from several."""
        page = self._ask_once(verb, method, path, given | {"limit": _PAGE_ITEMS})
        items, notes = list(page.items), page.notes
        given.pop("offset", None)
        while page.next and len(items) < most:
            wanted = min(most - len(items), _PAGE_ITEMS)
            page = self._ask_once(verb, method, path, given | {"limit": wanted, "after": page.next})
            items += page.items
        return Page(tuple(items), page.next, notes)


class _RemoteGroup(_Remote):
    def __init__(self, transport: Transport) -> None:
        self._transport = transport


class RemoteStreams(_RemoteGroup, Streams):
    """`Streams` of a server."""


class RemoteSummaries(_RemoteGroup, Summaries):
    """`Summaries` of a server."""


class RemoteCorrections(_RemoteGroup, Corrections):
    """`Corrections` of a server."""


class RemoteLeases(_RemoteGroup, Leases):
    """No leases: whoever works under one writes what it gives in the same step, in the process that has the store."""

    def renewing(self, scope: ScopeLike, lease: Lease) -> AbstractContextManager[None]:
        """Raise AccessError."""
        raise AccessError("a server has no leases: open its store with eunoe.open, beside the server")


class RemoteGraph(_RemoteGroup, Graph):
    """`Graph` of a server."""


class RemoteAdmin(_RemoteGroup, Admin):
    """`Admin` of a server. What takes long is done there in one go: only export and import tell their progress."""

    def backup(self, target: str | Path, *, progress: Callable[[int, int], None] | None = None) -> BackupReport:
        """Copy the whole store to a file of this name, in the server's folder of backups; then read the copy."""
        if not isinstance(target, str | Path) or str(check_path(target, "target")) != Path(target).name:
            raise InputError("target: a server keeps backups in a folder of its own: give a file name without a folder")
        report = self._transport.call("POST", "/v1/backup", body={"name": str(target)}, is_slow=True)
        return cast("BackupReport", noun_of(BackupReport, report))

    def export(
        self,
        scope: Scopes,
        target: str | Path | TextIO,
        *,
        progress: Callable[[int], None] | None = None,
        skip_damaged: bool = False,
        exact: bool = False,
    ) -> int:
        """Write scopes as JSON Lines to a file here, as they come; return the number of lines.

        A file appears under its name only when it is complete.
        """
        check_callback(progress, "progress")
        flags = {"skip_damaged": check_flag(skip_damaged, "skip_damaged"), "exact": check_flag(exact, "exact")}
        query = {"scope": [each.text for each in parse_scopes(scope)], **flags}
        with self._transport.stream("GET", "/v1/export", query=query) as answer:
            if not isinstance(target, str | Path):
                return self._write(answer, target, progress)
            with open_output(target) as file:
                return self._write(answer, file, progress)

    def import_(
        self, source: str | Path | Iterable[str], *, progress: Callable[[int], None] | None = None
    ) -> ImportReport:
        """Send an export from here. The server reads it when all of it is there; `progress` counts what was sent."""
        check_callback(progress, "progress")
        with (
            open_lines(source) as lines,
            self._transport.stream(
                "POST", "/v1/import", body=_encoded(lines, progress), content_type=_JSON_LINES
            ) as answer,
        ):
            return cast("ImportReport", noun_of(ImportReport, self._transport.read_json(answer)))

    def _write(self, answer: HTTPResponse, file: TextIO, progress: Progress | None) -> int:
        """Write the lines that come; return how many, without the first, which names the format."""
        count = -1
        try:
            for line in io.TextIOWrapper(cast("Any", answer), encoding="utf-8", newline="\n"):
                file.write(line)
                count += 1
                if progress and count and count % _PROGRESS_LINES == 0:
                    progress(count)
        except HTTPException as error:
            raise RemoteError("the export broke off: try again") from error
        return count


class RemoteMemory(_Remote, Memory):
    """A memory behind an address. Its verbs take and give what those of `Memory` do."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._guard = OPEN
        self.streams = RemoteStreams(transport)
        self.summaries = RemoteSummaries(transport)
        self.corrections = RemoteCorrections(transport)
        self.leases = RemoteLeases(transport)
        self.graph = RemoteGraph(transport)
        self.admin = RemoteAdmin(transport)

    def remember(self, scope: ScopeLike, text: str, **fields: Any) -> Receipt:
        """Keep one fact or observation."""
        batch = {name: fields.pop(name) for name in ("source_scopes", "again", "replace") if name in fields}
        return self.remember_many(scope, [{"text": text, **fields}], **batch)[0]

    def view(self, scope: ScopeLike, name: str, build: Callable[[], T]) -> T:
        """Return what `build()` makes of a scope, at every call anew: the server alone knows what has changed."""
        Scope.of(scope)
        check_id(name, "name")
        return build()

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until the server's background has nothing left to do; return False if that took too long."""
        end = None if timeout is None else monotonic() + check_seconds(timeout, "timeout")
        while True:
            left = _FLUSH_SECONDS if end is None else min(max(end - monotonic(), 0.0), _FLUSH_SECONDS)
            if self._transport.call("POST", "/v1/flush", body={"timeout": left}, is_slow=True)["flushed"]:
                return True
            if end is not None and monotonic() >= end:
                return False

    def restricted(self, tenant: str = "", scopes: Scopes = (), rights: Iterable[Right] = RIGHTS) -> Memory:
        """Raise AccessError: the key restricts this memory already."""
        raise AccessError("the key says what this memory may do: connect with a key that may do less")

    def watched(self, watch: Watch) -> Memory:
        """Raise AccessError: a server tells of changes at `/v1/events`."""
        raise AccessError("changes are told by the server: read /v1/events, or set up a webhook")

    @property
    def embedder(self) -> None:
        """None: the server has it, and `status` names it."""

    @property
    def llm(self) -> None:
        """None: the server has it, and `status` names it."""

    def close(self) -> None:
        """Close the connections. Closing twice is fine."""
        self._transport.close()


def connect(
    url: str | None = None,
    key: str | None = None,
    *,
    timeout: float = DEFAULT_TIMEOUT_SECONDS,
    insecure: bool = False,
) -> RemoteMemory:
    """Connect to a server; see `eunoe.connect`."""
    if key is not None:
        _check_key(key)  # an empty one is a variable that was not set, not a wish for the owner's token
    if check_seconds(timeout, "timeout") == 0:
        raise InputError("timeout is 0: give the seconds to wait for an answer")
    local = find_local_server() if url is None or not (key or os.environ.get(KEY_VARIABLE)) else None
    if url is None and local is None:
        raise RemoteError("no server runs on your own store: start one with `eunoe serve`, or give the url of another")
    address = Address.parse(local.url if url is None and local else url or "")
    if not (address.is_secure or address.is_loopback or check_flag(insecure, "insecure")):
        raise InputError(
            f"{address.url} would get the key and all memories unencrypted: use https://, or pass insecure=True "
            "in a network that you trust"
        )
    own_token = local.token if local and Address.parse(local.url) == address else ""
    return RemoteMemory(Transport(address, _check_key(key or os.environ.get(KEY_VARIABLE) or own_token), timeout))


def _check_key(key: object) -> str:
    if not key:
        raise InputError(f"no key: pass one, or set {KEY_VARIABLE}; `eunoe key create` makes one")
    if not isinstance(key, str) or not key.isascii() or not key.isprintable() or " " in key:
        raise InputError("the key is not one: it is a text of letters and digits without blanks")
    return key


def _twin(verb: Verb) -> Callable[..., Any]:
    """The verb that asks a server; one that no server has says so."""
    signature = inspect.signature(verb.function)

    @functools.wraps(verb.function)
    def call(self: _Remote, /, *args: Any, **kwargs: Any) -> Any:
        arguments = signature.bind(self, *args, **kwargs).arguments
        if not verb.route:
            raise AccessError(f"a server has no {verb.name}: open its store with eunoe.open, beside the server")
        return self._ask(verb, dict(_given(verb, signature, arguments)))

    return call


def _given(verb: Verb, signature: inspect.Signature, arguments: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The arguments as the request names them. None is what is not given, but for what must be."""
    for name, value in list(arguments.items())[1:]:  # the first is the memory itself
        parameter = signature.parameters[name]
        if parameter.kind is Parameter.VAR_KEYWORD:
            yield from [("settings", value)] if verb.settings else value.items()
        elif name != "progress" and (value is not None or parameter.default is Parameter.empty):
            yield name, _plain(verb.arguments[name].kind, value) if name in verb.arguments else value


def _segment(verb: Verb, name: str, value: Any) -> str:
    """An argument as a part of a path."""
    return quote(check_id(value, name) if verb.arguments[name].kind == "text" else str(value), safe="")


def _plain(kind: ArgumentKind, value: Any) -> Any:
    """Scopes as texts, lists of what can be read only once or has no order; another argument as it is."""
    if kind in ("scope", "scopes"):
        is_list = isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
        return [Scope.of(each).text for each in value] if is_list else Scope.of(value).text
    if kind == "items" and isinstance(value, Iterable) and not isinstance(value, str | Mapping):
        return [_plain_item(each) for each in value]
    is_list = kind in ("texts", "choices", "scopes", "messages") and isinstance(value, Iterable)
    return list(value) if is_list and not isinstance(value, str | bytes | Mapping | Message) else value


def _plain_item(item: Any) -> Any:
    known = VERBS["remember"].arguments
    if not isinstance(item, Mapping):
        return item
    return {name: _plain(known[name].kind, value) if name in known else value for name, value in item.items()}


def _query(verb: Verb, given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments as texts, or as lists of texts."""
    query = {}
    for name, value in given.items():
        kind = verb.arguments[name].kind if name in verb.arguments else "text"
        if kind == "time":
            value = parse_time(value, name).isoformat()
        elif kind == "mapping":
            value = json.dumps(value, default=plain_value)
        elif kind == "choices" and not value and verb.arguments[name].default:  # it would not be sent at all
            raise InputError(f"{name} must be some of {', '.join(verb.arguments[name].choices)}")
        query[name] = value
    return query


def _encoded(lines: Iterable[str], progress: Progress | None) -> Iterator[bytes]:
    for count, line in enumerate(lines, 1):
        yield (line if line.endswith("\n") else f"{line}\n").encode(errors="surrogatepass")
        if progress and count % _PROGRESS_LINES == 0:
            progress(count)


def _add_verbs() -> None:
    """Give each class the verbs that are not written out in it."""
    classes: dict[str, Any] = {
        "": RemoteMemory,
        "streams": RemoteStreams,
        "summaries": RemoteSummaries,
        "corrections": RemoteCorrections,
        "leases": RemoteLeases,
        "graph": RemoteGraph,
        "admin": RemoteAdmin,
    }
    for verb in VERBS.values():
        name = verb.function.__name__
        if name not in vars(classes[verb.group]):
            setattr(classes[verb.group], name, _twin(verb))


_add_verbs()
