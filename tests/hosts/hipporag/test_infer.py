"""Models with `infer`, as HippoRAG has them: what they are told, what they give, and how they fail."""

from __future__ import annotations

import copy
import logging
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.hosts.hipporag.samples import OLIVER

from eunoe.errors import LlmError
from eunoe.hosts.hipporag import BaseConfig, HippoRAG, QaError
from eunoe.llm import PromptTooLongError

QUESTION = "Who is Oliver Badman?"
SECRET = "no answer with key sk-abc0123456789 from postgres://bob:hunter22@db/x"


class HisLlm:
    """As HippoRAG's own: it takes any keyword, and has a function for what it gives."""

    llm_name = "his"

    def __init__(self, answer: Callable[[], Any]) -> None:
        self.answer = answer
        self.keywords: list[Mapping[str, Any]] = []

    def infer(self, messages: list[dict[str, str]], **keywords: Any) -> Any:
        self.keywords.append(keywords)
        return self.answer()


def give(given: Any) -> HisLlm:
    return HisLlm(lambda: given)


def fail(error: Exception) -> HisLlm:
    def answer() -> Any:
        raise error

    return HisLlm(answer)


@pytest.fixture
def opened(tmp_path: Path) -> Callable[..., HippoRAG]:
    def open_rag(config: Mapping[str, Any] | None = None, **models: Any) -> HippoRAG:
        settings = BaseConfig(save_dir=str(tmp_path / "rag"), embedding_model_name="none", **(config or {}))
        return HippoRAG(settings, **models)

    return open_rag


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ((None, {}, False), "NoneType"),
        ((["a politician"], {}, False), "list"),
        (({"role": "assistant"}, {}), "dict"),
        ((), "NoneType"),
        (None, "NoneType"),
        (3, "int"),
        ({"text": "x"}, "dict"),
    ],
)
def test_what_is_no_text_is_an_error_that_says_so(opened: Callable[..., HippoRAG], given: Any, kind: str) -> None:
    with opened(qa_llm=give(given)) as rag:
        rag.index([OLIVER])
        with pytest.raises(LlmError, match=f"his gave {kind} as its text; due from infer: text"):
            rag.rag_qa([QUESTION])


def test_what_it_took_is_counted_although_it_gave_no_text(opened: Callable[..., HippoRAG]) -> None:
    with opened(qa_llm=give((None, {"prompt_tokens": 70, "completion_tokens": 9}, False))) as rag:
        with pytest.raises(LlmError):
            rag.rag_qa([QUESTION])
        (usage,) = rag.memory.memory.status().usage
        assert (usage.failures, usage.input_tokens, usage.output_tokens) == (1, 70, 9)


@pytest.mark.parametrize("reason", ["stop", "length", "content_filter"])
def test_how_an_answer_ended_is_told(opened: Callable[..., HippoRAG], reason: str) -> None:
    metadata = {"prompt_tokens": 70, "completion_tokens": 9, "finish_reason": reason}
    with opened(qa_llm=give(("Thought: he is a", metadata, False))) as rag:
        assert rag.rag_qa([QUESTION])[2] == [metadata]


def test_a_failure_tells_its_type_and_nothing_that_it_says(
    opened: Callable[..., HippoRAG], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    cause = RuntimeError(SECRET)
    with opened(qa_llm=fail(cause), extraction_llm=fail(cause)) as rag:
        rag.index([OLIVER])
        with pytest.raises(LlmError, match="his failed: RuntimeError") as caught:
            rag.rag_qa([QUESTION])
    causes = [caught.value, *_causes(caught.value)]
    assert causes[-1] is cause
    assert not any("sk-abc" in str(error) or "hunter22" in str(error) for error in causes[:-1])
    assert "his failed: RuntimeError" in caplog.text
    assert "sk-abc" not in caplog.text
    assert "hunter22" not in caplog.text


def _causes(error: BaseException) -> list[BaseException]:
    return [] if error.__cause__ is None else [error.__cause__, *_causes(error.__cause__)]


def test_a_failure_over_a_prompt_that_is_too_long_is_known(opened: Callable[..., HippoRAG]) -> None:
    with opened(qa_llm=fail(RuntimeError("maximum context length is 8192 tokens"))) as rag:
        with pytest.raises(LlmError) as caught:
            rag.rag_qa([QUESTION])
        assert any(isinstance(error, PromptTooLongError) for error in (caught.value, *_causes(caught.value)))


def test_what_the_config_sets_reaches_the_model(opened: Callable[..., HippoRAG]) -> None:
    llm = give("Answer: x")
    with opened({"max_new_tokens": 64, "temperature": 0.7}, qa_llm=llm) as rag:
        rag.rag_qa([QUESTION])
    assert llm.keywords == [{"max_completion_tokens": 64, "temperature": 0.7}]


def test_settings_of_answers_are_not_for_reading_documents(opened: Callable[..., HippoRAG]) -> None:
    llm = give("Answer: x")
    with opened({"max_new_tokens": 64}, extraction_llm=llm) as rag:
        rag.index([OLIVER])
        rag.rag_qa([QUESTION])
    assert (llm.keywords[0], llm.keywords[-1]) == ({}, {"max_completion_tokens": 64})


def test_a_keyword_is_called_as_the_model_calls_it(
    opened: Callable[..., HippoRAG], caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[int] = []

    class Offline:
        def infer(self, messages: list[dict[str, str]], max_tokens: int = 2048) -> Any:
            asked.append(max_tokens)
            return "Answer: x", {}

    with opened({"max_new_tokens": 64, "temperature": 0.7}, qa_llm=Offline()) as rag:
        rag.rag_qa([QUESTION, QUESTION])
    assert asked == [64, 64]
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert warnings == ["temperature is not used: the infer of Offline takes no temperature"]


@pytest.mark.parametrize(("given", "counted"), [(np.int64(70), 70), (2**63, 0), (-5, 0), ("many", 0), (None, 0)])
def test_counts_of_tokens_that_can_be_none_are_not_taken(
    opened: Callable[..., HippoRAG], given: Any, counted: int
) -> None:
    usage = {"prompt_tokens": given, "completion_tokens": 9}
    with opened(qa_llm=give(("Thought: so.\nAnswer: a politician", usage, False))) as rag:
        rag.index([OLIVER])
        metadata = rag.rag_qa([QUESTION])[2]
        assert metadata[0]["completion_tokens"] == 9
        if counted:
            assert metadata[0]["prompt_tokens"] == counted
        assert rag.memory.memory.status().usage


def test_what_was_answered_before_an_error_outlives_a_copy(opened: Callable[..., HippoRAG]) -> None:
    with opened(qa_llm=fail(RuntimeError("down"))) as rag:
        rag.index([OLIVER])
        with pytest.raises(QaError) as caught:
            rag.rag_qa([QUESTION])
    for twin in (copy.copy(caught.value), pickle.loads(pickle.dumps(caught.value))):
        assert str(twin) == str(caught.value)
        assert [solution.question for solution in twin.unanswered] == [QUESTION]
