"""How much of a memory a prompt carries: words of it that are said nowhere else, in its order and near each other."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from typing import Final

from eunoe.text.languages import STOPS
from eunoe.text.normalize import look_alike_form
from eunoe.tickets.spelling import Spelling, Word

LEAST = 6
"""So many words are needed at least."""
_NEAR = 20
_TOGETHER = 5
_SENTENCES = re.compile(r"(?<=[.!?])\s+|\n+")
_SHORTEST = 4
_EVERYDAY: Final = """
    add added adds answer bug bugs build call called calls change changed changes check checked checks class code
    command company done error errors every everything fail failed fails file files find first fix fixed fixes folder
    function functions give given help keep like line lines look make makes many method module much name named need
    needed needs never next note number page part please problem project read remember result results right return
    returns run runs second show shows still sure take test tested tests text then thing things ticket time tool turn
    used user users using value values version want well without word words work worked works write written wrong year
"""
_COMMON: Final = frozenset(
    word for words in (*STOPS.values(), _EVERYDAY.split()) for name in words for word in look_alike_form(name).split()
)


class Shares:
    """The words of memories, as wholes and sentence by sentence.

    >>> shares = Shares(["The staging database heron listens behind the blue firewall of our northern office."])
    >>> prompt = "Staging: databse heron listens, so beyond the blue firewall, northern office."
    >>> [prompt[start:end] for start, end in shares.spans(list(spelled(prompt)), set)]
    ['Staging: databse heron listens, so beyond the blue firewall, northern office']
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._parts: list[dict[str, int]] = []
        self._holders: dict[str, list[int]] = defaultdict(list)
        for part in dict.fromkeys(part for text in texts for part in (text, *_SENTENCES.split(text))):
            words = dict.fromkeys(word.letters for word in spelled(part) if _says_something(word.letters))
            if len(words) >= LEAST:
                for word in words:
                    self._holders[word].append(len(self._parts))
                self._parts.append({word: place for place, word in enumerate(words)})

    def spans(self, words: Sequence[Word], known: Callable[[], Set[str]]) -> Iterator[tuple[int, int]]:
        """Where words of a prompt hold more than half of such a text, of what is not known anyway."""
        seen: dict[int, list[int]] = defaultdict(list)
        for number, word in enumerate(words):
            for part in self._holders.get(word.letters, ()):
                seen[part].append(number)
        for part, numbers in seen.items():
            if len({words[number].letters for number in numbers}) >= LEAST:
                yield from self._spans(self._parts[part], words, numbers, known())

    def _spans(
        self, part: dict[str, int], words: Sequence[Word], numbers: Iterable[int], known: Set[str]
    ) -> Iterator[tuple[int, int]]:
        hits = [(number, part[words[number].letters]) for number in numbers if words[number].letters not in known]
        chain = _chain(hits)
        if len(chain) >= max(LEAST, len(part.keys() - known) // 2 + 1):
            for first, last in _groups(chain):
                yield words[first].start, words[last].end


def spelled(text: str) -> Iterator[Word]:
    """The words of a text as it stands."""
    return Spelling(text, [(place, place + 1) for place in range(len(text))]).words()


def _says_something(word: str) -> bool:
    return word not in _COMMON and (len(word) >= _SHORTEST or (len(word) > 1 and word.isdigit()))


def _chain(hits: Sequence[tuple[int, int]]) -> list[int]:
    """The longest row of hits that come in the order of the memory, each near the one before."""
    best: list[tuple[int, int]] = []
    for here, (number, order) in enumerate(hits):
        length, previous = 1, -1
        for before in range(here - 1, -1, -1):
            if number - hits[before][0] > _NEAR:
                break
            if hits[before][1] < order and best[before][0] >= length:
                length, previous = best[before][0] + 1, before
        best.append((length, previous))
    at = max(range(len(best)), key=lambda one: best[one][0], default=-1)
    chain: list[int] = []
    while at >= 0:
        chain.append(hits[at][0])
        at = best[at][1]
    return chain[::-1]


def _groups(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """First and last of those that stand together."""
    first = last = numbers[0]
    for number in numbers[1:]:
        if number - last > _TOGETHER:
            yield first, last
            first = number
        last = number
    yield first, last
