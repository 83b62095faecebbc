"""Whether two statements say the same, by rule: alike in words, equal in all that makes a difference."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from eunoe.text.analyzer import stem, terms_of_each, word_cache
from eunoe.text.dates import DAY_OFFSETS, MONTHS, NUMBER_VALUES, NUMBER_WORDS, SEASONS, WEEKDAYS
from eunoe.text.languages import ENGLISH, detect_language, is_stop_word
from eunoe.text.normalize import fold
from eunoe.text.word_lists import word_set

SAME: Final = 0.8
_WORD: Final = re.compile(r"[^\W_]+(?:['’.,:/-][^\W_]+)*")
_NAME: Final = re.compile(r"(?<=[a-z,;0-9'’)] )[^\W\d_][\w'’-]*")
_INITIAL: Final = re.compile(r"(?:^|[.!?:] )[\"“(]*([^\W\d_][\w'’-]*)")
_FILLERS: Final = word_set(
    """
    really very so just now actually also still quite already honestly definitely totally absolutely well oh yes yeah
    jetzt wirklich sehr vraiment très maintenant muy realmente ahora davvero molto muito agora echt nu
    """
)
_NEGATIONS: Final = word_set(
    """
    not no never none nobody nothing neither nor without cannot cant dont doesnt didnt isnt wasnt arent werent wont
    wouldnt shouldnt hasnt havent hadnt couldnt stop stopped quit hardly no-one longer anymore nicht kein keine keinen
    nie niemals ne pas jamais sans nunca jamas sin non mai senza nao niet geen nooit unlike except
    """
)
_PAIRS: Final = """
    love/hate like/dislike like/hate love/dislike enjoy/hate start/stop start/finish begin/end open/close
    open/closed buy/sell bought/sold left/right win/lose won/lost accept/refuse accepted/refused accept/reject
    accepted/rejected arrive/leave arrived/left before/after married/divorced hot/cold old/new more/less more/fewer
    morning/evening early/late big/small cheap/expensive up/down increase/decrease rise/fall join/leave joined/left
    hired/fired happy/sad easy/hard good/bad best/worst first/last always/never mother/father mum/dad mom/dad
    brother/sister son/daughter wife/husband boy/girl man/woman uncle/aunt he/she his/her him/her in/out
    with/without on/off max/min north/south east/west can/cannot pass/fail passed/failed true/false yes/no
    tea/coffee cat/dog upper/lower borrow/lend lent/borrowed will/did black/white vegan/vegetarian allow/forbid
    enable/disable enabled/disabled add/remove from/to
"""
_OPPOSITES: Final = tuple(pair.split("/") for pair in _PAIRS.split())
_TELLING: Final = (
    frozenset(map(fold, MONTHS)) | frozenset(map(fold, WEEKDAYS)) | frozenset(map(fold, SEASONS))
    | frozenset(word for name in DAY_OFFSETS for word in fold(name).split() if len(word) > 3)
    | frozenset(map(fold, NUMBER_VALUES)) | frozenset(map(fold, NUMBER_WORDS)) | word_set("last next ago week month year")
) - {"a", "an"}  # fmt: skip
_SIDES: Final = {side: (place, n) for place, pair in enumerate(_OPPOSITES) for n, side in enumerate(pair)}


class _Shape(NamedTuple):
    stems: frozenset[str]
    """Content words."""
    exact: frozenset[str]
    """Numbers, dates and names: what differs here makes another statement."""
    initials: frozenset[str]
    """Words with a capital at the start of a sentence: they may be names."""
    negations: int
    words: frozenset[str]
    order: tuple[str, ...]


def same(a: str, b: str) -> bool:
    """Whether one of the two can stand for both.

    >>> same("Anna: I really love green tea.", "Anna: I love green tea")
    True
    >>> same("Anna: I love green tea.", "Anna: I don't love green tea.")
    False
    """
    first, second = _shape(a), _shape(b)
    if first.order == second.order:
        return True
    return not _differ(first, second) and _overlap(first, second) >= SAME


def likeness(a: str, b: str) -> float:
    """How much two texts have in common, from 0 to 1.

    >>> likeness("I moved to Rome", "I moved to Rome"), likeness("I moved to Rome", "It rains")
    (1.0, 0.0)
    """
    first, second = _shape(a), _shape(b)
    if first.order == second.order:
        return 1.0
    found = _overlap(first, second)
    return round(min(found, 0.99) * (0.5 if _differ(first, second) else 1.0), 4)


def _overlap(first: _Shape, second: _Shape) -> float:
    """Jaccard's measure of the content words."""
    together = len(first.stems | second.stems)
    return len(first.stems & second.stems) / together if together else 0.0


def _differ(first: _Shape, second: _Shape) -> bool:
    if first.exact != second.exact or first.negations % 2 != second.negations % 2:
        return True
    if first.initials - second.words and second.initials - first.words:
        return True
    return _opposed(first.words, second.words) or _swapped(first, second)


def _opposed(first: frozenset[str], second: frozenset[str]) -> bool:
    only = [_SIDES[word] for word in first - second if word in _SIDES]
    other = {_SIDES[word] for word in second - first if word in _SIDES}
    return any((place, 1 - side) in other for place, side in only)


def _swapped(first: _Shape, second: _Shape) -> bool:
    """The same words with who and whom exchanged."""
    if first.stems != second.stems or len(first.exact) < 2:
        return False
    return [w for w in first.order if w in first.exact] != [w for w in second.order if w in second.exact]


@word_cache(4096)
def _shape(text: str) -> _Shape:
    found = [fold(match[0]) for match in _WORD.finditer(text)]
    plain = [word.replace("'", "").replace("’", "") for word in found]
    spoken = detect_language(text)
    content = [word for word in found if word not in _FILLERS and (not is_stop_word(word, spoken) or word in _TELLING)]
    stems = frozenset(term for word in content for term in _terms(word, spoken))
    names = {fold(match[0]) for match in _NAME.finditer(text) if match[0][0].isupper() and match[0] not in ("I", "I'm")}
    exact = {word for word in found if word in _TELLING or any(map(str.isdecimal, word))}
    initials = {fold(match[1]) for match in _INITIAL.finditer(text) if match[1][0].isupper()}
    marks = sum(word in _NEGATIONS or word.endswith("n't") for word in plain)
    return _Shape(
        stems, frozenset(exact | _bare(names)), _tellable(initials, spoken), marks, frozenset(plain), tuple(plain)
    )


def _bare(names: set[str]) -> set[str]:
    return {name.removesuffix("'s").removesuffix("’s") for name in names if not name.startswith(("i'", "i’"))}


def _tellable(initials: set[str], spoken: int) -> frozenset[str]:
    """Those that are neither fillers nor small words, as in "I've" and "It's"."""
    return frozenset(
        word for word in initials - _FILLERS if not is_stop_word(word.replace("’", "'").partition("'")[0], spoken)
    )


def _terms(word: str, spoken: int) -> tuple[str, ...]:
    return (stem(word, spoken or ENGLISH),) if word.isascii() else terms_of_each([word], spoken)[0]
