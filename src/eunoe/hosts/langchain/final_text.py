"""The final text of a run in which the model sent its answer together with a call that stores something.

Such a model is called once more when the call is done, and says "Stored.": that would be the run's last message, and
whoever reads the last message would lose the answer.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

_WORD: Final = re.compile(r"\w+")


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


_STORING: Final = _words(
    "stored stores storing saved saves saving recorded remembered noted memorized memorised kept written logged added "
    "updated done finished complete completed memory memories"
)
"""Words that tell of a write. Without one of them a short reply is an answer."""
_PLAIN: Final = _words(
    "a about all also an and are as at been both everything facts fact fine for from good great has have here i id ids "
    "in information insight insights into is it its key let me my new now of ok okay on page pages perfect ready "
    "record success successful successfully sure task text thank thanks that the them there these they this to was we "
    "were will with ve s you your"
)
"""Words that say nothing new in such a reply."""
_LONG_CHARACTERS: Final = 1000
_SHORT_SHARE: Final = 10
"""After a long text, a reply of a tenth of it is no answer in its place, in any language."""


def final_text_update(state: Mapping[str, Any], tools: Collection[str]) -> list[AIMessage]:
    """Return the messages to change so that the run ends with its answer; none if it does.

    Give it to the state from `after_agent`. The answer takes the place of the reply that only acknowledges the write.
    The message that it came with keeps its calls, so that each call still has its result.

    Args:
        state: the agent's state.
        tools: names of the tools that store something.
    """
    messages: Sequence[AnyMessage] = state["messages"]
    reply = messages[-1] if messages else None
    if not isinstance(reply, AIMessage) or reply.tool_calls or state.get("structured_response") is not None:
        return []
    for place, message in _texts_with_calls(messages[:-1], tools):
        if is_acknowledgement(reply.text, message, messages[place + 1 : -1]):
            return [_without_text(message), reply.model_copy(update={"content": message.text})]
    return []


def is_acknowledgement(reply: str, message: AIMessage, results: Sequence[AnyMessage]) -> bool:
    """Whether a reply says no more than that something was stored, after a message that called for it."""
    if len(message.text) >= _LONG_CHARACTERS:
        return len(reply) * _SHORT_SHARE <= len(message.text)
    calls = " ".join(str(call["args"]) for call in message.tool_calls)
    answers = " ".join(each.text for each in results if isinstance(each, ToolMessage) and each.status != "error")
    return _tells_of_a_write(reply, f"{message.text} {calls} {answers}")


def _tells_of_a_write(text: str, known: str = "") -> bool:
    words = _words(text)
    return not words or bool(words & _STORING and words <= _STORING | _PLAIN | _words(known))


def _texts_with_calls(messages: Sequence[AnyMessage], tools: Collection[str]) -> Iterator[tuple[int, AIMessage]]:
    """The messages of this turn that say something beside a call of these tools, the latest first."""
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if isinstance(message, HumanMessage):
            return
        if isinstance(message, AIMessage) and _calls(message, tools) and not _tells_of_a_write(message.text):
            yield place, message


def _calls(message: AIMessage, tools: Collection[str]) -> bool:
    return any(call["name"] in tools for call in message.tool_calls)


def _without_text(message: AIMessage) -> AIMessage:
    content: Any = message.content
    rest = [] if isinstance(content, str) else [part for part in content if not _is_text(part)]
    return message.model_copy(update={"content": rest or ""})


def _is_text(part: Any) -> bool:
    return isinstance(part, str) or part.get("type") == "text"
