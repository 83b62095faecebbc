"""Moving in from a HippoRAG folder: its documents, what its language model drew from them, and their metadata.

Read are its JSON and parquet files. Its graph is a pickle, which runs what it holds, and is never opened.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from hashlib import md5
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from eunoe.apps.projects import ProjectMemory, ProjectName
from eunoe.apps.projects.settings import (
    CHUNK_FILES,
    METADATA_FILES,
    OPENIE_FILES,
    find_files,
    is_hipporag_folder,
    project_folders,
)
from eunoe.errors import InputError
from eunoe.hosts.common import Problems
from eunoe.model.arguments import check_text, show
from eunoe.model.atom import Atom
from eunoe.model.scope import Scope
from eunoe.text.normalize import replace_surrogates

CHUNK: Final = "chunk"
"""The field of a document's metadata that holds a chunk's own. Beside it stand fields that have a meaning here."""
_KEPT: Final = ("text", "id", "label", "time", "files", "pages", "people", "pinned")
_GRAPH: Final = frozenset({"entities", "triples"})
"""Fields of metadata that the entity graph takes in."""
_BATCH_SIZE: Final = 256
_NO_PYARROW: Final = "to read them install pyarrow (pip install pyarrow)"


@dataclass(frozen=True, slots=True)
class HippoReport:
    """What came out of a HippoRAG folder, what did not, and why."""

    documents: int = 0
    stored: int = 0
    known: int = 0
    forgotten: int = 0
    entities: int = 0
    triples: int = 0
    """Kept with the documents that were stored."""
    described: int = 0
    """Documents whose chunks had metadata."""
    unread: tuple[str, ...] = ()
    """Files that need something which is not installed; what the other files hold came without them."""
    problems: tuple[str, ...] = ()
    """Files and entries that make no sense, each with its place."""

    def __add__(self, other: HippoReport) -> HippoReport:
        return HippoReport(**{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)})


@dataclass(slots=True)
class HippoPassage:
    """A document of HippoRAG and what its language model drew from it."""

    text: str
    entities: dict[str, None] = field(default_factory=dict)
    triples: dict[tuple[str, str, str], None] = field(default_factory=dict)
    described: dict[str, Any] = field(default_factory=dict)
    """The metadata of its chunk."""

    def document(self) -> dict[str, Any]:
        drawn = {"entities": list(self.entities), "triples": list(map(list, self.triples))}
        metadata = {**drawn, CHUNK: self.described}
        return {"text": self.text, "metadata": {name: values for name, values in metadata.items() if values}}


def import_folder(
    memory: ProjectMemory, project: ProjectName, folder: str | Path, *, progress: Callable[[int], None] | None = None
) -> HippoReport:
    """Bring the documents of a HippoRAG folder into a project; a second run brings only what was deleted since.

    Read are the JSON files in the folder and in those of its models, and the parquet files of chunks if pyarrow is
    installed. The entity graph takes in entities and triples. Vectors are made anew by the store's own model.
    """
    reader = HippoReader(Path(folder))
    passages = list(reader.passages.values())
    outcomes: list[str] = []
    for start in range(0, len(passages), _BATCH_SIZE):
        batch = passages[start : start + _BATCH_SIZE]
        receipts = memory.keep(project, [passage.document() for passage in batch])
        pairs = zip(receipts, batch, strict=True)
        keep_described(memory, project, {receipt.id: each.described for receipt, each in pairs if each.described})
        outcomes += [receipt.outcome for receipt in receipts]
        if progress:
            progress(len(outcomes))
    memory.memory.graph.extract(Scope(project=project), ask=False)
    stored = [passage for passage, outcome in zip(passages, outcomes, strict=True) if outcome == "stored"]
    return HippoReport(
        documents=len(passages),
        stored=len(stored),
        known=outcomes.count("duplicate"),
        forgotten=outcomes.count("forgotten"),
        entities=sum(len(passage.entities) for passage in stored),
        triples=sum(len(passage.triples) for passage in stored),
        described=sum(bool(passage.described) for passage in stored),
        unread=tuple(reader.unread),
        problems=reader.problems.lines,
    )


def import_projects(
    memory: ProjectMemory, folder: str | Path, *, progress: Callable[[int], None] | None = None
) -> dict[str, HippoReport]:
    """Bring in every HippoRAG folder in a folder, each into the project of its name."""
    folders = find_projects(folder)
    return {path.name: import_folder(memory, path.name, path, progress=progress) for path in folders}


def find_projects(folder: str | Path) -> list[Path]:
    """The folders of HippoRAG in a folder. There is at least one, else it raises `InputError`."""
    folders = project_folders(Path(folder))
    if not folders and is_hipporag_folder(Path(folder)):
        raise InputError(f"{folder} is the save_dir of one HippoRAG: name the project that its documents go to")
    if not folders:
        raise InputError(f"{folder} holds no folder of HippoRAG")
    return folders


def keep_described(memory: ProjectMemory, project: ProjectName, described: Mapping[str, Mapping[str, Any]]) -> None:
    """Give documents that were known already, by id, the metadata of the chunks that name them now."""
    scope = Scope(project=project)
    changed = [
        {**{name: getattr(atom, name) for name in _KEPT}, "metadata": metadata}
        for atom in memory.memory.get_many(scope, list(described))
        if isinstance(atom, Atom)
        and (metadata := {**atom.metadata, CHUNK: dict(described[atom.id])}) != dict(atom.metadata)
    ]
    if changed:
        memory.memory.remember_many(scope, changed, replace=True)
    if any(_GRAPH & each["metadata"].keys() for each in changed):
        memory.memory.graph.extract(scope, ask=False)  # a new version of a text is not in the graph by itself


def check_folder(folder: str | Path) -> None:
    """Raise `InputError` if a folder holds no documents of HippoRAG that can be read here."""
    path = Path(folder)
    has_openie, has_chunks = bool(find_files(path, OPENIE_FILES)), bool(find_files(path, CHUNK_FILES))
    if not has_openie and not has_chunks:
        wanted = f"{OPENIE_FILES[0]} and no {CHUNK_FILES[0]}"
        several = ", ".join(each.name for each in project_folders(path))
        hint = f" (there are {several})" if several else ""
        raise InputError(f"{folder} holds no {wanted}: name the save_dir of one HippoRAG{hint}")
    if not has_openie and not _has_pyarrow():
        raise InputError(f"{folder} holds its documents in parquet files only: {_NO_PYARROW}")


class HippoReader:
    """Reads the passages of a folder, each once, and notes what cannot be read."""

    def __init__(self, folder: Path) -> None:
        self.passages: dict[str, HippoPassage] = {}
        self.problems = Problems()
        self.unread: list[str] = []
        self._chunk_ids: dict[str, HippoPassage] = {}
        check_folder(folder)
        readers = (
            (self._read_openie, OPENIE_FILES),
            (self._read_chunks, CHUNK_FILES),
            (self._read_metadata, METADATA_FILES),
        )
        for read, names in readers:
            for path in find_files(folder, names):
                place = str(path.relative_to(folder))
                with self.problems.catch(place):
                    if not path.is_file():
                        raise InputError("it is no file")
                    read(path, place)

    def _read_openie(self, path: Path, name: str) -> None:
        docs = _check_object(json.loads(path.read_bytes()), "the file")["docs"]
        if not isinstance(docs, list):
            raise InputError(f"docs is {show(docs)}: it must be a list")
        for number, doc in enumerate(docs):
            place = f"{name} docs[{number}]"
            with self.problems.catch(place):
                passage = self._add_passage(_check_object(doc, "the entry")["passage"])
                kinds: tuple[tuple[str, dict[Any, None], Callable[[Any], Any], str], ...] = (
                    ("extracted_entities", passage.entities, _read_name, "name"),
                    ("extracted_triples", passage.triples, _read_triple, "triple"),
                )
                for part, drawn, read, due in kinds:
                    values = doc.get(part)
                    if values is not None and not isinstance(values, list):
                        self.problems.add(place, f"{part} is no list")
                        continue
                    for position, value in enumerate(values or ()):
                        if (one := read(value)) is not None:
                            drawn[one] = None
                        else:
                            self.problems.add(f"{place} {part}[{position}]", f"{value!r:.60} is no {due}")

    def _read_chunks(self, path: Path, place: str) -> None:
        if not _has_pyarrow():
            self.unread.append(f"{place}: {_NO_PYARROW}")
            return
        from pyarrow import parquet

        texts = parquet.read_table(path, columns=["content"]).column("content").to_pylist()
        for number, text in enumerate(texts):
            with self.problems.catch(f"{place} row {number}"):
                self._add_passage(text)

    def _read_metadata(self, path: Path, name: str) -> None:
        for chunk_id, metadata in _check_object(json.loads(path.read_bytes()), "the file").items():
            with self.problems.catch(f"{name} {chunk_id!r:.60}"):
                described = _check_object(metadata, "the metadata")
                if chunk_id in self._chunk_ids:
                    self._chunk_ids[chunk_id].described |= described

    def _add_passage(self, text: Any) -> HippoPassage:
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"the passage is {text!r:.40}, which says nothing")
        chunk_id = f"chunk-{md5(text.encode('utf-8', 'surrogatepass'), usedforsecurity=False).hexdigest()}"
        text = check_text(replace_surrogates(text), "the passage")
        return self._chunk_ids.setdefault(chunk_id, self.passages.setdefault(text, HippoPassage(text)))


def _read_name(value: Any) -> str | None:
    return replace_surrogates(value) if isinstance(value, str) and value.strip() else None


def _read_triple(value: Any) -> tuple[str, str, str] | None:
    match value:
        case [str(head), str(relation), str(tail)] if head.strip() and tail.strip():
            return replace_surrogates(head), replace_surrogates(relation), replace_surrogates(tail)
    return None


def _check_object(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{name} is {show(value)}: it must be an object")
    return value


def _has_pyarrow() -> bool:
    return find_spec("pyarrow") is not None
