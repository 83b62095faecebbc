"""How much of a memory a prompt holds: words of it that are said nowhere else, in its order and near each other."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Final

from eunoe.text.languages import STOP_WORDS
from eunoe.text.look_alikes import bare_form
from eunoe.tickets.aligned_text import AlignedText, AlignedWord, Span

_MIN_SHARED_WORDS: Final = 6
_MAX_WORDS_BETWEEN: Final = 20
"""Words of a memory that stand further apart in a prompt have nothing to do with each other."""
_MAX_WORDS_CUT: Final = 5
"""More words between two words of a memory are not part of the leak."""
_MIN_WORD_LETTERS: Final = 4
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+|\n+")
_EVERYDAY_WORDS: Final = Path(__file__).with_name("everyday_words.txt").read_text(encoding="utf-8").split()
_COMMON_WORDS: Final = frozenset(
    word for words in (*STOP_WORDS.values(), _EVERYDAY_WORDS) for name in words for word in bare_form(name).split()
)


class WordOverlap:
    """Finds memories, or sentences of them, of which a prompt holds more than half of the words.

    >>> overlap = WordOverlap(["The staging database heron listens behind the blue firewall of our northern office."])
    >>> prompt = "Staging: databse heron listens, so beyond the blue firewall, northern office."
    >>> [prompt[start:end] for start, end in overlap.find(AlignedText.of(prompt), set)]
    ['Staging: databse heron listens, so beyond the blue firewall, northern office']
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._word_orders: list[dict[str, int]] = []
        """The distinct words of each memory and sentence, and where in it they come."""
        self._holders: defaultdict[str, list[int]] = defaultdict(list)
        """Which of them hold a word."""
        for part in dict.fromkeys(part for text in texts for part in (text, *_SENTENCE_END.split(text))):
            words = dict.fromkeys(word.letters for word in AlignedText.of(part).words() if _is_telling(word.letters))
            if len(words) >= _MIN_SHARED_WORDS:
                for word in words:
                    self._holders[word].append(len(self._word_orders))
                self._word_orders.append({word: place for place, word in enumerate(words)})

    def find(self, prompt: AlignedText, allowed_words: Callable[[], Set[str]]) -> Iterator[Span]:
        """Find where a prompt holds more than half of a text, not counting the words that are allowed."""
        words = list(prompt.words())
        shared: defaultdict[int, list[int]] = defaultdict(list)
        for place, word in enumerate(words):
            for holder in self._holders.get(word.letters, ()):
                shared[holder].append(place)
        for holder, places in shared.items():
            if len({words[place].letters for place in places}) >= _MIN_SHARED_WORDS:
                yield from _find_overlap(self._word_orders[holder], words, places, allowed_words())


def _is_telling(word: str) -> bool:
    return word not in _COMMON_WORDS and (len(word) >= _MIN_WORD_LETTERS or (len(word) > 1 and word.isdigit()))


def _find_overlap(
    order: Mapping[str, int], words: Sequence[AlignedWord], places: Iterable[int], allowed: Set[str]
) -> Iterator[Span]:
    shared = [(place, order[words[place].letters]) for place in places if words[place].letters not in allowed]
    chain = _longest_chain(shared)
    if len(chain) < max(_MIN_SHARED_WORDS, len(order.keys() - allowed) // 2 + 1):
        return
    first = last = chain[0]
    for place in chain[1:]:
        if place - last > _MAX_WORDS_CUT:
            yield words[first].start, words[last].end
            first = place
        last = place
    yield words[first].start, words[last].end


def _longest_chain(shared: Sequence[tuple[int, int]]) -> list[int]:
    """The places of the most words that come in the order of the memory, each near the one before."""
    chains: list[tuple[int, int]] = []  # of the chain that ends at each word: its length, and the word before the last
    for number, (place, order) in enumerate(shared):
        length, previous = 1, -1
        for before in range(number - 1, -1, -1):
            if place - shared[before][0] > _MAX_WORDS_BETWEEN:
                break
            if shared[before][1] < order and chains[before][0] >= length:
                length, previous = chains[before][0] + 1, before
        chains.append((length, previous))
    number = max(range(len(chains)), key=lambda number: chains[number][0], default=-1)
    places: list[int] = []
    while number >= 0:
        places.append(shared[number][0])
        number = chains[number][1]
    return places[::-1]
