"""Measuring Eunoe: what comes back, and what it costs beside its peers."""
