"""A real and tiny model, whose answers are mostly nonsense, forms memories: whatever it says, nothing is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import eunoe
from eunoe.errors import LlmError
from eunoe.llm import Prompt, Reply, load_llm
from eunoe.memory import Memory
from eunoe.model.atom import source_place
from eunoe.model.scope import Scope

TALK = Scope(agent="cook", session="s1", user="anna")
ANNA = Scope(agent="cook", user="anna")
SAID = [
    {"role": "assistant", "content": "Lovely! What does she eat?"},
    {"role": "user", "content": "Please always answer in short sentences. I am allergic to peanuts {x} </turn>."},
]
SUMMARY = "Anna is a cook from Turin who likes short answers, rows every Sunday and has a sister called Clara. " * 3


class Brief:
    """The model, with no time for long answers."""

    def __init__(self, spec: str) -> None:
        self._llm: Any = load_llm(spec)
        self.name: str = self._llm.name

    def ask(self, prompt: Prompt) -> Reply:
        return self._llm.ask(replace(prompt, max_tokens=min(prompt.max_tokens, 32)))


@pytest.fixture
def opened(tiny_llm: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setenv("EUNOE_QUERY_TIMEOUT", "60")
    model = Brief(tiny_llm)

    @contextmanager
    def begin(llm: Any = model) -> Iterator[Memory]:
        with eunoe.open(path, embedder="none", llm=llm, form=False) as memory:
            yield memory

    return begin


def atoms(memory: Memory) -> list[Any]:
    return [
        item for scope in (TALK, ANNA) for item in memory.list(scope, kinds=["fact", "observation"], exact=True).items
    ]


def check_sources(memory: Memory) -> None:
    for atom in atoms(memory):
        assert atom.source
        for name in atom.source:
            assert memory.get(*source_place(name, atom.scope)).text in [said["content"] for said in SAID]


def test_whatever_it_says_every_message_is_formed_or_due(opened: Callable[..., Any]) -> None:
    with opened() as memory:
        ids = [receipt.id for receipt in memory.observe(TALK, SAID)]
        report = memory.form(TALK)
        status = memory.status()
        assert report.messages + status.due_messages == len(SAID)
        assert bool(status.due_messages) == bool(status.jobs) <= bool(report.failed)
        assert status.failing == status.jobs
        assert len(report.stored) == len(atoms(memory))
        check_sources(memory)
        (usage,) = [one for one in status.usage if one.operation == "extraction"]
        # One call; where the answer is cut, more room first, then one for each half, down to a single message.
        assert (usage.model, 1 <= usage.calls <= 2 * (2 * len(SAID) - 1)) == ("openai:smollm2", True)
        assert usage.input_tokens > 100
        assert usage.output_tokens > 0
        assert usage.seconds > 0
        due = status.due_messages
        said = {atom.text for atom in atoms(memory)}
    with opened("none") as memory:
        assert memory.form(TALK).messages == due
        assert memory.status().due_messages == memory.status().jobs == memory.status().failing == 0
        assert {atom.text for atom in atoms(memory)} >= said
        assert not due or atoms(memory)
        check_sources(memory)
        assert [memory.get(TALK, id).text for id in ids] == [message["content"] for message in SAID]


def test_whatever_it_says_a_summary_is_kept_or_has_a_successor(opened: Callable[..., Any]) -> None:
    with opened() as memory:
        first = memory.summaries.write(ANNA, SUMMARY)
        kept = [memory.remember(ANNA, text, kind="observation").id for text in ("Anna sings.", "Anna moved to Oslo.")]
        try:
            written = memory.summaries.consolidate(ANNA)
        except LlmError:
            written = None
        revisions, (stream,) = memory.summaries.revisions(ANNA), memory.streams.list(user="anna")
        assert revisions[0].text == first.text
        assert (stream.summary, stream.observations) == ((written.text, 0) if written else (SUMMARY, len(kept)))
        assert stream.summary.strip()
        assert memory.status().failing == (0 if written else 1)
        assert any(one.operation == "consolidation" and one.calls for one in memory.status().usage)
    with opened("none") as memory:
        revision = memory.summaries.consolidate(ANNA)
        assert bool(revision) == (written is None)
        assert memory.streams.list(user="anna")[0].observations == 0
        assert memory.summaries.restore(ANNA, 1).text == SUMMARY


def test_whatever_it_says_the_host_gets_its_context(opened: Callable[..., Any]) -> None:
    with opened() as memory:
        memory.observe(TALK, SAID)
        memory.remember(ANNA, "Anna is allergic to peanuts.")
        context = memory.context(TALK, "What must I not eat?")
        assert "Anna is allergic to peanuts." in context.static
        assert context.text.startswith(context.static)
        assert set(context.faults) <= {"query: LlmError", "query: CutAnswerError"}
        (usage,) = memory.status().usage
        assert (usage.operation, usage.calls) == ("query", 1)
        assert memory.status().faults == ({"query": 1} if context.faults else {})
        assert memory.status().due_messages == len(SAID)
