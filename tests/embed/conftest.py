"""A server of embeddings."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.embed.samples import vector
from tests.llm.model_server import HttpReply, ModelServer, serve

from eunoe.net import http as endpoints


def data(texts: list[str]) -> list[dict[str, Any]]:
    return [{"index": i, "embedding": vector(text)} for i, text in enumerate(texts)]


def good(server: ModelServer, request: dict[str, Any]) -> HttpReply:
    return 200, json.dumps({"data": data(request["input"])[::-1]}).encode(), {}


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("no_proxy", "*")
    with serve(good) as server:
        yield server


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between attempts, taken down instead of slept through."""
    taken: list[float] = []
    monkeypatch.setattr(endpoints, "_sleep", taken.append)
    return taken
