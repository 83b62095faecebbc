"""Programs written for HippoRAG, run as they are but for the import, with models behind a real address."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.hosts.hipporag.samples import ALL_DOCS, GOLD_ANSWERS, GOLD_DOCS, QUERIES
from tests.llm.model_server import HttpReply, ModelServer, says, serve

QUICK_START = """
docs = {docs!r}
queries = {queries!r}
rag = HippoRAG(save_dir="outputs", llm_model_name="gpt-4o-mini", embedding_model_name="text-embedding-3-small")
rag.index(docs=docs)
retrieved = rag.retrieve(queries=queries, num_to_retrieve=2)
answered = rag.rag_qa(retrieved)
results = rag.rag_qa(queries=queries)
evaluated = rag.rag_qa(queries=queries, gold_docs={gold_docs!r}, gold_answers={gold_answers!r})
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
