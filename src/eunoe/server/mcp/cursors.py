"""Where an answer left off. A cursor is a place, not a permission: it is checked like every other argument."""

import re
from typing import Final

from eunoe.errors import InputError
from eunoe.model.arguments import show

_MAX_DIGITS: Final = 18
_PAGE_CURSOR: Final = re.compile(r"((?:[0-9a-f]{16})?):([0-9]{1,18})")


def parse_cursor(cursor: str, *, parts: int) -> tuple[int, ...]:
    """The numbers of a cursor; zeros for none.

    >>> parse_cursor("12:3", parts=2), parse_cursor("", parts=1)
    ((12, 3), (0,))
    """
    if not cursor:
        return (0,) * parts
    numbers = cursor.split(":")
    if len(numbers) != parts or not all(_is_number(each) for each in numbers):
        raise InputError(f"cannot read on after cursor {show(cursor)}: pass the one of the answer before")
    return tuple(map(int, numbers))


def parse_page_cursor(cursor: str) -> tuple[str, int]:
    """Where a page of the memory begins, and how many of it were shown.

    >>> parse_page_cursor("0123456789abcdef:3"), parse_page_cursor(":3"), parse_page_cursor("")
    (('0123456789abcdef', 3), ('', 3), ('', 0))
    """
    if not cursor:
        return "", 0
    match = _PAGE_CURSOR.fullmatch(cursor)
    if match is None:
        raise InputError(f"cannot read on after cursor {show(cursor)}: pass the one of the answer before")
    return match[1], int(match[2])


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS
