# ruff: noqa: RUF001
"""What a reader takes from a text: its words, and the signs that mean something, in whatever disguise."""

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

from eunoe.text.normalize import fold_case, normalize, normalize_form
from eunoe.text.scripts import MARKS

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
