"""In the place of HippoRAG: its interface and its results."""

from __future__ import annotations

import gc
import inspect
import json
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.hosts.hipporag.samples import (
    ALL_DOCS,
    BIRTHPLACE,
    CINDERELLA,
    COUNTY,
    DOCS,
    GEORGE,
    GOLD_DOCS,
    OLIVER,
    QUERIES,
)

import eunoe
from eunoe.errors import InputError, LlmError
from eunoe.hosts.hipporag import Chunk, HippoRAG, QuerySolution
from eunoe.llm.contract import ScriptedLlm

CHILD = Path(__file__).parents[2] / "support" / "project_child.py"


def test_takes_what_hipporag_takes_in_the_same_order() -> None:
    parameters = list(inspect.signature(HippoRAG).parameters)
    assert parameters[:12] == [
        *("global_config", "save_dir", "llm_model_name", "llm_base_url", "embedding_model_name"),
        *("embedding_base_url", "azure_endpoint", "azure_embedding_endpoint", "extraction_llm", "qa_llm"),
        *("embedding_model", "text_preprocessor"),
    ]
    assert {"index_identity", "llm_api_key_env", "embedding_api_key_env"} <= set(parameters)
    for retrieve in (HippoRAG.retrieve, HippoRAG.retrieve_dpr):
        assert list(inspect.signature(retrieve).parameters)[1:] == ["queries", "num_to_retrieve", "gold_docs"]
    for answer in (HippoRAG.rag_qa, HippoRAG.rag_qa_dpr):
        assert list(inspect.signature(answer).parameters)[1:] == ["queries", "gold_docs", "gold_answers"]
    assert list(inspect.signature(HippoRAG.delete).parameters)[1:] == ["docs_to_delete"]
    assert [each.name for each in fields(QuerySolution)][:9] == [
        *("question", "docs", "doc_scores", "answer", "gold_answers", "gold_docs", "thoughts", "doc_metadata"),
        "graph_seeds",
    ]


def test_its_quickstart_finds_every_gold_document(tmp_path: Path) -> None:
    with HippoRAG(save_dir=str(tmp_path), llm_model_name="none", embedding_model_name="static") as rag:
        rag.index(ALL_DOCS)
        _, figures = rag.retrieve(QUERIES, gold_docs=GOLD_DOCS)
    assert figures["Recall@5"] == 1.0


def test_results_are_as_code_written_for_it_reads_them(rag: HippoRAG) -> None:
    rag.index(docs=DOCS)
    (solution,) = rag.retrieve(queries=["Which ball did Cinderella attend?"], num_to_retrieve=2)
    assert isinstance(solution, QuerySolution)
    assert (solution.question, solution.docs[0]) == ("Which ball did Cinderella attend?", CINDERELLA)
    assert isinstance(solution.doc_scores, np.ndarray)
    assert solution.doc_scores.tolist()[: len(solution.docs)] == solution.doc_scores.tolist()
    said = solution.to_dict()
    assert json.loads(json.dumps(said)) == said
    names = {"question", "answer", "gold_answers", "docs", "doc_scores", "gold_docs", "doc_metadata", "graph_seeds"}
    assert set(said) == names
    assert set(QuerySolution("q", [], thoughts=["so"]).to_dict()) == names | {"thoughts"}


def test_an_unrelated_question_gets_an_empty_array(rag: HippoRAG) -> None:
    rag.index(DOCS)
    (solution,) = rag.retrieve(["quantum chromodynamics lattice"])
    assert (solution.docs, solution.doc_scores.shape, solution.to_dict()["doc_scores"]) == ([], (0,), [])


def test_gold_documents_give_recall_beside_the_results(rag: HippoRAG) -> None:
    rag.index(DOCS)
    solutions, figures = rag.retrieve(["Cinderella royal ball", "Oliver Badman"], 5, [[CINDERELLA], [OLIVER, "x"]])
    assert [solution.gold_docs for solution in solutions] == [[CINDERELLA], [OLIVER, "x"]]
    assert (figures["Recall@1"], figures["Recall@200"]) == (0.75, 0.75)


def test_a_document_is_found_at_once_after_an_earlier_retrieve(rag: HippoRAG) -> None:
    rag.index([OLIVER])
    assert rag.retrieve(["Cinderella royal ball"])[0].docs == []
    rag.index([CINDERELLA])
    assert rag.retrieve(["Cinderella royal ball"])[0].docs == [CINDERELLA]
    assert rag.retrieve(["Oliver Badman"])[0].docs == [OLIVER]


def test_deletes_what_is_there_and_passes_over_the_rest(rag: HippoRAG) -> None:
    rag.index(DOCS)
    rag.delete([CINDERELLA, "never indexed"])
    rag.delete(["never indexed"])
    assert rag.retrieve(["Cinderella royal ball"])[0].docs == []
    rag.index([CINDERELLA])
    assert rag.retrieve(["Cinderella royal ball"])[0].docs == [CINDERELLA]


def test_blank_and_broken_texts_stop_nothing(rag: HippoRAG) -> None:
    assert len(rag.index(["", " ", "Zanzibar \ud800 gateway", OLIVER])) == 2
    assert rag.retrieve(["Zanzibar gateway"])[0].docs == ["Zanzibar \ufffd gateway"]
    rag.delete(["Zanzibar \ud800 gateway"])
    assert rag.retrieve(["Zanzibar gateway", ""])[0].docs == []
    assert rag.index([]) == []


@pytest.mark.parametrize("docs", ["one text", [1], [{"text": OLIVER}]])
def test_documents_are_texts(rag: HippoRAG, docs: Any) -> None:
    with pytest.raises(InputError, match="docs must be a list of texts"):
        rag.index(docs)


def test_closes_when_nobody_has_it_any_more(tmp_path: Path) -> None:
    rag = HippoRAG(save_dir=str(tmp_path), embedding_model_name="none")
    memory = rag.memory
    rag.index([OLIVER])
    del rag
    gc.collect()
    with pytest.raises(eunoe.errors.ClosedError):
        memory.projects()


def test_two_processes_find_each_others_documents_at_once(tmp_path: Path, rag: HippoRAG) -> None:
    command = [sys.executable, "-W", "error", str(CHILD), "hippo", str(tmp_path / "rag")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin
        assert child.stdout

        def ask(words: str) -> Any:
            assert child.stdin
            assert child.stdout
            child.stdin.write(f"{words}\n")
            child.stdin.flush()
            return json.loads(child.stdout.readline())

        assert json.loads(child.stdout.readline()) == {"ready": True}
        assert ask("Cinderella royal ball") == {"docs": []}
        rag.index(DOCS)
        assert ask("Cinderella royal ball") == {"docs": [CINDERELLA]}
        assert ask("+The gateway of Zanzibar was restarted.") == {"indexed": True}
        assert rag.retrieve(["gateway of Zanzibar"])[0].docs == ["The gateway of Zanzibar was restarted."]
        rag.delete([CINDERELLA])
        assert ask("Cinderella royal ball") == {"docs": []}


def test_metadata_of_chunks_comes_back_with_the_documents(rag: HippoRAG) -> None:
    chunk = Chunk(CINDERELLA, "tales.md", {"page": 3, "title": "Cinderella", "ticket": 7, "document": "x"})
    rag.index([chunk, OLIVER, Chunk(GEORGE)])
    cinderella, oliver = rag.retrieve(["Cinderella royal ball", "Oliver Badman"], 1)
    assert cinderella.docs == [CINDERELLA]
    assert cinderella.doc_metadata == [{**chunk.metadata, "source_id": "tales.md"}]
    assert cinderella.to_dict()["doc_metadata"] == cinderella.doc_metadata
    assert oliver.doc_metadata == [{}]


def test_a_known_text_gets_the_metadata_of_its_latest_chunk(rag: HippoRAG) -> None:
    ids = rag.index([Chunk(CINDERELLA, "old.md", {"page": 1})])
    assert rag.index([CINDERELLA]) == ids
    assert rag.retrieve(["Cinderella"])[0].doc_metadata == [{"page": 1, "source_id": "old.md"}]
    assert rag.index([Chunk(CINDERELLA, "new.md")]) == ids
    (solution,) = rag.retrieve(["Cinderella"])
    assert (solution.docs, solution.doc_metadata) == ([CINDERELLA], [{"source_id": "new.md"}])
    assert rag.get_graph_info()["num_passage_nodes"] == 1
    rag.delete([CINDERELLA])
    assert rag.retrieve(["Cinderella"])[0].docs == []


def test_a_long_document_has_the_metadata_of_its_chunk(rag: HippoRAG) -> None:
    text = "Minutes of the meeting about Zanzibar.\n" * 400
    rag.index([Chunk(text, "minutes.txt")])
    rag.index([Chunk(text, "minutes.md")])
    (solution,) = rag.retrieve(["meeting about Zanzibar"])
    assert (solution.docs, solution.doc_metadata) == ([text], [{"source_id": "minutes.md"}])


def test_chunks_of_hipporag_itself_are_taken(rag: HippoRAG) -> None:
    rag.index([SimpleNamespace(content=OLIVER, source_id=12, metadata=None)])
    assert rag.retrieve(["Oliver Badman"])[0].doc_metadata == [{"source_id": "12"}]


def test_a_preprocessor_makes_the_chunks(tmp_path: Path) -> None:
    class Halves:
        def preprocess(self, docs: list[str]) -> list[Chunk]:
            return [Chunk(half, "both") for doc in docs for half in doc.split(" | ")]

    with HippoRAG(save_dir=str(tmp_path), embedding_model_name="none", text_preprocessor=Halves()) as rag:
        assert len(rag.index([f"{OLIVER} | {CINDERELLA}"])) == 2
        assert rag.retrieve(["Cinderella royal ball"])[0].docs == [CINDERELLA]


def test_vectors_alone_give_the_nearest_to_any_question(tmp_path: Path) -> None:
    with HippoRAG(save_dir=str(tmp_path), embedding_model_name="static") as rag:
        rag.index(ALL_DOCS)
        nearest, unrelated = rag.retrieve_dpr([QUERIES[0], "Which protein folds a membrane?"], 4)
        assert nearest.docs[0] == GEORGE
        assert len(nearest.docs) == len(unrelated.docs) == 4
        assert sorted(nearest.doc_scores.tolist(), reverse=True) == nearest.doc_scores.tolist()
        assert rag.retrieve(["Which protein folds a membrane?"])[0].docs == []
        solutions, figures = rag.retrieve_dpr(QUERIES, gold_docs=GOLD_DOCS)
        assert len(solutions[0].docs) > 4
        assert figures["Recall@200"] == 1.0


def test_vectors_alone_need_vectors(rag: HippoRAG) -> None:
    with pytest.raises(InputError, match="name an embedding model"):
        rag.retrieve_dpr(["Who?"])


@pytest.mark.parametrize("count", [0, -1, 1.5, "5", True])
def test_a_number_of_documents_is_one_or_more(rag: HippoRAG, count: Any) -> None:
    with pytest.raises(InputError, match="num_to_retrieve"):
        rag.retrieve(["Who?"], count)


def test_gold_is_as_long_as_the_questions(rag: HippoRAG) -> None:
    with pytest.raises(InputError, match="gold_docs has 1 entries for 2 questions"):
        rag.retrieve(["Who?", "When?"], gold_docs=[[OLIVER]])


def test_the_graph_is_counted_by_its_names(rag: HippoRAG) -> None:
    assert set(rag.get_graph_info().values()) == {0}
    rag.index([BIRTHPLACE, COUNTY])
    info = rag.get_graph_info()
    assert (info["num_passage_nodes"], info["num_extracted_triples"], info["num_synonymy_triples"]) == (2, 0, 0)
    assert info["num_total_nodes"] == info["num_phrase_nodes"] + 2
    assert info["num_triples_with_passage_node"] == info["num_total_triples"] >= 4


def test_an_extraction_llm_reads_what_is_indexed(tmp_path: Path) -> None:
    triples = [{"subject": "Montebello", "relation": "is a part of", "object": "Rockland County"}]
    entry = {"number": 1, "entities": ["Montebello", "Rockland County"], "triples": triples}
    reader, answerer = ScriptedLlm([{"passages": [entry]}, LlmError("down")]), ScriptedLlm(["Answer: Rockland County"])
    with HippoRAG(save_dir=str(tmp_path), embedding_model_name="none", extraction_llm=reader, qa_llm=answerer) as rag:
        rag.index([COUNTY])
        assert rag.get_graph_info()["num_extracted_triples"] == 1
        assert rag.index([OLIVER])  # its model is down, and the document is kept
        assert rag.retrieve(["Oliver Badman"])[0].docs == [OLIVER]
        assert rag.rag_qa(["Where is Montebello?"])[0][0].answer == "Rockland County"
    assert (len(reader.prompts), len(answerer.prompts)) == (2, 1)


def test_without_an_extraction_llm_indexing_asks_nobody(tmp_path: Path) -> None:
    llm = ScriptedLlm([])
    with HippoRAG(save_dir=str(tmp_path), embedding_model_name="none", qa_llm=llm) as rag:
        rag.index(DOCS)
        rag.retrieve(["Oliver Badman"])
    assert llm.prompts == []
