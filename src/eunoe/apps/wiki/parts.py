"""Long contents in parts that overlap, so that each can be searched, and the whole again out of its parts."""

from collections.abc import Iterable
from typing import Final, NamedTuple

MAX_CHARACTERS: Final = 4000
"""A longer content is kept in parts."""
OVERLAP: Final = 200
"""Characters that a part repeats of the one before: a sentence across the seam is found from both sides."""
_BREAKS: Final = ("\n\n", "\n", ". ", " ")
"""Where a part ends, best first."""


class Part(NamedTuple):
    """A stretch of a content, and where in it that begins."""

    start: int
    text: str


def split_content(content: str) -> list[Part]:
    """Split a content; one that is short stays whole. No part is blank.

    >>> len(split_content("x" * 4000)), [part.start for part in split_content("x" * 9000)]
    (1, [0, 3800, 7600])
    """
    parts: list[Part] = []
    start = end = 0
    while end < len(content):
        end = _part_end(content, start)
        while end < len(content) and not content[start:end].strip():
            end = _part_end(content, end)
        if not content[start:end].strip() and parts:
            start = parts.pop().start
        parts.append(Part(start, content[start:end]))
        start = end - OVERLAP
    return parts


def join_parts(parts: Iterable[Part]) -> str:
    """Return the content that was split.

    >>> join_parts(split_content("word " * 2000)) == "word " * 2000
    True
    """
    content = ""
    for start, text in sorted(parts):
        content += text[len(content) - start :]
    return content


def part_ids(memory_id: str, count: int) -> list[str]:
    """Return the ids of all parts of a memory. The first one's is that of the memory.

    >>> part_ids("m", 3)
    ['m', 'm#2', 'm#3']
    """
    return [memory_id, *(f"{memory_id}#{number}" for number in range(2, count + 1))]


def _part_end(content: str, start: int) -> int:
    end = start + MAX_CHARACTERS
    if end >= len(content):
        return len(content)
    middle = start + MAX_CHARACTERS // 2
    ends = (place + len(mark) for mark in _BREAKS if (place := content.rfind(mark, middle, end - len(mark))) >= 0)
    return next(ends, end)
