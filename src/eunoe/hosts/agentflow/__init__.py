"""Agentflow, as 10xgraph or as 10xscale-agentflow, with this memory."""

from eunoe.hosts.agentflow.callbacks import MemoryRetrievalCallback, MemoryStorageCallback
from eunoe.hosts.agentflow.configuration import configure_memory
from eunoe.hosts.agentflow.extractors import (
    FACT_EXTRACTION_PROMPT,
    ExtractiveExtractor,
    FactExtractor,
    LLMExtractor,
)
from eunoe.hosts.agentflow.manager import MemoryManager
from eunoe.hosts.agentflow.mixin import MemoryAwareMixin
from eunoe.hosts.agentflow.store import EunoeStore, UnknownMemoryError
from eunoe.hosts.agentflow.summarizers import ExtractiveSummarizer, LLMSummarizer, Summarizer

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
