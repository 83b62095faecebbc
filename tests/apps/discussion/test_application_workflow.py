"""A whole application: memory before the reply, the reply, creators behind it, over a chat that grows and changes."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import eunoe
from eunoe.apps.discussion.documents import current_summary
from eunoe.apps.discussion.model import CHUNK_MEMORY, KEYWORD_MEMORY, chunk_memories, discussion_scope, keyword_memories
from eunoe.apps.discussion.settings import DiscussionSettings
from eunoe.apps.discussion.update import update_discussion
from eunoe.apps.discussion.workflow import Environment, ModelMap, Workflow, run_workflow
from eunoe.llm.contract import Prompt, ScriptedLlm

NODES = [
    {"type": "RecentMemorySummarizerTool", "maxTurnsToPull": 10, "maxSummaryChunksFromFile": 3},
    {"type": "VectorMemorySearch", "input": "{chat_user_prompt_last_one}"},
    {"type": "FullChatSummary"},
    {
        "type": "Standard",
        "systemPrompt": "REPLY. So far: {agent3Output}\nLately: {agent1Output}\nThis may matter: {agent2Output}",
        "prompt": "{chat_user_prompt_last_two}",
        "returnToUser": True,
    },
    {"type": "WorkflowLock", "workflowLockId": "memory"},
    {"type": "QualityMemory"},
]
SCOPE = discussion_scope("trip")
LOOKBACK = 3
WINDOW = 30
"""A front end sends so many messages at most."""


def tokens(text: str) -> list[str]:
    return re.findall(r"\b[ua]\d+[a-z]*\b", text)


def part(prompt: Prompt, name: str) -> str:
    return prompt.text.split(f"<{name}>")[1].split(f"</{name}>")[0]


def answer(prompt: Prompt) -> Any:
    """Memories of the names that a chunk holds, so that each can be counted."""
    if prompt.system.startswith("REPLY"):
        return f"I heard {tokens(prompt.text)[-1].replace('u', 'a')} of you."
    if "<LATEST_MEMORIES>" in prompt.text:
        return f"Summary of {' '.join(tokens(part(prompt, 'CHAT_SUMMARY')) + tokens(part(prompt, 'LATEST_MEMORIES')))}"
    names = tokens(part(prompt, "TextChunk"))
    if "key_phrases" not in prompt.text:
        return f"Memory of {' '.join(names)}"
    memory = {"title": names[0], "summary": f"It has {' '.join(names)}", "entities": names, "key_phrases": names}
    return json.dumps([memory])


class Application:
    """A front end with its chat, and the workflow behind it."""

    def __init__(self, memory: eunoe.Memory) -> None:
        self.chat: list[dict[str, str]] = []
        self.model = ScriptedLlm(answer)
        self._memory = memory
        settings = DiscussionSettings(memory_kinds=(CHUNK_MEMORY, KEYWORD_MEMORY), lookback=LOOKBACK)
        self.environment = Environment(models=ModelMap(default=self.model), settings=settings)

    def say(self, text: str) -> None:
        self.chat.append({"role": "user", "content": text})
        self.reply()

    def reply(self, name: str = "") -> None:
        result = run_workflow(
            Workflow.of(NODES),
            memory=self._memory,
            messages=[{"role": "system", "content": "Be kind."}, *self.chat[-WINDOW:]],
            discussion_id="trip",
            environment=self.environment,
        )
        assert result.notes == ()
        self.chat.append({"role": "assistant", "content": f"{result.text}{name}"})

    def made(self, name: str) -> list[str]:
        """The chunks that became memories of a kind."""
        is_keyword = name == KEYWORD_MEMORY
        asked = [prompt for prompt in self.model.prompts if "<TextChunk>" in prompt.text]
        return [part(each, "TextChunk") for each in asked if ("key_phrases" in each.text) is is_keyword]


def count(texts: Sequence[str]) -> Counter[str]:
    return Counter(token for text in texts for token in tokens(text))


def test_nothing_is_skipped_or_summed_up_twice(memory: eunoe.Memory) -> None:
    app = Application(memory)
    for number in range(40):
        if number == 20:  # an edit ten messages up
            app.chat[-10]["content"] = "In truth I am fond of u15edited."
        if number == 30:  # the last answer is made anew
            app.chat.pop()
            app.reply(" Or a29again.")
        app.say("ok" if number % 7 == 3 else f"I am fond of u{number}.")

    standing = count([message["content"] for message in app.chat])
    report = update_discussion(
        memory,
        SCOPE,
        app.environment.settings,
        messages=app.chat,
        force=True,
        find_model=app.environment.models.find,
    )
    assert report.failed == ()
    done = count([message["content"] for message in app.chat[:-LOOKBACK]])
    assert count([each.text for each in chunk_memories(memory, SCOPE)]) == done
    assert count([each.summary for each in keyword_memories(memory, SCOPE)]) == done
    assert count([current_summary(memory, SCOPE)]) == done
    assert standing["u15edited"] == 1
    for kind in (CHUNK_MEMORY, KEYWORD_MEMORY):
        assert max(Counter(app.made(kind)).values()) == 1
        redone = [chunk for chunk in app.made(kind) if "u15edited" in chunk]
        assert len(redone) == 1


def test_the_reply_is_made_with_what_was_said_long_ago(memory: eunoe.Memory, tmp_path: Path) -> None:
    app = Application(memory)
    for number in range(40):
        app.say(f"I am fond of u{number}.")
    app.say("Do you still know u2?")
    last = next(prompt for prompt in reversed(app.model.prompts) if prompt.system.startswith("REPLY"))
    found = last.system.split("This may matter: ")[1]
    assert "u2" in tokens(found.split("\n\n---\n\n")[0])
    assert "u2" in tokens(last.system.split("Lately: ")[0])
