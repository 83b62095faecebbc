"""Moving in from MongoDB: dumps of a collection `wiki_memories`, as mongoexport and bsondump write them.

Vectors in a dump are left behind, since the store makes its own. A second run changes nothing.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any, Final

from eunoe.apps.wiki.files import plain_path
from eunoe.apps.wiki.memory import MemoryType, WikiMemory, atom_items, merge_memories, repository_scope
from eunoe.errors import InputError
from eunoe.hosts.common import Problems
from eunoe.hosts.mongo_export import object_id_time, read_time, read_values, unwrap
from eunoe.memory import Memory
from eunoe.model.arguments import as_list, check_names, check_text

_BATCH: Final = 200
"""Memories that are written at once: few commits, and a progress that moves."""


@dataclass(frozen=True, slots=True)
class DumpReport:
    """What came, what did not, and why."""

    documents: int = 0
    repositories: int = 0
    stored: int = 0
    known: int = 0
    """Here already, or twice in the dump."""
    forgotten: int = 0
    """Forgotten here, and stays so."""
    problems: tuple[str, ...] = ()
    """Documents that make no sense, each with its file and line."""

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


def import_dumps(
    memory: Memory,
    *paths: str | Path,
    clone_paths: Sequence[str] = (),
    progress: Callable[[int], None] | None = None,
) -> DumpReport:
    """Read dumps and remember what they hold, each memory in the scope of its repository.

    Args:
        clone_paths: folders that repositories were cloned to, such as "/tmp/clones/*". Paths in them become relative to
            the repository's root, so that a later clone finds them.
    """
    if not paths:
        raise InputError("name the dumps of wiki_memories: JSON or JSON Lines of mongoexport or bsondump")
    problems = Problems()
    documents = [document for path in paths for document in read_values(Path(path), problems)]
    memories: dict[str, dict[str, WikiMemory]] = {}
    copies = 0
    for place, value in documents:
        with problems.catch(place):
            each = _read_memory(value, clone_paths)
            others = memories.setdefault(str(each.repository_id), {})
            copies += each.id in others
            others[each.id] = merge_memories(others[each.id], each) if each.id in others else each
    outcomes = _write(memory, memories, progress)
    return DumpReport(
        documents=len(documents),
        repositories=len(memories),
        stored=outcomes["stored"],
        known=outcomes["duplicate"] + copies,
        forgotten=outcomes["forgotten"],
        problems=problems.lines,
    )


def _write(
    memory: Memory, memories: dict[str, dict[str, WikiMemory]], progress: Callable[[int], None] | None
) -> Counter[str]:
    outcomes: Counter[str] = Counter()
    for repository, by_id in memories.items():
        batch = list(by_id.values())
        for start in range(0, len(batch), _BATCH):
            items = [item for each in batch[start : start + _BATCH] for item in atom_items(each)]
            receipts = memory.remember_many(repository_scope(repository), items)
            outcomes.update(receipt.outcome for receipt in receipts if receipt.id in by_id)
            if progress:
                progress(outcomes.total())
    return outcomes


def _read_memory(value: Any, clone_paths: Sequence[str]) -> WikiMemory:
    if not isinstance(value, dict):
        raise InputError(f"a document is a JSON object, not {type(value).__name__}")
    content = check_text(value["content"], "content")
    if not content.strip():
        raise InputError("content is empty")
    return WikiMemory(
        repository_id=unwrap(value["repository_id"]),
        memory_type=MemoryType.parse(value["memory_type"]),
        content=content,
        source_agent=check_text(value.get("source_agent") or "", "source_agent"),
        file_paths=[_relative_path(path, clone_paths) for path in _read_list(value, "file_paths")],
        related_pages=_read_list(value, "related_pages"),
        created_at=read_time(value.get("created_at")) or object_id_time(str(unwrap(value.get("_id")))),
    )


def _read_list(value: dict[str, Any], name: str) -> list[str]:
    return list(check_names(as_list(value.get(name), name), name))


def _relative_path(path: str, clone_paths: Iterable[str]) -> str:
    """The path from the root of the clone that it lies in, if it lies in one."""
    place = PurePosixPath(plain_path(path))
    for folder in reversed(place.parents):
        if any(fnmatchcase(str(folder), plain_path(pattern)) for pattern in clone_paths):
            return str(place.relative_to(folder))
    return str(place)
