"""Eunoe: a memory for AI agents that keeps every word and brings the right ones back.

>>> import eunoe
>>> with eunoe.open(":memory:") as memory:
...     _ = memory.observe({"user": "anna"}, [{"role": "user", "content": "My dog is called Bruno."}])
...     hits = memory.recall({"user": "anna"}, "What is the name of the dog?")
>>> hits[0].text
'My dog is called Bruno.'
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from eunoe import errors
from eunoe.model.arguments import check_count, check_flag
from eunoe.model.atom import Atom, Correction
from eunoe.model.message import Message
from eunoe.model.result import (
    BackupReport,
    CheckReport,
    Context,
    Damage,
    Entity,
    ForgetReport,
    FormReport,
    GraphReport,
    GraphSize,
    Hit,
    Hits,
    ImportReport,
    Lease,
    LeaseStatus,
    Link,
    LlmReport,
    Mention,
    ModelCall,
    Neighbourhood,
    Page,
    PassedOver,
    Preview,
    Reason,
    Receipt,
    Relation,
    RetentionReport,
    Status,
    Usage,
)
from eunoe.model.scope import Scope
from eunoe.model.stream import Revision, Settings, Stream
from eunoe.net import turn_telemetry_off

if TYPE_CHECKING:
    from eunoe.embed.contract import Embedder
    from eunoe.llm.contract import Llm
    from eunoe.memory import AsyncMemory, AsyncScopedMemory, Memory, ScopedMemory
    from eunoe.memory.groups import Access
    from eunoe.store.location import restore

__version__ = "0.1.0"
__all__ = [
    "Access",
    "AsyncMemory",
    "AsyncScopedMemory",
    "Atom",
    "BackupReport",
    "CheckReport",
    "Context",
    "Correction",
    "Damage",
    "Entity",
    "ForgetReport",
    "FormReport",
    "GraphReport",
    "GraphSize",
    "Hit",
    "Hits",
    "ImportReport",
    "Lease",
    "LeaseStatus",
    "Link",
    "LlmReport",
    "Memory",
    "Mention",
    "Message",
    "ModelCall",
    "Neighbourhood",
    "Page",
    "PassedOver",
    "Preview",
    "Reason",
    "Receipt",
    "Relation",
    "RetentionReport",
    "Revision",
    "Scope",
    "ScopedMemory",
    "Settings",
    "Status",
    "Stream",
    "Usage",
    "connect",
    "connect_async",
    "errors",
    "open",
    "open_async",
    "restore",
]

turn_telemetry_off()  # here, so that it also holds for an embedder that the host loads next


def open(
    target: str | os.PathLike[str] | None = None,
    *,
    embedder: str | Embedder | Callable[..., Any] | object = "auto",
    llm: str | Llm | Callable[..., Any] | object = "auto",
    fast_llm: str | Llm | Callable[..., Any] | object | None = None,
    form: bool | Literal["due"] | Callable[[Scope], None] = True,
    create: bool = True,
    cache_bytes: int | None = None,
    extractor: str | Callable[..., Any] = "builtin",
    keep_indexes: bool = True,
) -> Memory:
    """Open a memory. Its verbs block; use it with `with`, or call `close` when you are done.

    Args:
        target: a path, a URL such as `sqlite:///notes.db`, `":memory:"` for one that is gone when closed, or nothing
            for the per-user file (or the one the environment variable EUNOE_STORE names).
        embedder: what makes vectors: "auto" (the store's own, or the default for a new one), "none", "eunoe",
            "static", "minilm", "folder:PATH", "openai:MODEL", a function, or a LangChain embeddings object.
        llm: the language model that forms and consolidates memories: "auto" (the one the environment variable EUNOE_LLM
            names, or none), "none", "openai:MODEL", "anthropic:MODEL", an address, a function, or a chat model object.
            Without one everything works extractively.
        fast_llm: a quicker one that decides what to look up before a reply; EUNOE_LLM_FAST, else `llm`.
        form: turn conversations into memories in the background: when enough was said, when they are idle, when the
            user's next one begins, and when the memory is closed. "due" leaves out the idle ones and the closing,
            for a process that stores a message and ends; vectors wait for the first recall. A function is told of
            each scope that is due, and has a worker form it. Without it only `form` does.
        create: make the store if it is not there; without it a missing one raises StoreError.
        cache_bytes: how much memory the indexes may take; 512 MB if not given.
        extractor: what finds names for the recipe `associative`: "builtin", "spacy", "spacy:MODEL", or a function from
            a sentence to names with their places.
        keep_indexes: keep large indexes as files beside the store, so that the next process need not make them anew.
    """
    from eunoe.engine import Engine
    from eunoe.memory import Memory
    from eunoe.store.location import open_store

    if form != "due" and not callable(form):
        check_flag(form, "form")
    if cache_bytes is not None:
        cache_bytes = check_count(cache_bytes, "cache_bytes")
    store = open_store(target, check_flag(create, "create"))
    try:
        engine = Engine(
            store,
            embedder=embedder,
            llm=llm,
            fast_llm=fast_llm,
            form=form,
            cache_bytes=cache_bytes,
            extractor=extractor,
            keep_indexes=check_flag(keep_indexes, "keep_indexes"),
        )
    except BaseException:
        store.close()
        raise
    return Memory(engine)


def open_async(target: str | os.PathLike[str] | None = None, **options: Any) -> AsyncMemory:
    """Open a memory whose verbs are awaited; use it with `async with`. It takes the options of `open`."""
    from eunoe.memory import AsyncMemory

    return AsyncMemory(open(target, **options))


def connect(url: str | None = None, key: str | None = None, *, timeout: float = 30.0, insecure: bool = False) -> Memory:
    """Connect to the memory of a server. Its verbs are those of `open`, and give the same.

    Args:
        url: such as `http://127.0.0.1:8765`; without one the server that runs on your own store.
        key: without one the environment variable EUNOE_KEY, or for the server of your own store its token.
        timeout: the seconds to wait for an answer.
        insecure: allow http:// to another machine. The key and all memories go there unencrypted.
    """
    from eunoe.memory.remote import connect

    return connect(url, key, timeout=timeout, insecure=insecure)


def connect_async(url: str | None = None, key: str | None = None, **options: Any) -> AsyncMemory:
    """Connect to a server with verbs that are awaited; use it with `async with`. It takes the options of `connect`."""
    from eunoe.memory import AsyncMemory

    return AsyncMemory(connect(url, key, **options))


_LAZY = {
    "Access": "eunoe.memory.groups",
    "AsyncMemory": "eunoe.memory",
    "AsyncScopedMemory": "eunoe.memory",
    "Memory": "eunoe.memory",
    "ScopedMemory": "eunoe.memory",
    "restore": "eunoe.store.location",
}
"""What is loaded when it is first asked for: with it comes all that a memory needs, which `import eunoe` does not."""


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'eunoe' has no attribute {name!r}")
