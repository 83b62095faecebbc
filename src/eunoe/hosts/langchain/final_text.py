"""The final text of a run in which the model sent its answer together with a call that stores something.

Such a model is called once more when the call is done, and says that it has stored something: that would be the run's
last message, and whoever reads the last message would lose the answer.
"""

import logging
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

_WORD: Final = re.compile(r"\w+")
_PAGE: Final = re.compile(r"\s*(?:[^\n]*\n\s*){0,2}#[ \t]+\S")
"""A heading of the first level, with at most two lines before it, such as the fence of a block."""
_LONG_CHARACTERS: Final = 300
"""What is shorter and has one line may only say what comes next."""
_log = logging.getLogger("eunoe")


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


_STORING: Final = _words(
    "stored stores storing saved saves saving recorded remembered noted memorized memorised kept written logged added "
    "updated done finished complete completed memory memories"
)
"""Words that tell of a write."""
_PLAIN: Final = _words(
    "a about all also an and are as at been both everything facts fact fine for from good great has have here i id ids "
    "in information insight insights into is it its key let me my new now of ok okay on page pages perfect ready "
    "record success successful successfully summary sure task text thank thanks that the them there these they this to "
    "was we were will with ve s you your"
)
"""Words that say nothing new in such a reply."""


def final_text_update(state: Mapping[str, Any], tools: Collection[str]) -> list[AIMessage]:
    """Return the messages to change so that the run ends with its answer; none if it does.

    Give it to the state from `after_agent`. A reply that is a page, with a heading of the first level, is the answer.
    Else a page that came with a write is, and any text that did if the reply only says that something was stored. If
    neither is so, the longer of the two is kept, and the log says so. The message that the answer came with keeps its
    calls, so that each call still has its result.

    Args:
        state: the agent's state.
        tools: names of the tools that store something. A text that came with a call of another tool, or was followed
            by one, is not taken for an answer.
    """
    messages: Sequence[AnyMessage] = state["messages"]
    reply = messages[-1] if messages else None
    if not isinstance(reply, AIMessage) or reply.tool_calls or state.get("structured_response") is not None:
        return []
    if is_page(reply.text):
        return []
    writes = _writes_at_end(messages[:-1], tools)
    known = _words(" ".join(message.text for message in writes))
    texts = [message for message in writes if isinstance(message, AIMessage) and not _tells_of_a_write(message.text)]
    if not texts:
        return []
    pages = [message for message in texts if is_page(message.text)]
    answer = pages[-1] if pages else max(texts, key=lambda message: len(message.text))
    if not pages and not _tells_of_a_write(reply.text, known):
        is_long = len(answer.text) >= _LONG_CHARACTERS or "\n" in answer.text.strip()
        if not is_long or len(answer.text) <= len(reply.text):
            return []
        _log.warning("it is not certain which text of a run is its answer: the longer one was kept")
    content: Any = answer.content
    parts = [] if isinstance(content, str) else content
    rest = [part for part in parts if not isinstance(part, str) and part.get("type") != "text"]
    kept = answer.model_copy(update={"content": rest or ""})
    return [kept, reply.model_copy(update={"content": answer.text})]


def is_page(text: str) -> bool:
    """Whether a text begins with a heading of the first level, and does not only say that something was stored.

    >>> is_page("Here it is:\\n\\n# The cart\\nIt adds."), is_page("## The cart"), is_page("# Summary\\nI stored it.")
    (True, False, False)
    """
    return _PAGE.match(text) is not None and not _tells_of_a_write(text)


def _writes_at_end(messages: Sequence[AnyMessage], tools: Collection[str]) -> Sequence[AnyMessage]:
    """The last messages, as far back as they are calls that store and their results."""
    start = len(messages)
    while start:
        message = messages[start - 1]
        calls = message.tool_calls if isinstance(message, AIMessage) else []
        only_stores = bool(calls) and all(call["name"] in tools for call in calls)
        if not only_stores and not isinstance(message, ToolMessage):
            break
        start -= 1
    return messages[start:]


def _tells_of_a_write(text: str, known: Collection[str] = ()) -> bool:
    words = _words(text)
    telling = {word for word in words if not word.isdecimal()}
    return not words or bool(words & _STORING and telling <= _STORING | _PLAIN | set(known))
