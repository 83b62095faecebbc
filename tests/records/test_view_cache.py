"""A view is what the scope is now, whoever has written; and it is built no more often than that takes."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import eunoe
from eunoe.errors import AccessError, ClosedError, InputError, NotFoundError
from eunoe.memory import Memory
from eunoe.records import reading

ANNA, BEN = "user=anna", "user=ben"


class Texts:
    """Builds the texts of a scope, and counts how often."""

    def __init__(self, memory: Memory, scope: str = ANNA) -> None:
        self.memory, self.scope, self.times = memory, scope, 0

    def __call__(self) -> list[str]:
        self.times += 1
        return [item.text for item in self.memory.list(self.scope, limit=100).items]

    def view(self, name: str = "texts") -> list[str]:
        return self.memory.view(self.scope, name, self)


CHANGES: dict[str, Callable[[Memory], object]] = {
    "observe": lambda memory: memory.observe(ANNA, "Hello."),
    "remember": lambda memory: memory.remember(ANNA, "Anna likes jam."),
    "replace": lambda memory: memory.remember(ANNA, "Anna likes jam.", id="one", replace=True),
    "update": lambda memory: memory.update(ANNA, "one", "Anna likes coffee."),
    "expire": lambda memory: memory.expire(ANNA, "one", "2024-01-01"),
    "pin": lambda memory: memory.pin(ANNA, "one"),
    "forget": lambda memory: memory.forget(ANNA, "one"),
    "summary": lambda memory: memory.summaries.write(ANNA, "Anna likes tea."),
    "settings": lambda memory: memory.streams.configure(ANNA, consolidation_prompt=""),
}


@pytest.mark.parametrize("change", CHANGES)
def test_it_is_built_anew_after_each_change_of_any_process(memory: Memory, path: Path, change: str) -> None:
    memory.remember(ANNA, "Anna likes tea.", id="one")
    texts = Texts(memory)
    assert texts.view() is texts.view()
    CHANGES[change](memory)
    assert texts.view() == texts()
    with eunoe.open(path, embedder="none", llm="none") as other:
        other.remember(ANNA, "Anna has a dog.", id="dog")
        assert "Anna has a dog." in texts.view()
        other.forget(ANNA, "dog")
        assert "Anna has a dog." not in texts.view()
    built = texts.times
    texts.view()
    assert texts.times == built


def test_other_scopes_and_leases_change_nothing(memory: Memory) -> None:
    memory.remember(ANNA, "Anna likes tea.")
    texts = Texts(memory)
    texts.view()
    memory.remember(BEN, "Ben likes tea.")
    memory.leases.acquire(ANNA, "work")
    texts.view()
    assert texts.times == 1
    assert Texts(memory, BEN).view() == ["Ben likes tea."]


def test_names_are_apart_and_a_scope_may_be_empty(memory: Memory) -> None:
    texts = Texts(memory)
    assert texts.view() == []
    assert memory.view(ANNA, "number", lambda: 7) == 7
    memory.remember(ANNA, "Anna likes tea.")
    assert texts.view() == ["Anna likes tea."]
    assert memory.scopes() == [eunoe.Scope(user="anna")]


def test_an_error_is_kept_nowhere(memory: Memory) -> None:
    with pytest.raises(NotFoundError):
        memory.view(ANNA, "one", lambda: memory.get(ANNA, "one"))
    memory.remember(ANNA, "Anna likes tea.", id="one")
    assert memory.view(ANNA, "one", lambda: memory.get(ANNA, "one")).text == "Anna likes tea."
    with pytest.raises(InputError, match="build"):
        memory.view(ANNA, "one", "no function")  # type: ignore[arg-type]


class Words(list[str]):
    """Texts that the garbage collector can tell of."""


def test_forgetting_takes_views_along(memory: Memory) -> None:
    memory.remember(ANNA, "The secret is 4711.", id="one")
    memory.view(ANNA, "words", lambda: Words(Texts(memory)()))
    memory.forget(ANNA, "one")
    assert not [each for each in gc.get_objects() if type(each) is Words]


def test_what_was_forgotten_while_it_was_built_is_not_kept(memory: Memory) -> None:
    memory.remember(ANNA, "The secret is 4711.", id="one")

    def build() -> Words:
        words = Words(Texts(memory)())
        memory.forget(ANNA, "one")
        return words

    assert memory.view(ANNA, "words", build) == ["The secret is 4711."]
    assert not [each for each in gc.get_objects() if type(each) is Words]
    assert Texts(memory).view("words") == []


def test_what_one_may_not_see_is_not_shown_by_a_view(memory: Memory) -> None:
    memory.observe(BEN, {"content": "Anna likes tea.", "id": "m1"})
    memory.remember(ANNA, "Anna likes tea.", id="one", source=[f"@{BEN}#m1"], source_scopes=[BEN])
    narrow = memory.restricted(scopes=[ANNA])
    sources = [each.view(ANNA, "one", lambda each=each: each.get(ANNA, "one").source) for each in (memory, narrow)]
    assert sources == [(f"@{BEN}#m1",), ()]
    with pytest.raises(AccessError):
        narrow.view(BEN, "texts", list)


def test_the_views_used_last_stay(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_MAX_VIEWS", 2)
    memory.remember(ANNA, "Anna likes tea.")
    texts = Texts(memory)
    for name in ("a", "b", "a", "c", "a", "b"):
        texts.view(name)
    assert texts.times == 4


def test_threads_share_views_and_read_what_they_wrote(memory: Memory) -> None:
    texts, missing = Texts(memory), []

    def write(name: str) -> None:
        for number in range(20):
            memory.remember(ANNA, f"{name} {number}")
            if f"{name} {number}" not in texts.view():
                missing.append((name, number))

    threads = [threading.Thread(target=write, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert missing == []
    assert len(texts.view()) == 60


def test_it_can_be_awaited_and_is_closed_with_the_memory(path: Path) -> None:
    async def main() -> list[str]:
        async with eunoe.open_async(path, embedder="none") as memory:
            await memory.remember(ANNA, "Anna likes tea.")
            return await memory.at(ANNA).view("texts", Texts(memory.blocking))

    assert asyncio.run(main()) == ["Anna likes tea."]
    memory = eunoe.open(path)
    memory.close()
    with pytest.raises(ClosedError):
        memory.view(ANNA, "texts", list)
