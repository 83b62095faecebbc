"""Memory for agents made with LangChain's `create_agent`."""

from eunoe.errors import MissingPackageError

try:
    from langchain.agents.middleware import AgentMiddleware as _  # noqa: F401
except ImportError as error:
    raise MissingPackageError("eunoe.hosts.langchain needs LangChain: pip install 'eunoe[langchain]'") from error

from eunoe.hosts.langchain.middleware import MemoryMiddleware
from eunoe.hosts.langchain.runs import MemoryState

__all__ = ["MemoryMiddleware", "MemoryState"]
