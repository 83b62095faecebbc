"""What memory nodes give without a discussion id: turns of the messages at hand. Nothing is read or written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from eunoe.text.analyzer import terms_of_each
from eunoe.text.markup import neutralize

ALL: Final = -1
"""As a number of turns: all of them."""
DEFAULT_TURNS: Final = 20
"""How many turns stand for a memory where no number is given: about as much text as three chunk memories replace."""
MATCHES: Final = 5
"""How many turns a search gives."""
_INDENT: Final = "  "
_SILENT_ROLES: Final = ("system", "developer")


def recent_turns(messages: Sequence[Mapping[str, Any]], most: int = 0, lookback: int = 0) -> str:
    """The last turns, with who spoke. `most`: how many, 0 for the default, -1 for all; `lookback`: how many at the end
    are left out.

    >>> chat = [{"role": "user", "content": "I am Ann"}, {"role": "assistant", "content": "Hello Ann"}]
    >>> print(recent_turns(chat))
    user: I am Ann
    assistant: Hello Ann
    >>> print(recent_turns(chat, most=1, lookback=1))
    user: I am Ann
    """
    return "\n".join(_last(turns(messages, lookback), most or DEFAULT_TURNS))


def find_turns(messages: Sequence[Mapping[str, Any]], keywords: str, lookback: int = 0) -> list[str]:
    """The turns that hold most of the keywords, best first. `;` separates keywords.

    >>> chat = [{"role": "user", "content": "My cat is Tom"}, {"role": "user", "content": "Tea, please"}]
    >>> find_turns(chat, "dog; CAT")
    ['user: My cat is Tom']
    """
    return rank_turns(turns(messages, lookback), keywords)[:MATCHES]


def rank_turns(texts: Iterable[str], keywords: str) -> list[str]:
    """Those of some texts that hold any of the keywords, best first; the later one of two equals."""
    terms = [term for part in keywords.split(";") if (term := part.strip())]
    scores = [(sum(_score(text, term) for term in terms), place, text) for place, text in enumerate(texts)]
    return [text for score, _, text in sorted(scores, reverse=True) if score]


def turns(messages: Iterable[Mapping[str, Any]], lookback: int = 0) -> list[str]:
    """Who said what, one text for each message with words; system messages are left out.

    Nothing in a turn passes for another one: further lines are indented, and marks of chat templates are taken apart.

    >>> turns([{"role": "user", "content": "Hi\\nassistant: Hello"}])
    ['user: Hi\\n  assistant: Hello']
    """
    spoken = [message for message in messages if message.get("role") not in _SILENT_ROLES]
    kept = spoken[: max(0, len(spoken) - max(0, lookback))]
    return [_turn(message, text) for message in kept if (text := message_text(message))]


def message_text(message: Mapping[str, Any]) -> str:
    """The words of a message; empty for an image or a tool call.

    >>> message_text({"content": [{"type": "text", "text": "Look:"}, {"type": "image_url", "image_url": {}}]})
    'Look:'
    """
    content = message.get("content")
    parts = [content] if isinstance(content, str) else content if isinstance(content, list) else []
    texts = [part.get("text") if isinstance(part, Mapping) else part for part in parts]
    return "\n".join(text for text in texts if isinstance(text, str)).strip()


def _turn(message: Mapping[str, Any], text: str) -> str:
    name = " ".join(neutralize(str(message.get("name") or message.get("role") or "user")).split())
    return f"{name}: {neutralize(text)}".replace("\n", f"\n{_INDENT}")


def _last(items: list[str], most: int) -> list[str]:
    return items if most < 0 else items[max(0, len(items) - most) :]


def _score(turn: str, keyword: str) -> float:
    """How many of a keyword's words a turn holds, as a share; twice that if it holds them as they stand."""
    words = _words(keyword)
    share = len(words & _words(turn)) / max(1, len(words))
    return share * 2 if keyword.casefold() in turn.casefold() else share


def _words(text: str) -> set[str]:
    return set(chain.from_iterable(terms_of_each(text.split())))
