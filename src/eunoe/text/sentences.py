# ruff: noqa: RUF001
"""Text into sentences, in any script, and the number of words it has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from eunoe.text.calendar import word_set

_FENCE: Final = re.compile(r"(```|~~~).*?(?:\1|\Z)", re.DOTALL)
_ITEM: Final = re.compile(r"^\s*(?:[-*•·‣–+>]|#{1,6}|\(?\d{1,3}[.)]|\(?[a-zA-Z]\))\s+")
_WRAPPED: Final = range(60, 2000)
_NEAR: Final = 40
"""How far back a full stop is looked at."""
_END: Final = re.compile(
    r"""(?P<wide>[。！？｡۔।॥።။។؟]+[」』”’）)"]*)"""
    r"""|(?<![.!?…])(?P<mark>[.!?…]++)(?P<close>["'”’»)\]]*+)(?=\s|$)"""
)
_OPENING: Final = "([\"'“„«"
_NEXT: Final = re.compile(r"\s*[\"'“„«(\[]*(\S*)")
_SHORT: Final = word_set(
    """
    mr mrs ms dr prof sr jr mt ft rev hon gen col capt lt sgt vs approx dept nos vol pp eds al inc ltd corp bros e.g i.e
    eg ie cf ca tel ext hrs resp incl excl jan feb apr jun jul aug sep sept oct nov dec tue tues wed thu thurs z.b d.h
    u.a bzw ggf evtl frl dipl ing mme mlle m.d ph.d b.a m.a p.ex p.e sra srta av avda ej dott bijv o.a mevr dhr exa
    """
)
"""Words that end in a full stop without ending a sentence."""
_BEFORE_FIGURES: Final = word_set("no nr fig max min est")
_BEFORE_NAMES: Final = word_set("st mon fri sat sig ed hr fr str co")
_BEFORE_SMALL: Final = word_set("etc a.m p.m u.s u.k usw ecc")
"""The same only where a number, a name or a small letter follows."""
_MONTH: Final = re.compile(
    r"(?:jan|feb|m[äa]r|apr|ma[iyj]|jun|jul|aug|sep|o[kc]t|nov|de[zc])\w*|tag|jahrhundert", re.IGNORECASE
)
_DENSE: Final = re.compile(
    r"[\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
_LOOSELY: Final = re.compile(r"[\u0e01-\u0e4e\u0e81-\u0ece\u0f40-\u0fbc\u1000-\u109f\u1780-\u17d3]")
_CLAUSE: Final = re.compile(
    r"[,;:–—、，；]\s*|\s[-–—]\s|\s(?=(?:and|but|because|so|which|when|while|although|though|und|"
    r"aber|weil|mais|et|parce|pero|y|e|ma|en|maar)\s)"
)


def sentences(text: str) -> list[str]:
    """The sentences of a text, as written; code blocks are left out, list marks dropped.

    >>> sentences("Dr. Bell paid 3.50 at eunoe.dev. Was it a lot? 我住在上海。我喜欢茶。")
    ['Dr. Bell paid 3.50 at eunoe.dev.', 'Was it a lot?', '我住在上海。', '我喜欢茶。']
    """
    return [found for line in _lines(_FENCE.sub("\n", text)) for found in split(line)]


def split(line: str) -> Iterator[str]:
    """The sentences of one line, as written."""
    start = 0
    for match in _END.finditer(line):
        if match["wide"] or _ends(line, start, match):
            yield from _bare(line[start : match.end()])
            start = match.end()
    yield from _bare(line[start:])


def words(text: str) -> int:
    """How many words a text has; in scripts without spaces by the usual length of their words.

    >>> words("I moved to Rome."), words("我住在上海。")
    (4, 3)
    """
    if text.isascii():
        return len(text.split())
    return sum(_size(chunk) for chunk in text.split())


def cut(text: str, most: int) -> str:
    """At most so many words: up to the end of a clause where there is one, and then "…".

    >>> cut("I moved to Rome in May, because the rent in Milan had doubled within a year.", 10)
    'I moved to Rome in May…'
    """
    if words(text) <= most:
        return text
    kept = _first(text, most)
    ends = [match.start() for match in _CLAUSE.finditer(kept) if words(kept[: match.start()]) * 2 >= most]
    return (kept[: ends[-1]] if ends else kept).rstrip(" ,;:–—-、，；(") + "…"


def _size(chunk: str) -> int:
    if chunk.isascii():
        return 1
    dense, loose = len(_DENSE.findall(chunk)), len(_LOOSELY.findall(chunk))
    return max(1, -(-dense // 2) + -(-loose // 4))


def _first(text: str, most: int) -> str:
    """The longest start with at most so many words."""
    taken, end = 0, 0
    for match in re.finditer(r"\S+", text):
        size = _size(match[0])
        if taken + size > most:
            return text[:end] or _letters(match[0], most)
        taken, end = taken + size, match.end()
    return text


def _letters(chunk: str, most: int) -> str:
    """The start of a run without blanks that has at most so many words."""
    low, high = 1, len(chunk)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _size(chunk[:middle]) <= most else (low, middle - 1)
    return chunk[:low]


def _lines(text: str) -> Iterator[str]:
    """Lines; one that was only wrapped goes on with the next."""
    held = ""
    for raw in text.splitlines():
        line = _ITEM.sub("", raw).strip()
        if held and (not line or not _goes_on(held, raw)):
            yield held
            held = ""
        held = f"{held} {line}" if held else line
    if held:
        yield held


def _goes_on(held: str, raw: str) -> bool:
    return len(held) in _WRAPPED and held[-1] not in ".!?…。！？:;" and raw[:1].islower()


def _bare(text: str) -> Iterator[str]:
    if stripped := text.strip():
        yield stripped


def _ends(line: str, start: int, match: re.Match[str]) -> bool:
    following = _NEXT.match(line, match.end())
    after = following[1] if following else ""
    if not after:
        return True
    if match["close"] or match["mark"][0] == "…" or (len(match["mark"]) > 1 and set(match["mark"]) == {"."}):
        return not after[0].islower()
    return match["mark"] != "." or not _goes_with(line[max(start, match.start() - _NEAR) : match.start()], after)


def _goes_with(before: str, after: str) -> bool:
    """Whether a full stop between the two belongs to an abbreviation, an initial or a number of order."""
    last = "".join(before.split()[-1:]).lstrip(_OPENING)
    if last.isdecimal():
        return len(last) <= 2 and bool(_MONTH.match(after))
    if len(last) == 1 and last.isalpha():
        return last.isupper() and last != "I" and after[0].isupper() and before.strip() != last
    return _is_short(last, after[0])


def _is_short(word: str, after: str) -> bool:
    lowered = word.lower()
    if lowered in _BEFORE_FIGURES:
        return after.isdecimal()
    if lowered in _BEFORE_NAMES:
        return word[0].isupper() and after.isupper()
    return lowered in _SHORT or (lowered in _BEFORE_SMALL and after.islower())
