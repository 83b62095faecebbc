"""Long texts, shortened."""

import re
from typing import Final

from eunoe.apps.tickets.redaction import redact

MAX_SEARCHED_CHARACTERS: Final = 600_000
"""Some two seconds of searching for secrets, four if there are any. Of a longer text the middle is cut out before."""
_CUT_MARGIN_CHARACTERS: Final = 10_000
"""What is dropped on both sides of such a cut: half of a secret may stand there, and not look like one."""
_MARK: Final = re.compile(r"\n\[\.\.\. \d[\d,]{0,30} characters left out \.\.\.\]\n")


def clip(text: str, max_characters: int, head: float = 0.25) -> str:
    """Cut out the middle of a text, and say how many characters are left out. The end, where errors stand, is longer.

    What was left out before, and stands in the middle, is counted too.

    >>> clip("a" * 10 + "b" * 100, 40)
    'aaaaaaaaaa\\n[... 70 characters left out ...]\\nbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb'
    """
    left_out = len(text) - max_characters
    if left_out <= 0:
        return text
    return "".join(_cut(text, int(max_characters * head), left_out))


def clip_redacted(text: str, max_characters: int) -> str:
    """Take the secrets out of a text, then cut out its middle: a secret that is cut in two is not known any more.

    >>> clip_redacted("password=hunter2 " + "a" * 103, 60)
    'password=[redac\\n[... 63 characters left out ...]\\naaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'
    """
    left_out = len(text) - MAX_SEARCHED_CHARACTERS
    if left_out <= 0:
        return clip(redact(text), max_characters)
    head, mark, tail = _cut(text, MAX_SEARCHED_CHARACTERS // 4, left_out)
    head, tail = redact(head), redact(tail)
    dropped = min(len(head), _CUT_MARGIN_CHARACTERS) + min(len(tail), _CUT_MARGIN_CHARACTERS)
    head, tail = head[:-_CUT_MARGIN_CHARACTERS], tail[_CUT_MARGIN_CHARACTERS:]
    return clip(f"{head}{_mark(dropped + _count(mark))}{tail}", max_characters)


def _cut(text: str, first: int, left_out: int) -> tuple[str, str, str]:
    """What stands before and after so many characters, and between them a mark that counts them.

    Marks that were there are left out too, and what they count is counted.
    """
    last = first + left_out
    counted = 0
    for mark in _MARK.finditer(text):
        if mark.start() < last and first < mark.end():
            first, last = min(first, mark.start()), max(last, mark.end())
            counted += _count(mark[0]) - len(mark[0])
    return text[:first], _mark(last - first + counted), text[last:]


def _count(mark: str) -> int:
    return int("".join(filter(str.isdecimal, mark)))


def _mark(left_out: int) -> str:
    return f"\n[... {left_out:,} characters left out ...]\n"


def last_lines(text: str, count: int) -> list[str]:
    """Return the last lines that are not blank.

    >>> last_lines("one\\n\\n two \\nthree\\n", 2)
    ['two', 'three']
    """
    return [line.strip() for line in text.splitlines() if line.strip()][-count:]
