"""Words first: what is learned rests on messages that are kept, whatever the language model does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import eunoe
from eunoe.errors import InputError
from eunoe.hosts.mem0 import LLMError, Memory
from eunoe.llm import Prompt
from eunoe.llm.contract import ScriptedLlm

ANNA = {"user_id": "anna"}
SAID = [
    {"role": "user", "content": "My dog is called Bruno."},
    {"role": "assistant", "content": "What a fine name."},
]


def log(store: eunoe.Memory, scope: str) -> list[str]:
    """The words of the messages of a scope."""
    return [item.text for item in store.list(scope, kinds=["message"]).items]


@pytest.mark.parametrize(
    ("ids", "scope"),
    [
        ({"user_id": "anna"}, "user=anna"),
        ({"user_id": "anna", "run_id": "r1"}, "session=r1/user=anna"),
        ({"agent_id": "cook"}, "agent=cook"),
    ],
)
def test_what_is_learned_knows_the_messages_it_came_from(
    memory: Memory, path: Path, ids: dict[str, Any], scope: str
) -> None:
    (added,) = memory.add(SAID, **ids)["results"]
    with eunoe.open(path, embedder="none", llm="none", form=False) as store:
        (atom,) = store.list(scope, kinds=["fact", "observation"]).items
        assert isinstance(atom, eunoe.Atom)
        assert [store.get(scope, id).text for id in atom.source] == ["My dog is called Bruno."]
        assert added["memory"] == atom.text
        assert log(store, scope) == [message["content"] for message in SAID]


def test_a_message_that_is_forgotten_takes_along_what_was_learned_from_it(memory: Memory, path: Path) -> None:
    (added,) = memory.add(SAID, **ANNA)["results"]
    with eunoe.open(path, embedder="none", llm="none", form=False) as store:
        store.forget("user=anna", store.list("user=anna", kinds=["message"]).items[0].id)
    assert memory.get(added["id"]) is None
    assert memory.add(SAID, **ANNA)["results"] == []


@pytest.mark.parametrize("prompt", [None, "Look for wishes."])
def test_a_language_model_that_fails_loses_no_message(path: Path, prompt: str | None) -> None:
    answers: list[Any] = []

    def answer(asked: Prompt) -> Any:
        if not answers:
            raise eunoe.LlmError("the model is away")
        return answers[0] if asked.name == "facts" else answers[1]

    with eunoe.open(path, embedder="none", llm=ScriptedLlm(answer), form=False) as store:
        memory = Memory(memory=store)
        with pytest.raises(LLMError, match="LLM extraction failed"):
            memory.add(SAID, **ANNA, prompt=prompt)
        assert memory.get_all(filters=ANNA)["results"] == []
        assert log(store, "user=anna") == [message["content"] for message in SAID]
        learned = {"stream": 2, "kind": "observation", "text": "Anna's dog is called Bruno.", "turns": [1]}
        answers += [
            {"facts": [learned["text"]]},
            {"memories": [{**learned, "key": None, "replaces": [], "people": []}]},
        ]
        assert [each["memory"] for each in memory.add(SAID, **ANNA, prompt=prompt)["results"]] == [learned["text"]]
        assert len(log(store, "user=anna")) == len(SAID)


def test_what_was_deleted_does_not_come_back_and_may_be_said_again(memory: Memory, path: Path) -> None:
    (added,) = memory.add(SAID, **ANNA)["results"]
    memory.delete(added["id"])
    with eunoe.open(path, embedder="none", llm="none", form=False) as store:
        assert not store.form("user=anna").stored
        assert log(store, "user=anna") == [message["content"] for message in SAID]
    assert memory.get_all(filters=ANNA)["results"] == []
    assert [each["memory"] for each in memory.add(SAID, **ANNA)["results"]] == [added["memory"]]


def test_what_has_expired_is_learned_again(memory: Memory) -> None:
    memory.add(SAID, **ANNA, expiration_date="2001-01-01")
    assert memory.get_all(filters=ANNA)["results"] == []
    (added,) = memory.add(SAID, **ANNA)["results"]
    (item,) = memory.get_all(filters=ANNA, show_expired=True)["results"]
    assert (item["id"], item["memory"], item.get("expiration_date")) == (added["id"], "My dog is called Bruno.", None)


def test_nothing_is_learned_twice_when_the_engine_forms_memories(path: Path) -> None:
    with eunoe.open(path, embedder="none", llm="none") as store:
        memory = Memory(memory=store)
        memory.add(SAID, **ANNA)
        store.observe("user=anna", "I am allergic to peanuts.")
        report = store.form("user=anna")
        assert report.messages == 1
        texts = sorted(each["memory"] for each in memory.get_all(filters=ANNA)["results"])
        assert texts == ["My dog is called Bruno.", "anna: I am allergic to peanuts."]


def test_of_an_incognito_session_nothing_is_kept(path: Path) -> None:
    llm = ScriptedLlm([])
    with eunoe.open(path, embedder="none", llm=llm, form=False) as store:
        store.streams.set_incognito("session=r1/user=anna")
        assert Memory(memory=store).add(SAID, **ANNA, run_id="r1", prompt="Look for pets.")["results"] == []
        assert log(store, "session=r1/user=anna") == []
        assert llm.prompts == []


def test_without_a_model_no_plain_statement_is_lost(dense_memory: Memory) -> None:
    memory = dense_memory
    added = memory.add("I like tea. I like coffee.", user_id="anna")["results"]
    assert [each["memory"] for each in added] == ["I like tea.", "I like coffee."]
    assert memory.add("The weather was lovely over there.", user_id="anna")["results"] == []
    (found,) = memory.search("weather", filters={"user_id": "anna"})["results"][:1]
    assert found["memory"] == "The weather was lovely over there."
    assert found["metadata"] is None
    assert memory.get(found["id"])["memory"] == found["memory"]
    assert [row["event"] for row in memory.history(found["id"])] == ["ADD"]
    with pytest.raises(InputError, match="no memory: add what it should say"):
        memory.update(found["id"], "It rained.")
    memory.delete(found["id"])
    memory.add("Hello! How are you?", user_id="anna")
    left = {each["memory"] for each in memory.search("weather, hello", filters={"user_id": "anna"})["results"]}
    assert left.isdisjoint([found["memory"], "Hello! How are you?"])
