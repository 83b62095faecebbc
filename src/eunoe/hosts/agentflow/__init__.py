"""Agentflow, which is 10xgraph, with this memory."""

from eunoe.errors import MissingPackageError

try:
    import tenxgraph.storage.store  # noqa: F401
except ImportError as error:
    raise MissingPackageError(
        "eunoe.hosts.agentflow needs Agentflow on Python 3.12 or later: pip install 'eunoe[agentflow]'"
    ) from error

from eunoe.hosts.agentflow.callbacks import (
    MemoryAwareMixin,
    MemoryRetrievalCallback,
    MemoryStorageCallback,
    configure_memory,
)
from eunoe.hosts.agentflow.extraction import (
    FACT_EXTRACTION_PROMPT,
    ExtractiveExtractor,
    ExtractiveSummarizer,
    FactExtractor,
    LLMExtractor,
    LLMSummarizer,
    Summarizer,
)
from eunoe.hosts.agentflow.manager import MemoryManager
from eunoe.hosts.agentflow.store import EunoeStore, UnknownMemoryError

__all__ = [
    "FACT_EXTRACTION_PROMPT",
    "EunoeStore",
    "ExtractiveExtractor",
    "ExtractiveSummarizer",
    "FactExtractor",
    "LLMExtractor",
    "LLMSummarizer",
    "MemoryAwareMixin",
    "MemoryManager",
    "MemoryRetrievalCallback",
    "MemoryStorageCallback",
    "Summarizer",
    "UnknownMemoryError",
    "configure_memory",
]
