"""Texts without a language model: one line for each memory, nothing twice, within a number of words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from eunoe.apps.discussion.text_size import cut_to_size, size_in_words
from eunoe.text.normalize import normalize
from eunoe.text.sentences import split_sentences

_LINE_WORDS: Final = (40, 20, 10)
"""What a line may have; less if there are many lines."""


def fold_in(text: str, memories: Iterable[str], max_words: int) -> str:
    r"""Add a line for each memory to a text. If that is too long, lines are cut, then the oldest go.

    >>> fold_in("Anna lives in Rome.", ["Anna lives in Rome. She likes tea.", "She likes tea."], 100)
    'Anna lives in Rome.\nShe likes tea.'
    """
    lines = [line for line in text.splitlines() if line.strip()]
    known = {normalize(sentence) for line in lines for sentence in split_sentences(line)}
    for memory in memories:
        if line := _new_line(memory, known):
            lines.append(line)
    return "\n".join(_fit(lines, max_words))


def _new_line(memory: str, known: set[str]) -> str:
    """What a memory says that is not known yet."""
    new = {normalize(sentence): sentence for sentence in split_sentences(memory)}
    fresh = [sentence for key, sentence in new.items() if key not in known]
    known.update(new)
    return cut_to_size(" ".join(fresh), _LINE_WORDS[0])


def _fit(lines: list[str], max_words: int) -> list[str]:
    for limit in _LINE_WORDS:
        lines = [cut_to_size(line, limit) for line in lines]
        if sum(map(size_in_words, lines)) <= max_words:
            return lines
    excess, oldest = sum(map(size_in_words, lines)) - max_words, 0
    while excess > 0 and oldest < len(lines) - 1:
        excess -= size_in_words(lines[oldest])
        oldest += 1
    return lines[oldest:]


def update_lines(text: str, new: Iterable[str], past: Iterable[str], facts: Iterable[str], max_words: int) -> str:
    r"""Take lines out of a text and put others at its end, or before those of later facts; all others stay as they are.

    `facts` are all that is true now, the oldest first. If the text gets too long, their lines go, the oldest first.

    >>> update_lines("# Anna\n- Anna lives in Paris.", ["Anna lives in Rome."], ["Anna lives in Paris."], [], 100)
    '# Anna\n- Anna lives in Rome.'
    """
    gone = set(map(_list_line, past))
    lines = [line for line in text.splitlines() if line not in gone]
    known = set(map(normalize, lines))
    own = {line: place for place, line in enumerate(map(_list_line, facts))}
    _insert(lines, [line for line in dict.fromkeys(map(_list_line, new)) if normalize(line) not in known], own)
    excess = sum(map(size_in_words, lines)) - max_words
    kept = []
    for line in lines:
        if excess > 0 and line in own:
            excess -= size_in_words(line)
        else:
            kept.append(line)
    return "\n".join(kept)


def _insert(lines: list[str], new: Iterable[str], places: Mapping[str, int]) -> None:
    """Put each new line before the first one with a higher place; at the end if there is none."""
    last = max((places.get(line, -1) for line in lines), default=-1)
    for line in new:
        place = places.get(line, last)
        later = (number for number, each in enumerate(lines) if places.get(each, -1) > place) if place < last else ()
        lines.insert(next(iter(later), len(lines)), line)
        last = max(last, place)


def _list_line(text: str) -> str:
    return f"- {cut_to_size(' '.join(text.split()), _LINE_WORDS[0])}"
