"""The final text of a run in which the model sent its answer together with a call that stores something.

Such a model is called once more when the call is done, and says "Stored.": that would be the run's last message, and
whoever reads the last message would lose the answer.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

_WORD: Final = re.compile(r"\w+")
_DIGIT: Final = re.compile(r"\d")


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


_STORING: Final = _words(
    "stored stores storing saved saves saving recorded remembered noted memorized memorised kept written logged added "
    "updated done finished complete completed memory memories"
)
"""Words that tell of a write. Without one of them a reply is an answer, unless it is tiny beside the text."""
_PLAIN: Final = _words(
    "a about all also an and are as at been both everything facts fact fine for from good great has have here i id ids "
    "in information insight insights into is it its key let me my new now of ok okay on page pages perfect ready "
    "record success successful successfully sure task text thank thanks that the them there these they this to was we "
    "were will with ve s you your"
)
"""Words that say nothing new in such a reply."""
_DENIAL: Final = _words("not no never nothing cannot t failed fails error wrong")
"""A reply with one of them may take back what the text said."""
_TIMES_LONGER: Final = 5
"""A text of one line is an answer if it is so many times as long as the reply."""
_LONG_CHARACTERS: Final = 1000
_TINY_SHARE: Final = 10
"""After a long text, a reply of a tenth of it is no answer in its place, in any language."""


def final_text_update(state: Mapping[str, Any], tools: Collection[str]) -> list[AIMessage]:
    """Return the messages to change so that the run ends with its answer; none if it does.

    Give it to the state from `after_agent`. The answer takes the place of the reply that only acknowledges the write.
    The message that it came with keeps its calls, so that each call still has its result.

    Args:
        state: the agent's state.
        tools: names of the tools that store something. A text that came with a call of another tool, or was followed
            by one, is not taken for an answer.
    """
    messages: Sequence[AnyMessage] = state["messages"]
    reply = messages[-1] if messages else None
    if not isinstance(reply, AIMessage) or reply.tool_calls or state.get("structured_response") is not None:
        return []
    writes = _writes_at_end(messages[:-1], tools)
    for message, results in _texts(writes):
        if _is_acknowledgement(reply.text, message.text, results):
            return [_without_text(message), reply.model_copy(update={"content": message.text})]
    return []


def _writes_at_end(messages: Sequence[AnyMessage], tools: Collection[str]) -> Sequence[AnyMessage]:
    """The last messages, as far back as they are calls that store and their results."""
    start = len(messages)
    while start and (isinstance(messages[start - 1], ToolMessage) or _only_stores(messages[start - 1], tools)):
        start -= 1
    return messages[start:]


def _only_stores(message: AnyMessage, tools: Collection[str]) -> bool:
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    return bool(calls) and all(call["name"] in tools for call in calls)


def _texts(messages: Sequence[AnyMessage]) -> Iterator[tuple[AIMessage, str]]:
    """The calls that came with more than word of the write, and the results after each, the latest first."""
    results = ""
    for message in reversed(messages):
        if not isinstance(message, AIMessage):
            results += f" {message.text}"
        elif not _tells_of_a_write(message.text):
            yield message, results


def _is_acknowledgement(reply: str, text: str, results: str) -> bool:
    """Whether a reply says nothing that the text before it did not say, but that something was stored."""
    words, known = _words(reply), _words(f"{text} {results}")
    if words & _DENIAL or any(map(_DIGIT.search, words - known)):
        return False
    is_answer = "\n" in text.strip() or len(text) >= _TIMES_LONGER * len(reply)
    return _is_tiny(reply, text) or (is_answer and _tells_of_a_write(reply, known))


def _is_tiny(reply: str, text: str) -> bool:
    return len(text) >= _LONG_CHARACTERS and len(reply) * _TINY_SHARE <= len(text)


def _tells_of_a_write(text: str, known: Collection[str] = ()) -> bool:
    words = _words(text)
    return not words or bool(words & _STORING and words <= _STORING | _PLAIN | set(known))


def _without_text(message: AIMessage) -> AIMessage:
    content: Any = message.content
    rest = [] if isinstance(content, str) else [part for part in content if not _is_text(part)]
    return message.model_copy(update={"content": rest or ""})


def _is_text(part: Any) -> bool:
    return isinstance(part, str) or part.get("type") == "text"
