"""Long texts, shortened."""

import re
from typing import Final

from eunoe.tickets.redaction import redact

_MAX_SEARCHED_CHARACTERS: Final = 1_000_000
"""Some three seconds of searching for secrets. Of a longer text the middle is cut out before."""
_CUT_MARGIN_CHARACTERS: Final = 10_000
"""What is dropped on both sides of such a cut: half of a secret may stand there, and not look like one."""
_MARK: Final = re.compile(r"\n\[\.\.\. (\d[\d,]{0,30}) characters left out \.\.\.\]\n")


def clip(text: str, max_characters: int, head: float = 0.25) -> str:
    """Cut out the middle of a text, and say how many characters are left out. The end, where errors stand, is longer.

    What was left out before, and stands in the middle, is counted too.

    >>> clip("a" * 10 + "b" * 100, 40)
    'aaaaaaaaaa\\n[... 70 characters left out ...]\\nbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb'
    """
    left_out = len(text) - max_characters
    if left_out <= 0:
        return text
    first = int(max_characters * head)
    last = first + left_out
    earlier = 0
    for mark in _MARK.finditer(text):
        if mark.start() < last and first < mark.end():
            first, last = min(first, mark.start()), max(last, mark.end())
            earlier += int(mark[1].replace(",", "")) - len(mark[0])
    return f"{text[:first]}{_mark(last - first + earlier)}{text[last:]}"


def clip_redacted(text: str, max_characters: int) -> str:
    """Take the secrets out of a text, then cut out its middle: a secret that is cut in two is not known any more.

    >>> clip_redacted("password=hunter2 " + "a" * 103, 60)
    'password=[redac\\n[... 63 characters left out ...]\\naaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'
    """
    left_out = len(text) - _MAX_SEARCHED_CHARACTERS
    if left_out <= 0:
        return clip(redact(text), max_characters)
    first = _MAX_SEARCHED_CHARACTERS // 4
    head, tail = redact(text[:first]), redact(text[first + left_out :])
    left_out += min(len(head), _CUT_MARGIN_CHARACTERS) + min(len(tail), _CUT_MARGIN_CHARACTERS)
    return clip(f"{head[:-_CUT_MARGIN_CHARACTERS]}{_mark(left_out)}{tail[_CUT_MARGIN_CHARACTERS:]}", max_characters)


def _mark(left_out: int) -> str:
    return f"\n[... {left_out:,} characters left out ...]\n"


def last_lines(text: str, count: int) -> list[str]:
    """Return the last lines that are not blank.

    >>> last_lines("one\\n\\n two \\nthree\\n", 2)
    ['two', 'three']
    """
    return [line.strip() for line in text.splitlines() if line.strip()][-count:]
