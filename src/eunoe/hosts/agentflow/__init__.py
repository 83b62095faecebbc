"""Agentflow, as 10xgraph or as 10xscale-agentflow, with this memory."""
