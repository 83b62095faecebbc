"""Secrets are taken out of a text before it is shown, kept or logged: keys, passwords, tokens, connection strings.

A secret is known by its shape (`ghp_...`), by where it stands (`://user:SECRET@host`), by the name before it
(`password=...`), or because no person would write it: a long word that changes between small letters, capitals and
digits as chance does. Hashes, UUIDs, paths and identifiers do not, and stay. In doubt a secret is taken out.
"""

import re
import tomllib
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from eunoe.text.languages import STOP_WORDS

REDACTED: Final = "[redacted]"
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]{0,20}m")
_INVISIBLE: Final = re.compile(r"(?<=[\t\n\r\x1b -~])[\u200b-\u200f\u2060\ufeff\u00ad]+(?=[\t\n\r\x1b -~])")
"""Signs that nobody sees. Between others than ASCII they have a meaning: they join emoji and Persian letters."""
_SPACED_BY_NUL: Final = re.compile(r"(?:[^\0]\0{1,3}){4,}")
"""A text in UTF-16 or UTF-32 that was read as ASCII."""
_LINE_BREAK: Final = re.compile(r"\n\s*")
_FRAGMENT: Final = re.compile(r"\{([a-z]+)\}")
_VALUE_END: Final = re.compile(r"[&;,](?=[\w.-]{1,60}=)|[,;:.)\]}]+$")
"""Where a value without quotes ends before the next blank: at the next parameter, or before closing marks."""
_RANDOM_WORD: Final = re.compile(r"(?<![\w+/=-])[A-Za-z0-9+/_-]{28,}={0,2}")
_HASH_BEFORE: Final = re.compile(r"(?:sha\d{1,3}|h1|md5)[:-]$", re.IGNORECASE)
_HASH_OR_SYMBOL: Final = re.compile(r"(?:sha\d{1,3}-|_Z|_R[A-Z]).*")
_HEX: Final = re.compile(r"[0-9a-f]{7,}|[0-9A-F]{7,}")
_WORD: Final = re.compile(r"[A-Za-z0-9]+")
_MIN_RANDOM_CHARACTERS: Final = 28
_MIN_CHANGES: Final = 0.42
"""The share of neighbours of different kinds in a random word. Of 28 random characters 4 in 100 have less, of 40 fewer
than 1 in 100; of 440 long words in 79 MB of Python 15 have more, and those are base64."""
_OF: Final = "of|for|to|on|in|von|für|de|du|del|da|di|voor|van|для"
_IS: Final = "is|was|ist|war|lautet|est|era|es|è|é|jest|это|är|er"
"""How a sentence says what a password is."""
_SECRET_OBJECT: Final = re.compile(r"""\bkind["']?\s{0,3}:\s{0,3}["']?(?:Sealed)?Secret\b""")
_DATA_BLOCK: Final = re.compile(
    r"""(?m)^(?P<indent>[ \t]{0,40})["']?(?:data|stringData)["']?:[ \t]*\n(?:(?P=indent)[ \t]+\S[^\n]*(?:\n|\Z))+"""
    r"""|["'](?:data|stringData)["']\s{0,9}:\s{0,9}\{[^{}]{0,100000}\}"""
)
"""Where Kubernetes keeps secrets, in YAML and in JSON."""
_DATA_VALUE: Final = re.compile(r"""(?m)(?<=:)[ \t]*(?:"[^"\n]*"|'[^'\n]*'|[^\s"'{},|>][^\s,}]*)|^[ \t]+[^\s:]+$""")
_REMARK_ENDINGS: Final = ("ed", "ing", "able", "ly", "é", "ée")


def redact(text: str) -> str:
    """Return a text without its secrets, colours and invisible signs. Doing it twice changes nothing more.

    >>> redact("postgres://shop:hunter2@db/orders refused commit 3f2a9b1")
    'postgres://shop:[redacted]@db/orders refused commit 3f2a9b1'
    >>> redact("DB_PASSWORD=hunter2 API_KEY='sk-12345678901234567890' src/app.py")
    "DB_PASSWORD=[redacted] API_KEY='[redacted]' src/app.py"
    """
    patterns = _patterns()
    if "\0" in text:
        text = _SPACED_BY_NUL.sub(lambda match: match[0].replace("\0", ""), text).replace("\0", "\n")
    text = _COLOUR.sub("", _INVISIBLE.sub("", text))
    text = patterns.shapes.sub(REDACTED, text)
    for place in patterns.places:
        text = place.sub(_hide_group, text)
    text = patterns.named.sub(_hide_named, text)
    if _SECRET_OBJECT.search(text):
        text = _DATA_BLOCK.sub(_hide_data, text)
    return _RANDOM_WORD.sub(_hide_random, text)


class _Patterns(NamedTuple):
    shapes: re.Pattern[str]
    places: list[re.Pattern[str]]
    named: re.Pattern[str]
    harmless: re.Pattern[str]
    harmless_words: frozenset[str]


@cache
def _patterns() -> _Patterns:
    content = tomllib.loads(Path(__file__).with_name("secrets.toml").read_text(encoding="utf-8"))
    fragments = {name: _LINE_BREAK.sub("", text) for name, text in content["fragments"].items()}

    def joined(text: str) -> str:
        return _FRAGMENT.sub(lambda match: fragments[match[1]], _LINE_BREAK.sub("", text))

    shapes = "|".join(map(joined, content["shapes"].values()))
    names = "|".join(f"(?P<{kind}>{joined(text)})" for kind, text in content["names"].items())
    named = (
        rf"(?i:(?:{names})(?:[_-]?(?:base|value|string|hash|\d{{1,3}}))?)(?![A-Za-z0-9_-])[\"'\\\])]{{0,4}}"
        r"(?:\s{0,3}:\s{0,3}(?:str|string|String|&str|bytes|SecretStr)(?=\s{0,3}=))?"
        r"(?:\s{0,3}(?P<sign>=>|:=|={1,2}|[:：＝]|(?:%22)?%3[DdAa](?:%2[02])?)\s{0,3}|>|\s{0,3}[是为為はの]{1,2}\s{0,3}[:：]?"  # noqa: RUF001
        rf"|(?P<prose>(?:\s{{1,3}}(?:{_OF})(?:\s{{1,3}}[^\s:=]{{1,60}}){{1,4}}?)?"
        rf"(?:\s{{0,3}}:|\s{{1,3}}(?:{_IS})):?\s{{1,3}}))"
        r"(?:(?P<quote>\\?[\"'`])(?P<quoted>(?:(?P=quote){2}|(?!(?P=quote))[^\r\n]){1,1000})(?P=quote)"
        rf"|\\?[\"'`]?(?P<bare>[^\s\"'`<>]{{1,1000}}(?:{fragments['wrap']}[^\s\"'`<>]{{1,1000}})*))"
    )
    harmless = "|".join(joined(content["harmless"][kind]) for kind in ("code", "placeholder"))
    return _Patterns(
        re.compile(rf"(?<![A-Za-z0-9])(?:{shapes})"),
        [re.compile(joined(text)) for text in content["places"].values()],
        re.compile(named),
        re.compile(harmless, re.DOTALL),
        frozenset(content["harmless"]["words"].split()).union(*STOP_WORDS.values()),
    )


def _hide_group(match: re.Match[str]) -> str:
    """The match with [redacted] in the place of its secret."""
    group = next(name for name in ("secret", "single", "double", "quoted", "bare") if match.groupdict().get(name))
    start, end = match.start(group) - match.start(), match.end(group) - match.start()
    if group == "bare" and (ending := _VALUE_END.search(match["bare"])):
        end = start + ending.start()
    if match.group(group).startswith(REDACTED) or _patterns().harmless.fullmatch(match[0][start:end]):
        return match[0]
    return f"{match[0][:start]}{REDACTED}{match[0][end:]}"


def _hide_named(match: re.Match[str]) -> str:
    return _hide_group(match) if _is_secret(match) else match[0]


def _is_secret(match: re.Match[str]) -> bool:
    """Whether what follows the name of a secret looks like one. Behind `password` nearly everything does."""
    quoted, bare = match["quoted"], match["bare"]
    value = quoted or _VALUE_END.sub("", bare, count=1)
    has_digit = any(map(str.isdigit, value))
    if value.lower() in _patterns().harmless_words:
        return False
    if match["vague"]:
        is_mixed = bool(quoted) and any(map(str.isupper, value[1:])) and any(map(str.islower, value))
        return len(value) >= 8 and (has_digit or is_mixed)
    if match["credential"]:
        return len(value) >= 6 and (has_digit or bool(quoted))
    if has_digit or quoted or match["sign"] in ("=", "=>", ":="):
        return len(value) >= (4 if value.isdigit() else 3)
    return len(value) >= 4 and not value.lower().endswith(_REMARK_ENDINGS)


def _hide_data(match: re.Match[str]) -> str:
    head, sign, block = match[0].partition(":")
    return f"{head}{sign}{_DATA_VALUE.sub(f' {REDACTED}', block)}"


def _hide_random(match: re.Match[str]) -> str:
    word = match[0]
    is_hash = _HASH_OR_SYMBOL.fullmatch(word) or _HASH_BEFORE.search(
        match.string, max(0, match.start() - 8), match.start()
    )
    return word if is_hash or not _is_random(word) else REDACTED


def _is_random(text: str) -> bool:
    words = [word for word in _WORD.findall(text) if not _HEX.fullmatch(word)]
    kinds = [[_kind(sign) for sign in word] for word in words]
    if sum(map(len, kinds)) < _MIN_RANDOM_CHARACTERS or len({kind for each in kinds for kind in each}) < 3:
        return False
    pairs = [one != two for each in kinds for one, two in pairwise(each)]
    return sum(pairs) >= _MIN_CHANGES * len(pairs)


def _kind(sign: str) -> int:
    return 0 if sign.islower() else 1 if sign.isupper() else 2
