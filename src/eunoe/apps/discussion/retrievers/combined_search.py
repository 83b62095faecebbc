"""Combined search: the log and the keyword memories of a discussion in one ranking."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import log
from typing import Final

from eunoe.apps.discussion.model import KeywordMemory
from eunoe.apps.discussion.retrievers.escaping import RULE, escape_memory
from eunoe.apps.discussion.retrievers.keyword_search import KeywordHit, KeywordQuery, search_keyword_memories
from eunoe.apps.discussion.scope import discussion_key
from eunoe.memory import Memory
from eunoe.model.arguments import TimeLike, check_count, check_text
from eunoe.model.message import Message
from eunoe.model.result import Hit
from eunoe.model.scope import Scope

_LEAST_CANDIDATES: Final = 60
_EVIDENCE: Final = 0.2
"""What the best keyword memory adds to the turns it cites, on the scale of the logit of a score. From 0.1 to 0.3 more
turns are found than without it, on LoCoMo and on the conversations of the package; more helps the one and hurts the
other (docs/bench.md)."""
_LEAST_SCORE: Final = 1e-6


@dataclass(frozen=True, slots=True)
class CombinedHit:
    """A turn that was found, or a keyword memory in the place of the turns that it cites."""

    text: str
    """Who said what, or the summary of the memory; escaped."""
    turns: tuple[str, ...]
    """The ids of the messages that it stands for; none for a memory that came without its messages."""
    time: datetime | None
    memory: KeywordMemory | None = None


def search_discussions(
    memory: Memory, scopes: Sequence[Scope], query: str, limit: int = 10, *, now: TimeLike | None = None
) -> list[CombinedHit]:
    """What bears on a question, best first: at most so many turns in all, and memories without turns among them.

    Turns are ranked by recall. A keyword memory that has words of the question adds to the turns it cites, and takes
    the place of several that it sums up.
    """
    most = max(_LEAST_CANDIDATES, 3 * check_count(limit, "limit"))
    words = check_text(query, "query").replace(";", " ")
    turns = memory.recall(list(scopes), query, kinds=["message"], limit=most, now=now, exact=True)
    memories = search_keyword_memories(memory, scopes, KeywordQuery(keywords=words, limit=most))
    return _Ranking(turns, memories).best(limit)


_Turn = tuple[tuple[str, str], str]
"""A message and its discussion: two discussions that begin alike have messages of the same id."""


class _Ranking:
    def __init__(self, turns: Sequence[Hit], memories: Sequence[KeywordHit]) -> None:
        self._turns: dict[_Turn, Hit] = {(discussion_key(turn.scope), turn.id): turn for turn in turns}
        self._memories = memories
        self._by_turn = {turn: hit for hit in reversed(memories) for turn in _cited(hit)}

    def best(self, limit: int) -> list[CombinedHit]:
        scores = self._scores()
        chosen = dict.fromkeys(sorted(scores, key=lambda key: -scores[key])[:limit])
        shown = [self._shown(key, chosen) for key in chosen]
        return [_as_hit(each) for each in {id(each): each for each in shown}.values()]

    def _scores(self) -> dict[_Turn | int, float]:
        """Of turns, and of memories without turns by their places."""
        scores: dict[_Turn | int, float] = {turn: _logit(hit.score) for turn, hit in self._turns.items()}
        ladder = list(scores.values()) or [0.0]
        for place, hit in enumerate(self._memories):
            for turn in self._turns.keys() & _cited(hit):
                scores[turn] += _EVIDENCE * hit.score / self._memories[0].score
            if not hit.memory.source:
                # The third of the memories counts as much as the third of the turns.
                scores[place] = ladder[place] if place < len(ladder) else ladder[-1] - place
        return scores

    def _shown(self, key: _Turn | int, chosen: Collection[_Turn | int]) -> Hit | KeywordHit:
        """What is shown for a turn: itself, or a memory of several turns that are all among the chosen ones."""
        if isinstance(key, int):
            return self._memories[key]
        hit = self._by_turn.get(key)
        if hit and len(hit.memory.source) > 1 and all(turn in chosen for turn in _cited(hit)):
            return hit
        return self._turns[key]


def _cited(hit: KeywordHit) -> list[_Turn]:
    return [(discussion_key(hit.scope), id) for id in hit.memory.source]


def _as_hit(shown: Hit | KeywordHit) -> CombinedHit:
    if isinstance(shown, KeywordHit):
        memory = shown.memory
        return CombinedHit(shown.text, memory.source, memory.moment, memory)
    item = shown.item
    name = f"{item.speaker or item.role}: " if isinstance(item, Message) else ""
    return CombinedHit(escape_memory(f"{name}{item.text}", RULE), (item.id,), item.time or item.recorded)


def _logit(score: float) -> float:
    share = min(max(score, _LEAST_SCORE), 1 - _LEAST_SCORE)
    return log(share / (1 - share))
