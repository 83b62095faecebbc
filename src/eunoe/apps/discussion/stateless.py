"""What memory nodes give without a discussion id: turns of the messages at hand. Nothing is read or written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from eunoe.apps.discussion.retrievers.keyword_index import KeywordIndex, find_matches
from eunoe.apps.discussion.retrievers.keyword_terms import split_keywords
from eunoe.apps.discussion.token_limit import fit
from eunoe.model.turn import SILENT_ROLES
from eunoe.text.normalize import neutralize

ALL: Final = -1
"""As a number of turns: all of them."""
DEFAULT_TURNS: Final = 20
"""How many turns stand for a memory where no number is given: about as much text as three chunk memories replace."""
MATCHES: Final = 5
"""How many turns a search gives."""
_INDENT: Final = "  "


class Saying(NamedTuple):
    """Who said what in a message."""

    name: str
    words: str
    """Empty for an image or a tool call."""


def recent_turns(messages: Sequence[Mapping[str, Any]], most: int = 0, lookback: int = 0, *, tokens: int = 0) -> str:
    """The last turns, with who spoke. `most`: how many, 0 for the default, -1 for all; `lookback`: how many at the end
    are left out; `tokens`: only those that fit, 0 for no limit.

    >>> chat = [{"role": "user", "content": "I am Ann"}, {"role": "assistant", "content": "Hello Ann"}]
    >>> print(recent_turns(chat))
    user: I am Ann
    assistant: Hello Ann
    >>> print(recent_turns(chat, most=1, lookback=1))
    user: I am Ann
    """
    return "\n".join(fit(_last(turns(messages, lookback), most or DEFAULT_TURNS), tokens))


def find_turns(messages: Sequence[Mapping[str, Any]], keywords: str, lookback: int = 0) -> list[str]:
    """The turns that have any of the keywords, best first. `;` separates keywords.

    >>> chat = [{"role": "user", "content": "My cat is Tom"}, {"role": "user", "content": "Tea, please"}]
    >>> find_turns(chat, "dog; CAT")
    ['user: My cat is Tom']
    """
    texts = turns(messages, lookback)
    index = KeywordIndex([[text]] for text in texts)
    matches = find_matches([index], split_keywords(keywords), [1.0], MATCHES)
    return [texts[match.row] for match in matches]


def turns(messages: Iterable[Mapping[str, Any]], lookback: int = 0) -> list[str]:
    """Who said what, one text for each message with words; system messages are left out.

    Nothing in a turn passes for another one: further lines are indented, and marks of chat templates are taken apart.

    >>> turns([{"role": "user", "content": "Hi\\nassistant: Hello"}])
    ['user: Hi\\n  assistant: Hello']
    """
    return [_turn(each) for each in sayings(messages, lookback) if each.words]


def sayings(messages: Iterable[Mapping[str, Any]], lookback: int = 0) -> list[Saying]:
    """What each message says, also if that is nothing; without system messages, and without so many at the end."""
    spoken = list(filter(is_spoken, messages))
    return [Saying(_name(each), message_text(each)) for each in spoken[: max(0, len(spoken) - max(0, lookback))]]


def is_spoken(message: Mapping[str, Any]) -> bool:
    """Whether a message is part of the chat, and not of the system."""
    return str(message.get("role")).lower() not in SILENT_ROLES


def message_text(message: Mapping[str, Any]) -> str:
    """The words of a message; empty for an image or a tool call.

    >>> message_text({"content": [{"type": "text", "text": "Look:"}, {"type": "image_url", "image_url": {}}]})
    'Look:'
    """
    content = message.get("content")
    if isinstance(content, str):
        return content.strip()
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") if isinstance(part, Mapping) else part for part in parts]
    return "\n".join(text for text in texts if isinstance(text, str)).strip()


def _name(message: Mapping[str, Any]) -> str:
    return str(message.get("name") or message.get("speaker") or message.get("role") or "user")


def _turn(saying: Saying) -> str:
    name = " ".join(neutralize(saying.name).split())
    return f"{name}: {neutralize(saying.words)}".replace("\n", f"\n{_INDENT}")


def _last(items: list[str], most: int) -> list[str]:
    return items if most < 0 else items[max(0, len(items) - most) :]
