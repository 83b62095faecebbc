"""How two texts or two names are recognised as the same."""

from __future__ import annotations

import re
import unicodedata
from hashlib import blake2b

_WORDS = re.compile(r"[^\W_]+[+#%]*|[$€£¥=<>]|(?<!\w)-(?=\d)")
_LOOK_ALIKES = str.maketrans("асеорхуіјѕһԁԛԝкмтвнαορνικτυχεγηωβ", "aceopxyijshdqwkmtbhaopviktuxeynwb")
_SURROGATE = re.compile("[\ud800-\udfff]")
_EDGES = " \t\n.,;:!\"'`“”‘’«»()[]"


def replace_surrogates(text: str) -> str:
    """Return text that encodes to UTF-8: surrogate pairs joined, lone surrogates replaced by U+FFFD."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def normalize(text: str) -> str:
    """Return a text as duplicates are compared: composed, case folded, blanks and closing marks evened out.

    >>> normalize("  Anna likes  TEA. ") == normalize("anna likes tea")
    True
    """
    composed = text if text.isascii() else unicodedata.normalize("NFC", text)
    joined = " ".join(composed.casefold().split())
    return joined.strip(_EDGES) or joined or text


def look_alike_form(text: str) -> str:
    """Return what a text looks like: without invisible signs, accents and punctuation, look-alike letters made one.

    Forgotten words are recognised by it in any disguise that reads the same.

    >>> look_alike_form("Anna l\\u0456kes\\u200b  TÉA!") == look_alike_form("anna likes tea")
    True
    """
    if text.isascii():
        plain = text.lower()
    else:
        decomposed = unicodedata.normalize("NFKD", text)
        visible = "".join(
            sign for sign in decomposed if unicodedata.category(sign) != "Cf" and not "\u0300" <= sign <= "\u036f"
        )
        plain = visible.casefold().translate(_LOOK_ALIKES)
    return " ".join(_WORDS.findall(plain)) or normalize(text)


def normalize_name(name: str) -> str:
    """Return a name as names are compared: composed, case folded, without blanks around it.

    >>> normalize_name(" ANNA ") == normalize_name("Anna")
    True
    """
    bare = name.strip()
    if bare.isascii():
        return bare.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", bare).casefold())


def fingerprint(*parts: str) -> bytes:
    """Return 16 bytes that stand for several texts; the parts cannot run into each other."""
    joined = "".join([f"{len(part)}:{part}" for part in parts])
    return blake2b(joined.encode(), digest_size=16).digest()


def one_line(text: str, most: int) -> str:
    """Return a text on one line of at most so many characters, for errors that are kept."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
