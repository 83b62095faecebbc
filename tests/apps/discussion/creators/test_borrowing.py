"""What an author took over from what it was shown is reached by forgetting, and nothing else is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import eunoe
from eunoe.apps.discussion import Discussion, DiscussionSettings
from eunoe.apps.discussion.documents import current_summary
from eunoe.apps.discussion.model import CHUNK_MEMORY, KEYWORD_MEMORY, chunk_memories, keyword_memories
from eunoe.apps.discussion.settings import AuthorSettings, ChunkSettings, SummarySettings
from eunoe.llm.contract import Prompt, ScriptedLlm
from eunoe.memory import Memory

SIZE = ChunkSettings(messages=2)
SETTINGS = DiscussionSettings(
    lookback=0, chunk_memory=SIZE, keyword_memory=SIZE, summary=SummarySettings(least_memories=1, most_memories=1)
)
TOWNS = ("Rome", "Oslo", "Bern", "Riga", "Kyiv", "Graz", "Lyon", "Cork")


def chat(secret: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text} for text in (secret, *(f"We drove to {town}." for town in TOWNS[1:]))]


def own_town(prompt: Prompt) -> str:
    part = prompt.text.partition("<TextChunk>")[2].partition("</TextChunk>")[0] or prompt.text
    return "They drove to " + ", ".join(town for town in TOWNS if town in part)


def tell(secret: str, told: str) -> ScriptedLlm:
    """A model that repeats a secret wherever it is shown it."""
    return ScriptedLlm(
        lambda prompt: (
            f"{own_town(prompt)}. {told}" if any(word in prompt.text for word in (secret, told)) else own_town(prompt)
        )
    )


def update(
    memory: Memory, llm: ScriptedLlm, messages: Any = None, settings: DiscussionSettings = SETTINGS
) -> Discussion:
    discussion = Discussion(memory, "trip")
    report = discussion.update(messages, settings, find_model=lambda endpoint, preset: llm)
    assert not report.failed
    return discussion


@pytest.mark.parametrize(
    ("secret", "told"),
    [
        ("My safe word is tulip.", "The safe word is tulip."),
        ("I was born on the first of May, eighty-one.", "Born on 1981-05-01."),
        ("我的密码是郁金香。", "密码是郁金香。"),
    ],
)
def test_what_a_model_repeats_in_later_memories_goes_with_the_message(path: Path, secret: str, told: str) -> None:
    with eunoe.open(path, form=False) as memory:
        llm = tell(secret, told)
        discussion = update(memory, llm, chat(secret))
        assert [told in each.text for each in chunk_memories(memory, discussion.scope)] == [True] * 4
        assert told in current_summary(memory, discussion.scope)
        report = memory.forget(discussion.scope, discussion.log.messages()[0].id, verify=True)
        assert report.verified, report.traces
        assert chunk_memories(memory, discussion.scope) == []
        update(memory, llm)
        texts = [each.text for each in chunk_memories(memory, discussion.scope)]
        assert all(town in " ".join(texts) for town in TOWNS[1:-1])
        assert told not in " ".join([*texts, current_summary(memory, discussion.scope)])
    assert told.encode() not in path.read_bytes()


def test_what_a_model_repeats_of_the_summary_alone_goes_too(memory: Memory) -> None:
    author = AuthorSettings(prompt="[Chat_Summary] [TextChunk]")
    settings = DiscussionSettings(
        lookback=0, chunk_memory=ChunkSettings(messages=2, author=author), summary=SETTINGS.summary
    )
    llm = tell("My safe word is tulip.", "The safe word is tulip.")
    discussion = update(memory, llm, chat("My safe word is tulip.")[:4], settings)
    update(memory, llm, chat("My safe word is tulip."), settings)
    assert "tulip" in chunk_memories(memory, discussion.scope)[-1].text
    memory.forget(discussion.scope, discussion.log.messages()[0].id)
    assert "tulip" not in " ".join(each.text for each in chunk_memories(memory, discussion.scope))


def test_the_memories_of_a_faithful_model_stay(memory: Memory) -> None:
    llm = ScriptedLlm(own_town)
    discussion = update(memory, llm, chat("My safe word is tulip in Rome."))
    assert [each.borrowed for each in chunk_memories(memory, discussion.scope)] == [()] * 4
    memory.forget(discussion.scope, discussion.log.messages()[0].id)
    assert len(chunk_memories(memory, discussion.scope)) == 3
    asked = len(llm.prompts)
    update(memory, llm)
    assert sum("<TextChunk>" in prompt.text for prompt in llm.prompts[asked:]) == 1


def test_a_word_of_a_message_that_was_edited_is_known_to_come_from_its_old_wording(memory: Memory) -> None:
    messages = chat("My safe word is tulip.")
    llm = tell("My safe word is tulip.", "The safe word is tulip.")
    discussion = update(memory, llm, messages)
    old = discussion.log.messages()[0].id
    messages[0]["content"] = "We drove to Rome."
    update(memory, ScriptedLlm(own_town), messages)
    assert "tulip" in chunk_memories(memory, discussion.scope)[-1].text
    memory.forget(discussion.scope, old)
    assert "tulip" not in " ".join(each.text for each in chunk_memories(memory, discussion.scope))


def test_keyword_memories_that_repeat_related_ones_go_with_the_message(memory: Memory) -> None:
    def answer(prompt: Prompt) -> str:
        told = " The safe word is tulip." if "tulip" in prompt.text else ""
        return json.dumps({"title": "Trip", "summary": own_town(prompt) + told, "entities": [], "key_phrases": []})

    kinds = DiscussionSettings(lookback=0, memory_kinds=(KEYWORD_MEMORY,), keyword_memory=SIZE)
    discussion = update(memory, ScriptedLlm(answer), chat("My safe word is tulip. We drove."), kinds)
    known = keyword_memories(memory, discussion.scope)
    assert ["tulip" in each.summary for each in known] == [True] * 4
    assert all(len(each.source) == 2 for each in known)
    memory.forget(discussion.scope, discussion.log.messages()[0].id)
    assert keyword_memories(memory, discussion.scope) == []


def test_a_bound_that_is_gone_does_not_let_a_chunk_reach_over_what_its_author_repeated(memory: Memory) -> None:
    messages = chat("My safe word is tulip.")
    llm = tell("My safe word is tulip.", "The safe word is tulip.")
    discussion = update(memory, llm, messages)
    bound = discussion.log.messages()[-1].id
    del messages[-1]
    update(memory, llm, [*messages, {"role": "user", "content": "We drove to Cork again."}])
    memory.forget(discussion.scope, bound)
    update(memory, llm)
    assert [len(each.source) for each in chunk_memories(memory, discussion.scope)] == [2, 2, 2, 2]
    assert {each.chunk.kind for each in chunk_memories(memory, discussion.scope) if each.chunk} == {CHUNK_MEMORY}
