"""Words of a memory that look like a secret or an identifier: to say them once is to give them away."""

import re
from pathlib import Path
from typing import Final

from eunoe.text.languages import STOP_WORDS

_LONG_WORD: Final = re.compile(r"[^\W_]{6,}")
_ORDINARY_MIX: Final = re.compile(
    r"[^\W\d_]{2,}\d{1,2}|\d+[^\W\d_]{1,3}"
    r"|(?:sha|iso|rfc|pep|python|ubuntu|debian|windows|java|ecmascript|es|utf|cp|http|error|cve|year|port)\d+(?:mb\d)?",
    re.IGNORECASE,
)
"""A name with a short number, an amount with its unit, and names that everybody knows."""
_NAMED_SECRET: Final = re.compile(
    r"(?<![^\W_])(?P<what>pass(?:word|phrase|code|wd|wort)|pwd|pin|key|token|secret)(?![^\W_])"
    r"(?:(?P<link>(?:\s{1,9}(?:of|for|to|on|in)(?:\s{1,9}[^\s:=]{1,60}){1,4}?)?(?:\s{0,9}[:=]{1,3}\s{0,9}|\s{1,9}(?:is|was|ist|lautet)[\s:]{1,9}))|\s{1,9})"
    r"[\"'`*(]{0,9}(?P<word>[^\s\"'`]{0,200}[^\W_])",
    re.IGNORECASE,
)
_MIN_SECRET_CHARACTERS: Final = 4
_SIGNS: Final = frozenset("$!@#%^&*")
_REMARKS: Final = Path(__file__).with_name("password_remarks.txt").read_text(encoding="utf-8").split()
"""What is said of passwords without being one, such as "invalid"."""
_NO_SECRETS: Final = frozenset[str]().union(_REMARKS, *STOP_WORDS.values())


def find_credentials(text: str) -> list[str]:
    """Find the secrets and identifiers in a text.

    >>> find_credentials("Password is Tr0ub4dor, the PIN of the door: 4711; sha256 of it is a91bc7d02.")
    ['Tr0ub4dor', 'a91bc7d02', '4711']
    """
    mixed = [word for word in _LONG_WORD.findall(text) if not word.isalpha() and any(map(str.isalpha, word))]
    words = [word for word in mixed if not _ORDINARY_MIX.fullmatch(word)]
    words += [match["word"] for match in _NAMED_SECRET.finditer(text) if _is_secret(match)]
    return list(dict.fromkeys(words))


def _is_secret(match: re.Match[str]) -> bool:
    word = match["word"]
    if len(word) < _MIN_SECRET_CHARACTERS:
        return False
    if any(map(str.isdigit, word)):
        return True
    if not match["link"] or match["what"].lower() in ("key", "token", "secret"):
        return False
    is_remark = word.lower() in _NO_SECRETS or word.lower().endswith(("ed", "ing", "able", "ly"))
    return (word.isalpha() and not is_remark) or not _SIGNS.isdisjoint(word)
