"""Where project memory is kept and which models it uses: what is named, what is not, and what cannot be had."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from eunoe.apps.projects import STORE_FILE_NAME, ProjectMemory, ProjectSettings
from eunoe.errors import InputError

LOGIN = "Ticket: Login broken. Users were logged out. The clock of the server was wrong; ntp is installed."
COUPON = "Ticket: Coupons. Two coupons were applied to the full price. They are applied one after the other."


def find_texts(memory: ProjectMemory, query: str) -> list[str]:
    return list(memory.retrieve("shop", [query])[0]["docs"])


class LetterCountEmbedder:
    """An embedder of its own name, whose vectors are the counts of letters."""

    def __init__(self, name: str) -> None:
        self.name = name

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [[1.0, *(float(text.lower().count(chr(97 + place))) for place in range(26))] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed([text])[0]


class TestOpening:
    def test_needs_a_folder_and_says_how_to_name_one(self) -> None:
        with pytest.raises(InputError, match="MEMORY_SAVE_DIR"):
            ProjectMemory.open()

    def test_takes_its_folder_and_models_from_the_environment(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MEMORY_SAVE_DIR", str(tmp_path / "deep" / "down"))
        monkeypatch.setenv("MEMORY_EMBEDDING_MODEL", "none")
        with ProjectMemory.open() as memory:
            memory.index("shop", [LOGIN])
            assert memory.memory.target == str(tmp_path / "deep" / "down" / STORE_FILE_NAME)
            assert memory.memory.status().embedder == "none"

    def test_a_store_may_be_named_itself(self, tmp_path: Path) -> None:
        for target in (tmp_path / "own.db", f"sqlite:///{tmp_path}/url.db"):
            with ProjectMemory.open(target, embedder="none") as memory:
                memory.index("shop", [LOGIN])
        assert sorted(file.name for file in tmp_path.glob("*.db")) == ["own.db", "url.db"]

    def test_another_embedding_model_loses_nothing_and_says_what_to_do(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        with ProjectMemory.open(tmp_path, embedder="static") as memory:
            memory.index("shop", [LOGIN])
        with ProjectMemory.open(tmp_path, embedder=LetterCountEmbedder("letters")) as memory:
            assert "reembed" in caplog.text
            assert memory.memory.status().embedder.startswith(("static", "wordllama"))
            assert find_texts(memory, "Why were users logged out?") == [LOGIN]
            memory.index("shop", [COUPON])
            memory.memory.admin.reembed(LetterCountEmbedder("letters"))
        caplog.clear()
        with ProjectMemory.open(tmp_path, embedder=LetterCountEmbedder("letters")) as memory:
            assert (caplog.text, memory.memory.status().embedder) == ("", "letters")
            assert memory.memory.status().unembedded == 0

    @pytest.mark.parametrize(
        ("settings", "word"),
        [
            ({"embedding_model": "nvidia/NV-Embed-v2"}, "MEMORY_EMBEDDING_BASE_URL"),
            ({"embedding_model": "text-embedding-3-small"}, "OPENAI_API_KEY"),
            ({"llm_model": "gpt-4o-mini"}, "OPENAI_API_KEY"),
        ],
    )
    def test_a_model_that_cannot_be_had_is_done_without(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture, settings: dict[str, str], word: str
    ) -> None:
        with ProjectMemory.open(settings=ProjectSettings(str(tmp_path), **settings)) as memory:
            memory.index("shop", [LOGIN])
            assert find_texts(memory, "Why were users logged out?") == [LOGIN]
        assert word in caplog.text

    def test_what_is_given_counts_more_than_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MEMORY_LLM_MODEL", "there")
        monkeypatch.setenv("MEMORY_LLM_API_KEY", " key ")
        settings = ProjectSettings.from_environment(llm_model="here", llm_base_url=None)
        assert (settings.llm_model, settings.llm_api_key, settings.llm_base_url) == ("here", "key", "")


class TestModels:
    def test_no_lock_is_held_while_a_model_is_asked(self, tmp_path: Path) -> None:
        with ProjectMemory.open(tmp_path, embedder=LetterCountEmbedder("letters")) as other:

            class SlowEmbedder(LetterCountEmbedder):
                def embed(self, texts: Sequence[str]) -> list[list[float]]:
                    other.index("shop", [f"Written meanwhile: {len(text)}." for text in texts])
                    return super().embed(texts)

            with ProjectMemory.open(tmp_path, embedder=SlowEmbedder("letters")) as memory:
                memory.index("shop", [LOGIN])
                texts = {atom.text for atom in memory.memory.list({"project": "shop"}).items}
                assert texts == {LOGIN, f"Written meanwhile: {len(LOGIN)}."}

    def test_vectors_come_from_the_server_that_the_environment_names(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, embeddings: tuple[str, list[Any]]
    ) -> None:
        address, requests = embeddings
        monkeypatch.setenv("MEMORY_SAVE_DIR", str(tmp_path))
        monkeypatch.setenv("MEMORY_EMBEDDING_MODEL", "text-embedding-3-small")
        monkeypatch.setenv("MEMORY_EMBEDDING_BASE_URL", address)
        monkeypatch.setenv("MEMORY_EMBEDDING_API_KEY", "secret-key")
        with ProjectMemory.open() as memory:
            memory.index("shop", [LOGIN])
            assert find_texts(memory, "Why were users logged out?") == [LOGIN]
            assert memory.memory.status().embedder == "openai:text-embedding-3-small"
        assert {(model, bearer) for model, bearer, _ in requests} == {("text-embedding-3-small", "Bearer secret-key")}
        assert requests[0][2] == [LOGIN]


class Embeddings(BaseHTTPRequestHandler):
    requests: list[Any]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.requests.append((body["model"], self.headers["Authorization"], body["input"]))
        rows = [{"index": place, "embedding": [1.0, 0.5]} for place in range(len(body["input"]))]
        answer = json.dumps({"data": rows}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def embeddings() -> Iterator[tuple[str, list[Any]]]:
    requests: list[Any] = []
    handler = type("Handler", (Embeddings,), {"requests": requests})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1", requests
        server.shutdown()
        thread.join()
