"""Something is forgotten while a model thinks: an answer made from it is thrown away, and asked for again."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import eunoe
from eunoe.llm.contract import Prompt, ScriptedLlm
from eunoe.memory import Memory
from eunoe.model.scope import Scope

TALK = Scope(agent="cook", session="s1", user="anna")
GROUP = Scope(agent="cook", session="g1")
ANNA = Scope(agent="cook", user="anna")
SECRET = "I am allergic to peanuts since the accident in Brno."
SAID = [SECRET, "My sister Clara lives in Oslo.", "Please answer in short sentences."]
FORGET = """
import sys, eunoe
with eunoe.open(sys.argv[1], embedder="none", llm="none", form=False) as memory:
    memory.forget(sys.argv[2], sys.argv[3], verify=False)
"""


class Lying:
    """A model that puts all it was shown into each memory, and cites the last turn alone."""

    def __init__(self, while_it_thinks: Callable[[], object]) -> None:
        self.prompts: list[str] = []
        self._acts = [while_it_thinks]

    def __call__(self, prompt: Prompt) -> Any:
        if prompt.operation != "extraction":
            return "Nothing."
        self.prompts.append(prompt.text)
        turns = re.findall(r"<turn .*?>(.*?)</turn>", prompt.text, re.DOTALL)
        shown = re.findall(r">([^<>\n]+)</", prompt.text)
        while self._acts:
            self._acts.pop()()
        text = " ".join([turns[-1], *(part for part in shown if "peanuts" in part)]) if turns else ""
        return {"memories": [{"stream": 1, "kind": "observation", "text": text, "turns": [len(turns)], "key": None}]}


def opened(path: Path, llm: Any = "none") -> Memory:
    memory = eunoe.open(path, embedder="none", llm=llm, form=False)
    for preset in ("session", "user"):
        memory.streams.set_preset(preset, observation_extraction_max=9, observation_max_words=90, formation_minimum=1)
    return memory


def forget_elsewhere(path: Path, scope: Scope, *ids: str) -> None:
    """Another process forgets."""
    command = [sys.executable, "-c", FORGET, str(path), str(scope), *ids]
    subprocess.run(command, check=True, timeout=60, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})


def texts(memory: Memory, *scopes: Scope) -> str:
    return "\n".join(item.text for scope in scopes for item in memory.list(scope, retired=True, exact=True).items)


@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "in another process"])
def test_a_turn_that_another_turn_is_cited_for(path: Path, elsewhere: bool) -> None:
    with opened(path) as other:
        forgotten: list[str] = []
        forget = forget_elsewhere if elsewhere else lambda _, scope, *ids: other.forget(scope, list(ids))
        model = Lying(lambda: forget(path, TALK, *forgotten))
        with opened(path, ScriptedLlm(model)) as memory:
            forgotten += [memory.observe(TALK, SAID)[0].id]
            report = memory.form(TALK)
            assert not report.failed
            assert report.messages == 2
            assert ["peanuts" in prompt for prompt in model.prompts] == [True, False]
            assert "peanuts" not in texts(memory, TALK, ANNA)
            assert "short sentences" in texts(memory, TALK)
    assert b"peanuts" not in path.read_bytes()


@pytest.mark.parametrize("kind", ["fact", "observation"])
def test_a_known_atom_of_the_session(path: Path, kind: Any) -> None:
    forgotten: list[str] = []
    with opened(path) as other:
        model = Lying(lambda: other.forget(TALK, forgotten))
        with opened(path, ScriptedLlm(model)) as memory:
            forgotten += [memory.remember(TALK, "Anna fears short sentences about peanuts.", kind=kind).id]
            memory.observe(TALK, SAID[1:])
            assert memory.form(TALK).messages == 2
            assert ["peanuts" in prompt for prompt in model.prompts] == [True, False]
            assert "peanuts" not in texts(memory, TALK, ANNA)


def test_a_turn_of_the_chunk_before(path: Path) -> None:
    """What an extraction may be shown as context stands in the same log."""
    forgotten: list[str] = []
    with opened(path) as other:
        model = Lying(lambda: None)
        with opened(path, ScriptedLlm(model)) as memory:
            forgotten += [receipt.id for receipt in memory.observe(TALK, SAID[:1])]
            memory.form(TALK)
            model._acts = [lambda: other.forget(TALK, forgotten)]
            memory.observe(TALK, SAID[1:])
            asked = len(model.prompts)
            assert memory.form(TALK).messages == 2
            assert len(model.prompts) == asked + 2
            assert "peanuts" not in texts(memory, TALK, ANNA)


@pytest.mark.parametrize("whole", [False, True], ids=["its observation", "everything"])
def test_a_summary(path: Path, whole: bool) -> None:
    with opened(path) as other:
        model = Lying(lambda: None)
        with opened(path, ScriptedLlm(model)) as memory:
            if whole:
                memory.summaries.write(ANNA, "Anna is allergic to peanuts.", author="anna")
                act = lambda: other.forget(ANNA, everything=True, exact=True)  # noqa: E731
            else:
                id = memory.remember(ANNA, "Anna is allergic to peanuts.", kind="observation").id
                act = lambda: other.forget(ANNA, id)  # noqa: E731
            model._acts = [act]
            memory.observe(TALK, SAID[1:])
            assert memory.form(TALK).messages == 2
            assert len(model.prompts) == 2


def test_a_known_atom_of_a_stream_that_was_made_meanwhile(path: Path) -> None:
    """The user's stream is first written to after the chunk was read."""
    with opened(path) as other:
        act = lambda: other.forget(ANNA, other.remember(ANNA, "Peanuts are bad.").id)  # noqa: E731
        model = Lying(act)
        with opened(path, ScriptedLlm(model)) as memory:
            memory.observe(TALK, SAID[1:])
            assert memory.form(TALK).messages == 2
            assert len(model.prompts) == 2


def test_a_person_in_a_group(path: Path) -> None:
    with opened(path) as other:
        model = Lying(lambda: other.forget(GROUP, person="ben"))
        with opened(path, ScriptedLlm(model)) as memory:
            said = [("ben", SECRET), ("anna", SAID[1]), ("anna", SAID[2])]
            memory.observe(
                GROUP, [{"role": "user", "speaker": who, "user": who, "content": text} for who, text in said]
            )
            memory.form(GROUP)
            assert len(model.prompts) == 2
            assert "peanuts" not in texts(memory, GROUP, ANNA, Scope(agent="cook", user="ben"))


def test_everything_that_was_said(path: Path) -> None:
    with opened(path) as other:
        ids: list[str] = []
        model = Lying(lambda: other.forget(TALK, ids))
        with opened(path, ScriptedLlm(model)) as memory:
            ids += [receipt.id for receipt in memory.observe(TALK, SAID)]
            report = memory.form(TALK)
            assert (report.messages, report.failed) == (0, ())
            assert len(model.prompts) == 1
            assert memory.status().due_messages == memory.status().jobs == 0


def test_somebody_who_forgets_all_the_time_is_waited_for(path: Path) -> None:
    """The model is not asked for ever: the messages stay due."""
    with opened(path) as other:

        def restless(prompt: Prompt) -> Any:
            other.forget(ANNA, other.remember(ANNA, f"Noise {len(llm.prompts)}.").id)
            return {"memories": []}

        llm = ScriptedLlm(restless)
    with opened(path) as other, opened(path, llm) as memory:
        memory.observe(TALK, SAID)
        report = memory.form(TALK)
        assert "forgotten" in report.failed[0]
        assert len(llm.prompts) == 4
        assert memory.status().due_messages == 3


def test_what_is_only_superseded_or_archived_costs_no_second_call(path: Path) -> None:
    with opened(path) as other:
        ids: list[str] = []
        model = Lying(lambda: other.update(ANNA, ids[0], "Anna likes tea."))
        with opened(path, ScriptedLlm(model)) as memory:
            ids.append(memory.remember(ANNA, "Anna likes coffee.").id)
            memory.observe(TALK, SAID[1:])
            assert memory.form(TALK).messages == 2
            assert len(model.prompts) == 1


@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "in another process"])
def test_a_passage_of_a_graph(path: Path, elsewhere: bool) -> None:
    """A relation may be in the words of another passage of the same call."""
    project = Scope(project="p")
    with opened(path) as other:
        ids: list[str] = []
        prompts: list[str] = []

        def read(prompt: Prompt) -> Any:
            prompts.append(prompt.text)
            if len(prompts) == 1:
                (forget_elsewhere if elsewhere else lambda _, *args: other.forget(*args))(path, project, ids[0])
            leak = "is allergic to peanuts in" if "peanuts" in prompt.text else "lives in"
            count = len(re.findall("<passage ", prompt.text))
            triple = {"subject": "Clara", "relation": leak, "object": "Oslo"}
            return {
                "passages": [
                    {"number": number, "entities": ["Clara"], "triples": [triple]} for number in range(1, count + 1)
                ]
            }

        with opened(path, ScriptedLlm(read)) as memory:
            ids += [memory.remember(project, text).id for text in ("Anna has peanuts.", "Clara lives in Oslo.")]
            report = memory.graph.extract(project)
            assert (report.passages, report.due, report.failed) == (1, 0, ())
            assert ["peanuts" in prompt for prompt in prompts] == [True, False]
    assert b"peanuts" not in path.read_bytes()
