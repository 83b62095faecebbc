"""A server of models, an environment that names none, and pauses that take no time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.llm.model_server import HttpReply, ModelServer, serve

from eunoe.net import http as endpoints

VARIABLES = (
    "EUNOE_LLM",
    "EUNOE_LLM_FAST",
    "EUNOE_LLM_PRICE",
    "EUNOE_LLM_CONCURRENCY",
    "EUNOE_LLM_TIMEOUT",
    "EUNOE_LLM_EFFORT",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
)


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between attempts, taken down instead of slept through."""
    taken: list[float] = []
    monkeypatch.setattr(endpoints, "_sleep", taken.append)
    return taken


@pytest.fixture
def endpoint() -> Iterator[ModelServer]:
    with serve(good) as server:
        yield server


def good(server: ModelServer, body: dict[str, Any]) -> HttpReply:
    if "tools" in body:
        content: list[dict[str, Any]] = [{"type": "tool_use", "name": "facts", "input": {"facts": ["cello"]}}]
    else:
        content = [{"type": "thinking", "thinking": "..."}, {"type": "text", "text": "Hi."}]
    text = '{"facts": ["cello"]}' if "response_format" in body else "Hi."
    usage = {
        "prompt_tokens": 11,
        "completion_tokens": 7,
        "input_tokens": 5,
        "cache_read_input_tokens": 6,
        "output_tokens": 7,
    }
    answer = {"choices": [{"message": {"content": text}}], "content": content, "usage": usage}
    return 200, json.dumps(answer).encode(), {}
