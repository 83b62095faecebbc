"""How many tokens a language model would read, estimated without its tokenizer."""

import re
from math import ceil
from typing import Final

from eunoe.text.scripts import WIDE

CHARACTERS_PER_TOKEN: Final = 4.5
"""Usual for English. A character of a script without spaces is about one token."""
_WIDE: Final = re.compile(f"[{WIDE}]+")


def token_count(text: str) -> int:
    """Estimate the tokens of a text.

    >>> token_count("nine more characters"), token_count("東京タワー")
    (5, 5)
    """
    return ceil(text_width(text) / CHARACTERS_PER_TOKEN)


def text_width(text: str) -> float:
    """Return the length of a text, where a character that is a token of its own counts as 4.5. Widths add up."""
    if text.isascii():
        return float(len(text))
    wide = sum(map(len, _WIDE.findall(text)))
    return len(text) + (CHARACTERS_PER_TOKEN - 1) * wide
