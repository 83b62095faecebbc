"""The role of a speaker who is called by one, where a message gives no role."""

import pytest

from eunoe.memory import Memory
from eunoe.model.message import Message, parse_message

ANNA = {"user": "anna", "session": "monday"}


@pytest.mark.parametrize(
    ("speaker", "role"),
    [
        *((name, "assistant") for name in ("Assistant", "ASSISTANT", " assistant ", "AI", "Bot", "AI  Assistant")),
        *((name, "assistant") for name in ("KI-Assistent", "Asistente", "Ассистент", "助手", "アシスタント", "مساعد")),
        *((name, "assistant") for name in ("ChatGPT", "gpt-4o", "claude-3-5-sonnet", "gemini-1.5-pro", "llama-3")),
        *((name, "system") for name in ("System", "système", "系统")),
        *((name, "tool") for name in ("Tool", "function", "Werkzeug")),
        *((name, "user") for name in ("User", "Human", "Benutzer", "用户", "Anna", "", "Claude", "Ai", "Botha")),
    ],
)  # fmt: skip
def test_a_name_says_the_role(speaker: str, role: str) -> None:
    assert parse_message({"name": speaker, "content": "Hello."}).role == role
    assert Message(speaker=speaker, text="Hello.").role == role


def test_a_role_that_is_given_counts() -> None:
    assert parse_message({"role": "user", "speaker": "Assistant", "content": "Hi."}).role == "user"
    assert parse_message({"role": "assistant", "speaker": "Anna", "content": "Hi."}).role == "assistant"
    assert Message(role="user", speaker="Bot", text="Hi.").role == "user"


def test_a_message_that_names_its_user_is_the_users() -> None:
    assert parse_message({"speaker": "Bot", "user": "anna", "content": "Hi."}).role == "user"
    assert parse_message({"speaker": "Bot", "metadata": {"user": "anna"}, "content": "Hi."}).role == "user"


def test_what_an_assistant_says_is_not_learned_of_the_user(memory: Memory) -> None:
    memory.observe(
        ANNA,
        [
            {"speaker": "Anna", "content": "I live in Turin and I play the cello."},
            {"speaker": "Assistant", "content": "I live in the cloud and I love helping you."},
        ],
    )
    memory.form(ANNA)
    texts = [item.text for item in memory.list("user=anna", kinds=["fact", "observation"]).items]
    assert any("Turin" in text for text in texts)
    assert not any("cloud" in text for text in texts)
    roles = [item.role for item in memory.list(ANNA, kinds=["message"]).items]
    assert roles == ["user", "assistant"]
