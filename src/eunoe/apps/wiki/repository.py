"""The memories of a repository in a store: how they are written, found, hidden and deleted. No rules stand here."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from eunoe.apps.wiki.atoms import atom_items, merge_memories, part_of, read_memory
from eunoe.apps.wiki.memory_model import MEMORY_TYPES, MemoryType, RepositoryId, WikiMemory, repository_scope
from eunoe.apps.wiki.parts import part_ids
from eunoe.apps.wiki.path_patterns import matches_any
from eunoe.errors import InputError, NotFoundError
from eunoe.hosts.common import default_memory
from eunoe.memory import AsyncMemory, Memory
from eunoe.model.atom import Atom
from eunoe.model.hit import Hit
from eunoe.model.scope import Scope
from eunoe.model.time import utc_now
from eunoe.recall.request import VectorLike

_PAGE: Final = 10_000
_NEVER_TRUE: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""The end of what is hidden."""
_NO_WORDS: Final = "?"
"""What stands for the question where a vector is one."""
_REFUSALS: Final = {
    "forgotten": "it was forgotten on purpose, and is not kept again",
    "conflict": "its id stands for other words",
    "ignored": "nothing is kept of this repository at the moment",
}


class WikiMemoryRepository:
    """Wiki memories in a memory; without one, in the store of the command line, which is opened when it is needed.

    A memory that is hidden ended before it began: `get` and `list` of the store still show it, nothing here does.

    >>> import asyncio
    >>> async def main(memory):
    ...     repository = WikiMemoryRepository(memory)
    ...     await repository.insert(WikiMemory(repository_id="r1", memory_type="pattern_found", content="A file."))
    ...     return [each.content for each in await repository.vector_search("r1", "file")]
    >>> with eunoe.open(":memory:") as memory:
    ...     asyncio.run(main(memory))
    ['A file.']
    """

    def __init__(self, memory: Memory | AsyncMemory | None = None) -> None:
        self._memory = memory.blocking if isinstance(memory, AsyncMemory) else memory

    @property
    def memory(self) -> Memory:
        return self._memory or default_memory()

    async def insert(self, memory: WikiMemory) -> None:
        """Keep a memory, all of it or, on an error, nothing.

        If it is there already, by id, the two become one, with the files and pages of both and the later commit.
        """
        await asyncio.to_thread(self._insert, memory)

    async def vector_search(
        self,
        repository_id: RepositoryId,
        query_embedding: str | VectorLike,
        limit: int = 10,
        memory_type: MemoryType | str | None = None,
        score_threshold: float = 0.0,
    ) -> list[WikiMemory]:
        """Return the memories that fit a question best, each once, best first.

        Args:
            query_embedding: the question itself, or a vector of it made by the store's own model. The question finds
                more, since words count too.
            memory_type: only those of this type, chosen before the best are.
            score_threshold: leave out what scores less: on the scale of `recall` for a question, the cosine for a
                vector.
        """
        types = MEMORY_TYPES if memory_type is None else (MemoryType.parse(memory_type).value,)
        arguments = repository_scope(repository_id), query_embedding, limit, types, score_threshold
        return await asyncio.to_thread(self._search, *arguments)

    async def find_by_file_paths(self, repository_id: RepositoryId, file_paths: Iterable[str]) -> list[WikiMemory]:
        """Return what is remembered about these files, or about files in these folders or meant by these globs.

        The latest comes first.
        """
        return await asyncio.to_thread(self._find_by_files, repository_scope(repository_id), list(file_paths))

    async def find_by_id(self, repository_id: RepositoryId, memory_id: str) -> WikiMemory:
        """Return one memory, by its id or by that of one of its parts. Raise NotFoundError if there is none."""
        return await asyncio.to_thread(self._find, repository_scope(repository_id), memory_id)

    async def delete_by_repository(self, repository_id: RepositoryId) -> int:
        """Forget all memories of a repository, hidden ones too; return how many."""
        return await asyncio.to_thread(self._delete, repository_scope(repository_id))

    async def expire(self, repository_id: RepositoryId, memory_id: str) -> None:
        """Let a memory hold no longer: it stays in the store, and is no longer found.

        Raise NotFoundError if there is none.
        """
        await asyncio.to_thread(self._expire, repository_scope(repository_id), memory_id)

    async def hide(self, repository_id: RepositoryId, before: datetime | None = None) -> int:
        """Hide the memories of a repository, or those stored before a moment, until `restore` or `delete_hidden`.

        Return how many.

        They stay hidden if the process ends. One that is stored again meanwhile is no longer hidden.
        """
        return await asyncio.to_thread(self._hide, repository_scope(repository_id), before)

    async def restore(self, repository_id: RepositoryId) -> int:
        """Show what was hidden again; return how many."""
        return await asyncio.to_thread(self._restore, repository_scope(repository_id))

    async def delete_hidden(self, repository_id: RepositoryId) -> int:
        """Forget what is hidden, or has been replaced; return how many."""
        return await asyncio.to_thread(self._delete_hidden, repository_scope(repository_id))

    def serialize(self, memory: WikiMemory) -> dict[str, Any]:
        """Return a memory as plain values: texts, numbers, lists and dicts."""
        return memory.as_dict()

    def serialize_many(self, memories: Iterable[WikiMemory]) -> list[dict[str, Any]]:
        return [self.serialize(memory) for memory in memories]

    def _insert(self, memory: WikiMemory) -> None:
        if embedder := self.memory.embedder:
            memory.embedding_metadata.setdefault("model", embedder.name)
        scope = repository_scope(memory.repository_id)
        while True:
            known = self._fact(scope, memory.id)
            if known is not None and _is_visible(known):
                memory = merge_memories(read_memory([known]), memory)
                if self._is_kept(known, memory):
                    return
            elif known is not None:
                memory = replace(memory, created_at=utc_now())  # what is hidden or over counts as gone: this is new
            past = self._write(scope, memory)
            if past is None or _is_version(known, past):
                return
            # Another agent wrote the same since it was read: what it knew must not be lost.
            memory = merge_memories(read_memory([past]), memory)

    def _is_kept(self, known: Atom, memory: WikiMemory) -> bool:
        """Whether nothing of a memory is new. To write it again would take as long as at first."""
        parts = self._parts(known)
        kept = replace(read_memory(parts), embedding_metadata={}) if parts else None
        return kept is not None and atom_items(kept) == atom_items(replace(memory, embedding_metadata={}))

    def _write(self, scope: Scope, memory: WikiMemory) -> Atom | None:
        """Write a memory; return what was written under its id until now, if anything, without its further parts."""
        receipts = self.memory.remember_many(scope, atom_items(memory), replace=True)
        for receipt in receipts:
            if not receipt:
                raise InputError(_REFUSALS[receipt.outcome])
        return self._fact(scope, receipts[0].closed) if receipts[0].closed else None

    def _fact(self, scope: Scope, id: str) -> Atom | None:
        return next((item for item in self.memory.get_many(scope, [id]) if isinstance(item, Atom)), None)

    def _search(
        self, scope: Scope, query: str | VectorLike, limit: int, types: tuple[str, ...], least: float
    ) -> list[WikiMemory]:
        best = [hit for hit in self._best_hits(scope, query, limit, types) if hit.score >= least]
        facts = [(self._parts(hit.item), hit.score) for hit in best if isinstance(hit.item, Atom)]
        return [read_memory(parts, score) for parts, score in facts if parts]

    def _best_hits(self, scope: Scope, query: str | VectorLike, limit: int, types: tuple[str, ...]) -> list[Hit]:
        """The best hit of each memory. Parts of one may crowd others out, so that more may have to be asked for."""
        wanted = limit
        while True:
            hits = self._recall(scope, query, wanted, types)
            best: dict[str, Hit] = {}
            for hit in hits:
                best.setdefault(part_of(hit.record).memory_id, hit)
            if len(best) >= limit or len(hits) < wanted:
                return list(best.values())[:limit]
            wanted *= 4

    def _recall(self, scope: Scope, query: str | VectorLike, limit: int, types: tuple[str, ...]) -> list[Hit]:
        if isinstance(query, str):
            return self.memory.recall(scope, query, limit=limit, kinds=["fact"], labels=types)
        return self.memory.recall(
            scope, _NO_WORDS, vector=query, recipe="dense", limit=limit, kinds=["fact"], labels=types
        )

    def _find_by_files(self, scope: Scope, wanted: list[str]) -> list[WikiMemory]:
        facts = [
            fact
            for fact in self._all_facts(scope)
            if _is_visible(fact) and part_of(fact).number == 1 and any(matches_any(file, wanted) for file in fact.files)
        ]
        return [read_memory(parts) for fact in facts if (parts := self._parts(fact))]

    def _find(self, scope: Scope, memory_id: str) -> WikiMemory:
        fact = self._fact(scope, memory_id)
        is_memory = fact is not None and _is_visible(fact) and fact.label in MEMORY_TYPES
        if fact is None or not is_memory or not (parts := self._parts(fact)):
            raise NotFoundError(f"there is no memory {memory_id!r} of this repository")
        return read_memory(parts)

    def _parts(self, fact: Atom) -> list[Atom]:
        """All parts of the memory that a fact is of; none if somebody deletes them at this moment."""
        part = part_of(fact)
        scope = fact.scope
        if part.parts == 1 or scope is None:
            return [fact]
        facts = [item for item in self.memory.get_many(scope, part.ids) if isinstance(item, Atom)]
        return facts if len(facts) == part.parts else []

    def _delete(self, scope: Scope) -> int:
        """Every version goes with a memory, and what was archived."""
        facts = list(self._all_facts(scope, retired=True))
        self._forget(scope, facts)
        return _count_memories(fact for fact in facts if not fact.superseded_by)

    def _delete_hidden(self, scope: Scope) -> int:
        facts = [fact for fact in self._all_facts(scope) if not _is_visible(fact)]
        self._forget(scope, facts)
        return _count_memories(facts)

    def _forget(self, scope: Scope, facts: Sequence[Atom]) -> None:
        if facts:
            self.memory.forget(scope, [fact.id for fact in facts], may_return=True)

    def _expire(self, scope: Scope, memory_id: str) -> None:
        memory = self._find(scope, memory_id)
        self.memory.expire(scope, part_ids(memory.id, memory.embedding_metadata["total_chunks"]), utc_now())

    def _hide(self, scope: Scope, before: datetime | None) -> int:
        facts = [fact for fact in self._all_facts(scope) if _is_visible(fact) and _is_older(fact, before)]
        return self._set_end(scope, facts, _NEVER_TRUE)

    def _restore(self, scope: Scope) -> int:
        return self._set_end(scope, [fact for fact in self._all_facts(scope) if _is_hidden(fact)], None)

    def _set_end(self, scope: Scope, facts: Sequence[Atom], end: datetime | None) -> int:
        if facts:
            self.memory.expire(scope, [fact.id for fact in facts], end)
        return _count_memories(facts)

    def _all_facts(self, scope: Scope, retired: bool = False) -> Iterator[Atom]:
        """All facts that wiki memories are kept as, the latest first."""
        options: Any = {"kinds": ["fact"], "labels": MEMORY_TYPES, "newest": True, "limit": _PAGE, "retired": retired}
        after = ""
        while True:
            page = self.memory.list(scope, after=after, **options)
            yield from (item for item in page.items if isinstance(item, Atom))
            if not (after := page.next):
                return


def _is_visible(fact: Atom) -> bool:
    has_ended = fact.valid_to is not None and fact.valid_to <= utc_now()
    return not (fact.in_review or fact.retired or has_ended)


def _is_hidden(fact: Atom) -> bool:
    """Whether it ended before it began; one that was replaced held for a while."""
    begin = fact.valid_from or fact.recorded
    return fact.valid_to is not None and begin is not None and fact.valid_to <= begin


def _is_older(fact: Atom, moment: datetime | None) -> bool:
    return moment is None or fact.recorded is None or fact.recorded < moment


def _is_version(known: Atom | None, past: Atom) -> bool:
    """Whether a closed version is what was known before it was closed."""
    return known is not None and (known.recorded, known.files, known.pages) == (past.recorded, past.files, past.pages)


def _count_memories(facts: Iterable[Atom]) -> int:
    return len({part_of(fact).memory_id for fact in facts})
