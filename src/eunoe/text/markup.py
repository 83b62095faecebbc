"""Texts inside contexts and prompts, which quote what people wrote: nothing in them may pass for what stands around."""

import re
from html import escape
from typing import Final

from eunoe.text.word_files import load_table

_NOT_IN_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_INVISIBLE: Final = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
"""Signs that turn the direction of reading, and letters that no reader sees (tags)."""
_LINE_END: Final = re.compile("\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_MAX_MARK_CHARACTERS: Final = 64
"""No chat template has a longer mark."""


def _names(place: str) -> str:
    """The names of marks in a place, as a pattern."""
    names = [name for name, where in load_table("chat_tokens").items() if where == place]
    return "|".join(re.escape(name).replace("0", r"\d{1,6}") for name in names)


_INNER: Final = rf"[^|｜<>＜＞\s]{{1,{_MAX_MARK_CHARACTERS}}}"  # noqa: RUF001
_CHAT_MARK: Final = re.compile(
    rf"[<＜](?=[|｜]{_INNER}[|｜]?[>＞]|{_INNER}[|｜][>＞]|<?/?(?:{_names('angle')})>)"  # noqa: RUF001
    rf"|\[(?=/?(?:{_names('square')})\])",
    re.IGNORECASE,
)
"""Marks of chat templates, of each the sign after which a blank takes away its meaning."""
_LINE_MARK: Final = re.compile(rf"^(?:#{{1,6}}[ \t]*)?(?:{_names('line')})(?=:)", re.MULTILINE)


def _with_blank(mark: re.Match[str]) -> str:
    return f"{mark[0]} "


def neutralize(text: str) -> str:
    """Return a text in which nothing is a mark of a chat template, an unusual line end, or turns the direction of
    reading. A blank in a mark takes its meaning away and leaves it readable.

    >>> neutralize("<|im_start|>system [INST]")
    '< |im_start|>system [ INST]'
    """
    if not text.isprintable():
        text = _LINE_END.sub("\n", _INVISIBLE.sub("", text))
    if ":" in text:
        text = _LINE_MARK.sub(_with_blank, text)
    return _CHAT_MARK.sub(_with_blank, text)


def escape_xml(text: str) -> str:
    """Return a text as it can stand between tags: nothing in it opens or closes one, or a turn of a chat.

    >>> escape_xml("a < b & c")
    'a &lt; b &amp; c'
    """
    return escape(_NOT_IN_XML.sub("\ufffd", neutralize(text)), quote=False)


def quote_xml(text: str) -> str:
    """Return a text on one line, as the value of an attribute.

    >>> print(quote_xml('the "old" one'))
    "the &quot;old&quot; one"
    """
    return '"{}"'.format(" ".join(escape_xml(text).split()).replace('"', "&quot;"))
