# ruff: noqa: RUF001
"""Text into sentences, in any script, and the number of words it has."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from eunoe.text.scripts import HAN_AND_KANA, SOUTH_EAST_ASIAN
from eunoe.text.word_files import load_table

_CODE_BLOCK: Final = re.compile(r"(```|~~~).*?(?:\1|\Z)", re.DOTALL)
_LIST_MARK: Final = re.compile(r"^\s*(?:[-*•·‣–+>]|#{1,6}|\(?\d{1,3}[.)]|\(?[a-zA-Z]\))\s+")
_WRAPPED_LINE_CHARACTERS: Final = range(60, 2000)
_CHARACTERS_BEFORE_STOP: Final = 40
"""How far back a full stop is looked at: further than an abbreviation is long."""
_END: Final = re.compile(
    r"""(?P<wide>[。！？｡۔।॥።။។؟]+[」』”’）)"]*)"""
    r"""|(?<![.!?…])(?P<mark>[.!?…]++)(?P<close>["'”’»)\]]*+)(?=\s|$)"""
)
_OPENING: Final = "([\"'“„«"
_NEXT_WORD: Final = re.compile(r"\s*[\"'“„«(\[]*(\S*)")
_ABBREVIATIONS: Final = load_table("abbreviations")
_AFTER_ORDINAL: Final = re.compile(
    r"(?:jan|feb|m[äa]r|apr|ma[iyj]|jun|jul|aug|sep|o[kc]t|nov|de[zc])\w*|tag|jahrhundert", re.IGNORECASE
)
"""What follows a number of order: a month, or "Tag" and "Jahrhundert" in German."""
_TWO_LETTER_WORDS: Final = re.compile(f"[{HAN_AND_KANA}]")
_FOUR_LETTER_WORDS: Final = re.compile(f"[{SOUTH_EAST_ASIAN}]")
_CLAUSE_END: Final = re.compile(
    r"[,;:–—、，；]\s*|\s[-–—]\s|\s(?=(?:and|but|because|so|which|when|while|although|though|und|"
    r"aber|weil|mais|et|parce|pero|y|e|ma|en|maar)\s)"
)


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text, as written; code blocks are left out, list marks dropped.

    >>> split_sentences("Dr. Bell paid 3.50 at eunoe.dev. Was it a lot? 我住在上海。我喜欢茶。")
    ['Dr. Bell paid 3.50 at eunoe.dev.', 'Was it a lot?', '我住在上海。', '我喜欢茶。']
    """
    return [sentence for line in _unwrapped_lines(_CODE_BLOCK.sub("\n", text)) for sentence in split_line(line)]


def split_line(line: str) -> Iterator[str]:
    """Yield the sentences of one line, as written."""
    bounds = [0]
    for match in _END.finditer(line):
        if match["wide"] or _ends_sentence(line, bounds[-1], match):
            bounds.append(match.end())
    for start, end in pairwise([*bounds, len(line)]):
        if sentence := line[start:end].strip():
            yield sentence


def word_count(text: str) -> int:
    """Return how many words a text has; in scripts without spaces by the usual length of their words.

    >>> word_count("I moved to Rome."), word_count("我住在上海。")
    (4, 3)
    """
    if text.isascii():
        return len(text.split())
    return sum(map(_token_words, text.split()))


def cut_to_words(text: str, limit: int) -> str:
    """Cut a text to so many words: at the end of a clause where there is one, and then "…".

    >>> cut_to_words("I moved to Rome in May, because the rent in Milan had doubled within a year.", 10)
    'I moved to Rome in May…'
    """
    if word_count(text) <= limit:
        return text
    start = _first_words(text, limit)
    ends = [match.start() for match in _CLAUSE_END.finditer(start)]
    clauses = start[: ends[-1]] if ends else ""
    return (clauses if word_count(clauses) * 2 >= limit else start).rstrip(" ,;:–—-、，；(") + "…"


def _token_words(token: str) -> int:
    if token.isascii():
        return 1
    short, long = len(_TWO_LETTER_WORDS.findall(token)), len(_FOUR_LETTER_WORDS.findall(token))
    return max(1, -(-short // 2) + -(-long // 4))


def _first_words(text: str, limit: int) -> str:
    count, end = 0, 0
    for match in re.finditer(r"\S+", text):
        token = match[0]
        count += _token_words(token)
        if count > limit:
            lengths = range(1, len(token) + 1)
            letters = bisect_right(lengths, limit, key=lambda length: _token_words(token[:length]))
            return text[:end] or token[: max(letters, 1)]
        end = match.end()
    return text


def _unwrapped_lines(text: str) -> Iterator[str]:
    """Yield the lines of a text without list marks; one that was only wrapped goes on with the next."""
    line = ""
    for raw in text.splitlines():
        following = _LIST_MARK.sub("", raw).strip()
        if line and (not following or not _is_wrapped(line, raw)):
            yield line
            line = ""
        line = f"{line} {following}" if line else following
    if line:
        yield line


def _is_wrapped(line: str, following: str) -> bool:
    return len(line) in _WRAPPED_LINE_CHARACTERS and line[-1] not in ".!?…。！？:;" and following[:1].islower()


def _ends_sentence(line: str, start: int, end: re.Match[str]) -> bool:
    following = _NEXT_WORD.match(line, end.end())
    after = following[1] if following else ""
    if not after:
        return True
    mark = end["mark"]
    if end["close"] or mark[0] == "…" or (len(mark) > 1 and set(mark) == {"."}):
        return not after[0].islower()
    before = line[max(start, end.start() - _CHARACTERS_BEFORE_STOP) : end.start()]
    return mark != "." or not _continues_after_stop(before, after)


def _continues_after_stop(before: str, after: str) -> bool:
    """Say whether a full stop between the two belongs to an abbreviation, an initial or a number of order."""
    last = "".join(before.split()[-1:]).lstrip(_OPENING)
    if last.isdecimal():
        return len(last) <= 2 and bool(_AFTER_ORDINAL.match(after))
    if len(last) == 1 and last.isalpha():
        return last.isupper() and last != "I" and after[0].isupper() and before.strip() != last
    return _is_abbreviation(last, after[0])


def _is_abbreviation(word: str, after: str) -> bool:
    match _ABBREVIATIONS.get(word.lower()):
        case "always":
            return True
        case "before a number":
            return after.isdecimal()
        case "before a name":
            return word[0].isupper() and after.isupper()
        case "before a small letter":
            return after.islower()
    return False
