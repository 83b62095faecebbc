"""RemoteMemory: the verbs of `Memory`, answered by a server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from time import monotonic
from typing import Any, Final, TypeVar, cast

from eunoe.client.groups import (
    RemoteAdmin,
    RemoteCorrections,
    RemoteGraph,
    RemoteLeases,
    RemoteStreams,
    RemoteSummaries,
)
from eunoe.client.transport import Transport
from eunoe.client.verbs import NoEngine, check_arguments, remote_verb
from eunoe.errors import AccessError
from eunoe.memory import Memory
from eunoe.memory.changes import Watch
from eunoe.model.arguments import RIGHTS, Right
from eunoe.model.atom import Atom, Item
from eunoe.model.result import Context, ForgetReport, FormReport, Hits, Page, Preview, Receipt, Status
from eunoe.model.scope import Scope, ScopeLike, Scopes

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
