"""Recalled texts are kept outside of the state while their turns are under way, and no longer."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.hosts.langchain.conftest import human, recalled
from tests.support.chat_models import ScriptedModel, tool_call

from eunoe.hosts.langchain.middleware import RecalledTexts
from eunoe.memory import Memory


def test_each_text_has_a_key_of_its_own_until_it_is_removed() -> None:
    texts = RecalledTexts()
    first, second = texts.add("same"), texts.add("same")
    texts.remove(first)
    assert (texts.get(first), texts.get(second), texts.get(None)) == (None, "same", None)
    texts.remove(None)


def test_the_oldest_make_room() -> None:
    texts = RecalledTexts(most=2)
    keys = [texts.add(text) for text in "abc"]
    assert [texts.get(key) for key in keys] == [None, "b", "c"]


def test_an_old_text_no_longer_counts() -> None:
    texts = RecalledTexts(seconds=0)
    assert texts.get(texts.add("what may be forgotten by now")) is None


def test_a_run_recalls_again_if_its_text_is_gone_and_leaves_none_behind(
    memory: Memory, agent_of: Callable[..., Any], calls: dict[str, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.remember("user=anna", "Anna likes tea.")
    made: list[RecalledTexts] = []
    keys: list[str] = []
    add = RecalledTexts.add

    def note_key(self: RecalledTexts, text: str) -> str:
        made.append(self)
        keys.append(add(self, text))
        return keys[-1]

    def lose_text(_: Any) -> Any:
        made[-1].remove(keys[-1])
        return tool_call("search_long_term_memory", query="tea")

    monkeypatch.setattr(RecalledTexts, "add", note_key)
    model = ScriptedModel(lose_text, "Yes, you like tea.")
    agent_of(model).invoke(human("Do I like tea?"))
    assert all(map(recalled, model.requests))
    assert calls["context"] == ["Do I like tea?"] * 2
    assert len(keys) == 2
    assert [made[-1].get(key) for key in keys] == [None, None]
