"""How much of several texts fits into a number of tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from eunoe.text.sentences import token_count

_BREAK_TOKENS: Final = 4
"""What stands between two texts, such as the mark between chunk memories."""
_CUT: Final = "…"


def fit(texts: Sequence[str], tokens: int, ranking: Iterable[int] | None = None) -> list[str]:
    """The texts that fit, in their order: those at the end first, or in the ranking of their places. Of the first one,
    if it does not fit, its beginning. With 0 tokens there is no limit.

    >>> fit(["Anna lives in Rome.", "Bob likes tea.", "Eve is 40."], 12)
    ['Bob likes tea.', 'Eve is 40.']
    """
    if not tokens:
        return list(texts)
    kept: dict[int, str] = {}
    for place in range(len(texts) - 1, -1, -1) if ranking is None else ranking:
        text = texts[place] if kept else cut_to_tokens(texts[place], tokens)
        tokens -= token_count(text) + (_BREAK_TOKENS if kept else 0)
        if tokens < 0:
            break
        kept[place] = text
    return [kept[place] for place in sorted(kept)]


def cut_to_tokens(text: str, tokens: int) -> str:
    """The beginning of a text that has so many estimated tokens, and then "…".

    >>> cut_to_tokens("Anna lives in Rome.", 3), cut_to_tokens("Anna lives in Rome.", 5)
    ('Anna lives…', 'Anna lives in Rome.')
    """
    short, count = text, token_count(text)
    while count > tokens and short:
        short = short[: len(short) * tokens // count]
        count = token_count(short + _CUT)
    if len(short) == len(text):
        return text
    return (short.rsplit(" ", 1)[0] if " " in short else short).rstrip() + _CUT
