"""Scripts that put no space between words, as classes of a pattern. They differ because their questions do.

A pattern with such a class takes milliseconds to compile, so each is compiled where it is used.
"""

import unicodedata
from typing import Final

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
