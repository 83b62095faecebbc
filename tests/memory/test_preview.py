"""A preview says what would be learned, and leaves everything as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import eunoe
from eunoe.errors import AccessError, LlmError
from eunoe.llm.contract import Prompt
from eunoe.llm.scripted import ScriptedLlm
from eunoe.memory import Memory

ANNA = "user=anna"
TALK = "agent=cook/session=s1/user=anna"
SAID = ["I am allergic to peanuts.", "My dog is called Rex."]


def texts(page: eunoe.Page) -> set[str]:
    return {item.text for item in page.items}


def described(page: eunoe.Page) -> list[tuple[str, ...]]:
    return sorted((str(item.scope), item.kind, item.label, item.text) for item in page.items)


def test_it_says_what_forming_then_learns(memory: Memory) -> None:
    page = memory.preview(TALK, SAID)
    memory.observe(TALK, SAID)
    memory.form(TALK)
    assert described(page) == described(memory.recent()) != []
    assert {item.metadata["author"] for item in page.items} == {"extractive"}


def test_nothing_is_kept(path: Path) -> None:
    def embed(texts: list[str]) -> list[list[float]]:
        return [[1.0, len(text)] for text in texts]

    with eunoe.open(path, embedder=embed, llm="none") as memory:
        memory.remember(ANNA, "Anna likes tea.")
        before = memory.status()
        memory.preview(TALK, SAID)
        assert memory.flush()
        assert memory.status() == before
        assert memory.scopes() == [eunoe.Scope(user="anna")]
    assert all(b"peanuts" not in file.read_bytes() for file in path.parent.iterdir())


def test_the_settings_of_the_streams_count(memory: Memory) -> None:
    memory.streams.configure(ANNA, extraction_fields=["fact"], fact_extraction_max=1, review="all")
    memory.streams.set_preset("team", like="user", owner=["team"], observation_extraction_max=0, fact_extraction_max=0)
    (atom,) = memory.preview(ANNA, SAID).items
    assert (atom.kind, atom.in_review) == ("fact", True)
    assert memory.preview("team=red", SAID).items == ()


def test_what_is_known_or_forgotten_is_no_news(memory: Memory) -> None:
    memory.observe(ANNA, SAID)
    memory.form(ANNA)
    assert memory.preview(ANNA, SAID).items == ()
    memory.forget(ANNA, everything=True)
    assert memory.preview(ANNA, SAID).items == ()
    assert memory.preview("user=ben", SAID).items


def test_an_incognito_session_learns_nothing(memory: Memory) -> None:
    memory.streams.set_incognito("session=s1")
    page = memory.preview("session=s1", SAID)
    assert page.items == ()
    assert "incognito" in page.notes[0]


def test_a_model_is_asked_once_and_counted(path: Path) -> None:
    def answer(prompt: Prompt) -> Any:
        return {"memories": [{"kind": "observation", "text": "Anna is allergic to peanuts.", "turns": [1]}]}

    llm = ScriptedLlm(answer, name="scribe")
    with eunoe.open(path, embedder="none", llm=llm, form=False) as memory:
        memory.streams.configure(ANNA, consolidation_trigger=1)
        assert texts(memory.preview(ANNA, SAID)) >= {"Anna is allergic to peanuts."}
        assert len(llm.prompts) == 1
        (call,) = memory.admin.calls().items
        assert (call.operation, str(call.scope)) == ("extraction", ANNA)
        assert memory.status().usage[0].calls == 1


def test_a_model_that_fails_is_told_of(path: Path) -> None:
    def fail(prompt: Prompt) -> Any:
        raise LlmError("it is down")

    with eunoe.open(path, embedder="none", llm=ScriptedLlm(fail), form=False) as memory:
        page = memory.preview(ANNA, SAID)
        assert page.items == ()
        assert "it is down" in page.notes[0]
        assert memory.status().failing == 0


def test_it_needs_the_right_to_write(memory: Memory) -> None:
    with pytest.raises(AccessError, match="write"):
        memory.restricted(rights=["read"]).preview(ANNA, SAID)
    own = memory.restricted(scopes=["session=s1"]).preview(TALK, SAID)
    assert {str(item.scope) for item in own.items} == {TALK}
    (atom, *_) = memory.restricted(tenant="acme").preview(ANNA, SAID).items
    assert str(atom.scope) == "tenant=acme/user=anna"


def test_no_message_teaches_nothing(memory: Memory) -> None:
    assert memory.preview(ANNA, []).items == ()
