"""Why a memory was recalled, in mem0's words and in ours."""

from typing import Any, Final

from eunoe.model.result import Hit

_SIGNALS: Final = {"dense": "semantic_score", "lexical": "bm25_score", "graph": "entity_boost"}
"""Signals of a recall, and what mem0 calls them."""


def score_details(hit: Hit, threshold: float) -> dict[str, Any]:
    """The share of the score that each signal has. What mem0 has no name for is among the reasons alone."""
    shares = dict.fromkeys(_SIGNALS.values(), 0.0)
    for reason in hit.reasons:
        if name := _SIGNALS.get(reason.name):
            shares[name] += reason.share * hit.score
    details = {
        **shares,
        "raw_score": hit.score,
        "max_possible_score": 1.0,
        "final_score": hit.score,
        "threshold": threshold,
        "reasons": [str(reason) for reason in hit.reasons],
    }
    return {"score_details": details}
