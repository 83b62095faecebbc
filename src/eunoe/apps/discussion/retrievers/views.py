"""What retrievers keep in memory of a discussion, until it changes: texts as they are shown, and indexes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from eunoe.apps.discussion.atoms import chunk_memories, keyword_memories
from eunoe.apps.discussion.chunks.content import has_words
from eunoe.apps.discussion.documents.state_document import StateDocument
from eunoe.apps.discussion.documents.summary import current_summary, new_since_summary
from eunoe.apps.discussion.log.discussion_log import DiscussionLog
from eunoe.apps.discussion.model import KeywordMemory
from eunoe.apps.discussion.retrievers.escaping import RULE, escape_memory
from eunoe.apps.discussion.retrievers.keyword_index import Fields, Floats, KeywordIndex
from eunoe.memory import Memory
from eunoe.model.scope import Scope


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts in the order of a discussion, and when each was made or said."""

    texts: tuple[str, ...]
    times: tuple[datetime | None, ...]
    index: KeywordIndex


@dataclass(frozen=True, slots=True)
class LogTexts(Texts):
    """What was said, and by whom."""

    rows: Mapping[tuple[str, str], int]
    """The last row of each name and words."""


@dataclass(frozen=True, slots=True)
class KeywordRows:
    """The keyword memories in force, in the order of the discussion."""

    memories: tuple[KeywordMemory, ...]
    texts: tuple[str, ...]
    index: KeywordIndex
    rows: dict[str, int]
    """The place of each, by its id."""
    times: Floats
    """When what each tells of was said, in seconds since 1970."""


def chunk_texts(memory: Memory, scope: Scope) -> Texts:
    """The chunk memories in force."""

    def build() -> Texts:
        memories = chunk_memories(memory, scope)
        texts = tuple(escape_memory(each.text) for each in memories)
        return Texts(texts, tuple(each.recorded for each in memories), KeywordIndex([[text]] for text in texts))

    return memory.view(scope, "chunk_texts", build)


def log_texts(memory: Memory, scope: Scope) -> LogTexts:
    """What was said, and by whom, as it stands now; without system messages."""

    def build() -> LogTexts:
        spoken = list(filter(has_words, DiscussionLog(memory, scope).messages()))
        texts = tuple(escape_memory(f"{each.name}: {each.text}") for each in spoken)
        rows = {(each.name, each.text.strip()): row for row, each in enumerate(spoken)}
        return LogTexts(texts, tuple(each.time for each in spoken), KeywordIndex([[text]] for text in texts), rows)

    return memory.view(scope, "log_texts", build)


def keyword_rows(memory: Memory, scope: Scope) -> KeywordRows:
    """The keyword memories in force."""

    def build() -> KeywordRows:
        memories = tuple(keyword_memories(memory, scope))
        texts = tuple(escape_memory(each.summary, RULE) for each in memories)
        rows = {each.id: row for row, each in enumerate(memories)}
        times = np.array([moment.timestamp() if (moment := each.moment) else 0.0 for each in memories])
        return KeywordRows(memories, texts, KeywordIndex(map(_fields, memories)), rows, times)

    return memory.view(scope, "keyword_rows", build)


def summary_text(memory: Memory, scope: Scope) -> str:
    """The rolling summary."""
    return memory.view(scope, "summary_text", lambda: escape_memory(current_summary(memory, scope)))


def new_texts(memory: Memory, scope: Scope) -> tuple[tuple[str, str], ...]:
    """The chunk memories that the rolling summary does not hold yet, each with its hash."""

    def build() -> tuple[tuple[str, str], ...]:
        return tuple((escape_memory(each.text), each.hash) for each in new_since_summary(memory, scope))

    return memory.view(scope, "new_texts", build)


def state_document_text(memory: Memory, scope: Scope) -> str:
    """The state document."""
    return memory.view(scope, "state_document_text", lambda: escape_memory(StateDocument(memory, scope).read()))


def _fields(memory: KeywordMemory) -> Fields:
    """Title, summary, entities, key phrases; and of the whole text what stands nowhere else."""
    return [memory.title], [memory.summary], memory.entities, memory.key_phrases, memory.topics
