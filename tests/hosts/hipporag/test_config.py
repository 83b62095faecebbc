"""What is given is used, or refused by its name; what does nothing is said."""

from __future__ import annotations

import copy
import logging
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.hosts.hipporag.samples import GEORGE, OLIVER
from tests.llm.model_server import says, serve

from eunoe.apps.projects import STORE_FILE_NAME
from eunoe.errors import InputError
from eunoe.hosts.hipporag import BaseConfig, HippoRAG


@dataclass
class HisConfig:
    """As HippoRAG's own looks: many fields with defaults."""

    save_dir: str | None = None
    llm_name: str = "none"
    embedding_model_name: str = "none"
    retrieval_top_k: int = 200
    qa_top_k: int = 5
    linking_top_k: int = 5
    damping: float = 0.5
    openie_mode: str = "online"
    vector_store_type: str = "parquet"
    chroma_port: int = 8000
    bedrock_mantle_auth: str = "api_key"
    azure_endpoint: str | None = None
    response_format: dict[str, str] = field(default_factory=lambda: {"type": "json_object"})


@pytest.mark.parametrize("config", ["outputs", Path("outputs")])
def test_a_folder_in_the_place_of_the_config_is_refused(
    config: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"outputs.*not a config object.*save_dir="):
        HippoRAG(config, "llm", "static")
    assert list(tmp_path.iterdir()) == []


def test_reads_its_settings_from_a_config_and_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with HippoRAG(global_config=HisConfig(str(tmp_path / "config"), retrieval_top_k=1)) as rag:
        rag.index([OLIVER, GEORGE])
        assert len(rag.retrieve(["politician"])[0].docs) == 1
        assert (rag.global_config.retrieval_top_k, rag.global_config.qa_top_k) == (1, 5)
    monkeypatch.setenv("MEMORY_SAVE_DIR", str(tmp_path / "environment"))
    monkeypatch.setenv("MEMORY_EMBEDDING_MODEL", "none")
    HippoRAG().close()
    monkeypatch.delenv("MEMORY_SAVE_DIR")
    monkeypatch.chdir(tmp_path)
    HippoRAG().close()
    assert sorted(str(file.parent.relative_to(tmp_path)) for file in tmp_path.rglob(STORE_FILE_NAME)) == [
        *("config", "environment", "outputs")
    ]


def test_arguments_count_more_and_change_nobodys_config(tmp_path: Path) -> None:
    config = BaseConfig(save_dir=str(tmp_path / "config"), embedding_model_name="none")
    with HippoRAG(config, save_dir=str(tmp_path / "argument")) as rag:
        assert rag.global_config.save_dir == str(tmp_path / "argument")
    assert config.save_dir == str(tmp_path / "config")
    assert [path.name for path in tmp_path.iterdir()] == ["argument"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("azure_endpoint", "https://x.openai.azure.com"),
        ("azure_embedding_endpoint", "https://x.openai.azure.com"),
        ("azure_api_version", "2025-01-01"),
        ("azure_chat_deployment", "mini"),
        ("azure_embedding_deployment", "small"),
        ("embedding_provider", "transformers"),
    ],
)
def test_an_argument_that_is_not_supported_is_refused_by_its_name(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(InputError, match=f"{name} is not supported: "):
        HippoRAG(save_dir=str(tmp_path / "x"), **{name: value})  # type: ignore[arg-type]
    with pytest.raises(InputError, match=f"{name} is not supported: "):
        HippoRAG(BaseConfig(save_dir=str(tmp_path / "x"), **{name: value}))
    assert list(tmp_path.iterdir()) == []


def test_an_argument_that_hipporag_does_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="HippoRAG takes no argument embeding_model_name, top_k"):
        HippoRAG(save_dir=str(tmp_path / "x"), top_k=3, embeding_model_name="static")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("vector_store_type", "milvus"),
        ("milvus_uri", "http://localhost:19530"),
        ("qdrant_url", "http://localhost:6333"),
        ("openie_mode", "offline"),
        ("bedrock_region", "us-east-2"),
    ],
)
def test_a_setting_that_would_send_data_elsewhere_is_refused(tmp_path: Path, name: str, value: str) -> None:
    for config in (BaseConfig, SimpleNamespace):
        with pytest.raises(InputError, match=f"{name} is not supported: "):
            HippoRAG(config(save_dir=str(tmp_path / "x"), **{name: value}))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("model", ["Transformers/Qwen3", "bedrock/claude", "bedrock-mantle/gpt", "atlascloud/x"])
def test_no_text_goes_to_another_model_than_the_one_that_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    """An attack: a model that HippoRAG runs itself, and the key of a public one in the environment."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    with pytest.raises(InputError, match=f"{model}.*llm_base_url"):
        HippoRAG(save_dir=str(tmp_path), llm_model_name=model)


def test_what_does_nothing_here_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    HippoRAG(HisConfig(str(tmp_path / "a"))).close()
    assert caplog.text == ""
    HippoRAG(HisConfig(str(tmp_path / "a"), linking_top_k=9, damping=0.1)).close()
    assert "do nothing here: damping, linking_top_k" in caplog.text
    caplog.clear()
    HippoRAG(BaseConfig(save_dir=str(tmp_path / "b"), embedding_model_name="none", corpus_len=10, zebra=1)).close()
    (record,) = caplog.records
    assert (record.levelno, record.getMessage().rpartition(": ")[2]) == (logging.WARNING, "corpus_len, zebra")


def test_keys_come_from_the_variables_that_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAT_KEY", "sk-chat")
    monkeypatch.setenv("VECTOR_KEY", "sk-vector")

    def good(server: Any, request: dict[str, Any]) -> Any:
        if "input" in request:
            rows = [{"index": number, "embedding": [1.0, 2.0]} for number in range(len(request["input"]))]
            return says(200, {"data": rows})(server, request)
        message = {"message": {"content": "Answer: politician"}, "finish_reason": "stop"}
        return says(200, {"choices": [message], "usage": {"prompt_tokens": 50, "completion_tokens": 4}})(
            server, request
        )

    with serve(good) as server:
        with HippoRAG(
            save_dir=str(tmp_path),
            llm_model_name="my-llm",
            llm_base_url=server.url,
            llm_api_key_env="CHAT_KEY",
            embedding_model_name="VLLM/my-vectors",
            embedding_base_url=f"{server.url}/embeddings",
            embedding_api_key_env="VECTOR_KEY",
        ) as rag:
            rag.index([OLIVER])
            _, _, (usage,) = rag.rag_qa(["What is Oliver Badman?"])
        asked = {
            (request["path"], request["model"], headers["authorization"])
            for request, headers in zip(server.requests, server.headers, strict=True)
        }
    assert asked == {
        ("/v1/chat/completions", "my-llm", "Bearer sk-chat"),
        ("/v1/embeddings", "my-vectors", "Bearer sk-vector"),
    }
    assert usage == {"prompt_tokens": 50, "completion_tokens": 4, "finish_reason": "stop"}


class HisEmbeddings:
    """As HippoRAG's embedding models look."""

    def __init__(self) -> None:
        self.instructions: list[str] = []

    def batch_encode(self, texts: list[str], instruction: str = "", norm: bool = False) -> Any:
        self.instructions.append(instruction)
        return np.array([[text.count("a") + 1.0, len(text), 1.0] for text in texts])


def test_an_embedding_model_of_hipporag_is_used(tmp_path: Path) -> None:
    model = HisEmbeddings()
    with HippoRAG(save_dir=str(tmp_path), embedding_model=model, index_identity="mine-1") as rag:
        rag.index([OLIVER, GEORGE])
        assert len(rag.retrieve_dpr(["Who is a politician?"])[0].docs) == 2
        assert rag.memory.memory.status().embedder == "hipporag:mine-1"
    assert set(map(bool, model.instructions)) == {True, False}


@pytest.mark.parametrize("identity", [None, "", "  "])
def test_its_vectors_need_a_name(tmp_path: Path, identity: str | None) -> None:
    with pytest.raises(InputError, match="embedding_model needs index_identity"):
        HippoRAG(save_dir=str(tmp_path / "x"), embedding_model=HisEmbeddings(), index_identity=identity)


def test_a_config_has_the_settings_that_are_given_and_the_defaults_of_the_others() -> None:
    config = BaseConfig(qa_top_k=3, seed=None)
    assert (config.qa_top_k, config.retrieval_top_k, config.temperature, config.seed) == (3, 200, 0.0, None)
    assert copy.deepcopy(config) == config
    with pytest.raises(AttributeError, match="no setting qa_topk"):
        _ = config.qa_topk
