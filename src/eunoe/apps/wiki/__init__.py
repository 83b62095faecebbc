"""A wiki for a repository, written by agents that remember."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from eunoe.apps.wiki.memory import MemoryType, WikiMemory, WikiMemoryRepository, WikiMemoryService

if TYPE_CHECKING:
    from eunoe.apps.wiki.agents import create_page_agent, create_structure_agent
    from eunoe.apps.wiki.tools import WIKI_MEMORY_SYSTEM_PROMPT, WikiMemoryMiddleware
    from eunoe.apps.wiki.workflow import WikiReport, generate_wiki

__all__ = [
    "WIKI_MEMORY_SYSTEM_PROMPT",
    "MemoryType",
    "WikiMemory",
    "WikiMemoryMiddleware",
    "WikiMemoryRepository",
    "WikiMemoryService",
    "WikiReport",
    "create_page_agent",
    "create_structure_agent",
    "generate_wiki",
]

_HOMES = {
    "create_page_agent": "agents",
    "create_structure_agent": "agents",
    "WIKI_MEMORY_SYSTEM_PROMPT": "tools",
    "WikiMemoryMiddleware": "tools",
    "WikiReport": "workflow",
    "generate_wiki": "workflow",
}
"""The modules of what needs LangChain."""


def __getattr__(name: str) -> Any:
    """Import LangChain when it is needed: the command line does without it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"eunoe.apps.wiki.{_HOMES[name]}"), name)
