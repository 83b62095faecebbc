"""Keyword memories that a chunk may contradict: shown to whoever writes. What was said later supersedes.

A chunk may be made late, after others that come behind it in the chat: then these are shown too, and supersede what is
made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import UTC
from math import inf
from typing import Final

from eunoe.apps.discussion.atoms import keyword_memories, open_atoms, read_keyword_memory
from eunoe.apps.discussion.creators.registry import CreatorCall
from eunoe.apps.discussion.model import KEYWORD_MEMORY, Chunk, KeywordMemory
from eunoe.form.evidence import content_words
from eunoe.form.likeness import is_rival
from eunoe.form.statements import find_memory_key
from eunoe.text.normalize import neutralize

_SHOWN: Final = 8
_MAX_CHARACTERS: Final = 20_000
"""Enough to know what a chunk is about."""
_LATER: Final = "(later than this part) "
_NOBODY: Final = "nobody"
"""Speaks where nobody does: what is told of "me" is told of nobody in particular."""


@dataclass(frozen=True, slots=True)
class RelatedMemories:
    """What is known already, by the number under which it is shown."""

    memories: Mapping[str, KeywordMemory]
    place: float = inf
    """That of the chunk: what stands behind it was said later."""
    hidden: Sequence[KeywordMemory] = ()
    """What was said later and was superseded in its turn."""

    @property
    def text(self) -> str:
        """How they are shown, one on each line."""
        return "\n".join(_line(number, memory, self._is_later(memory)) for number, memory in self.memories.items())

    def settle(self, memory: KeywordMemory, notes: list[str]) -> KeywordMemory:
        """A new memory with links to real ids: those that it names and was shown, and those it contradicts."""
        named = [self._find(id) for id in memory.supersedes]
        if unknown := named.count(""):
            notes.append(f"{unknown} ids that a memory was to supersede were not among those shown: left out")
        candidates = (*self.memories.values(), *self.hidden)
        rivals = [each for each in candidates if each.id in named or _contradicts(memory, each)]
        return replace(
            memory,
            supersedes=tuple(each.id for each in rivals if not self._is_later(each)),
            superseded_by=tuple(each.id for each in rivals if self._is_later(each)),
        )

    def _is_later(self, memory: KeywordMemory) -> bool:
        return memory.chunk is not None and memory.place > self.place

    def _find(self, id: str) -> str:
        """The real id of one that was shown, by its number or its id; empty if it was not."""
        if id in self.memories:
            return self.memories[id].id
        return id if any(memory.id == id for memory in self.memories.values()) else ""


def find_related(call: CreatorCall) -> RelatedMemories:
    """The keyword memories of other chunks that share most with a chunk: of earlier ones, and of later ones too if
    there are any. Those of messages of the chunk itself, and those that a rebuild is to replace later, are left out."""
    own, chunk = {message.id for message in call.messages}, call.chunk
    known = [each for each in keyword_memories(call.memory, call.scope) if own.isdisjoint(each.source)]
    earlier = [each for each in known if each.chunk is None or each.place < chunk.place]
    later = [each for each in known if _is_behind(each, chunk)]
    wanted = content_words(call.text[:_MAX_CHARACTERS])
    shown = [*_most_related(earlier, wanted), *_most_related(later, wanted)]
    hidden = _find_hidden(call, {each.id for each in known}) if later else []
    return RelatedMemories({str(number): memory for number, memory in enumerate(shown, 1)}, chunk.place, hidden)


def _is_behind(memory: KeywordMemory, chunk: Chunk) -> bool:
    return memory.chunk is not None and memory.place > chunk.place and memory.chunk.edition >= chunk.edition


def _find_hidden(call: CreatorCall, known: Set[str]) -> list[KeywordMemory]:
    """What later chunks said and no longer holds. Whether it was superseded is looked up when links are followed."""
    memories = map(read_keyword_memory, open_atoms(call.memory, call.scope, KEYWORD_MEMORY, ("fact",)))
    return [each for each in memories if each.id not in known and _is_behind(each, call.chunk)]


def _most_related(memories: Sequence[KeywordMemory], wanted: frozenset[str]) -> list[KeywordMemory]:
    """Those that share most with some words; rare words count for more."""
    texts = [_words(memory) for memory in memories]
    frequency = Counter(word for text in texts for word in text)
    shares = [sum(1 / frequency[word] for word in text & wanted) for text in texts]
    best = sorted(range(len(memories)), key=lambda place: (-shares[place], -place))[:_SHOWN]
    return [memories[place] for place in best if shares[place]]


def _words(memory: KeywordMemory) -> frozenset[str]:
    return content_words(" ".join((memory.title, memory.summary, *memory.entities, *memory.key_phrases)))


def _line(number: str, memory: KeywordMemory, is_later: bool) -> str:
    moment = memory.time or memory.recorded
    date = f"{moment.astimezone(UTC):%Y-%m-%d} " if moment else ""
    words = " ".join(neutralize(f"{memory.title}: {memory.summary}").split())
    return f"[{number}] {date}{_LATER if is_later else ''}{words}"


def _contradicts(new: KeywordMemory, old: KeywordMemory) -> bool:
    """Whether both tell the same thing of the same person, with another value."""
    key = _key(new)
    return bool(key) and key == _key(old) and is_rival(old.summary, new.summary, key)


def _key(memory: KeywordMemory) -> str:
    """What a memory of one statement about somebody by name is about; "" for all others."""
    key = find_memory_key(_NOBODY, memory.summary)
    return "" if key.startswith(f"{_NOBODY}/") else key
