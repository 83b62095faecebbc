"""In the place of HippoRAG: a class of the same interface on project memory, and moving in from a HippoRAG folder.

Code written for HippoRAG runs unchanged: `from eunoe.hosts.hipporag import HippoRAG`. What differs is told in
docs/projects.md: documents are found as soon as they are indexed, and an unrelated question gets none.
"""

from __future__ import annotations

import json
import logging
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, NoReturn

from eunoe.errors import EunoeError, InputError
from eunoe.model.validation import check_text
from eunoe.projects import ProjectMemory, ProjectName, ProjectSettings
from eunoe.text.normalize import replace_surrogates

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PROJECT: Final = "hipporag"
"""The project that an instance keeps its documents in; it has a folder of its own."""

_FOLDER = "outputs"
_MOST = 200
_CUTS = (1, 2, 5, 10, 20, 30, 50, 100, 150, 200)
_BATCH = 256
_OPENIE = "openie_results_ner_*.json"
_CHUNKS = "chunk_embeddings/vdb_chunk.parquet"
_MISSING = "to read them install pyarrow (pip install pyarrow)"
_ODD = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
_log = logging.getLogger(__name__)


@dataclass
class QuerySolution:
    """What was found for one question."""

    question: str
    docs: list[str]
    doc_scores: NDArray[np.float64] | None = None
    answer: str | None = None
    gold_answers: list[str] | None = None
    gold_docs: list[str] | None = None
    ids: list[str] = field(default_factory=list)
    """The ids of the documents, in the same order."""

    def to_dict(self) -> dict[str, Any]:
        scores = None if self.doc_scores is None else [round(float(score), 4) for score in self.doc_scores[:5]]
        return {
            "question": self.question,
            "answer": self.answer,
            "gold_answers": self.gold_answers,
            "docs": self.docs[:5],
            "doc_scores": scores,
            "gold_docs": self.gold_docs,
        }


class HippoRAG:
    """The interface of HippoRAG. Models are guests: the memory stays the same whichever are named.

    Args:
        global_config: an object with `save_dir`, `llm_name` and the like, as HippoRAG's own; arguments count more,
            the environment (MEMORY_SAVE_DIR and the others) less.
        save_dir: the folder of the store; `outputs` if nothing names one.
        azure_endpoint, azure_embedding_endpoint: taken and not used; Azure's models are not spoken to.
    """

    def __init__(
        self,
        global_config: Any = None,
        save_dir: str | None = None,
        llm_model_name: str | None = None,
        llm_base_url: str | None = None,
        embedding_model_name: str | None = None,
        embedding_base_url: str | None = None,
        azure_endpoint: str | None = None,
        azure_embedding_endpoint: str | None = None,
    ) -> None:
        if isinstance(global_config, str | PathLike):
            raise InputError(
                f"global_config is {global_config!r:.60}, not a config object: for a folder give save_dir="
            )
        self.global_config = SimpleNamespace() if global_config is None else global_config
        if azure_endpoint or azure_embedding_endpoint:
            _log.warning("Azure endpoints are not supported: the memory works without them")
        settings = ProjectSettings.from_environment(
            save_dir=save_dir or self._config("save_dir"),
            llm_model=llm_model_name or self._config("llm_name"),
            llm_base_url=llm_base_url or self._config("llm_base_url"),
            embedding_model=embedding_model_name or self._config("embedding_model_name"),
            embedding_base_url=embedding_base_url or self._config("embedding_base_url"),
        )
        self.memory = ProjectMemory.open(settings=replace(settings, save_dir=settings.save_dir or _FOLDER))
        self.project = PROJECT
        self._closing = weakref.finalize(self, self.memory.close)

    def index(self, docs: Sequence[str]) -> list[str]:
        """Keeps documents; known ones stay as they are. Gives their ids. Blank ones are left out."""
        said = [replace_surrogates(doc) for doc in _texts(docs, "docs")]
        full = [doc for doc in said if doc.strip()]
        if len(full) < len(said):
            _log.warning("%d blank documents are left out", len(said) - len(full))
        return self.memory.index(self.project, full) if full else []

    def retrieve(
        self,
        queries: Sequence[str],
        num_to_retrieve: int | None = None,
        gold_docs: Sequence[Sequence[str]] | None = None,
    ) -> Any:
        """A `QuerySolution` for each question; with `gold_docs` a pair of these and their recall at several cuts."""
        import numpy as np

        count = num_to_retrieve or int(self._config("retrieval_top_k") or _MOST)
        asked = [replace_surrogates(query) for query in _texts(queries, "queries")]
        solutions = [
            QuerySolution(found["question"], found["docs"], np.array(found["doc_scores"], float), ids=found["ids"])
            for found in self.memory.retrieve(self.project, asked, count)
        ]
        if gold_docs is None:
            return solutions
        for solution, gold in zip(solutions, gold_docs, strict=True):
            solution.gold_docs = list(gold)
        return solutions, _recall(solutions)

    def delete(self, docs_to_delete: Sequence[str]) -> None:
        """Removes documents by their exact words; those that are not there are passed over."""
        texts = [replace_surrogates(doc) for doc in _texts(docs_to_delete, "docs_to_delete")]
        gone = self.memory.delete(self.project, texts, missing_ok=True)
        if len(gone) < len(set(texts)):
            _log.info("%d of %d documents to delete were not there", len(set(texts)) - len(gone), len(set(texts)))

    def rag_qa(self, *_: Any, **__: Any) -> NoReturn:
        """Answering is left to the host: `retrieve`, then ask a language model of your own."""
        raise EunoeError("this memory does not answer questions: retrieve the documents and ask your language model")

    def close(self) -> None:
        """Closes the store; without it, that is done when nobody has the object any more."""
        self._closing()

    def _config(self, name: str) -> Any:
        return getattr(self.global_config, name, None)


def _texts(values: Any, name: str) -> list[str]:
    if isinstance(values, str) or not all(isinstance(value, str) for value in values):
        raise InputError(f"{name} must be a list of texts")
    return list(values)


def _recall(solutions: Sequence[QuerySolution]) -> dict[str, float]:
    asked = [solution for solution in solutions if solution.gold_docs]
    return {f"Recall@{cut}": round(_mean([_share(solution, cut) for solution in asked]), 4) for cut in _CUTS}


def _share(solution: QuerySolution, cut: int) -> float:
    gold = set(solution.gold_docs or ())
    return len(gold & set(solution.docs[:cut])) / len(gold)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


@dataclass(frozen=True, slots=True)
class HippoReport:
    """What came out of a HippoRAG folder, what did not, and why."""

    documents: int = 0
    stored: int = 0
    known: int = 0
    """They were here already."""
    forgotten: int = 0
    """They were forgotten here, and stay so."""
    entities: int = 0
    triples: int = 0
    """Kept with the documents that were stored."""
    unread: tuple[str, ...] = ()
    """Files that need something which is not installed; what the other files hold came without them."""
    problems: tuple[str, ...] = ()
    """Files and entries that make no sense, each with its place."""

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self) | {"unread": list(self.unread), "problems": list(self.problems)}


@dataclass(slots=True)
class Passage:
    """A document of HippoRAG and what its language model drew from it."""

    text: str
    entities: dict[str, None] = field(default_factory=dict)
    triples: dict[tuple[str, str, str], None] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        metadata: dict[str, Any] = {"entities": list(self.entities)} if self.entities else {}
        metadata |= {"triples": [list(triple) for triple in self.triples]} if self.triples else {}
        return {"text": self.text, "metadata": metadata}


def import_folder(
    memory: ProjectMemory, project: ProjectName, folder: str | Path, *, progress: Callable[[int], None] | None = None
) -> HippoReport:
    """Brings the documents of a HippoRAG folder into a project; a second run changes nothing.

    Read are `openie_results_ner_*.json` in the folder, and `chunk_embeddings/vdb_chunk.parquet` in it or in the folders
    of its models, if pyarrow is installed. Vectors are made anew by the store's own model; the graph, a pickle, is
    never opened.
    """
    reading = Reading(Path(folder))
    passages = list(reading.passages.values())
    outcomes: list[str] = []
    for start in range(0, len(passages), _BATCH):
        batch = [passage.document() for passage in passages[start : start + _BATCH]]
        outcomes += [receipt.outcome for receipt in memory.keep(project, batch)]
        if progress:
            progress(len(outcomes))
    stored = [passage for passage, outcome in zip(passages, outcomes, strict=True) if outcome == "stored"]
    return HippoReport(
        documents=len(passages),
        stored=len(stored),
        known=outcomes.count("duplicate"),
        forgotten=outcomes.count("forgotten"),
        entities=sum(len(passage.entities) for passage in stored),
        triples=sum(len(passage.triples) for passage in stored),
        unread=tuple(reading.unread),
        problems=tuple(reading.problems),
    )


class Reading:
    """The passages of a folder, each once, and what could not be read."""

    def __init__(self, folder: Path) -> None:
        self.passages: dict[str, Passage] = {}
        self.problems: list[str] = []
        self.unread: list[str] = []
        self._folder = folder
        openie = sorted(folder.glob(_OPENIE))
        chunks = sorted([*folder.glob(_CHUNKS), *folder.glob(f"*/{_CHUNKS}")])
        if not openie and not chunks:
            raise InputError(f"{folder} holds no {_OPENIE} and no {_CHUNKS}: name the save_dir of one HippoRAG")
        if not openie and not _reads_parquet():
            raise InputError(f"{folder} holds its documents in parquet files only: {_MISSING}")
        for path in openie:
            self._openie(path)
        for path in chunks:
            self._chunks(path)

    def _openie(self, path: Path) -> None:
        place = self._place(path)
        try:
            docs = json.loads(path.read_bytes())["docs"]
            if not isinstance(docs, list):
                raise InputError("'docs' is no list")
        except (OSError, *_ODD) as error:
            self._complain(place, error)
            return
        for number, doc in enumerate(docs):
            self._entry(f"{place} docs[{number}]", doc)

    def _entry(self, place: str, doc: Any) -> None:
        try:
            passage = self._passage(doc["passage"])
        except _ODD as error:
            self._complain(place, error)
            return
        passage.entities |= dict.fromkeys(self._entities(place, doc.get("extracted_entities")))
        passage.triples |= dict.fromkeys(self._triples(place, doc.get("extracted_triples")))

    def _passage(self, text: Any) -> Passage:
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"the passage is {text!r:.40}, which says nothing")
        text = check_text(replace_surrogates(text), "the passage")
        return self.passages.setdefault(text, Passage(text))

    def _entities(self, place: str, values: Any) -> Iterator[str]:
        for number, value in enumerate(self._list(place, "extracted_entities", values)):
            if isinstance(value, str) and value.strip():
                yield replace_surrogates(value)
            else:
                self._complain(f"{place} extracted_entities[{number}]", f"{value!r:.60} is no name")

    def _triples(self, place: str, values: Any) -> Iterator[tuple[str, str, str]]:
        for number, value in enumerate(self._list(place, "extracted_triples", values)):
            match value:
                case [str(head), str(relation), str(tail)] if head.strip() and tail.strip():
                    yield replace_surrogates(head), replace_surrogates(relation), replace_surrogates(tail)
                case _:
                    self._complain(f"{place} extracted_triples[{number}]", f"{value!r:.60} is no triple")

    def _list(self, place: str, name: str, values: Any) -> list[Any]:
        if values is None or isinstance(values, list):
            return values or []
        self._complain(place, f"{name} is no list")
        return []

    def _chunks(self, path: Path) -> None:
        place = self._place(path)
        if not _reads_parquet():
            self.unread.append(f"{place}: {_MISSING}")
            return
        from pyarrow import parquet

        try:
            texts = parquet.read_table(path, columns=["content"]).column("content").to_pylist()
        except (OSError, *_ODD) as error:
            self._complain(place, error)
            return
        for number, text in enumerate(texts):
            try:
                self._passage(text)
            except _ODD as error:
                self._complain(f"{place} row {number}", error)

    def _place(self, path: Path) -> str:
        return str(path.relative_to(self._folder))

    def _complain(self, place: str, reason: object) -> None:
        said = f"{reason.args[0]} is missing" if isinstance(reason, KeyError) else str(reason)
        self.problems.append(f"{place}: {' '.join(said.split())}")


def _reads_parquet() -> bool:
    return find_spec("pyarrow") is not None
