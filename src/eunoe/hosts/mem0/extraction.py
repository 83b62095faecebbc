"""What is worth remembering of a conversation: by the language model of the memory, or by rules without one."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from eunoe.errors import InputError, LlmError
from eunoe.hosts.mem0.exceptions import llm_error
from eunoe.hosts.mem0.messages import transcript
from eunoe.llm.adapters import adapt
from eunoe.llm.answers import ask_structured
from eunoe.llm.contract import Llm, Prompt
from eunoe.memory import Memory
from eunoe.model.atom import Atom
from eunoe.model.scope import Scope

Messages = Sequence[dict[str, Any]]
Draft = dict[str, Any]
"""What `remember` takes."""

_SESSION: Final = "mem0"
"""A conversation without a run: the rules read more out of one that has a session."""
_INCOGNITO: Final = "incognito"
_FACTS: Final = {
    "type": "object",
    "properties": {"facts": {"type": "array", "items": {"type": "string"}}},
    "required": ["facts"],
    "additionalProperties": False,
}
_PROCEDURE: Final = (
    "Write down what an agent did in this conversation, step by step, so that it can go on from there: the task, each "
    "action with its result word for word, what was found out, what failed, and what is left to do. Plain text only."
)


def extract(memory: Memory, owner: Scope, messages: Messages, prompt: str, time: datetime | None) -> list[Draft]:
    """Drafts of what there is to remember. Nothing is kept yet."""
    if prompt and memory.llm:
        return list(_ask(memory.llm, messages, prompt))
    scope = owner if "session" in owner else owner.extended({"session": _SESSION})
    said = [
        {"id": str(place), "role": message["role"], "content": message["content"], "name": message.get("name")}
        for place, message in enumerate(messages)
    ]
    page = memory.preview(scope, [{**each, "time": time} for each in said] if time else said)
    if not page.items and page.notes and not any(_INCOGNITO in note for note in page.notes):
        raise llm_error(page.notes[0])
    drafts = [_to_draft(atom, owner, messages) for atom in page.items]
    return list({draft["text"]: draft for draft in drafts}.values())


def write_procedure(model: Any, messages: Messages, prompt: str) -> str:
    """What an agent did, in the words of a language model or chat model; without one as it was said."""
    text = transcript(list(messages))
    if model is None:
        return text
    if (llm := adapt(model)) is None:
        raise InputError(f"llm must be a language model, not {type(model).__name__}")
    try:
        return llm.ask(Prompt(prompt or _PROCEDURE, text, operation="extraction")).text.strip() or text
    except LlmError as error:
        raise llm_error(error) from error


def _ask(llm: Llm, messages: Messages, prompt: str) -> Iterator[Draft]:
    question = Prompt(prompt, transcript(list(messages)), schema=_FACTS, name="facts", operation="extraction")
    try:
        facts = ask_structured(llm, question, lambda answer: answer["facts"])
    except LlmError as error:
        raise llm_error(error) from error
    yield from ({"text": fact} for fact in dict.fromkeys(fact.strip() for fact in facts) if fact)


def _to_draft(atom: Atom, owner: Scope, messages: Messages) -> Draft:
    """An atom without the name of whose memory it is: the scope says that."""
    roles = {messages[int(name.rpartition("#")[2])]["role"] for name in atom.source}
    text = atom.text.removeprefix(f"{owner.pairs.get('user', 'user')}: ")
    draft: Draft = {"text": text, "time": atom.time, "people": atom.people}
    if len(roles) == 1:
        draft["metadata"] = {"attributed_to": roles.pop()}
    return draft
