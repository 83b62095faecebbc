"""What agents that write a wiki do with their memory: store, search, look up by file, purge. Results are dicts."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from eunoe.apps.wiki.git import open_checkout
from eunoe.apps.wiki.memory_model import MemoryType, RepositoryId, WikiMemory, parse_repository_id
from eunoe.apps.wiki.parts import part_ids, split_content
from eunoe.apps.wiki.repository import WikiMemoryRepository
from eunoe.errors import EunoeError, InputError, NotFoundError, ScopeError
from eunoe.memory import AsyncMemory, Memory
from eunoe.model.arguments import as_list, check_names, check_number, check_text, parse_optional_time

Result = dict[str, Any]
V = TypeVar("V", bound=Callable[..., Awaitable[Result]])

MAX_RESULTS: Final = 50
DEFAULT_THRESHOLD: Final = 0.2
"""The score below which a memory is not called relevant (docs/decisions/0045-wiki-memory.md has the figures)."""
_CALLERS_FAULTS: Final = (InputError, ScopeError, NotFoundError)
"""Errors that say what to pass instead. What others say may hold paths, addresses or what somebody remembers."""
_log = logging.getLogger("eunoe")


def _safe_verb(verb: V) -> V:
    """Make a result of what goes wrong, and have all results say whether it did and in which repository."""

    @wraps(verb)
    async def call(self: Any, repository_id: RepositoryId, *args: Any, **kwargs: Any) -> Result:
        try:
            name = parse_repository_id(repository_id)
            result = await verb(self, name, *args, **kwargs)
        except Exception as error:
            return {"status": "error", **_describe_error(verb.__name__, error), "repository_id": str(repository_id)}
        return {"status": "success", **result, "repository_id": name}

    return cast("V", call)


def _describe_error(verb: str, error: Exception) -> Result:
    kind = type(error).__name__
    if isinstance(error, _CALLERS_FAULTS):
        return {"error": str(error), "error_type": kind}
    _log.warning("wiki %s failed: %s", verb, kind)
    known = kind if isinstance(error, EunoeError) else "an unexpected fault"
    return {"error": f"the memory cannot be used at the moment ({known})", "error_type": kind}


class WikiMemoryService:
    """The memory of wiki agents. Each verb returns a dict with `status` "success" or "error", and never raises.

    An error has `error`, which may be shown to a model, and `error_type`. Where a working tree is named by `repo_dir`,
    paths may be spelled in any way, and memories say whether their files have changed since.

    >>> import asyncio
    >>> with eunoe.open(":memory:") as memory:
    ...     service = WikiMemoryService(WikiMemoryRepository(memory))
    ...     result = asyncio.run(service.store_memory("r1", "Pages follow folders.", "pattern_found", "page_agent"))
    ...     found = asyncio.run(service.search_memories("r1", "pages"))
    >>> result["status"], result["chunks_created"], [each["content"] for each in found["memories"]]
    ('success', 1, ['Pages follow folders.'])
    """

    def __init__(self, wiki_memory_repo: WikiMemoryRepository | None = None, embedding_tool: object = None) -> None:
        """Take a repository, by default one over the store of the command line.

        Args:
            embedding_tool: is not used. The store makes its vectors itself and records by which model.
        """
        self._repository = wiki_memory_repo or WikiMemoryRepository()

    @_safe_verb
    async def store_memory(
        self,
        repository_id: RepositoryId,
        content: str,
        memory_type: MemoryType | str,
        source_agent: str,
        file_paths: Iterable[str] | None = None,
        related_pages: Iterable[str] | None = None,
        *,
        repo_dir: str | Path | None = None,
        branch: str | None = None,
        commit: str | None = None,
        replaces: str | None = None,
    ) -> Result:
        """Store a memory; give `memory_id`, the `memory_ids` of its parts and their number, `chunks_created`.

        With `replaces`, the memory that has this id holds no longer, and is no longer found.
        """
        if not check_text(content, "content").strip():
            raise InputError("content is empty: say what to remember")
        old = await self._repository.find_by_id(repository_id, replaces) if replaces else None
        memory = WikiMemory(
            repository_id=repository_id,
            memory_type=MemoryType.parse(memory_type),
            content=content,
            source_agent=check_text(source_agent, "source_agent"),
            file_paths=_check_list(file_paths, "file_paths"),
            related_pages=_check_list(related_pages, "related_pages"),
        )
        await asyncio.to_thread(_add_provenance, memory, repo_dir, branch, commit)
        await self._repository.insert(memory)
        if old is not None and old.id != memory.id:
            await self._repository.expire(repository_id, old.id)
        ids = part_ids(memory.id, len(split_content(content)))
        return {"memory_id": memory.id, "memory_ids": ids, "chunks_created": len(ids)}

    @_safe_verb
    async def search_memories(
        self,
        repository_id: RepositoryId,
        query: str,
        limit: int = 10,
        memory_type: MemoryType | str | None = None,
        *,
        repo_dir: str | Path | None = None,
        score_threshold: float = DEFAULT_THRESHOLD,
    ) -> Result:
        """Search by meaning and by words; give `memories`, best first, and their `count`; at most 50.

        What scores less than `score_threshold`, from 0 to 1, is left out.
        """
        if not check_text(query, "query").strip():
            raise InputError("query is empty: say what to look for")
        memories = await self._repository.vector_search(
            repository_id,
            query,
            limit=_clamp(limit),
            memory_type=memory_type and MemoryType.parse(memory_type),
            score_threshold=check_number(score_threshold, "score_threshold", 0.0, 1.0),
        )
        return await self._list(memories, repo_dir)

    @_safe_verb
    async def get_memories_by_files(
        self, repository_id: RepositoryId, file_paths: Iterable[str], *, repo_dir: str | Path | None = None
    ) -> Result:
        """Give the `memories` about these files, folders or globs, the latest first, and their `count`."""
        checkout = await asyncio.to_thread(open_checkout, repo_dir)
        paths = await asyncio.to_thread(checkout.relative_paths, _check_list(file_paths, "file_paths"))
        memories = await self._repository.find_by_file_paths(repository_id, paths) if paths else []
        return await self._list(memories, repo_dir)

    @_safe_verb
    async def get_memory(
        self, repository_id: RepositoryId, memory_id: str, *, repo_dir: str | Path | None = None
    ) -> Result:
        """Give the `memory` that has this id, or of which this is the id of a part."""
        memory = await self._repository.find_by_id(repository_id, memory_id)
        (shown,) = (await self._list([memory], repo_dir))["memories"]
        return {"memory": shown}

    @_safe_verb
    async def purge_memories(self, repository_id: RepositoryId) -> Result:
        """Forget all memories of a repository; give `deleted_count`."""
        count = await self._repository.delete_by_repository(repository_id)
        _log.info("purged %d memories of repository %s", count, repository_id)
        return {"deleted_count": count}

    @classmethod
    async def purge_for_repository(
        cls, repository_id: RepositoryId, memory: Memory | AsyncMemory | None = None
    ) -> Result:
        """Forget all memories of a repository in the memory that its agents use, by default the command line's."""
        return await cls(WikiMemoryRepository(memory)).purge_memories(repository_id)

    @_safe_verb
    async def hide_memories(self, repository_id: RepositoryId, before: datetime | None = None) -> Result:
        """Hide the memories of a repository until the next two verbs decide, also across processes.

        With `before`, only those that were stored before that moment.
        """
        return {"hidden_count": await self._repository.hide(repository_id, parse_optional_time(before, "before"))}

    @_safe_verb
    async def restore_memories(self, repository_id: RepositoryId) -> Result:
        """Show what was hidden again; give `restored_count`."""
        return {"restored_count": await self._repository.restore(repository_id)}

    @_safe_verb
    async def purge_hidden_memories(self, repository_id: RepositoryId) -> Result:
        """Forget what is hidden, and only that; give `deleted_count`."""
        return {"deleted_count": await self._repository.delete_hidden(repository_id)}

    async def _list(self, memories: list[WikiMemory], repo_dir: str | Path | None) -> Result:
        if memories and repo_dir is not None:
            await asyncio.to_thread(_mark_changes, memories, repo_dir)
        shown = self._repository.serialize_many(memories)
        return {"memories": shown, "count": len(shown)}


def _check_list(values: Iterable[str] | None, name: str) -> list[str]:
    return list(check_names(as_list(values, name), name))


def _clamp(limit: int) -> int:
    if isinstance(limit, bool) or not isinstance(limit, int):
        raise InputError(f"limit must be a whole number, not {type(limit).__name__}")
    return min(max(limit, 1), MAX_RESULTS)


def _add_provenance(memory: WikiMemory, repo_dir: str | Path | None, branch: str | None, commit: str | None) -> None:
    checkout = open_checkout(repo_dir, branch, commit)
    memory.file_paths = checkout.relative_paths(memory.file_paths)
    memory.blobs = checkout.blob_hashes(memory.file_paths)
    memory.branch, memory.commit = checkout.branch, checkout.commit


def _mark_changes(memories: Iterable[WikiMemory], repo_dir: str | Path) -> None:
    """Say of each memory which of its files are no longer as they were when it was stored."""
    checkout = open_checkout(repo_dir)
    hashes = checkout.blob_hashes({path for memory in memories for path in memory.blobs})
    for memory in memories:
        memory.changed_files = [path for path, hash in memory.blobs.items() if hashes.get(path) != hash]
        is_known = bool(memory.blobs) or not memory.file_paths
        memory.stale = bool(memory.changed_files) if is_known else None
