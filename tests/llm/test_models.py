"""The LLMs of one memory: which is asked, how many calls run at once, what is counted."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from tests.llm.model_server import ModelServer

from eunoe.errors import LlmError
from eunoe.llm import Prompt, Reply, load_llm
from eunoe.llm.contract import ScriptedLlm
from eunoe.llm.models import Models
from eunoe.model.result import Usage

PLAIN = Prompt("Be kind.", "Hello", operation="chat")
ASKED = Prompt("List facts.", "Anna plays the cello.", {"type": "object"}, "facts", 500, "extraction")


class TestModels:
    def test_every_call_is_counted_by_operation_and_model(self) -> None:
        models = Models(
            ScriptedLlm([Reply("a", 10, 2, 0.25), Reply("b", 5, 1, 0.5), LlmError("down"), "four words of text"])
        )
        slow = models.slow
        assert slow
        slow.ask(PLAIN)
        slow.ask(PLAIN)
        with pytest.raises(LlmError):
            slow.ask(PLAIN)
        slow.ask(ASKED)
        chat, extraction = models.drain()
        assert replace(chat, seconds=0.0) == Usage("chat", "scripted", 3, 1, 15, 3, 0.0, 0.75)
        assert (extraction.operation, extraction.calls, extraction.output_tokens) == ("extraction", 1, 4)
        assert extraction.input_tokens > 5
        assert models.drain() == []

    def test_the_fast_one_falls_back_to_the_slow_one(self) -> None:
        slow, fast = ScriptedLlm(name="slow"), ScriptedLlm(name="fast")
        one, two = Models(slow), Models(slow, fast)
        assert one.fast is one.slow
        assert two.fast
        assert (one.names, two.names, two.fast.name) == ("slow", "slow, fast (fast)", "fast")
        assert Models(slow, "none").fast is None
        assert (Models("none").slow, Models("none").fast, Models("none").names) == (None, None, "")

    def test_models_that_streams_name_are_made_once(self, endpoint: ModelServer) -> None:
        models = Models(ScriptedLlm())
        spec = f"openai:m@{endpoint.url}"
        assert models.get("") is models.slow
        assert models.get("fast") is models.fast
        assert models.get("none") is None
        assert models.get(spec) is models.get(spec)
        with pytest.raises(LlmError, match="is not a language model"):
            models.get("nonsense")

    def test_no_more_calls_at_once_than_the_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("EUNOE_LLM_CONCURRENCY", "2")
        both, inside, most = threading.Barrier(2, timeout=60), [0], [0]
        lock = threading.Lock()

        def answer(prompt: Prompt) -> str:
            with lock:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
            both.wait()
            with lock:
                inside[0] -= 1
            return "done"

        slow = Models(ScriptedLlm(answer)).slow
        assert slow
        threads = [threading.Thread(target=slow.ask, args=(PLAIN,)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert most[0] == 2

    def test_who_cannot_wait_for_a_turn_gets_a_typed_error(self) -> None:
        begun, release = threading.Event(), threading.Event()

        def answer(prompt: Prompt) -> str:
            begun.set()
            assert release.wait(60)
            return "done"

        models = Models(ScriptedLlm(answer), concurrency=1)
        assert models.slow
        thread = threading.Thread(target=models.slow.ask, args=(PLAIN,))
        thread.start()
        assert begun.wait(60)
        with pytest.raises(LlmError, match="busy with other calls"):
            models.slow.ask(Prompt("s", "t", operation="query", timeout=0.01))
        release.set()
        thread.join()
        assert [(row.operation, row.failures) for row in models.drain()] == [("query", 1), ("chat", 0)]

    @pytest.mark.parametrize("text", ["0", "-1", "many", "²"])
    def test_a_limit_that_is_no_number_is_refused(self, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("EUNOE_LLM_CONCURRENCY", text)
        with pytest.raises(LlmError, match="must be a number of calls"):
            Models("none")

    def test_a_time_limit_that_is_no_number_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("EUNOE_LLM_TIMEOUT", "soon")
        with pytest.raises(LlmError, match="must be a number of seconds"):
            load_llm("http://localhost:1/v1")
