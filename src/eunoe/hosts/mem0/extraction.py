"""What is worth remembering of a conversation: by the language model of the memory, or by rules without one."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import uuid4

from eunoe.errors import InputError, LlmError
from eunoe.form.statements import read_statement
from eunoe.hosts.mem0.arguments import PROCEDURAL, llm_error
from eunoe.llm import adapt
from eunoe.llm.contract import Llm, Prompt
from eunoe.llm.structured import ask_structured
from eunoe.memory import Memory
from eunoe.model.atom import Atom, source_place
from eunoe.model.scope import Scope
from eunoe.model.turn import FORMER
from eunoe.text.sentences import split_sentences

Messages = Sequence[dict[str, Any]]


class Source(NamedTuple):
    """A message with the id that it has in the log."""

    id: str
    message: dict[str, Any]


Draft = dict[str, Any]
"""What `remember` takes. One without an id is known by its words."""

UNFORMED: Final[Mapping[str, Any]] = {"unformed": True}
"""What marks a message in the log that became no memory."""
_FORMER: Final = "mem0"
_SESSION: Final = "mem0"
"""A conversation without a run: the rules read more out of one that has a session."""
_FENCE: Final = re.compile(r"```\w*\n(.*?)\n```", re.DOTALL)
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


def keep_messages(memory: Memory, owner: Scope, messages: Messages, time: datetime | None) -> list[Source]:
    """Put messages into the log, word for word; return those that are there now, with their ids.

    What was forgotten or said incognito is not among them. The engine forms nothing from them: `add` does, here.
    """
    return list(_observe(memory, owner, messages, time).values())


def learn(memory: Memory, owner: Scope, messages: Messages, prompt: str, time: datetime | None) -> list[Draft]:
    """Put messages into the log, and draft what there is to remember of them. Without a language model, a user's
    message that no draft rests on is marked: `search` finds it in the log."""
    if memory.llm:
        return extract(memory, owner, keep_messages(memory, owner, messages, time), prompt, time)
    places = [Source(str(place), message) for place, message in enumerate(messages)]
    drafts = extract(memory, owner, places, prompt, time)
    used = {place for draft in drafts for place in draft["source"]}
    unformed = {
        each.id
        for each in places
        if each.id not in used
        and each.message["role"] == "user"
        and any(map(read_statement, split_sentences(each.message["content"])))
    }
    kept = _observe(memory, owner, messages, time, unformed)
    return [
        draft | {"source": [kept[place].id for place in draft["source"]]}
        for draft in drafts
        if kept.keys() >= set(draft["source"])
    ]


def _observe(
    memory: Memory, owner: Scope, messages: Messages, time: datetime | None, unformed: Collection[str] = ()
) -> dict[str, Source]:
    """By their places: the messages that are in the log now."""
    said = [
        {**_to_message(message, time), "metadata": {FORMER: _FORMER, **(UNFORMED if str(place) in unformed else {})}}
        for place, message in enumerate(messages)
    ]
    receipts = memory.observe(owner, said)
    return {
        str(place): Source(receipt.id, message)
        for place, (receipt, message) in enumerate(zip(receipts, messages, strict=True))
        if receipt.outcome in ("stored", "duplicate")
    }


def extract(memory: Memory, owner: Scope, sources: Sequence[Source], prompt: str, time: datetime | None) -> list[Draft]:
    """Drafts of what there is to remember of messages, each with those that it rests on."""
    if not sources:
        return []
    if prompt and memory.llm:
        return list(_ask(memory.llm, sources, prompt))
    scope = owner if "session" in owner else owner.extended({"session": _SESSION})
    page = memory.preview(scope, [{**_to_message(each.message, time), "id": each.id} for each in sources])
    if not page.items and page.notes:
        raise llm_error(page.notes[0])
    drafts = [_to_draft(atom, owner, sources) for atom in page.items]
    return list({draft["text"]: draft for draft in drafts}.values())


def write_procedure(model: Any, sources: Sequence[Source], prompt: str) -> list[Draft]:
    """What an agent did, in the words of a language model or chat model; without one as it was said."""
    if not sources:
        return []
    text = _transcript(sources)
    if model is not None:
        if (llm := adapt(model)) is None:
            raise InputError(f"llm must be a language model, not {type(model).__name__}")
        try:
            answer = llm.ask(Prompt(prompt or _PROCEDURE, text, operation="extraction")).text
        except LlmError as error:
            raise llm_error(error) from error
        answer = answer.rpartition("</think>")[2].strip()
        fence = _FENCE.fullmatch(answer)
        text = (fence[1].strip() if fence else answer) or text
    metadata = {"memory_type": PROCEDURAL}
    return [{"id": str(uuid4()), "text": text, "source": [source.id for source in sources], "metadata": metadata}]


def _ask(llm: Llm, sources: Sequence[Source], prompt: str) -> Iterator[Draft]:
    question = Prompt(prompt, _transcript(sources), schema=_FACTS, name="facts", operation="extraction")
    try:
        facts = ask_structured(llm, question, lambda answer: answer["facts"])
    except LlmError as error:
        raise llm_error(error) from error
    texts = dict.fromkeys(fact.strip() for fact in facts)
    yield from ({"text": text, "source": [source.id for source in sources]} for text in texts if text)


def _to_draft(atom: Atom, owner: Scope, sources: Sequence[Source]) -> Draft:
    """An atom without the name of whose memory it is: the scope says that."""
    named = {source_place(name, owner)[1] for name in atom.source}
    own = [source for source in sources if source.id in named]
    roles = {source.message["role"] for source in own}
    text = atom.text.removeprefix(f"{owner.pairs.get('user', 'user')}: ")
    draft: Draft = {"text": text, "time": atom.time, "people": atom.people, "source": [source.id for source in own]}
    if len(roles) == 1:
        draft["metadata"] = {"attributed_to": roles.pop()}
    return draft


def _to_message(message: dict[str, Any], time: datetime | None) -> dict[str, Any]:
    return {"role": message["role"], "content": message["content"], "name": message.get("name"), "time": time}


def _transcript(sources: Sequence[Source]) -> str:
    return "\n".join(f"{source.message['role']}: {source.message['content']}" for source in sources)
