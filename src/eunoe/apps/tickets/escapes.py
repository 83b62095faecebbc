"""What stands between a text and whoever reads it: terminal sequences, invisible characters, and escapes."""

import html
import re
from bisect import bisect_right
from collections.abc import Callable
from typing import Final, NamedTuple

HIDDEN: Final = "\ufdd0"
"""Stands for each character of a secret while others are looked for. No text has it: it is no character."""
_UNSEEN: Final = (
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufdd1-\ufdef"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Characters that nobody sees: Unicode's default ignorable ones, and those that are none."""
_CONTROLS: Final = re.compile(
    r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f]{0,4000}(?:\x07|\x1b\\|\x9c)"  # link, title
    r"|(?:\x1b\[|\x9b)[0-?]{0,99}[ -/]{0,9}[@-~]"  # colour, cursor
    r"|\x1b(?:[ -/]{1,9}[0-~]|[0-9=>cDEHMNOZ])?"
    r"|[^\n\x08]\x08"  # struck over
    r"|[\x01-\x08\x0b\x0e-\x1f\x7f-\x84\x86-\x9f]"
)
_UNSEEN_IN_ASCII: Final = re.compile(rf"(?<=[\t\n\r -~])[{_UNSEEN}]+(?=[\t\n\r -~])")
"""Between other letters they have a meaning: they join emoji and Persian letters."""
_SPACED_BY_NUL: Final = re.compile(r"(?:[^\0]\0{1,3}){4,}")
"""A text in UTF-16 or UTF-32 that was read as ASCII."""
_ESCAPE: Final = re.compile(
    rf"^(?:[^\\%&{_UNSEEN}\n]++|%(?![2-7][0-9a-fA-F])|&(?![#a-z]))*+\n"  # a line without any
    r"|(?<!\\)\\{1,16}+(?:u\{?(?P<four>[0-9a-fA-F]{4})\}?|x(?P<two>[0-9a-fA-F]{2})|(?P<octal>[0-3][0-7]{2})"
    rf"|(?P<letter>[nrte])|(?P<sign>[^\w\s\\{HIDDEN}]))"
    r"|%(?P<percent>[2-7][0-9a-fA-F])"
    r"|(?P<entity>&(?:#\d{2,5}|#[xX][0-9a-fA-F]{2,4}|quot|apos|amp|lt|gt|nbsp|equals|colon|commat|sol|lowbar);)"
    rf"|[{_UNSEEN}]+",
    re.MULTILINE,
)
_LETTERS: Final = {"n": "\n", "r": "\r", "t": "\t", "e": "\x1b"}


class Reading(NamedTuple):
    """A text in which pieces are replaced by a character or nothing. It knows where each character stood before."""

    text: str
    places: list[int]
    origins: list[int]

    def origin(self, place: int) -> int:
        """Where in the text before the character stood that is at a place now."""
        piece = bisect_right(self.places, place) - 1
        return self.origins[piece] + place - self.places[piece]


def without_controls(text: str) -> str:
    """Return a text without terminal sequences, characters struck over, and invisible ones among ASCII.

    >>> without_controls("\\x1b[01;31mpass\\u200bword\\x1b[m=1")
    'password=1'
    """
    if "\0" in text:
        text = _SPACED_BY_NUL.sub(lambda match: match[0].replace("\0", ""), text).replace("\0", "\n")
    text = text.replace(HIDDEN, "")
    return _UNSEEN_IN_ASCII.sub("", _CONTROLS.sub("", text))


def readings(text: str) -> list[Reading]:
    r"""Return the steps from a text to what its escapes stand for; none, if it has no escapes.

    Lines without one are left out.

    >>> [step.text for step in readings("one\n{\"m\":\"\\u001b[31mtwo\\n\"}")]
    ['\n{"m":"\x1b[31mtwo\n"}', '\n{"m":"two\n"}']
    """
    first = _replace(text, _ESCAPE, _unescape)
    if first.text.isspace() or first.text == text:
        return []
    return [first, _replace(first.text, _CONTROLS, lambda _: "")]


def _unescape(match: re.Match[str]) -> str:
    number = match["four"] or match["two"] or match["percent"]
    if number:
        return chr(int(number, 16))
    if match["octal"]:
        return chr(int(match["octal"], 8))
    if match["entity"]:
        return html.unescape(match["entity"])[:1]
    if match["letter"] or match["sign"]:
        return _LETTERS.get(match["letter"], match["sign"])
    return "\n" if match[0].endswith("\n") else ""


def _replace(text: str, pattern: re.Pattern[str], replacement: Callable[[re.Match[str]], str]) -> Reading:
    parts, places, origins = [], [0], [0]
    end = length = 0
    for match in pattern.finditer(text):
        new = replacement(match)
        length += match.start() - end
        places += [length, length + len(new)]
        origins += [match.start(), match.end()]
        parts += [text[end : match.start()], new]
        length, end = length + len(new), match.end()
    return Reading("".join([*parts, text[end:]]), places, origins)
