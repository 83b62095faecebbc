"""The chat loop of mem0's quick start, with one changed import and a scripted chat model."""

from __future__ import annotations

from pathlib import Path

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel

from eunoe.hosts import common
from eunoe.hosts.mem0 import Memory


def test_a_chat_that_remembers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EUNOE_STORE", str(tmp_path / "memory.db"))
    monkeypatch.setenv("EUNOE_LLM", "none")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    model = FakeListChatModel(responses=["Hey Alex! Noted.", "You love basketball and gaming."])
    memory = Memory()
    prompts: list[str] = []

    def chat(message: str, user_id: str) -> str:
        relevant = memory.search(query=message, filters={"user_id": user_id}, top_k=3)
        known = "\n".join(f"- {entry['memory']}" for entry in relevant["results"])
        messages = [
            {"role": "system", "content": f"Answer with what you know of the user.\n{known}"},
            {"role": "user", "content": message},
        ]
        prompts.append(known)
        answer = str(model.invoke(messages).content)
        messages.append({"role": "assistant", "content": answer})
        memory.add(messages, user_id=user_id)
        return answer

    assert chat("Hi, I'm Alex. I love basketball and gaming.", "alex") == "Hey Alex! Noted."
    assert chat("What do you know about me?", "alex") == "You love basketball and gaming."
    assert prompts == ["", "- Hi, I'm Alex. I love basketball and gaming."]
    assert memory.search("What do you know about me?", filters={"user_id": "ben"})["results"] == []
    common.default_memory().close()
    common._open.cache_clear()
