"""A memory as LangGraph's store: `EunoeStore`, and `AsyncEunoeStore` for who only awaits."""

from eunoe.errors import MissingPackageError

try:
    import langgraph.store.base  # noqa: F401
except ImportError as error:
    raise MissingPackageError("eunoe.hosts.langgraph needs LangGraph: pip install 'eunoe[langgraph]'") from error

from eunoe.hosts.langgraph.store import AsyncEunoeStore, EunoeStore

__all__ = ["AsyncEunoeStore", "EunoeStore"]
