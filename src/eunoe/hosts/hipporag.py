"""In the place of HippoRAG: a class of the same interface on project memory, and moving in from a HippoRAG folder.

Code written for HippoRAG runs unchanged: `from eunoe.hosts.hipporag import HippoRAG`. What differs stands in
docs/projects.md: documents are found as soon as they are indexed, and an unrelated question gets none.
"""

import json
import logging
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from eunoe.errors import EunoeError, InputError
from eunoe.hosts.problems import Problems
from eunoe.model.validation import check_text
from eunoe.projects import ProjectMemory, ProjectName, ProjectSettings
from eunoe.text.normalize import replace_surrogates

PROJECT: Final = "hipporag"
"""The project that an instance keeps its documents in; it has a folder of its own."""

_DEFAULT_FOLDER: Final = "outputs"
_DEFAULT_DOCUMENTS: Final = 200
"""HippoRAG's own default."""
_RECALL_CUTS: Final = (1, 2, 5, 10, 20, 30, 50, 100, 150, 200)
_BATCH_SIZE: Final = 256
_OPENIE_FILES: Final = "openie_results_ner_*.json"
_CHUNK_FILE: Final = "chunk_embeddings/vdb_chunk.parquet"
_NO_PYARROW: Final = "to read them install pyarrow (pip install pyarrow)"
_log = logging.getLogger(__name__)


@dataclass
class QuerySolution:
    """The documents for one question."""

    question: str
    docs: list[str]
    doc_scores: NDArray[np.float64] | None = None
    answer: str | None = None
    gold_answers: list[str] | None = None
    gold_docs: list[str] | None = None
    ids: list[str] = field(default_factory=list)

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
    """The interface of HippoRAG. The memory stays the same whichever models are named.

    Args:
        global_config: an object with `save_dir`, `llm_name` and the like, as HippoRAG's own; arguments count more,
            the environment (MEMORY_SAVE_DIR and the others) less.
        save_dir: the folder of the store; `outputs` if nothing names one.
        azure_endpoint, azure_embedding_endpoint: taken and not used; Azure's models are not supported.
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
        self.memory = ProjectMemory.open(settings=replace(settings, save_dir=settings.save_dir or _DEFAULT_FOLDER))
        self.project = PROJECT
        self._close = weakref.finalize(self, self.memory.close)

    def index(self, docs: Sequence[str]) -> list[str]:
        """Keep documents and return their ids; known ones stay as they are, blank ones are left out."""
        texts = _check_texts(docs, "docs")
        full = [text for text in texts if text.strip()]
        if len(full) < len(texts):
            _log.warning("%d blank documents are left out", len(texts) - len(full))
        return self.memory.index(self.project, full) if full else []

    def retrieve(
        self,
        queries: Sequence[str],
        num_to_retrieve: int | None = None,
        gold_docs: Sequence[Sequence[str]] | None = None,
    ) -> Any:
        """A `QuerySolution` for each question; with `gold_docs` a pair of these and their recall at several cuts."""
        count = num_to_retrieve or int(self._config("retrieval_top_k") or _DEFAULT_DOCUMENTS)
        results = self.memory.retrieve(self.project, _check_texts(queries, "queries"), count)
        solutions = [
            QuerySolution(result["question"], result["docs"], np.array(result["doc_scores"], float), ids=result["ids"])
            for result in results
        ]
        if gold_docs is None:
            return solutions
        for solution, gold in zip(solutions, gold_docs, strict=True):
            solution.gold_docs = list(gold)
        return solutions, _recall_figures(solutions)

    def delete(self, docs_to_delete: Sequence[str]) -> None:
        """Remove documents by their exact words; those that are not there are passed over."""
        texts = list(dict.fromkeys(_check_texts(docs_to_delete, "docs_to_delete")))
        removed = self.memory.delete(self.project, texts, missing_ok=True)
        if len(removed) < len(texts):
            _log.info("%d of %d documents to delete were not there", len(texts) - len(removed), len(texts))

    def rag_qa(self, *_: Any, **__: Any) -> NoReturn:
        """Answering is left to the host: `retrieve`, then ask a language model of your own."""
        raise EunoeError("this memory does not answer questions: retrieve the documents and ask your language model")

    def close(self) -> None:
        """Close the store; without it, that is done when nobody has the object any more."""
        self._close()

    def _config(self, name: str) -> Any:
        return getattr(self.global_config, name, None)


def _check_texts(values: Any, name: str) -> list[str]:
    if isinstance(values, str) or not all(isinstance(value, str) for value in values):
        raise InputError(f"{name} must be a list of texts")
    return list(map(replace_surrogates, values))


def _recall_figures(solutions: Sequence[QuerySolution]) -> dict[str, float]:
    figures = {}
    for cut in _RECALL_CUTS:
        pairs = [(set(each.gold_docs), each.docs[:cut]) for each in solutions if each.gold_docs]
        shares = [len(gold.intersection(docs)) / len(gold) for gold, docs in pairs]
        figures[f"Recall@{cut}"] = round(sum(shares) / len(shares), 4) if shares else 0.0
    return figures


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
    unread: tuple[str, ...] = ()
    """Files that need something which is not installed; what the other files hold came without them."""
    problems: tuple[str, ...] = ()
    """Files and entries that make no sense, each with its place."""

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


@dataclass(slots=True)
class HippoPassage:
    """A document of HippoRAG and what its language model drew from it."""

    text: str
    entities: dict[str, None] = field(default_factory=dict)
    triples: dict[tuple[str, str, str], None] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        metadata = {"entities": list(self.entities), "triples": list(map(list, self.triples))}
        return {"text": self.text, "metadata": {name: values for name, values in metadata.items() if values}}


def import_folder(
    memory: ProjectMemory, project: ProjectName, folder: str | Path, *, progress: Callable[[int], None] | None = None
) -> HippoReport:
    """Bring the documents of a HippoRAG folder into a project; a second run changes nothing.

    Read are `openie_results_ner_*.json` in the folder, and `chunk_embeddings/vdb_chunk.parquet` in it or in the folders
    of its models, if pyarrow is installed. Vectors are made anew by the store's own model; the graph, a pickle, is
    never opened.
    """
    reader = HippoReader(Path(folder))
    passages = list(reader.passages.values())
    outcomes: list[str] = []
    for start in range(0, len(passages), _BATCH_SIZE):
        batch = [passage.document() for passage in passages[start : start + _BATCH_SIZE]]
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
        unread=tuple(reader.unread),
        problems=reader.problems.lines,
    )


class HippoReader:
    """Reads the passages of a folder, each once, and notes what cannot be read."""

    def __init__(self, folder: Path) -> None:
        self.passages: dict[str, HippoPassage] = {}
        self.problems = Problems()
        self.unread: list[str] = []
        openie_files = sorted(folder.glob(_OPENIE_FILES))
        chunk_files = sorted([*folder.glob(_CHUNK_FILE), *folder.glob(f"*/{_CHUNK_FILE}")])
        if not openie_files and not chunk_files:
            wanted = f"{_OPENIE_FILES} and no {_CHUNK_FILE}"
            raise InputError(f"{folder} holds no {wanted}: name the save_dir of one HippoRAG")
        if not openie_files and not _has_pyarrow():
            raise InputError(f"{folder} holds its documents in parquet files only: {_NO_PYARROW}")
        for path in openie_files:
            with self.problems.catch(path.name):
                self._read_openie(path)
        for path in chunk_files:
            place = str(path.relative_to(folder))
            with self.problems.catch(place):
                self._read_chunks(path, place)

    def _read_openie(self, path: Path) -> None:
        docs = json.loads(path.read_bytes())["docs"]
        if not isinstance(docs, list):
            raise InputError("'docs' is no list")
        for number, doc in enumerate(docs):
            place = f"{path.name} docs[{number}]"
            with self.problems.catch(place):
                passage = self._add_passage(doc["passage"])
                passage.entities |= dict.fromkeys(self._read_entities(place, doc.get("extracted_entities")))
                passage.triples |= dict.fromkeys(self._read_triples(place, doc.get("extracted_triples")))

    def _read_chunks(self, path: Path, place: str) -> None:
        if not _has_pyarrow():
            self.unread.append(f"{place}: {_NO_PYARROW}")
            return
        from pyarrow import parquet

        texts = parquet.read_table(path, columns=["content"]).column("content").to_pylist()
        for number, text in enumerate(texts):
            with self.problems.catch(f"{place} row {number}"):
                self._add_passage(text)

    def _add_passage(self, text: Any) -> HippoPassage:
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"the passage is {text!r:.40}, which says nothing")
        text = check_text(replace_surrogates(text), "the passage")
        return self.passages.setdefault(text, HippoPassage(text))

    def _read_entities(self, place: str, values: Any) -> Iterator[str]:
        for number, value in enumerate(self._check_list(place, "extracted_entities", values)):
            if isinstance(value, str) and value.strip():
                yield replace_surrogates(value)
            else:
                self.problems.add(f"{place} extracted_entities[{number}]", f"{value!r:.60} is no name")

    def _read_triples(self, place: str, values: Any) -> Iterator[tuple[str, str, str]]:
        for number, value in enumerate(self._check_list(place, "extracted_triples", values)):
            match value:
                case [str(head), str(relation), str(tail)] if head.strip() and tail.strip():
                    yield replace_surrogates(head), replace_surrogates(relation), replace_surrogates(tail)
                case _:
                    self.problems.add(f"{place} extracted_triples[{number}]", f"{value!r:.60} is no triple")

    def _check_list(self, place: str, name: str, values: Any) -> list[Any]:
        if values is None or isinstance(values, list):
            return values or []
        self.problems.add(place, f"{name} is no list")
        return []


def _has_pyarrow() -> bool:
    return find_spec("pyarrow") is not None
