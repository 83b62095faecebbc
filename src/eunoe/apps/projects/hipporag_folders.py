"""Folders in which HippoRAG kept its documents: where they are, and the offer to bring them in."""

from __future__ import annotations

import logging
from pathlib import Path
from shlex import quote
from typing import Final

from eunoe.memory import Memory

OPENIE_FILES: Final = ("openie_results_ner*.json", "openie_state.json", "*/openie_state.json")
"""What its language model drew from the documents, with their words: in its folder, or in those of its models."""
CHUNK_FILES: Final = ("chunk_embeddings/vdb_chunk.parquet", "*/chunk_embeddings/vdb_chunk.parquet")
"""The documents with their vectors."""
METADATA_FILES: Final = ("chunk_metadata.json", "*/chunk_metadata.json")
_MAX_NAMED: Final = 3
_log = logging.getLogger(__name__)


def find_files(folder: Path, patterns: tuple[str, ...]) -> list[Path]:
    """The files of one HippoRAG: not those of another that has its own folder in this one."""
    others = {path.parent for path in folder.glob(f"*/{OPENIE_FILES[0]}")}
    found = (path for pattern in patterns for path in folder.glob(pattern))
    return sorted(path for path in found if others.isdisjoint(path.parents))


def is_hipporag_folder(folder: Path) -> bool:
    """Whether a folder is the save_dir of one HippoRAG."""
    return bool(find_files(folder, OPENIE_FILES) or find_files(folder, CHUNK_FILES))


def project_folders(folder: Path) -> list[Path]:
    """The folders in a folder that are the save_dir of one HippoRAG each, as hosts with several projects have them.

    None in one that is a save_dir itself: there a folder belongs to a model.
    """
    if not folder.is_dir() or is_hipporag_folder(folder):
        return []
    return [path for path in sorted(folder.iterdir()) if path.is_dir() and is_hipporag_folder(path)]


def offer_import(store: Path, memory: Memory, project: str = "") -> None:
    """Say how documents of HippoRAG beside a store come into it, as long as it holds nothing.

    Args:
        project: the one that documents go to, if only one is asked: that of the class in the place of HippoRAG's.
    """
    folder = store.parent
    if memory.scopes():
        return
    names = [path.name for path in project_folders(folder)]
    command = f"`eunoe --store {quote(str(store))} migrate hipporag {quote(str(folder))}"
    if is_hipporag_folder(folder):
        found = str(folder)
        way = f"{command} --project {project or 'NAME'}`" + (", or rag.migrate()," if project else "")
    elif names:
        more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
        found = f"{folder} ({', '.join(names[:_MAX_NAMED])}{more})"
        way = f"rag.migrate({str(folder / names[0])!r}), and so on," if project else f"{command}`"
    else:
        return
    _log.warning("%s holds documents of HippoRAG that are not in this memory: %s brings them in", found, way)
