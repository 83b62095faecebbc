"""Why a hit is there, in words."""

from __future__ import annotations

from eunoe.model.hit import Hit, Reason

_WORDS = {
    "lexical": "shares words with the question",
    "exact": "holds an identifier of the question as a whole",
    "dense": "is close to it in meaning",
    "neighbour": "stands beside turns that fit",
    "session": "comes from a session that fits",
    "speaker": "was said by, or is about, somebody the question names",
    "date": "falls on a date the question names",
    "time": "tells a time, as the question asks",
    "number": "tells an amount, as the question asks",
    "role": "was said by the user",
    "echo": "takes up words of the turns found first",
    "graph": "is reached by names",
    "read": "answers it, as the reranker reads it",
}


def in_words(hit: Hit, most: int | None = None) -> list[str]:
    """The reasons of a hit, the weightiest first."""
    return [_sentence(reason) for reason in sorted(hit.reasons, key=lambda reason: -reason.share)[:most]]


def _sentence(reason: Reason) -> str:
    detail = f": {reason.detail}" if reason.detail else ""
    return f"{reason.share:.0%} {_WORDS.get(reason.name, reason.name)}{detail}"
