"""What may be kept as words, and how two texts are recognised as the same."""

from __future__ import annotations

import re
import unicodedata
from hashlib import blake2b

from eunoe.errors import InputError

MAX_TEXT = 32 * 1024 * 1024

_SPACELESS = re.compile(
    "[\u0e00-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef"
    "\U00020000-\U0003ffff]+"
)
_WORDS = re.compile(r"[^\W_]+[+#%]*|[$€£¥=<>]|(?<!\w)-(?=\d)")
_LOOK_ALIKES = str.maketrans("асеорхуіјѕһԁԛԝкмтвнαορνικτυχεγηωβ", "aceopxyijshdqwkmtbhaopviktuxeynwb")
_SURROGATE = re.compile("[\ud800-\udfff]")
_EDGES = " \t\n.,;:!\"'`“”‘’«»()[]"


def checked(text: object, name: str = "text") -> str:
    """The text itself if it can be stored exactly; otherwise an error that says why not."""
    if not isinstance(text, str):
        raise InputError(f"{name} must be text, not {type(text).__name__}")
    if len(text) > MAX_TEXT:
        raise InputError(f"{name} has {len(text):,} characters; at most {MAX_TEXT:,} fit: split it")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InputError(
                f"{name} holds a lone surrogate at character {error.start}, which no encoding can store: "
                "pass text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace') instead"
            ) from None
    return text


def clean(text: str) -> str:
    """Text that encodes to UTF-8: surrogate pairs joined, lone surrogates replaced by U+FFFD."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def normalised(text: str) -> str:
    """Text as duplicates are compared: composed, case folded, blanks and closing marks evened out.

    >>> normalised("  Anna likes  TEA. ") == normalised("anna likes tea")
    True
    """
    even = text if text.isascii() else unicodedata.normalize("NFC", text)
    return " ".join(even.casefold().split()).strip(_EDGES) or text


def skeleton(text: str) -> str:
    """What a text looks like: without invisible signs, accents and punctuation, look-alike letters made one.

    Words that were forgotten are known by it in any disguise that reads the same.

    >>> skeleton("Anna l\\u0456kes\\u200b  TÉA!") == skeleton("anna likes tea")
    True
    """
    if text.isascii():
        plain = text.lower()
    else:
        apart = unicodedata.normalize("NFKD", text)
        seen = "".join(
            sign for sign in apart if unicodedata.category(sign) != "Cf" and not "\u0300" <= sign <= "\u036f"
        )
        plain = seen.casefold().translate(_LOOK_ALIKES)
    return " ".join(_WORDS.findall(plain)) or normalised(text)


def same_name(name: str) -> str:
    """A name as names are compared: composed, case folded, without blanks around it.

    >>> same_name(" ANNA ") == same_name("Anna")
    True
    """
    bare = name.strip()
    if bare.isascii():
        return bare.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", bare).casefold())


def digest(*parts: str) -> bytes:
    """A 16-byte fingerprint of several texts; the parts cannot run into each other."""
    joined = "".join([f"{len(part)}:{part}" for part in parts])
    return blake2b(joined.encode(), digest_size=16).digest()


def tokens(text: str) -> int:
    """An estimate of how many tokens a model would read: 4.5 characters each, or one in scripts without spaces.

    >>> tokens("nine more characters"), tokens("東京タワー")
    (5, 5)
    """
    return -(-ninths(text) // 9)


def ninths(text: str) -> int:
    """The same in ninths of a token, which add up exactly: the sum of the parts is that of the whole."""
    single = 0 if text.isascii() else sum(map(len, _SPACELESS.findall(text)))
    return 2 * len(text) + 7 * single
