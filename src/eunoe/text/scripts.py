"""Scripts that put no space between words."""

from __future__ import annotations

import re
from typing import Final

SPACELESS: Final = (
    "\u2e80-\u2fdf\u3005\u3007\u3021-\u3029\u3040-\u30fa\u30fc-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff\u1100-\u11ff\uac00-\ud7a3"
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0f40-\u0fbc\u1000-\u1049\u1050-\u109f\u1780-\u17d3"
)
"""The letters of Chinese, Japanese, Korean, Thai, Lao, Tibetan, Burmese and Khmer, as a class of a pattern."""
WIDE: Final = re.compile(
    "[\u0e00-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef"
    "\U00020000-\U0003ffff]+"
)
"""Runs of these letters with their marks and punctuation: what a tokenizer splits character by character."""
