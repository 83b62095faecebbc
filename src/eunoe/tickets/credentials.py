"""Words of a memory that look like a secret or an identifier: said once, they are given away."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from eunoe.text.languages import STOPS

_LONG = re.compile(r"[^\W_]{6,}")
# A name with a short number, an amount with its unit, and names that everybody knows.
_ORDINARY = re.compile(
    r"[^\W\d_]{2,}\d{1,2}|\d+[^\W\d_]{1,3}"
    r"|(?:sha|iso|rfc|pep|python|ubuntu|debian|windows|java|ecmascript|es|utf|cp|http|error|cve|year|port)\d+(?:mb\d)?",
    re.IGNORECASE,
)
_NAMED = re.compile(
    r"(?<![^\W_])(?P<what>pass(?:word|phrase|code|wd|wort)|pwd|pin|key|token|secret)(?![^\W_])"
    r"(?:(?P<link>(?:\s{1,9}(?:of|for|to|on|in)(?:\s{1,9}[^\s:=]{1,60}){1,4}?)?(?:\s{0,9}[:=]{1,3}\s{0,9}|\s{1,9}(?:is|was|ist|lautet)[\s:]{1,9}))|\s{1,9})"
    r"[\"'`*(]{0,9}(?P<word>[^\s\"'`]{0,200}[^\W_])",
    re.IGNORECASE,
)
_KEYS: Final = frozenset({"key", "token", "secret"})
_SHORTEST = 4
_SIGNS: Final = frozenset("$!@#%^&*")
_SAID_OF_PASSWORDS: Final = """
    always also blank case correct empty field fields form hash hidden incorrect invalid known long longer mandatory
    never null none only optional plain policy prompt public read reset right safe secret secure sent short shown still
    strong text today unknown unset valid visible weak wrong
"""
_ORDINARY_ANSWERS: Final = frozenset[str]().union(_SAID_OF_PASSWORDS.split(), *STOPS.values())


def credentials(text: str) -> Iterator[str]:
    """The secrets and identifiers in a text.

    >>> list(credentials("Password is Tr0ub4dor, the PIN of the door: 4711; sha256 of it is a91bc7d02."))
    ['Tr0ub4dor', 'a91bc7d02', '4711']
    """
    found = [word for word in _LONG.findall(text) if _is_mixed(word) and not _ORDINARY.fullmatch(word)]
    found += [match["word"] for match in _NAMED.finditer(text) if _is_secret(match)]
    yield from dict.fromkeys(found)


def _is_mixed(word: str) -> bool:
    return not word.isalpha() and any(sign.isalpha() for sign in word)


def _is_secret(match: re.Match[str]) -> bool:
    word = match["word"]
    if len(word) < _SHORTEST:
        return False
    if any(sign.isdigit() for sign in word):
        return True
    if not match["link"] or match["what"].lower() in _KEYS:
        return False
    plain = word.lower()
    common = plain in _ORDINARY_ANSWERS or plain.endswith(("ed", "ing", "able", "ly"))
    return (word.isalpha() and not common) or not _SIGNS.isdisjoint(word)
