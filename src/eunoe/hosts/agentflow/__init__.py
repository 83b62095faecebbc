"""Agentflow, as 10xgraph or as 10xscale-agentflow, with this memory."""

from eunoe.hosts.agentflow.store import EunoeStore, UnknownMemoryError

__all__ = ["EunoeStore", "UnknownMemoryError"]
