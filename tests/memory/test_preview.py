"""A preview says what would be learned, and leaves everything as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import eunoe
from eunoe.errors import AccessError, LlmError
from eunoe.llm.contract import Prompt, ScriptedLlm
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


def reasons(page: eunoe.Preview) -> dict[str, str]:
    return {message.text: message.reason for message in page.passed_over}


@pytest.mark.remote
def test_what_was_passed_over_has_a_reason(memory: Memory) -> None:
    page = memory.preview(
        ANNA,
        [
            {"content": "I am allergic to peanuts.", "id": "m1"},
            {"content": "What time is it?", "id": "m2", "name": "Ben"},
            "Thanks!",
            "My password is hunter2, remember it.",
            {"role": "tool", "content": "Anna lives in Turin."},
            {"role": "system", "content": "You are a cook."},
            {"role": "user", "content": "<MemoryContext>Anna likes tea.</MemoryContext>"},
            {"role": "user", "content": "I live in Rome.", "metadata": {"former": "mem0"}},
        ],
    )
    assert texts(page) == {"anna: I am allergic to peanuts."}
    assert reasons(page) == {
        "What time is it?": "it only asks",
        "Thanks!": "it states nothing: a greeting, a reaction or the like",
        "My password is hunter2, remember it.": "it speaks of a secret, which stays in the log alone",
        "Anna lives in Turin.": "it is what a tool gave back, not what somebody said",
        "You are a cook.": "it is a system prompt, which nothing is learned from",
        "<MemoryContext>Anna likes tea.</MemoryContext>": "it has no words of its own to learn from",
        "I live in Rome.": "mem0 forms memories from it",
    }
    assert (page.passed_over[0].id, page.passed_over[0].speaker) == ("m2", "Ben")


def test_what_is_worth_too_little_or_finds_no_room_is_told_apart(memory: Memory) -> None:
    said = "The soup was nice."
    assert reasons(memory.preview(ANNA, said)) == {said: "what it says is not worth enough (35%)"}
    memory.streams.configure(ANNA, observation_extraction_max=1)
    page = memory.preview(ANNA, ["I am allergic to peanuts.", "My sister Lea lives in Turin."])
    (reason,) = reasons(page).values()
    assert reason == "other messages were worth more, and a stream takes only so many"


def test_what_is_known_or_said_twice_is_passed_over(memory: Memory) -> None:
    memory.observe(ANNA, SAID)
    memory.form(ANNA)
    page = memory.preview(ANNA, [{"content": text, "id": f"m{place}"} for place, text in enumerate(SAID)])
    assert set(reasons(page).values()) == {"what it says is known already, or was forgotten on purpose"}
    twice = memory.preview("user=ben", [{"content": "I live in Turin."}, {"content": "I live in Rome."}])
    assert texts(twice) == {"ben: I live in Rome."}
    assert [message.text for message in twice.passed_over] == ["I live in Turin."]


@pytest.mark.remote
def test_doubtful_memories_are_named(memory: Memory) -> None:
    page = memory.preview(ANNA, ["I am allergic to peanuts.", "The garage door is broken since Monday."])
    doubtful = {item.text for item in page.items if item.id in page.doubtful}
    assert doubtful == texts(page) - {"anna: I am allergic to peanuts."}
    memory.streams.configure(ANNA, review="uncertain")
    waiting = memory.preview(ANNA, ["I am allergic to peanuts.", "The garage door is broken since Monday."])
    assert {item.text for item in waiting.items if item.in_review} == doubtful


@pytest.mark.remote
def test_without_messages_those_that_wait_are_looked_at(memory: Memory) -> None:
    assert memory.preview(ANNA).items == ()
    memory.observe(ANNA, [{"content": SAID[0], "id": "m1"}, {"content": "Thanks!", "id": "m2"}])
    page = memory.preview(ANNA)
    assert texts(page) == {"anna: I am allergic to peanuts."}
    assert [message.id for message in page.passed_over] == ["m2"]
    assert [atom.source for atom in page.items] == [("m1",)]
    memory.form(ANNA)
    again = memory.preview(ANNA)
    assert (again.items, again.passed_over) == ((), ())


def test_who_may_only_write_is_not_shown_what_waits(memory: Memory) -> None:
    memory.observe(ANNA, SAID)
    writer = memory.restricted(rights=["write"])
    assert writer.preview(ANNA, SAID).items
    with pytest.raises(AccessError, match="read"):
        writer.preview(ANNA)
    with pytest.raises(AccessError, match="out of reach"):
        memory.restricted(scopes=["user=ben"]).preview(ANNA)


def test_messages_of_a_job_that_failed_wait_too(path: Path) -> None:
    def fail(prompt: Prompt) -> Any:
        raise LlmError("it is down")

    with eunoe.open(path, embedder="none", llm=ScriptedLlm(fail), form=False) as memory:
        memory.observe(ANNA, SAID)
        assert memory.form(ANNA).failed
    with eunoe.open(path, embedder="none", llm="none", form=False) as memory:
        assert "anna: I am allergic to peanuts." in texts(memory.preview(ANNA))


def test_a_model_that_takes_nothing_is_named_as_the_reason(path: Path) -> None:
    def answer(prompt: Prompt) -> Any:
        return {"memories": [{"kind": "observation", "text": "Anna is allergic to peanuts.", "turns": [1]}]}

    with eunoe.open(path, embedder="none", llm=ScriptedLlm(answer), form=False) as memory:
        page = memory.preview(ANNA, SAID)
        assert reasons(page) == {SAID[1]: "the language model found nothing to keep in it"}


def test_a_model_that_fails_passes_nothing_over(path: Path) -> None:
    def fail(prompt: Prompt) -> Any:
        raise LlmError("it is down")

    with eunoe.open(path, embedder="none", llm=ScriptedLlm(fail), form=False) as memory:
        assert memory.preview(ANNA, SAID).passed_over == ()


def test_a_scope_that_feeds_no_stream_is_told_of(memory: Memory) -> None:
    page = memory.preview("discussion=7", SAID)
    assert (page.items, page.notes) == ((), ())
    assert set(reasons(page).values()) == {"no stream learns from this scope"}


def test_who_may_not_read_a_stream_does_not_learn_what_it_knows(memory: Memory) -> None:
    memory.observe(TALK, SAID)
    memory.form(TALK)
    page = memory.restricted(scopes=["session=s9"]).preview("agent=cook/session=s9/user=anna", SAID)
    assert all("known already" not in message.reason for message in page.passed_over)
    assert all(str(item.scope) == "agent=cook/session=s9/user=anna" for item in page.items)
