"""The class in the place of HippoRAG's: index, retrieve, answer, delete."""

from __future__ import annotations

import logging
import os
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

import numpy as np

from eunoe.apps.projects import ProjectMemory
from eunoe.apps.projects.memory import open_memory
from eunoe.errors import InputError, LlmError
from eunoe.hosts.hipporag.answers import (
    QaError,
    QuerySolution,
    adapt_embedder,
    adapt_llm,
    answer_figures,
    ask_question,
    recall_figures,
)
from eunoe.hosts.hipporag.config import chosen_settings, project_settings, read_config
from eunoe.hosts.hipporag.folder import CHUNK, HippoReport, import_folder, keep_described
from eunoe.llm import Llm, load_llm
from eunoe.llm.models import asking_for
from eunoe.model.arguments import show
from eunoe.model.scope import Scope
from eunoe.text.normalize import replace_surrogates

Gold = Sequence[Sequence[str]] | None
"""The right documents, or answers, for each question."""

PROJECT: Final = "hipporag"
"""The project that an instance keeps its documents in; it has a folder of its own."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Chunk:
    """A text to index, the id of its source, and metadata that comes back with it.

    >>> Chunk("Tea is hot.", "tea.md", {"page": 2}).described
    {'page': 2, 'source_id': 'tea.md'}
    """

    content: str
    source_id: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def described(self) -> dict[str, Any]:
        return {**self.metadata, **({} if self.source_id is None else {"source_id": self.source_id})}


class HippoRAG:
    """The interface of HippoRAG. The memory stays the same whichever models are named.

    Args:
        global_config: a `BaseConfig`, or an object with the same fields, such as HippoRAG's own; arguments count more,
            the environment (MEMORY_SAVE_DIR and the others) less.
        save_dir: the folder of the store; `outputs` if nothing names one.
        llm_model_name, llm_base_url: the language model that answers questions, where no qa_llm is given.
        llm_api_key_env, embedding_api_key_env: names of the environment variables that hold the keys.
        qa_llm: the language model that answers questions: what `eunoe.open` takes, or an object with `infer`.
        extraction_llm: a language model that reads every document for entities and triples when it is indexed. Without
            it none does.
        embedding_model: what makes the vectors: what `eunoe.open` takes, or an object with `batch_encode`, which needs
            index_identity, a name for its vectors.
        text_preprocessor: an object whose `preprocess` makes chunks of what is indexed.
    """

    def __init__(
        self,
        global_config: Any = None,
        save_dir: str | os.PathLike[str] | None = None,
        llm_model_name: str | None = None,
        llm_base_url: str | None = None,
        embedding_model_name: str | None = None,
        embedding_base_url: str | None = None,
        azure_endpoint: str | None = None,
        azure_embedding_endpoint: str | None = None,
        extraction_llm: Any = None,
        qa_llm: Any = None,
        embedding_model: Any = None,
        text_preprocessor: Any = None,
        *,
        index_identity: str | None = None,
        llm_api_key_env: str | None = None,
        embedding_api_key_env: str | None = None,
        **others: Any,
    ) -> None:
        if unknown := sorted(name for name in others if not name.startswith(("azure_", "embedding_provider"))):
            raise InputError(f"HippoRAG takes no argument {', '.join(unknown)}")
        if text_preprocessor is not None and not callable(getattr(text_preprocessor, "preprocess", None)):
            raise InputError(f"text_preprocessor is {show(text_preprocessor)}: it must have preprocess(docs)")
        self.global_config = read_config(
            global_config,
            {
                "save_dir": save_dir,
                "llm_name": llm_model_name,
                "llm_base_url": llm_base_url,
                "llm_api_key_env": llm_api_key_env,
                "embedding_model_name": embedding_model_name,
                "embedding_base_url": embedding_base_url,
                "embedding_api_key_env": embedding_api_key_env,
                "azure_endpoint": azure_endpoint,
                "azure_embedding_endpoint": azure_embedding_endpoint,
                **others,
            },
        )
        self._settings = project_settings(self.global_config)
        has_two = qa_llm is not None and extraction_llm is not None
        names = chosen_settings(global_config)
        chosen = {name: value for name, value in vars(self.global_config).items() if name in names}
        llm = adapt_llm(qa_llm if extraction_llm is None else extraction_llm, {} if has_two else chosen)
        embedder = adapt_embedder(embedding_model, index_identity)
        self.memory = ProjectMemory(open_memory(self._settings, llm, embedder, project=PROJECT))
        self.project = PROJECT
        self._scope = Scope(project=PROJECT)
        self._reads_documents = extraction_llm is not None
        self._llm = load_llm(adapt_llm(qa_llm, chosen)) if has_two else self.memory.memory.llm
        self._preprocessor = text_preprocessor
        self._close = weakref.finalize(self, self.memory.close)

    def index(self, docs: Sequence[str | Chunk]) -> list[str]:
        """Keep documents and return their ids; known ones stay as they are, blank ones are left out.

        A known document gets the metadata of the chunk that has it now, if there is any.
        """
        chunks = []
        given = self._preprocessor.preprocess(docs) if self._preprocessor else docs
        for place, doc in enumerate(_check_list(given, "docs")):
            content = doc if isinstance(doc, str) else getattr(doc, "content", None)  # of HippoRAG's own chunks, too
            source, metadata = getattr(doc, "source_id", None), getattr(doc, "metadata", None) or {}
            if not isinstance(content, str) or not isinstance(metadata, Mapping):
                raise InputError(f"docs must be a list of texts or chunks: docs[{place}] is a {type(doc).__name__}")
            chunks.append(Chunk(replace_surrogates(content), None if source is None else str(source), dict(metadata)))
        full = [chunk for chunk in chunks if chunk.content.strip()]
        if len(full) < len(chunks):
            _log.warning("%d blank documents are left out", len(chunks) - len(full))
        if not full:
            return []
        documents = [
            {"text": chunk.content, "metadata": {CHUNK: chunk.described} if chunk.described else {}} for chunk in full
        ]
        ids = self.memory.index(self.project, documents)
        described = {id: chunk.described for id, chunk in zip(ids, full, strict=True) if chunk.described}
        keep_described(self.memory, self.project, described)
        if self._reads_documents:
            report = self.memory.memory.graph.extract(self._scope)
            for failure in report.failed:
                _log.warning("%s; what was not read is read with the next documents", failure)
        return ids

    def retrieve(self, queries: Sequence[str], num_to_retrieve: int | None = None, gold_docs: Gold = None) -> Any:
        """A `QuerySolution` for each question; with `gold_docs` a pair of these and their recall at several cuts."""
        return self._retrieve(self.memory, queries, num_to_retrieve, gold_docs)

    def retrieve_dpr(self, queries: Sequence[str], num_to_retrieve: int | None = None, gold_docs: Gold = None) -> Any:
        """The same by vectors alone: the nearest documents, also to a question that none of them answers."""
        if self.memory.memory.embedder is None:
            raise InputError("retrieve_dpr compares vectors, and this memory makes none: name an embedding model")
        dense = ProjectMemory(self.memory.memory, recipe="dense", threshold=0.0)
        return self._retrieve(dense, queries, num_to_retrieve, gold_docs)

    def rag_qa(self, queries: Sequence[str | QuerySolution], gold_docs: Gold = None, gold_answers: Gold = None) -> Any:
        """Have the language model answer questions from their documents.

        Returns the solutions, what the model said to each, and what that took. With `gold_answers` also the recall of
        the documents (None without `gold_docs`) and how good the answers are. Solutions of `retrieve` may be given in
        place of questions. LlmError if there is no language model. If it fails, QaError, which has the answers that
        came before and the questions that are left.
        """
        return self._answer(self.retrieve, queries, gold_docs, gold_answers)

    def rag_qa_dpr(
        self, queries: Sequence[str | QuerySolution], gold_docs: Gold = None, gold_answers: Gold = None
    ) -> Any:
        """The same with the documents of `retrieve_dpr`."""
        return self._answer(self.retrieve_dpr, queries, gold_docs, gold_answers)

    def qa(self, queries: Sequence[QuerySolution]) -> tuple[list[QuerySolution], list[str], list[dict[str, Any]]]:
        """Have the language model answer from documents that were retrieved before."""
        llm, config = self._require_llm(), self.global_config
        solutions = _check_solutions(_check_list(queries, "queries"))
        messages: list[str] = []
        usages: list[dict[str, Any]] = []
        with asking_for(self._scope):
            for solution in solutions:
                docs = solution.docs[: config.qa_top_k]
                limits = config.max_new_tokens, config.temperature
                try:
                    solution.answer, message, usage = ask_question(llm, solution.question, docs, *limits)
                except LlmError as error:
                    raise QaError(str(error), solutions, messages, usages) from error
                messages.append(message)
                usages.append(usage)
        return solutions, messages, usages

    def delete(self, docs_to_delete: Sequence[str]) -> None:
        """Remove documents by their exact words; those that are not there are passed over."""
        texts = list(dict.fromkeys(_check_texts(docs_to_delete, "docs_to_delete")))
        removed = self.memory.delete(self.project, texts, missing_ok=True)
        if len(removed) < len(texts):
            _log.info("%d of %d documents to delete were not there", len(texts) - len(removed), len(texts))

    def get_graph_info(self) -> dict[str, int]:
        """How much the entity graph holds, by HippoRAG's names. Names are joined by how they are written, so that there
        are no synonyms."""
        size = self.memory.memory.graph.size(self._scope)
        return {
            "num_phrase_nodes": size.entities,
            "num_passage_nodes": size.passages,
            "num_total_nodes": size.entities + size.passages,
            "num_extracted_triples": size.triples,
            "num_triples_with_passage_node": size.mentions,
            "num_synonymy_triples": 0,
            "num_total_triples": size.triples + size.mentions,
        }

    def migrate(self, folder: str | Path | None = None) -> HippoReport:
        """Bring in the documents that HippoRAG itself left in a folder, the save_dir if none is named."""
        if folder is not None and not isinstance(folder, str | os.PathLike):
            raise InputError(f"folder is {show(folder)}: it must be the path of a folder")
        return import_folder(self.memory, self.project, folder or self._settings.save_dir)

    def close(self) -> None:
        """Close the store; without it, that is done when nobody has the object any more."""
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _retrieve(self, memory: ProjectMemory, queries: Sequence[str], count: int | None, gold_docs: Gold) -> Any:
        questions = _check_texts(queries, "queries")
        gold = _check_gold(questions, gold_docs, "gold_docs")
        count = self.global_config.retrieval_top_k if count is None else count
        results = memory.retrieve(self.project, questions, count)
        ids = [id for result in results for id in result["ids"]]
        items = self.memory.memory.get_many(self._scope, ids) if ids else []
        described = {item.id: dict(item.metadata.get(CHUNK) or {}) for item in items}
        solutions = [
            QuerySolution(
                result["question"],
                result["docs"],
                np.array(result["doc_scores"], float),
                doc_metadata=[described.get(id, {}) for id in result["ids"]],
                ids=result["ids"],
            )
            for result in results
        ]
        return solutions if gold is None else (solutions, _compare_docs(solutions, gold))

    def _answer(self, retrieve: Callable[..., Any], queries: Any, gold_docs: Gold, gold_answers: Gold) -> Any:
        self._require_llm()
        given = _check_list(queries, "queries")
        docs, answers = _check_gold(given, gold_docs, "gold_docs"), _check_gold(given, gold_answers, "gold_answers")
        are_solutions = all(isinstance(query, QuerySolution) for query in given)
        solutions = _check_solutions(given) if are_solutions else retrieve(given)
        recall = None if docs is None else _compare_docs(solutions, docs)
        if answers is None:
            return self.qa(solutions)
        for solution, gold in zip(solutions, answers, strict=True):
            solution.gold_answers = gold
        return *self.qa(solutions), recall, answer_figures(solutions)

    def _require_llm(self) -> Llm:
        if self._llm is None:
            reason = self._settings.missing_llm()
            raise LlmError(
                f"there is no language model to answer with{reason and f' ({reason})'}: give llm_model_name= (and "
                "llm_base_url= for a server of your own) or qa_llm=, or set MEMORY_LLM_MODEL or EUNOE_LLM"
            )
        return self._llm


def _check_solutions(values: Sequence[Any]) -> list[QuerySolution]:
    for place, value in enumerate(values):
        if not isinstance(value, QuerySolution):
            raise InputError("queries must be solutions, as retrieve gives them: rag_qa takes questions")
        has_docs = isinstance(value.docs, list | tuple) and all(isinstance(doc, str) for doc in value.docs)
        if not has_docs or not isinstance(value.question, str):
            raise InputError(f"queries[{place}] must have a question, a text, and docs, a list of texts")
    return list(values)


def _check_list(values: Any, name: str) -> list[Any]:
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InputError(f"{name} must be a list of texts{' or chunks' if name == 'docs' else ''}")
    return list(values)


def _check_texts(values: Any, name: str) -> list[str]:
    texts = _check_list(values, name)
    if not all(isinstance(value, str) for value in texts):
        raise InputError(f"{name} must be a list of texts")
    return list(map(replace_surrogates, texts))


def _compare_docs(solutions: Sequence[QuerySolution], gold: Sequence[list[str]]) -> dict[str, float]:
    for solution, docs in zip(solutions, gold, strict=True):
        solution.gold_docs = docs
    return recall_figures(solutions)


def _check_gold(queries: Sequence[Any], gold: Any, name: str) -> list[list[str]] | None:
    """A list of texts for each question; None if nobody gave any."""
    if gold is None:
        return None
    entries = _check_list(gold, name)
    if len(entries) != len(queries):
        raise InputError(f"{name} has {len(entries)} entries for {len(queries)} questions")
    return [_check_texts(entry, f"{name}[{place}]") for place, entry in enumerate(entries)]
