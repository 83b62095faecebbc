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
from typing import TYPE_CHECKING, Any

from eunoe import errors
from eunoe.model import Atom, ForgetReport, Hit, ImportReport, Message, Page, Reason, Receipt, Scope, Status

if TYPE_CHECKING:
    from eunoe.engine import Memory
    from eunoe.sync import SyncMemory

__version__ = "0.1.0"
__all__ = [
    "Atom",
    "ForgetReport",
    "Hit",
    "ImportReport",
    "Memory",
    "Message",
    "Page",
    "Reason",
    "Receipt",
    "Scope",
    "Status",
    "SyncMemory",
    "errors",
    "open",
]


def open(
    target: str | os.PathLike[str] | None = None,
    *,
    embedder: Any = "auto",
    llm: Any = "auto",
    fast_llm: Any = None,
    form: bool = True,
    create: bool = True,
    cache_bytes: int | None = None,
    extractor: Any = "builtin",
) -> Memory:
    """Opens a memory: `with` gives its blocking face, `async with` the async one.

    Args:
        target: a path, a URL such as `sqlite:///notes.db`, `":memory:"` for one that is gone when closed, or nothing
            for the per-user file (or the one the environment variable EUNOE_STORE names).
        embedder: what makes vectors: "auto" (the store's own, or the default for a new one), "none", "eunoe",
            "static", "minilm", "openai:MODEL", a function, or a LangChain embeddings object.
        llm: the language model that forms and consolidates memories: "auto" (the one the environment variable EUNOE_LLM
            names, or none), "none", "openai:MODEL", "anthropic:MODEL", an address, a function, or a chat model object.
            Without one everything works extractively.
        fast_llm: a quicker one that decides what to look up before a reply; EUNOE_LLM_FAST, else `llm`.
        form: turn conversations into memories in the background; without it only `form` does.
        create: make the store if it is not there; without it a missing one raises StoreError.
        cache_bytes: how much memory the indexes may take; 512 MB if not given.
        extractor: what finds names for the recipe `associative`: "builtin", "spacy", "spacy:MODEL", or a function from
            a sentence to names with their places.
    """
    from eunoe.engine import Memory
    from eunoe.store.location import open_store

    store = open_store(target, create)
    try:
        return Memory(
            store,
            embedder=embedder,
            llm=llm,
            fast_llm=fast_llm,
            form=form,
            cache_bytes=cache_bytes,
            extractor=extractor,
        )
    except BaseException:
        store.close()
        raise


def __getattr__(name: str) -> Any:
    if name == "Memory":
        from eunoe.engine import Memory

        return Memory
    if name == "SyncMemory":
        from eunoe.sync import SyncMemory

        return SyncMemory
    raise AttributeError(f"module 'eunoe' has no attribute {name!r}")
