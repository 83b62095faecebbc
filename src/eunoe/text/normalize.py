"""How two texts, two names or two words are recognised as the same."""

import re
import unicodedata
from hashlib import blake2b
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
