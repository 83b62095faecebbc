"""mem0's `Memory` and `AsyncMemory` on an Eunoe store: its signatures, its results, its errors.

Programs change one import. mem0 itself is not needed.
"""

from typing import Any

from eunoe.hosts.mem0.arguments import HostedClientError, LLMError, MemoryNotFoundError, ValidationError
from eunoe.hosts.mem0.memory import AsyncMemory, Memory

__all__ = ["AsyncMemory", "LLMError", "Memory", "MemoryNotFoundError", "ValidationError"]


def __getattr__(name: str) -> Any:
    if name in ("MemoryClient", "AsyncMemoryClient"):
        raise HostedClientError(
            f"{name} is the client of mem0's hosted service, which there is none of here: use Memory or AsyncMemory, "
            "or run `eunoe serve`, which answers mem0's paths under /compat/mem0"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
