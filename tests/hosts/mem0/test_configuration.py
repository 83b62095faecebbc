"""Configuration: what of mem0's there is here, and what is refused by its name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from eunoe.embed.adapters import OpenAIEmbedder
from eunoe.errors import InputError
from eunoe.hosts import common
from eunoe.hosts.mem0 import Memory
from eunoe.hosts.mem0.configuration import Configuration
from eunoe.llm.remote import OpenAILlm


def part(name: str, provider: str, **config: Any) -> dict[str, Any]:
    return {name: {"provider": provider, "config": config}}


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (part("vector_store", "pgvector"), "vector store 'pgvector' is not supported; use 'eunoe'"),
        (part("vector_store", "qdrant", host="localhost", port=6333), "'qdrant with host' is not supported"),
        (part("vector_store", "qdrant", path="x", collection_name="../y"), "cannot be that of a file"),
        (part("llm", "groq", model="x"), "llm 'groq' is not supported; use .*openai_base_url"),
        (part("llm", "openai", enable_vision=True), "'enable_vision' is not supported; describe pictures"),
        (part("embedder", "huggingface"), "embedder 'huggingface' is not supported; use 'eunoe'"),
        (part("embedder", "langchain"), "the embedder 'langchain' needs a model"),
        (part("reranker", "cohere"), "reranker 'cohere' is not supported; leave it out"),
        (part("graph_store", "neo4j"), "graph store 'neo4j' is not supported; leave it out"),
        ({"vectorstore": {}}, "unknown key 'vectorstore'"),
        ({"llm": "openai"}, "llm must be a dict with 'provider' and 'config'"),
        (part("vector_store", "eunoe", pth="x"), "vector_store has no option 'pth'"),
        (part("vector_store", "qdrant", paht="x"), "vector_store has no option 'paht'"),
        ({"vector_store": {"provder": "eunoe"}}, "vector_store takes 'provider' and 'config', not 'provder'"),
        ("memory.db", "config must be a dict"),
    ],
)
def test_what_there_is_none_of_is_refused_by_its_name(config: Any, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        Memory.from_config(config)


def test_each_collection_of_a_folder_has_a_file_of_its_own(tmp_path: Path) -> None:
    def names(config: Any) -> Any:
        return Configuration.parse(config).target

    assert names(part("vector_store", "qdrant", path=str(tmp_path))) == str(tmp_path / "mem0.eunoe.db")
    assert names(part("vector_store", "chroma", path=str(tmp_path), collection_name="b")) == str(
        tmp_path / "b.eunoe.db"
    )
    assert names(part("vector_store", "eunoe", path="x.db")) == "x.db"
    assert Path(names(part("vector_store", "qdrant", collection_name="b"))).name == "b.eunoe.db"
    with Memory.from_config(part("vector_store", "qdrant", path=str(tmp_path / "new"))) as memory:
        memory.add("I like tea.", user_id="anna", infer=False)
    with Memory.from_config(part("vector_store", "qdrant", path=str(tmp_path / "new"))) as memory:
        assert len(memory.get_all(filters={"user_id": "anna"})["results"]) == 1


def test_models_are_those_of_the_engine() -> None:
    config = Configuration.parse(
        {
            **part("llm", "openai", model="gpt-x", api_key="k", openai_base_url="http://127.0.0.1:9/v1"),
            **part("embedder", "ollama", model="nomic", ollama_base_url="http://127.0.0.1:9"),
            "custom_instructions": "Look for wishes.",
        }
    )
    assert isinstance(config.llm, OpenAILlm)
    assert isinstance(config.embedder, OpenAIEmbedder)
    assert (config.llm.name, config.embedder.name) == ("openai:gpt-x", "openai:nomic")
    assert config.instructions == "Look for wishes."
    model = object()
    assert Configuration.parse(part("llm", "langchain", model=model)).llm is model


def test_options_of_models_that_do_nothing_are_named(caplog: pytest.LogCaptureFixture) -> None:
    Configuration.parse(part("llm", "openai", model="x", api_key="k", temperature=0.1, modle="y"))
    assert "options of the llm do nothing here: modle, temperature" in caplog.text


def test_only_what_was_set_in_a_configuration_of_mem0_counts() -> None:
    class MemoryConfig(BaseModel):
        version: str = "v1.1"
        llm: dict[str, Any] = {"provider": "groq"}

    assert not Configuration.parse(MemoryConfig(version="v1.1")).names_store
    with pytest.raises(InputError, match="llm 'groq' is not supported"):
        Configuration.parse(MemoryConfig(llm={"provider": "groq"}))


def test_a_memory_without_configuration_needs_no_key_and_shares_the_default_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EUNOE_STORE", str(tmp_path / "own.db"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with Memory() as memory:
        memory.add("I like tea.", user_id="anna", infer=False)
    assert len(Memory().get_all(filters={"user_id": "anna"})["results"]) == 1
    common.default_memory().close()
    common._open.cache_clear()


@pytest.mark.parametrize("name", ["MemoryClient", "AsyncMemoryClient"])
def test_the_hosted_client_is_refused_when_it_is_imported(name: str) -> None:
    with pytest.raises(ImportError, match=f"{name} is the client of mem0's hosted service.*use Memory"):
        exec(f"from eunoe.hosts.mem0 import {name}")
