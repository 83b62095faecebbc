"""RemoteMemory: the verbs of `Memory`, answered by a server. Same signatures, same documentation."""

from __future__ import annotations

import functools
import inspect
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from string import Formatter
from time import monotonic
from typing import Any, Concatenate, Final, ParamSpec, Protocol, Self, TextIO, TypeVar, cast
from urllib.parse import quote

from eunoe.errors import AccessError, InputError, RemoteError
from eunoe.memory import Admin, Corrections, Graph, Leases, Memory, Streams, Summaries, open_output
from eunoe.memory.changes import Watch
from eunoe.memory.groups import Access
from eunoe.model.arguments import RIGHTS, Right, check_flag, check_seconds
from eunoe.model.atom import Atom, Correction, Item
from eunoe.model.json import noun_of
from eunoe.model.result import (
    BackupReport,
    CheckReport,
    Context,
    ForgetReport,
    FormReport,
    GraphReport,
    GraphSize,
    Hits,
    ImportReport,
    LlmReport,
    ModelCall,
    Neighbourhood,
    Page,
    Preview,
    Receipt,
    RetentionReport,
    Status,
)
from eunoe.model.scope import Scope, ScopeLike, Scopes, parse_scopes
from eunoe.model.stream import Revision, Settings, Stream
from eunoe.net.http import Address
from eunoe.net.local_server import find_local_server
from eunoe.net.transport import Transport, hold, plain_arguments
from eunoe.transfer.importing import open_lines

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


_JSON_LINES: Final = "application/jsonl"
_PROGRESS_LINES: Final = 1000
"""Progress is told after so many."""

Progress = Callable[[int], None]


class _RemoteGroup:
    def __init__(self, transport: Transport) -> None:
        super().__init__(cast("Any", NoEngine(transport.address.url)))  # type: ignore[call-arg]
        self._transport = transport


class RemoteStreams(_RemoteGroup, Streams):
    """`Streams` of a server."""

    list = remote_verb(Streams.list, "GET /v1/streams", list[Stream], "streams")
    configure = remote_verb(Streams.configure, "PATCH /v1/streams", Stream, keywords="settings")
    presets = remote_verb(Streams.presets, "GET /v1/presets", dict[str, Settings], "presets")
    set_preset = remote_verb(Streams.set_preset, "PUT /v1/presets/{name}", Settings, keywords="settings")
    apply_retention = remote_verb(Streams.apply_retention, "POST /v1/retention", RetentionReport)
    unarchive = remote_verb(Streams.unarchive, "POST /v1/memories/{id}/unarchive", Receipt)
    set_incognito = remote_verb(Streams.set_incognito, "POST /v1/incognito", None)


class RemoteSummaries(_RemoteGroup, Summaries):
    """`Summaries` of a server."""

    consolidate = remote_verb(Summaries.consolidate, "POST /v1/consolidate", Revision | None, "revision", is_slow=True)
    revisions = remote_verb(Summaries.revisions, "GET /v1/revisions", list[Revision], "revisions")
    restore = remote_verb(Summaries.restore, "POST /v1/revisions/{number}/restore", Revision)
    write = remote_verb(Summaries.write, "POST /v1/revisions", Revision)


class RemoteCorrections(_RemoteGroup, Corrections):
    """`Corrections` of a server."""

    add = remote_verb(Corrections.add, "POST /v1/corrections", Correction)
    list = remote_verb(Corrections.list, "GET /v1/corrections", list[Correction], "corrections")
    remove = remote_verb(Corrections.remove, "POST /v1/corrections/{id}/remove", None)


class RemoteLeases(_RemoteGroup, Leases):
    """No leases: whoever works under one writes what it gives in the same step, in the process that has the store."""

    acquire = missing_verb(Leases.acquire)
    renew = missing_verb(Leases.renew)
    release = missing_verb(Leases.release)
    fail = missing_verb(Leases.fail)
    list = missing_verb(Leases.list)
    drop = missing_verb(Leases.drop)
    renewing = missing_verb(Leases.renewing)


class RemoteGraph(_RemoteGroup, Graph):
    """`Graph` of a server."""

    neighbours = remote_verb(Graph.neighbours, "GET /v1/graph", Neighbourhood)
    size = remote_verb(Graph.size, "GET /v1/graph/size", GraphSize)
    extract = remote_verb(Graph.extract, "POST /v1/graph/extract", GraphReport, is_slow=True)


class RemoteAdmin(_RemoteGroup, Admin):
    """`Admin` of a server. What takes long is done there in one go: only export and import tell their progress."""

    reembed = remote_verb(Admin.reembed, "POST /v1/reembed", int, "count", is_slow=True)
    check = remote_verb(Admin.check, "POST /v1/check", CheckReport, is_slow=True)
    reindex = remote_verb(Admin.reindex, "POST /v1/reindex", int, "count", is_slow=True)
    process_cold_sessions = remote_verb(Admin.process_cold_sessions, "POST /v1/cold-sessions", FormReport, is_slow=True)
    access_counts = remote_verb(Admin.access_counts, "POST /v1/access-counts", dict[str, Access], "counts", reads=True)

    calls = remote_verb(Admin.calls, "GET /v1/calls", Page[ModelCall], is_paged=True)
    test_llm = remote_verb(Admin.test_llm, "POST /v1/models/test", LlmReport, is_slow=True)

    def backup(self, target: str | Path, *, progress: Callable[[int, int], None] | None = None) -> BackupReport:
        """Copy the whole store to a file of this name, in the server's folder of backups; then read the copy."""
        check_arguments(Admin.backup, self, target, progress=progress)
        if str(target) != Path(target).name:
            raise InputError("a server keeps backups in a folder of its own: give a file name without a folder")
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
        flags = {"skip_damaged": skip_damaged, "exact": exact}
        check_arguments(Admin.export, self, scope, target, progress=progress, **flags)
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
        check_arguments(Admin.import_, self, source, progress=progress)
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


def _encoded(lines: Iterable[str], progress: Progress | None) -> Iterator[bytes]:
    for count, line in enumerate(lines, 1):
        yield (line if line.endswith("\n") else f"{line}\n").encode(errors="surrogatepass")
        if progress and count % _PROGRESS_LINES == 0:
            progress(count)


T = TypeVar("T")

_RECEIPTS: Final = list[Receipt]
_ATOMS: Final = list[Atom]
_SCOPES: Final = list[Scope]
_ITEMS: Final = list[Item]
_BATCH_OPTIONS: Final = ("scope", "source_scopes", "again", "replace")
"""What is said once for all memories that are kept together."""
_FLUSH_SECONDS: Final = 20.0
"""How long one request waits for the background; then the next one does."""


def _one_item(given: dict[str, Any]) -> dict[str, Any]:
    """The request to keep one memory: as for many."""
    item = {name: value for name, value in given.items() if name not in _BATCH_OPTIONS}
    return {name: given[name] for name in _BATCH_OPTIONS if name in given} | {"items": [item]}


def _several_queries(given: dict[str, Any]) -> dict[str, Any]:
    return {"queries" if name == "query" else name: value for name, value in given.items()}


def _with_where_as_text(given: dict[str, Any]) -> dict[str, Any]:
    return given | {"where": json.dumps(given["where"])} if "where" in given else given


def _with_end(given: dict[str, Any]) -> dict[str, Any]:
    """No end has to be said."""
    return {"at": None} | given


def _page_of_proposals(answer: dict[str, Any]) -> dict[str, Any]:
    return answer | {"items": answer["memories"]}


class RemoteMemory(Memory):
    """A memory behind an address. Its verbs take and give what those of `Memory` do."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(cast("Any", NoEngine(transport.address.url)))
        self._transport = transport
        self.streams = RemoteStreams(transport)
        self.summaries = RemoteSummaries(transport)
        self.corrections = RemoteCorrections(transport)
        self.leases = RemoteLeases(transport)
        self.graph = RemoteGraph(transport)
        self.admin = RemoteAdmin(transport)

    observe = remote_verb(Memory.observe, "POST /v1/messages", _RECEIPTS, "receipts", is_keyed=True)
    remember = remote_verb(Memory.remember, "POST /v1/memories", Receipt, "receipts", 0, is_keyed=True, shape=_one_item)
    remember_many = remote_verb(Memory.remember_many, "POST /v1/memories", _RECEIPTS, "receipts", is_keyed=True)
    recall = remote_verb(Memory.recall, "POST /v1/recall", Hits, reads=True)
    context = remote_verb(Memory.context, "POST /v1/context", Context, reads=True)
    look_up = remote_verb(Memory.look_up, "POST /v1/look-up", Hits, reads=True, shape=_several_queries)
    get = remote_verb(Memory.get, "GET /v1/memories/{id}", Item)
    get_many = remote_verb(Memory.get_many, "POST /v1/by-ids", _ITEMS, "items", reads=True)
    list = remote_verb(Memory.list, "GET /v1/memories", Page[Item], is_paged=True, shape=_with_where_as_text)
    recent = remote_verb(Memory.recent, "GET /v1/recent", Page[Item], is_paged=True)
    review = remote_verb(Memory.review, "POST /v1/review", _RECEIPTS, "receipts")
    preview = remote_verb(
        Memory.preview, "POST /v1/extract", Preview, reads=True, is_slow=True, reshape=_page_of_proposals
    )
    by_files = remote_verb(Memory.by_files, "POST /v1/by-files", _ATOMS, "items", reads=True)
    scopes = remote_verb(Memory.scopes, "GET /v1/scopes", _SCOPES, "scopes")
    history = remote_verb(Memory.history, "GET /v1/memories/{id}/history", _ATOMS, "versions")
    update = remote_verb(Memory.update, "PATCH /v1/memories/{id}", Receipt)
    expire = remote_verb(Memory.expire, "POST /v1/expire", _RECEIPTS, "receipts", shape=_with_end)
    retract = remote_verb(Memory.retract, "POST /v1/retract", _RECEIPTS, "receipts")
    pin = remote_verb(Memory.pin, "POST /v1/memories/{id}/pin", Receipt)
    forget = remote_verb(Memory.forget, "POST /v1/forget", ForgetReport)
    form = remote_verb(Memory.form, "POST /v1/form", FormReport, is_slow=True)
    status = remote_verb(Memory.status, "GET /v1/status", Status)

    def view(self, scope: ScopeLike, name: str, build: Callable[[], T]) -> T:
        """Return what `build()` makes of a scope, at every call anew: the server alone knows what has changed."""
        check_arguments(Memory.view, self, scope, name, build)
        return build()

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until the server's background has nothing left to do; return False if that took too long."""
        check_arguments(Memory.flush, self, timeout)
        end = None if timeout is None else monotonic() + timeout
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


KEY_VARIABLE: Final = "EUNOE_KEY"
DEFAULT_TIMEOUT_SECONDS: Final = 30.0


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
