"""A wiki for a repository, written by agents that remember."""

from typing import TYPE_CHECKING, Any

from eunoe.wiki.memory_model import MemoryType, WikiMemory
from eunoe.wiki.repository import WikiMemoryRepository
from eunoe.wiki.service import WikiMemoryService

if TYPE_CHECKING:
    from eunoe.wiki.middleware import WIKI_MEMORY_SYSTEM_PROMPT, WikiMemoryMiddleware

__all__ = [
    "WIKI_MEMORY_SYSTEM_PROMPT",
    "MemoryType",
    "WikiMemory",
    "WikiMemoryMiddleware",
    "WikiMemoryRepository",
    "WikiMemoryService",
]


def __getattr__(name: str) -> Any:
    """Import LangChain when it is needed: the command line does without it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from eunoe.wiki import middleware

    return getattr(middleware, name)
