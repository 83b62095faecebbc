"""The log of model calls: every call, what it took and for whom; never what was said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import eunoe
from eunoe.errors import AccessError, LlmError
from eunoe.llm.contract import Prompt, Reply, ScriptedLlm
from eunoe.llm.models import MAX_CALLS
from eunoe.model.arguments import utc_now
from eunoe.model.result import ModelCall
from eunoe.records.counters import UsageLog
from eunoe.store.temporary import TemporaryStore

TALK = "session=s1/user=anna"
SECRET = "the peanuts of the emperor"


def answer(prompt: Prompt) -> Any:
    return {"memories": []} if prompt.operation == "extraction" else "Yes."


def test_every_call_is_noted_with_its_scope(path: Path) -> None:
    before = utc_now()
    with eunoe.open(path, embedder="none", llm=ScriptedLlm(answer, name="scribe"), form=False) as memory:
        memory.observe(TALK, SECRET)
        memory.form(TALK)
        memory.admin.test_llm()
        test, extraction = memory.admin.calls().items
        assert (test.operation, test.scope) == ("test", None)
        assert (extraction.operation, extraction.model, str(extraction.scope)) == ("extraction", "scribe", TALK)
        assert before <= extraction.time <= test.time <= utc_now()
        assert extraction.input_tokens > 0 < extraction.output_tokens
        assert extraction.error == ""
        usage = {each.operation: each for each in memory.status().usage}
        assert usage["extraction"].calls == 1
        assert usage["extraction"].input_tokens == extraction.input_tokens
    assert path.read_bytes().count(SECRET.encode()) == 1  # the message alone
    with eunoe.open(path, embedder="none", llm="none") as memory:
        assert memory.admin.calls().items == (test, extraction)
        assert memory.admin.check()


def test_a_failure_is_noted_by_its_kind_alone(path: Path) -> None:
    def fail(prompt: Prompt) -> Any:
        raise LlmError(f"I cannot stand {SECRET}")

    with eunoe.open(path, embedder="none", llm=ScriptedLlm(fail, name="scribe"), form=False) as memory:
        report = memory.admin.test_llm()
        assert not report
        assert SECRET in report.problem
        (call,) = memory.admin.calls().items
        assert (call.error, call.output_tokens) == ("LlmError", 0)
        assert memory.status().usage[0].failures == 1
    assert SECRET.encode() not in path.read_bytes()


def test_a_model_that_answers_says_what_that_took() -> None:
    class Paid:
        name = "paid"

        def ask(self, prompt: Prompt) -> Reply:
            return Reply("Yes.", 12, 3, 0.25)

    with eunoe.open(":memory:", embedder="none", llm=Paid()) as memory:
        report = memory.admin.test_llm()
        assert report
        assert (report.model, report.problem) == ("paid", "")
        assert (report.input_tokens, report.output_tokens, report.cost) == (12, 3, 0.25)
        assert report.seconds > 0


def test_without_a_model_there_is_nothing_to_test() -> None:
    with eunoe.open(":memory:", embedder="none", llm="none") as memory:
        with pytest.raises(LlmError, match="EUNOE_LLM"):
            memory.admin.test_llm()
        assert memory.admin.calls().items == ()


def test_pages_have_every_call_once_the_latest_first() -> None:
    with eunoe.open(":memory:", embedder="none", llm=lambda text: "Yes.") as memory:
        for _ in range(7):
            memory.admin.test_llm()
        whole, paged, after = memory.admin.calls().items, list[ModelCall](), ""
        while True:
            page = memory.admin.calls(limit=3, after=after)
            paged += page.items
            after = page.next
            if not after:
                break
        assert tuple(paged) == whole
        assert [call.time for call in whole] == sorted((call.time for call in whole), reverse=True)


def test_only_the_last_calls_are_kept() -> None:
    store, made = TemporaryStore(), [ModelCall("form", f"m{number}", utc_now()) for number in range(12)]
    log = UsageLog(store, list, lambda: made, max_calls=5)
    assert [call.model for call in log.calls(9, "").items] == ["m11", "m10", "m9", "m8", "m7"]
    store.close()
    assert MAX_CALLS == 10_000


def test_calls_are_for_whoever_has_the_whole_store(path: Path) -> None:
    with eunoe.open(path, embedder="none", llm=lambda text: "Yes.") as memory:
        for restricted in (memory.restricted(tenant="acme"), memory.restricted(rights=["read"])):
            with pytest.raises(AccessError):
                restricted.admin.calls()
        with pytest.raises(AccessError, match="admin"):
            memory.restricted(rights=["read", "write"]).admin.test_llm()
        assert memory.restricted(tenant="acme").admin.test_llm()
