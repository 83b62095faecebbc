"""Summary and state document together follow what becomes of the chat."""

import re
from typing import Any

import pytest

from eunoe.apps.discussion import Discussion, DiscussionSettings
from eunoe.apps.discussion.documents import StateDocument, current_summary, new_since_summary
from eunoe.apps.discussion.model import chunk_memories
from eunoe.apps.discussion.settings import StateDocumentSettings
from eunoe.llm.contract import Prompt, ScriptedLlm
from eunoe.memory import Memory

SETTINGS = DiscussionSettings(state_document=StateDocumentSettings(is_on=True))


def chat(count: int) -> list[dict[str, Any]]:
    return [{"role": "user", "content": f"Stop {number} is town {number}."} for number in range(1, count + 1)]


def all_text(discussion: Discussion) -> str:
    """All words of both, with their histories."""
    memory, scope = discussion.memory, discussion.scope
    atoms = memory.list(scope, kinds=["fact", "observation"], retired=True, limit=1000).items
    revisions = memory.summaries.revisions(scope)
    return "\n".join(each.text for each in (*atoms, *revisions))


WORKED_ON = "TextChunk|CHAT_SUMMARY|LATEST_MEMORIES|NEW_FACTS|STATE_DOCUMENT"


def echo(prompt: Prompt) -> str:
    """A model that repeats what it is to work on: so nothing gets lost or comes twice unseen."""
    parts = re.findall(rf"<({WORKED_ON})>\n(.*?)\n</\1>", prompt.text, re.DOTALL)
    lines = [line for _, part in parts for line in part.splitlines() if "no longer true" not in line]
    return "\n".join(dict.fromkeys(lines)) or "Nothing."


@pytest.fixture(params=["with a model", "without a model"])
def discussion(request: pytest.FixtureRequest, memory: Memory) -> Discussion:
    return Discussion(memory, "trip", "anna")


def options(discussion: Discussion, request: pytest.FixtureRequest) -> dict[str, Any]:
    llm = ScriptedLlm(echo) if request.node.callspec.params["discussion"] == "with a model" else None
    return {"find_model": lambda endpoint, preset: llm}


def test_an_edit_reaches_both(discussion: Discussion, request: pytest.FixtureRequest) -> None:
    given, messages = options(discussion, request), chat(28)
    report = discussion.update(messages, SETTINGS, **given)
    assert (report.made, report.state_document) == (5, "written")
    messages[1]["content"] = "Stop 2 is Rome, a large town."
    report = discussion.update(messages, SETTINGS, **given)
    assert (report.redone, report.made, report.failed) == (1, 0, ())
    document = StateDocument(discussion.memory, discussion.scope).read()
    texts = [each.text for each in chunk_memories(discussion.memory, discussion.scope)]
    for text in (current_summary(discussion.memory, discussion.scope), document, "\n".join(texts)):
        assert "Rome" in text
    assert "town 2." not in current_summary(discussion.memory, discussion.scope)
    assert new_since_summary(discussion.memory, discussion.scope) == []
    again = discussion.update(messages, SETTINGS, **given)
    assert (again.made, again.redone, again.summary) == (0, 0, None)


def test_what_is_forgotten_is_nowhere(discussion: Discussion, request: pytest.FixtureRequest) -> None:
    given, messages = options(discussion, request), chat(28)
    messages[1]["content"] = "Stop 2 is the town of code 4711."
    discussion.update(messages, SETTINGS, **given)
    assert "4711" in all_text(discussion)
    (secret,) = [each.id for each in discussion.log.messages() if "4711" in each.text]
    report = discussion.memory.forget(discussion.scope, secret, verify=True)
    assert report.verified, report.traces
    assert "4711" not in all_text(discussion)
    del messages[1]
    discussion.update(messages, SETTINGS, force=True, **given)
    summary = current_summary(discussion.memory, discussion.scope)
    document = StateDocument(discussion.memory, discussion.scope).read()
    assert "4711" not in all_text(discussion)
    for text in (summary, document):
        assert "town 1." in text
        assert "town 3." in text
    assert new_since_summary(discussion.memory, discussion.scope) == []
