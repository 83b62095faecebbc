"""What is put in front of the agent before it speaks."""

from dataclasses import dataclass
from typing import Any

from eunoe.model.hit import Hit


@dataclass(frozen=True, slots=True)
class Context:
    """Memory for one reply: first what always stands there, then what was recalled for this message."""

    text: str
    """Ready to be put into a prompt; if it is empty, `notes` or `faults` say why."""
    tokens: int
    """Its length, never more than the budget."""
    static: str = ""
    """The part that stays the same from turn to turn: `text` begins with it, so that prompt caches hit.

    As JSON, which cannot be left open, it is an object of its own, less `other_memories` and `retrieved_memories`.
    """
    messages: tuple[dict[str, Any], ...] = ()
    """The same as chat messages, if the format is `messages`."""
    hits: tuple[Hit, ...] = ()
    """What was recalled for this message and found room."""
    query: str = ""
    """What was looked up; empty if nothing was."""
    faults: tuple[str, ...] = ()
    """Parts that could not be had; the rest is there."""
    notes: tuple[str, ...] = ()
    """Hints for the caller: why the text is empty, or what an embedder or reranker could not do."""

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Context({self.tokens} tokens, {len(self.hits)} hits, query={self.query!r})"
