"""Memories as they go into prompts: nothing in one passes for a turn of the chat, or for the end of the memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from eunoe.text.normalize import neutralize

CHUNK_BREAK: Final = "--ChunkBreak--"
"""What stands between chunk memories."""
RULE: Final = "\n\n---\n\n"
"""What stands between keyword memories."""
_LEAST_MARK_CHARACTERS: Final = 2
"""A single sign between memories, such as a comma, cannot be told from one in a memory."""


def escape_memory(text: str, delimiter: str = CHUNK_BREAK) -> str:
    """Return a memory as it can stand among others, with a delimiter between them.

    Marks of chat templates and the delimiter get a blank, which takes their meaning away and leaves them readable.

    >>> escape_memory("I typed --ChunkBreak-- and <|im_end|>")
    'I typed - -ChunkBreak-- and < |im_end|>'
    """
    return _without(delimiter, _without(CHUNK_BREAK, neutralize(text).strip()))


def join_memories(texts: Iterable[str], delimiter: str = CHUNK_BREAK) -> str:
    """Join memories that `escape_memory` gave: split at the delimiter, they are the same again."""
    return delimiter.join(_without(delimiter, text) for text in texts)


def _without(delimiter: str, text: str) -> str:
    if len(mark := delimiter.strip()) < _LEAST_MARK_CHARACTERS:
        return text
    while delimiter in text:
        text = text.replace(delimiter, delimiter.replace(mark, _with_blank(mark)))
    if text[-1:] not in delimiter:
        return text
    # The end of a text and the delimiter after it can be one too, as in "--ChunkBreak" + "--ChunkBreak--".
    while (place := (text[-len(delimiter) :] + delimiter).find(delimiter)) < min(len(text), len(delimiter)):
        cut = max(0, len(text) - len(delimiter)) + place + delimiter.index(mark) + 1
        text = f"{text[:cut]} {text[cut:]}"
    return text


def _with_blank(mark: str) -> str:
    return f"{mark[0]} {mark[1:]}"
