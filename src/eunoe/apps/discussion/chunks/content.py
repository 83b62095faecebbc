"""Chunks of a discussion: how large messages are, where they are cut, and how they read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC
from typing import Final, NamedTuple

from eunoe.apps.discussion.model import LogMessage
from eunoe.apps.discussion.settings import ChunkSettings
from eunoe.model.turn import SILENT_ROLES
from eunoe.text.normalize import fingerprint, neutralize

_TOKENS_PER_WORD: Final = 1.35
_CHARACTERS_PER_TOKEN: Final = 3.5
_MARGIN: Final = 1.10
"""Estimates are a little too high rather than too low."""
_INDENT: Final = "  "
"""Before each further line of a message, so that no line in it passes for another message."""


class _Size(NamedTuple):
    """How large some text is. Sizes add up, so that a message more costs no second look at those before it."""

    words: int = 0
    characters: int = 0

    def plus(self, text: str) -> _Size:
        return _Size(self.words + len(text.split()), self.characters + len(text))

    def tokens(self, factor: float) -> int:
        most = max(self.words * _TOKENS_PER_WORD, self.characters / _CHARACTERS_PER_TOKEN)
        return int(most * _MARGIN * factor)


def estimate_tokens(text: str, factor: float = 1.0) -> int:
    """Estimate how many tokens a text has for a language model.

    >>> estimate_tokens("I moved to Rome in May.")
    8
    """
    return _Size().plus(text).tokens(factor)


def has_words(message: LogMessage) -> bool:
    """Whether creators read a message: not if it is the system's, or an image or a tool call without text."""
    return message.role.lower() not in SILENT_ROLES and bool(message.text.strip())


def cut(
    messages: Iterable[LogMessage], settings: ChunkSettings, factor: float = 1.0
) -> tuple[list[list[LogMessage]], list[LogMessage]]:
    """Cut messages into chunks from the oldest on; return the chunks, and what is left because it is below the sizes.

    A chunk ends with the message that reaches a size. A message that would make it larger than its tokens begins the
    next one; one that is larger by itself is a chunk of its own.
    """
    chunks: list[list[LogMessage]] = []
    chunk: list[LogMessage] = []
    size = _Size()
    for message in messages:
        longer = size.plus(message.text)
        if chunk and longer.tokens(factor) > settings.tokens:
            chunks.append(chunk)
            chunk, longer = [], _Size().plus(message.text)
        chunk.append(message)
        size = longer
        if size.tokens(factor) >= settings.tokens or len(chunk) >= settings.messages:
            chunks.append(chunk)
            chunk, size = [], _Size()
    return chunks, chunk


def digest(messages: Iterable[LogMessage]) -> str:
    """A fingerprint of who said what."""
    return fingerprint(*(part for each in messages for part in (each.role, each.speaker, each.text))).hex()


def chunk_text(messages: Sequence[LogMessage]) -> str:
    """The words of messages, each with its speaker and its time.

    >>> print(chunk_text([LogMessage(id="m1", role="user", text="Hello!", speaker="Anna")]))
    Anna: Hello!
    """
    return "\n".join(map(message_text, messages))


def message_text(message: LogMessage) -> str:
    """The words of one message, with its speaker and its time."""
    return "\n".join(_lines(message))


def _lines(message: LogMessage) -> Iterator[str]:
    first, *more = neutralize(message.text).strip().split("\n")
    name = " ".join(neutralize(message.name).split())
    yield f"{_stamp(message)}{name}: {first}"
    yield from (f"{_INDENT}{line}" for line in more)


def _stamp(message: LogMessage) -> str:
    return f"[{message.time.astimezone(UTC):%Y-%m-%d %H:%M}] " if message.time else ""
