"""How texts, names and words are recognised as the same, in whatever disguise.

Scripts that put no space between words are classes of a pattern. They take milliseconds to compile: each is compiled
where it is used.
"""

import re
import unicodedata
from collections.abc import Iterator
from hashlib import blake2b
from html import escape
from pathlib import Path
from typing import Final, Literal

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_START: Final = " \t\n\"'`“”‘’«»()[]"
_END: Final = f"{_START}.,;:!"
_EMOTICON_END: Final = re.compile(r"(?<!\w)[:;]'?-?[()]$")
_INVISIBLE: Final = re.compile(
    "(?<=[a-z\u03b1-\u03c9])[\u0300-\u036f]+|[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640"
    "\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u200b-\u200f\u2060\ufe0e\ufe0f\ufeff]"
)
"""Accents on Latin and Greek letters, vowel points of Hebrew and Arabic, signs without width."""

_MANY_MARKS: Final = re.compile(r"[^\w\s\0-\u02ff]{31}")
_STREAM_SAFE_PIECE: Final = re.compile(r"[\w\s\0-\u02ff]*+[^\w\s\0-\u02ff]{0,30}+")


def _accented_letters() -> dict[int, str]:
    """Latin and Greek letters with accents, and each without. In other scripts a mark changes the letter and stays."""
    table = {ord("ø"): "o", ord("ł"): "l", ord("đ"): "d", ord("æ"): "ae", ord("œ"): "oe", 0x131: "i", ord("ð"): "d"}
    for block in (range(0xC0, 0x250), range(0x370, 0x400), range(0x1E00, 0x2000)):
        for code in block:
            base = unicodedata.normalize("NFD", chr(code))
            if len(base) > 1 and all(unicodedata.combining(mark) for mark in base[1:]):
                table[code] = base[0]
    return table


_ACCENTED: Final = _accented_letters()


def normalize_form(form: Literal["NFC", "NFKC", "NFKD"], text: str) -> str:
    """Return a text in a normal form of Unicode, in time that grows with its length alone.

    Marks on one letter are put in order by pairs, so that a run of thousands would take minutes. No language puts
    more on a letter than Unicode's stream-safe format allows: a longer run is put in order piece by piece.
    """
    if not _MANY_MARKS.search(text):
        return unicodedata.normalize(form, text)
    return "".join(unicodedata.normalize(form, piece) for piece in _STREAM_SAFE_PIECE.findall(text))


def fold(text: str) -> str:
    """Return words as they are compared: without case, without Latin and Greek accents.

    >>> fold("Crème Brûlée")
    'creme brulee'
    """
    if text.isascii():
        return text.lower()
    return _INVISIBLE.sub("", normalize_form("NFKC", text).casefold().translate(_ACCENTED))


def replace_surrogates(text: str) -> str:
    """Return text that encodes to UTF-8: surrogate pairs joined, lone surrogates replaced by U+FFFD."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def normalize(text: str) -> str:
    """Return a text as duplicates are compared: composed, without case, blanks and closing marks evened out.

    >>> normalize("  Anna likes  TEA. ") == normalize("anna likes tea")
    True
    """
    composed = text if text.isascii() else normalize_form("NFC", text)
    joined = " ".join(fold_case(composed).split()).lstrip(_START)
    return (joined if _EMOTICON_END.search(joined[-4:]) else joined.rstrip(_END)) or joined or text


def fold_case(text: str) -> str:
    """Return a text without case; "ß" stays, since "in Maßen" and "in Massen" are not the same."""
    if "ß" not in text and "ẞ" not in text:
        return text.casefold()
    return "ß".join(part.casefold() for part in text.replace("ẞ", "ß").split("ß"))


def normalize_name(name: str) -> str:
    """Return a name as names are compared: composed, case folded, without blanks around it.

    >>> normalize_name(" ANNA ") == normalize_name("Anna")
    True
    """
    bare = name.strip()
    if bare.isascii():
        return bare.lower()
    return normalize_form("NFC", normalize_form("NFC", bare).casefold())


def fingerprint(*parts: str) -> bytes:
    """Return 16 bytes that stand for several texts; the parts cannot run into each other."""
    joined = "".join([f"{len(part)}:{part}" for part in parts])
    return blake2b(joined.encode(), digest_size=16).digest()


def one_line(text: str, most: int) -> str:
    """Return a text on one line of at most so many characters, for errors that are kept."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


SPACELESS: Final = (
    "\u2e80-\u2fdf\u3005\u3007\u3021-\u3029\u3040-\u30fa\u30fc-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff\u1100-\u11ff\uac00-\ud7a3"
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0f40-\u0fbc\u1000-\u1049\u1050-\u109f\u1780-\u17d3"
)
"""Letters, without punctuation. A run of them is indexed by its characters and pairs of these."""

SPACELESS_BLOCKS: Final = "\u0e00-\u0eff\u2e80-\ud7a3\uf900-\ufaff"
"""Whole blocks of Thai, Lao and East Asia: a name with such a letter is looked for within words. It is compared with
names only, in which there is no punctuation."""

SPACELESS_NAMES: Final = "[\u30a1-\u30fa\u30fc-\u30ff]{2,}|[\u3400-\u9fff]{2,6}|[\uac00-\ud7a3]{2,}"
"""A pattern of runs that may be a name: of Katakana, Chinese or Korean letters, one script each, since a word ends
where the script changes. Hiragana writes endings and particles, hardly names."""

HAN_AND_KANA: Final = (
    "\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Letters of Chinese and Japanese, whose words have about two. Korean is not among them: it does put spaces."""

SOUTH_EAST_ASIAN: Final = "\u0e01-\u0e4e\u0e81-\u0ece\u0f40-\u0fbc\u1000-\u109f\u1780-\u17d3"
"""Letters of Thai, Lao, Tibetan, Burmese and Khmer, whose words have about four."""

WIDE: Final = (
    "\u0e00-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff"
)
"""Letters with their marks and punctuation: what a tokenizer splits character by character."""

MARKS: Final = "".join(
    chr(code) for block in (range(0x300, 0x1D00), range(0xA800, 0xAC00)) for code in block
    if unicodedata.category(chr(code)).startswith("M")
)  # fmt: skip
"""Vowel signs and other marks, which are part of a word and no letters."""


# ruff: noqa: RUF001


_LETTERS: Final = str.maketrans("асеорхуіјѕһԁԛԝкмтвнαορνικτυχεγηωβ", "aceopxyijshdqwkmtbhaopviktuxeynwb")
_LETTERS_AND_SIGNS: Final = _LETTERS | str.maketrans("⁄∕‐‑‒–—―−〜", "//-------~")
_DIGIT_ABOVE: Final = re.compile(r"(?<=\d)(?=[⁰¹²³⁴-⁹])")
_DIGIT_BELOW: Final = re.compile(r"(?<=\d)(?=[₀-₉¼-¾⅐-⅞])")
"""10² is not 102, and 2½ is not 21/2."""
_VARIANT: Final = re.compile("[\u180b-\u180d\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""Selects one of several forms of the sign before it."""
_EMOJI: Final = "\u2190-\u2bff\U0001f000-\U0001faff"
_TAGS: Final = "\U000e0020-\U000e007f"
_HIDDEN: Final = re.compile(
    "[\xad\u034f\u061c\u070f\u115f\u1160\u17b4\u17b5\u180e\u200b\u200c\u200e\u200f\u202a-\u202e\u2060-\u206f\u2800"
    "\u3164\ufeff\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001]"
    f"|(?<![{_EMOJI}])\u200d|\u200d(?![{_EMOJI}])|(?<![\U0001f3f4{_TAGS}])[{_TAGS}]+"
    "|[\u0300-\u0302\u0304\u0305\u030d-\u031a\u031c-\u0322\u0324\u0325\u0329-\u0337\u0339-\u036f]|(?<![aouAOU])\u0308"
)
"""Signs without width, but for those that join emoji or name the country of a flag; and marks that stress or decorate a
letter, but for those that make another letter, as in "Mütter"."""
_LOOSE_MARK: Final = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed]"
)
"""Marks that make no letter together with the one before them, and vowel points of Hebrew and Arabic."""
_LETTER: Final = rf"(?:[^\W_]|[{MARKS}])"
_PART: Final = re.compile(
    r"(?<!\w)[a-z]{1,2}-(?!\w)"  # a blood group
    rf"|{_LETTER}++(?:(?<=\d)[.,:/*^-](?=\d){_LETTER}++)*+(?:[+#]++(?!\w))?"
    r"|(?<!\w)-(?=\.?\d)|(?<!\w)\.(?=\d)|~(?=\d)|!(?==)|(?<!\w)!(?=\w)|\?(?!\?)|(?<!\w)[:;]'?-?[()]|[&@%‰§]"
    r"|(?P<sign>[^\w\s])"
)
"""A word or number with what belongs to it, a sign that means something where it stands, or any other sign."""
_SYMBOLS: Final = frozenset({"Sm", "Sc", "So", "Cf"})
"""Categories of signs that mean something. Those without width that are still there join emoji or name a flag."""
_SKIN_TONES: Final = frozenset("\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff")
_DECORATIONS: Final = frozenset("|~¦")
_NOT_A_LETTER: Final = re.compile(rf"[^\w{MARKS}]")
_BARE_WORD: Final = re.compile(r"[^\W_]+[+#%]*|[$€£¥=<>]|(?<!\w)-(?=\d)")
_EDGES: Final = " \t\n.,;:!\"'`“”‘’«»()[]"


def look_alike_form(text: str) -> str:
    """Return what a reader takes from a text.

    Forgotten words are recognised by it in any disguise that reads the same: invisible signs, look-alike letters,
    decorated letters, stress accents, case, punctuation. Emoji, symbols, signs of numbers and question marks count.

    >>> look_alike_form("Anna l\u0456kes\u200b  TÉA!") == look_alike_form("anna likes tea")
    True
    >>> look_alike_form("Anna likes 🍎") == look_alike_form("Anna likes 🍌")
    False
    """
    return " ".join(_words_and_signs(text)) or normalize(text)


def meaningful_signs(text: str) -> list[str]:
    """Return the signs of a text that mean something, and the words that hold one, sorted.

    >>> meaningful_signs("C++ at -5 °C, ★★: fine?")
    ['-', '?', 'c++', '°', '★', '★']
    """
    return sorted(filter(_NOT_A_LETTER.search, _words_and_signs(text)))


def bare_form(text: str) -> str:
    """Return the bare letters and digits of a text, whatever signs stand around and on them.

    It finds leaks in any spelling, and what older stores kept tombstones of. These hold as long as it stays as it is.

    >>> bare_form("Anna likes 🍎!") == bare_form("ÄNNA likes")
    True
    """
    if text.isascii():
        plain = text.lower()
    else:
        decomposed = normalize_form("NFKD", text)
        visible = "".join(
            sign for sign in decomposed if unicodedata.category(sign) != "Cf" and not "\u0300" <= sign <= "\u036f"
        )
        plain = visible.casefold().translate(_LETTERS)
    return " ".join(_BARE_WORD.findall(plain)) or former_normal_form(text)


def former_normal_form(text: str) -> str:
    """Return a text as atoms were compared in stores of the schemas before 6."""
    composed = text if text.isascii() else normalize_form("NFC", text)
    joined = " ".join(composed.casefold().split())
    return joined.strip(_EDGES) or joined or text


def _words_and_signs(text: str) -> Iterator[str]:
    for part in _PART.finditer(_visible_text(text)):
        sign = part["sign"]
        if not sign or sign in _SKIN_TONES or (sign not in _DECORATIONS and unicodedata.category(sign) in _SYMBOLS):
            yield part[0]


def _visible_text(text: str) -> str:
    """The text in lower case without what only disguises it, and with one sign for those that read the same."""
    if text.isascii():
        return text.lower()
    spread = _DIGIT_BELOW.sub(" ", _DIGIT_ABOVE.sub("^", text))
    plain = _HIDDEN.sub("", _VARIANT.sub("", normalize_form("NFKD", spread)))
    lowered = fold_case(normalize_form("NFC", plain))
    return _LOOSE_MARK.sub("", lowered).translate(_LETTERS_AND_SIGNS)


_FOLDER: Final = Path(__file__).parent / "words"


def word_set(words: str) -> frozenset[str]:
    """Return the words of a text, which are separated by blanks."""
    return frozenset(words.split())


def load_words(name: str, folder: Path = _FOLDER) -> frozenset[str]:
    """Return the words of `name.txt`, separated by blanks or lines. A line that starts with `#` is a comment.

    >>> "the" in load_words("stop_words/english")
    True
    """
    return word_set(" ".join(_lines(name, folder)))


def load_table(name: str, folder: Path = _FOLDER) -> dict[str, str]:
    """Return the value of each entry of `name.txt`, whose lines are `value: entry, entry`.

    >>> load_table("months")["janvier"]
    '1'
    """
    rows = (line.split(": ", 1) for line in _lines(name, folder))
    return {entry: value for value, entries in rows for entry in entries.split(", ")}


def load_groups(name: str, folder: Path = _FOLDER) -> dict[str, frozenset[str]]:
    """Return the words of each group of `name.txt`, whose lines are `group: word word`.

    >>> sorted(load_groups("letters")["danish"])
    ['å', 'æ', 'ø']
    """
    return {group: word_set(words) for group, words in (line.split(": ", 1) for line in _lines(name, folder))}


def _lines(name: str, folder: Path) -> list[str]:
    lines = (folder / f"{name}.txt").read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


_NOT_IN_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_DIRECTIONS: Final = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
"""Signs that turn the direction of reading, and letters that no reader sees (tags)."""
_LINE_END: Final = re.compile("\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_MAX_MARK_CHARACTERS: Final = 64
"""No chat template has a longer mark."""


def _names(place: str) -> str:
    """The names of marks in a place, as a pattern."""
    names = [name for name, where in load_table("chat_tokens").items() if where == place]
    return "|".join(re.escape(name).replace("0", r"\d{1,6}") for name in names)


_INNER: Final = rf"[^|｜<>＜＞\s]{{1,{_MAX_MARK_CHARACTERS}}}"
_CHAT_MARK: Final = re.compile(
    rf"[<＜](?=[|｜]{_INNER}[|｜]?[>＞]|{_INNER}[|｜][>＞]|<?/?(?:{_names('angle')})>)"
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
        text = _LINE_END.sub("\n", _DIRECTIONS.sub("", text))
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
