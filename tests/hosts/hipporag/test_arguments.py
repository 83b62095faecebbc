"""An argument of a wrong type is refused by its name, before anything is made or asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eunoe.apps.projects import ProjectMemory
from eunoe.errors import InputError
from eunoe.hosts.hipporag import BaseConfig, HippoRAG
from eunoe.llm.contract import ScriptedLlm

ANNA = "Anna lives in Bergen."


@pytest.fixture
def rag(tmp_path: Path) -> Iterator[HippoRAG]:
    with HippoRAG(save_dir=tmp_path, embedding_model_name="static", qa_llm=ScriptedLlm(lambda _: "Answer: x")) as rag:
        rag.index([ANNA])
        yield rag


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
def test_questions_are_a_list_of_texts(rag: HippoRAG, queries: Any) -> None:
    for ask in (rag.retrieve, rag.retrieve_dpr, rag.rag_qa, rag.rag_qa_dpr):
        with pytest.raises(InputError, match="queries must be a list of texts"):
            ask(queries)
    with pytest.raises(InputError, match="queries must be "):
        rag.qa(queries)


def test_questions_of_an_iterator_are_all_asked(rag: HippoRAG) -> None:
    assert [solution.question for solution in rag.retrieve(iter(["Anna", "Tea"]))] == ["Anna", "Tea"]  # type: ignore[arg-type]
    assert len(rag.rag_qa(iter(["Anna"]))[0]) == 1  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [0, -1, True, "3", 2.5])
def test_a_number_is_a_whole_number(rag: HippoRAG, number: Any) -> None:
    with pytest.raises(InputError, match=r"num_to_retrieve is .*: it must be a whole number of at least 1"):
        rag.retrieve(["Anna"], number)


@pytest.mark.parametrize("gold", [[], [["a"], ["b"]], "x", ["x"], [[3]], 3, [None], [3], {"x": 1}])
def test_gold_is_a_list_of_texts_for_each_question(rag: HippoRAG, gold: Any) -> None:
    for name, ask in (("gold_docs", rag.retrieve), ("gold_docs", rag.rag_qa), ("gold_answers", rag.rag_qa)):
        with pytest.raises(InputError, match=name):
            ask(["Anna"], **{name: gold})


@pytest.mark.parametrize("docs", ["x", b"x", None, 3, [3], [None], [b"x"], [{"content": "x"}], {"x": 1}])
def test_documents_are_texts_or_chunks(rag: HippoRAG, docs: Any) -> None:
    with pytest.raises(InputError, match="docs must be a list of texts or chunks"):
        rag.index(docs)
    if docs != {"x": 1}:
        with pytest.raises(InputError, match="docs_to_delete must be a list of texts"):
            rag.delete(docs)
    assert rag.get_graph_info()["num_passage_nodes"] == 1


@pytest.mark.parametrize("threshold", ["x", "0.3", -1, 2, True, float("nan"), []])
def test_a_threshold_is_a_number_on_the_scale_of_scores(rag: HippoRAG, threshold: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"threshold is .*: it must be a number from 0 to 1"):
        ProjectMemory(rag.memory.memory, threshold=threshold)
    with pytest.raises(InputError, match="threshold is "):
        ProjectMemory.open(tmp_path / "other", threshold=threshold)
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("recipe", ["x", 3, None, []])
def test_a_recipe_is_one_of_those_there_are(rag: HippoRAG, recipe: Any) -> None:
    with pytest.raises(InputError, match="recipe"):
        ProjectMemory(rag.memory.memory, recipe=recipe)
