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


def without_controls(text: str) -> str:
    """Return a text without terminal sequences, characters struck over, and invisible ones among ASCII.

    >>> without_controls("\\x1b[01;31mpass\\u200bword\\x1b[m=1")
    'password=1'
    """
    text = text.replace("\0", "\n").replace(HIDDEN, "")
    return _UNSEEN_IN_ASCII.sub("", _CONTROLS.sub("", text))


REDACTED: Final = "[redacted]"
_BEFORE_SHAPE: Final = (
    r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=%[2-7][0-9a-fA-F])|(?<=\\u00[0-9a-fA-F]{2})|(?<=\\x[0-9a-fA-F]{2}))"
)
"""A token begins at the edge of a word, or after an escape as in JSON, Python and addresses."""
_HIDDEN_RUN: Final = re.compile(f"{HIDDEN}+")
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
_MAX_ROUNDS: Final = 5
"""What is taken out may show what stands beside it in another light. Of 12,000 texts put together of secrets 10 needed
two rounds, none three."""
_GROUPS: Final = ("secret", "single", "double", "quoted", "curly", "bare", "phrase")
"""What the groups of a pattern are called that hold a secret."""
_BRACKETS: Final = "[({<"
_QUOTED: Final = {"'": re.compile(r"'(?:[^'\\\r\n]|\\[^\r\n])*+'"), '"': re.compile(r'"(?:[^"\\\r\n]|\\[^\r\n])*+"')}
_SECRET_OBJECT: Final = re.compile(r"""\bkind["']?\s{0,3}:\s{0,3}["']?(?:Sealed)?Secret\b""")
_DATA_BLOCK: Final = re.compile(
    r"""(?m)^(?P<indent>[ \t]{0,40})["']?(?:data|stringData)["']?:[ \t]*\n(?:(?P=indent)[ \t]+\S[^\n]*(?:\n|\Z))+"""
    r"""|["'](?:data|stringData)["']\s{0,9}:\s{0,9}\{[^{}]{0,100000}\}"""
)
"""Where Kubernetes keeps secrets, in YAML and in JSON."""
_DATA_VALUE: Final = re.compile(r"""(?m)(?<=:)[ \t]*(?:"[^"\n]*"|'[^'\n]*'|[^\s"'{},|>][^\s,}]*)|^[ \t]+[^\s:]+$""")
_CLOSED: Final = re.compile(r"[\])]")
_THREE_PARTS: Final = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+")
"""As a JWT has them."""
_REMARK_ENDINGS: Final = ("ed", "ing", "able", "ly", "é", "ée")


def redact(text: str) -> str:
    """Return a text without its secrets, colours and invisible signs. Doing it twice changes nothing more.

    >>> redact("postgres://shop:hunter2@db/orders refused commit 3f2a9b1")
    'postgres://shop:[redacted]@db/orders refused commit 3f2a9b1'
    >>> redact("DB_PASSWORD=hunter2 API_KEY='sk-12345678901234567890' src/app.py")
    "DB_PASSWORD=[redacted] API_KEY='[redacted]' src/app.py"
    """
    text = without_controls(text)
    for _ in range(_MAX_ROUNDS):
        before, text = text, _redact_once(text)
        if text == before:
            break
    return text


def _redact_once(text: str) -> str:
    """The text with [redacted] in the place of each secret. Secrets that touch are one."""
    hidden = _hide(text.replace(REDACTED, HIDDEN * len(REDACTED)))
    return _HIDDEN_RUN.sub(REDACTED, hidden)


def _hide(text: str) -> str:
    """Put a sign that no text has in the place of each character of a secret."""
    patterns = _patterns()
    text = patterns.shapes.sub(lambda match: HIDDEN * len(match[0]), text)
    for place in patterns.places:
        text = place.sub(_hide_groups, text)
    for column in patterns.columns:
        text = column.sub(_hide_quoted, text)
    text = patterns.named.sub(_hide_named, text)
    for place in patterns.beside:
        text = place.sub(_hide_groups, text)
    if _SECRET_OBJECT.search(text):
        text = _DATA_BLOCK.sub(_hide_data, text)
    return _RANDOM_WORD.sub(_hide_random, text)


class _Patterns(NamedTuple):
    shapes: re.Pattern[str]
    places: list[re.Pattern[str]]
    columns: list[re.Pattern[str]]
    named: re.Pattern[str]
    beside: list[re.Pattern[str]]
    harmless: re.Pattern[str]
    harmless_words: frozenset[str]


@cache
def _patterns() -> _Patterns:
    content = tomllib.loads(Path(__file__).with_name("secrets.toml").read_text(encoding="utf-8"))
    fragments: dict[str, str] = {"hidden": HIDDEN}

    def joined(text: str) -> str:
        return _FRAGMENT.sub(lambda match: fragments[match[1]], _LINE_BREAK.sub("", text))

    for name, text in content["fragments"].items():
        fragments[name] = joined(text)
    shapes = "|".join(map(joined, content["shapes"].values()))
    fragments["names"] = "|".join(f"(?P<{kind}>{joined(text)})" for kind, text in content["names"].items())
    return _Patterns(
        re.compile(rf"{_BEFORE_SHAPE}(?:{shapes})"),
        [re.compile(joined(text)) for text in content["places"].values()],
        [re.compile(joined(text)) for text in content["columns"].values()],
        re.compile(joined(content["named"]["value"])),
        [re.compile(joined(text)) for text in content["beside"].values()],
        re.compile("|".join(joined(content["harmless"][kind]) for kind in ("code", "placeholder")), re.DOTALL),
        frozenset(content["harmless"]["words"].split()).union(*STOP_WORDS.values()),
    )


def _hide_groups(match: re.Match[str]) -> str:
    """The match with its secrets hidden."""
    text = match[0]
    for group in _GROUPS:
        if match.groupdict().get(group):
            text = _hide_span(text, *_value_span(match, group), match.start())
    return text


def _value_span(match: re.Match[str], group: str) -> tuple[int, int]:
    ending = _VALUE_END.search(match[group]) if group == "bare" else None
    return match.start(group), match.start(group) + ending.start() if ending else match.end(group)


def _hide_span(text: str, start: int, end: int, offset: int) -> str:
    value = text[start - offset : end - offset]
    if value.lstrip(_BRACKETS).startswith(HIDDEN) or _patterns().harmless.fullmatch(value):
        return text
    return f"{text[: start - offset]}{HIDDEN * len(value)}{text[end - offset :]}"


def _hide_quoted(match: re.Match[str]) -> str:
    mark, end = match["mark"], match.start("mark") - match.start()
    values = _QUOTED[mark].sub(lambda value: f"{mark}{HIDDEN * (len(value[0]) - 2)}{mark}", match[0][end:])
    return f"{match[0][:end]}{values}"


def _hide_named(match: re.Match[str]) -> str:
    phrase = match["phrase"]
    if phrase and not (match["password"] and _is_passphrase(phrase)):
        start, first = match.start("phrase"), phrase.split(" ", 1)[0]
        is_hidden = _is_secret(match, first)
        return _hide_span(match[0], start, start + len(first), match.start()) if is_hidden else match[0]
    return _hide_groups(match) if phrase or _is_secret(match, _value(match)) else match[0]


def _value(match: re.Match[str]) -> str:
    return match["quoted"] or match["curly"] or _VALUE_END.sub("", match["bare"], count=1)


def _is_passphrase(text: str) -> bool:
    """Whether words that stand alone behind `password:` are one, and no remark."""
    words = text.lower().split()
    return sum(word in _patterns().harmless_words for word in words) <= 1 and not words[0].endswith(_REMARK_ENDINGS)


def _is_secret(match: re.Match[str], value: str) -> bool:
    """Whether what follows the name of a secret looks like one. Behind `password` nearly everything does."""
    is_quoted = bool(match["quoted"] or match["curly"])
    has_digit = any(map(str.isdigit, value))
    if _is_harmless(match, value, has_digit):
        return False
    if match["vague"]:
        is_mixed = is_quoted and any(map(str.isupper, value[1:])) and any(map(str.islower, value))
        return len(value) >= 8 and (has_digit or is_mixed)
    if match["credential"]:
        is_jwt = match["sign"] == ":" and _THREE_PARTS.fullmatch(value)
        return len(value) >= 6 and (has_digit or is_quoted or bool(is_jwt))
    if has_digit or is_quoted or match["sign"] in ("=", "=>", ":="):
        return len(value) >= (4 if value.isdigit() else 3)
    return len(value) >= 4 and not value.lower().endswith(_REMARK_ENDINGS)


def _is_harmless(match: re.Match[str], value: str, has_digit: bool) -> bool:
    """Whether it is a word or a remark, something in brackets without a digit, or the name itself again."""
    known = _patterns().harmless_words
    words = value.lower().split()
    inner = value.lstrip(_BRACKETS)
    if all(word in known for word in words) or (
        inner != value and (not has_digit or inner.isdigit() or _CLOSED.search(inner))
    ):
        return True
    if inner != value and _patterns().harmless.fullmatch(inner):
        return True
    return bool(match["credential"]) and _letters(value) == _letters(match["credential"]) and value[:1].isupper()


def _letters(text: str) -> str:
    return "".join(filter(str.isalpha, text.lower()))


def _hide_data(match: re.Match[str]) -> str:
    head, sign, block = match[0].partition(":")
    return f"{head}{sign}{_DATA_VALUE.sub(_hide_word, block)}"


def _hide_word(match: re.Match[str]) -> str:
    blanks = len(match[0]) - len(match[0].lstrip())
    return f"{match[0][:blanks]}{HIDDEN * (len(match[0]) - blanks)}"


def _hide_random(match: re.Match[str]) -> str:
    word = match[0]
    is_hash = _HASH_OR_SYMBOL.fullmatch(word) or _HASH_BEFORE.search(
        match.string, max(0, match.start() - 8), match.start()
    )
    return word if is_hash or not _is_random(word) else HIDDEN * len(word)


def _is_random(text: str) -> bool:
    words = [word for word in _WORD.findall(text) if not _HEX.fullmatch(word)]
    kinds = [[_kind(sign) for sign in word] for word in words]
    if sum(map(len, kinds)) < _MIN_RANDOM_CHARACTERS or len({kind for each in kinds for kind in each}) < 3:
        return False
    pairs = [one != two for each in kinds for one, two in pairwise(each)]
    return sum(pairs) >= _MIN_CHANGES * len(pairs)


def _kind(sign: str) -> int:
    return 0 if sign.islower() else 1 if sign.isupper() else 2


MAX_SEARCHED_CHARACTERS: Final = 600_000
"""Some two seconds of searching for secrets, four if there are any. Of a longer text the middle is cut out before."""
_CUT_MARGIN_CHARACTERS: Final = 10_000
"""What is dropped on both sides of such a cut: half of a secret may stand there, and not look like one."""


def clip(text: str, max_characters: int, head: float = 0.25) -> str:
    """Cut out the middle of a text, and say how many characters are left out. The end, where errors stand, is longer.

    >>> clip("a" * 10 + "b" * 100, 40)
    'aaaaaaaaaa\\n[... 70 characters left out ...]\\nbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb'
    """
    left_out = len(text) - max_characters
    if left_out <= 0:
        return text
    first = int(max_characters * head)
    return f"{text[:first]}{_mark(left_out)}{text[first + left_out :]}"


def clip_redacted(text: str, max_characters: int) -> str:
    """Take the secrets out of a text, then cut out its middle: a secret that is cut in two is not known any more.

    >>> clip_redacted("password=hunter2 " + "a" * 103, 60)
    'password=[redac\\n[... 63 characters left out ...]\\naaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'
    """
    if len(text) <= MAX_SEARCHED_CHARACTERS:
        return clip(redact(text), max_characters)
    first, shown = MAX_SEARCHED_CHARACTERS // 4, max_characters // 4
    head = redact(text[:first])[:-_CUT_MARGIN_CHARACTERS][:shown]
    tail = redact(text[first - MAX_SEARCHED_CHARACTERS :])[_CUT_MARGIN_CHARACTERS:][shown - max_characters :]
    return f"{head}{_mark(len(text) - len(head) - len(tail))}{tail}"


def _mark(left_out: int) -> str:
    return f"\n[... {left_out:,} characters left out ...]\n"


def last_lines(text: str, count: int) -> list[str]:
    """Return the last lines that are not blank.

    >>> last_lines("one\\n\\n two \\nthree\\n", 2)
    ['two', 'three']
    """
    return [line.strip() for line in text.splitlines() if line.strip()][-count:]
