"""Eden: its memory backend on a memory, and moving in with what it has kept."""

from eunoe.hosts.eden.backend import MemoryBackend, search_facts
from eunoe.hosts.eden.migration import EdenReport, ImportCounts, amigrate, migrate

__all__ = ["EdenReport", "ImportCounts", "MemoryBackend", "amigrate", "migrate", "search_facts"]
