"""In the place of HippoRAG: its interface and its results."""

from __future__ import annotations

import gc
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Iterator
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
    GOLD_ANSWERS,
    GOLD_DOCS,
    OLIVER,
    QUERIES,
)
from tests.llm.model_server import HttpReply, ModelServer, says, serve

import eunoe
from eunoe.errors import InputError, LlmError
from eunoe.hosts.hipporag import BaseConfig, Chunk, HippoRAG, QuerySolution
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


@pytest.mark.parametrize("count", [0, -1, 1.5, "5", True])
def test_a_number_of_documents_is_one_or_more(rag: HippoRAG, count: Any) -> None:
    with pytest.raises(InputError, match="num_to_retrieve"):
        rag.retrieve(["Who?"], count)


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


ANNA = "Anna lives in Bergen."


@pytest.fixture
def ready(tmp_path: Path) -> Iterator[HippoRAG]:
    with HippoRAG(save_dir=tmp_path, embedding_model_name="static", qa_llm=ScriptedLlm(lambda _: "Answer: x")) as ready:
        ready.index([ANNA])
        yield ready


@pytest.mark.parametrize("config", [3, 2.5, True, [], {"save_dir": "x"}, b"x", object(), BaseConfig, int, print])
def test_a_config_that_is_none_is_refused(config: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="global_config is "):
        HippoRAG(config, save_dir=str(tmp_path / "x"))
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("save_dir", value) for value in (3, True, ["x"], b"x", " ")),
        *((name, value) for name in ("llm_model_name", "llm_base_url", "llm_api_key_env") for value in (3, ["x"])),
        *((name, 3) for name in ("embedding_model_name", "embedding_base_url", "embedding_api_key_env")),
        ("index_identity", 3),
        *(("text_preprocessor", value) for value in (3, "x", object())),
    ],
)
def test_an_argument_of_another_type_is_refused(
    name: str, value: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=rf"\b{name} (is|must)"):
        HippoRAG(**{"save_dir": "x", name: value})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, value) for name in ("retrieval_top_k", "qa_top_k", "max_new_tokens") for value in (0, -1, True, "5")),
        *(("temperature", value) for value in ("x", -1, True, float("nan"), 3.0)),
        ("save_dir", 3),
    ],
)
def test_a_setting_of_another_type_is_refused(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=name):
        HippoRAG(BaseConfig(**{name: value}))


@pytest.mark.parametrize("queries", ["Anna", b"Anna", None, 3, [3], [None], {"Anna": 1}])
def test_questions_are_a_list_of_texts(ready: HippoRAG, queries: Any) -> None:
    for ask in (ready.retrieve, ready.retrieve_dpr, ready.rag_qa, ready.rag_qa_dpr):
        with pytest.raises(InputError, match="queries must be a list of texts"):
            ask(queries)
    with pytest.raises(InputError, match="queries must be "):
        ready.qa(queries)


@pytest.mark.parametrize("gold", [[], [["a"], ["b"]], "x", ["x"], [[3]], 3, [None], [3], {"x": 1}])
def test_gold_is_a_list_of_texts_for_each_question(ready: HippoRAG, gold: Any) -> None:
    for name, ask in (("gold_docs", ready.retrieve), ("gold_docs", ready.rag_qa), ("gold_answers", ready.rag_qa)):
        with pytest.raises(InputError, match=name):
            ask(["Anna"], **{name: gold})


@pytest.mark.parametrize("docs", ["x", b"x", None, 3, [3], [None], [b"x"], [{"content": "x"}], {"x": 1}])
def test_documents_are_texts_or_chunks(ready: HippoRAG, docs: Any) -> None:
    with pytest.raises(InputError, match="docs must be a list of texts or chunks"):
        ready.index(docs)
    if docs != {"x": 1}:
        with pytest.raises(InputError, match="docs_to_delete must be a list of texts"):
            ready.delete(docs)
    assert ready.get_graph_info()["num_passage_nodes"] == 1


QUICK_START = """
docs = {docs!r}
queries = {queries!r}
ready = HippoRAG(save_dir="outputs", llm_model_name="gpt-4o-mini", embedding_model_name="text-embedding-3-small")
ready.index(docs=docs)
retrieved = ready.retrieve(queries=queries, num_to_retrieve=2)
answered = ready.rag_qa(retrieved)
results = ready.rag_qa(queries=queries)
evaluated = ready.rag_qa(queries=queries, gold_docs={gold_docs!r}, gold_answers={gold_answers!r})
print(json.dumps({{
    "retrieved": [len(solution.docs) for solution in retrieved],
    "answers": [[solution.answer for solution in found[0]] for found in (answered, results, evaluated)],
    "messages": results[1],
    "metadata": results[2],
    "figures": evaluated[-2:],
}}))
"""


def letters(text: str) -> list[float]:
    """A vector that is near to those of texts with the same words."""
    row = [0.1] * 64
    for word in text.lower().replace("'s", "").replace("?", "").replace(".", "").split():
        row[sum(map(ord, word)) % 64] += 1.0
    return row


def reply(server: ModelServer, request: dict[str, Any]) -> HttpReply:
    """Vectors of what is sent, and the right answer where the documents that hold it are shown."""
    if "input" in request:
        rows = [{"index": place, "embedding": letters(text)} for place, text in enumerate(request["input"])]
        return says(200, {"data": rows})(server, request)
    asked = request["messages"][-1]["content"]
    place = next(place for place, query in enumerate(QUERIES) if query in asked)
    is_told = GOLD_DOCS[place][0] in asked
    answer = GOLD_ANSWERS[place][0] if is_told else "The documents do not tell it."
    choices = [{"message": {"content": f"Thought: I read it.\nAnswer: {answer}"}, "finish_reason": "stop"}]
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    return says(200, {"choices": choices, "usage": usage})(server, request)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with serve(reply) as server:
        yield server


def run(program: str, folder: Path, server: ModelServer) -> Any:
    body = program.format(docs=ALL_DOCS, queries=QUERIES, gold_docs=GOLD_DOCS, gold_answers=GOLD_ANSWERS)
    file = folder / "program.py"
    file.write_text(f"import json\nfrom eunoe.hosts.hipporag import HippoRAG\n{body}", encoding="utf-8")
    environment = os.environ | {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": server.url}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(file)], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_the_quick_start_runs_with_the_import_changed(tmp_path: Path, server: ModelServer) -> None:
    said = run(QUICK_START, tmp_path, server)
    assert [1 <= count <= 2 for count in said["retrieved"]] == [True] * 3
    assert said["answers"][1] == said["answers"][2] == [gold[0] for gold in GOLD_ANSWERS]
    assert said["messages"][0] == "Thought: I read it.\nAnswer: Politician"
    assert said["metadata"][0] == {"prompt_tokens": 100, "completion_tokens": 10, "finish_reason": "stop"}
    recall, figures = said["figures"]
    assert recall["Recall@5"] > 0.8  # the vectors of this test know words, not meanings
    assert figures == {"ExactMatch": 1.0, "F1": 1.0}
    assert {request["model"] for request in server.requests} == {"gpt-4o-mini", "text-embedding-3-small"}
    assert {request["path"] for request in server.requests} == {"/v1/chat/completions", "/v1/embeddings"}
