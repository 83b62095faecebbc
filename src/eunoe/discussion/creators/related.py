"""Older keyword memories that a chunk may contradict: shown to whoever writes, and superseded by what is new."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC
from typing import Final

from eunoe.discussion.atoms import keyword_memories
from eunoe.discussion.creators.registry import CreatorCall
from eunoe.discussion.model import KeywordMemory
from eunoe.form.content_words import content_words
from eunoe.form.memory_keys import find_memory_key
from eunoe.form.rivals import is_rival
from eunoe.text.markup import neutralize

_SHOWN: Final = 8
_MAX_CHARACTERS: Final = 20_000
"""Enough to know what a chunk is about."""
_NOBODY: Final = "nobody"
"""Speaks where nobody does: what is told of "me" is told of nobody in particular."""


@dataclass(frozen=True, slots=True)
class RelatedMemories:
    """What is known already, by the number under which it is shown."""

    memories: Mapping[str, KeywordMemory]

    @property
    def text(self) -> str:
        """How they are shown, one on each line."""
        return "\n".join(_line(number, memory) for number, memory in self.memories.items())

    def settle(self, memory: KeywordMemory, notes: list[str]) -> KeywordMemory:
        """A new memory that supersedes real ids: those that it names and was shown, and those it contradicts."""
        named = [self._find(id) for id in memory.supersedes]
        if unknown := named.count(""):
            notes.append(f"{unknown} ids that a memory was to supersede were not among those shown: left out")
        rivals = [old.id for old in self.memories.values() if _contradicts(memory, old)]
        return replace(memory, supersedes=tuple(dict.fromkeys(filter(None, [*named, *rivals]))))

    def _find(self, id: str) -> str:
        """The real id of one that was shown, by its number or its id; empty if it was not."""
        if id in self.memories:
            return self.memories[id].id
        return id if any(memory.id == id for memory in self.memories.values()) else ""


def find_related(call: CreatorCall) -> RelatedMemories:
    """The keyword memories of earlier chunks that share most with a chunk; rare words count for more."""
    known = keyword_memories(call.memory, call.scope)
    older = [memory for memory in known if memory.chunk is None or memory.place < call.chunk.place]
    texts = [_words(memory) for memory in older]
    frequency = Counter(word for text in texts for word in text)
    wanted = content_words(call.text[:_MAX_CHARACTERS])
    shares = [sum(1 / frequency[word] for word in text & wanted) for text in texts]
    best = sorted(range(len(older)), key=lambda place: (-shares[place], -place))[:_SHOWN]
    shown = [older[place] for place in best if shares[place]]
    return RelatedMemories({str(number): memory for number, memory in enumerate(shown, 1)})


def _words(memory: KeywordMemory) -> frozenset[str]:
    return content_words(" ".join((memory.title, memory.summary, *memory.entities, *memory.key_phrases)))


def _line(number: str, memory: KeywordMemory) -> str:
    moment = memory.time or memory.recorded
    date = f"{moment.astimezone(UTC):%Y-%m-%d} " if moment else ""
    words = " ".join(neutralize(f"{memory.title}: {memory.summary}").split())
    return f"[{number}] {date}{words}"


def _contradicts(new: KeywordMemory, old: KeywordMemory) -> bool:
    """Whether both tell the same thing of the same person, with another value."""
    key = _key(new)
    return bool(key) and key == _key(old) and is_rival(old.summary, new.summary, key)


def _key(memory: KeywordMemory) -> str:
    """What a memory of one statement about somebody by name is about; "" for all others."""
    key = find_memory_key(_NOBODY, memory.summary)
    return "" if key.startswith(f"{_NOBODY}/") else key
