"""Numbers in a text, in digits or in words, as values that can be compared."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Final, NamedTuple

from eunoe.form.data_files import PatternFile
from eunoe.text.normalize import fold

_PATTERNS: Final = PatternFile("numbers")
_HOURS: Final = 12
_AND: Final = frozenset({"and", "und", "et", "y", "e", "en"})
_MULTIPLIERS: Final = frozenset({100.0, 1000.0, 1_000_000.0})


class Number(NamedTuple):
    """A number and where it stands."""

    start: int
    end: int
    values: frozenset[str]
    """The forms that say the same: 1,200 may be 1200 or 1.2."""
    is_loose: bool
    """Whether it is a word that may be used without counting, as "one" and "second"."""


class _Part(NamedTuple):
    text: str
    start: int
    end: int
    value: float | None


def find_numbers(text: str, is_english: bool = True) -> list[Number]:
    """Return the numbers of a text; words that belong together are one."""
    found, run = list[Number](), list[_Part]()
    for part in _parts(text, is_english):
        if run and not _goes_on(text, run, part):
            found += _read_run(run)
            run = []
        if part.value is not None or (run and part.text in _AND):
            run.append(part)
        elif any(map(str.isdecimal, part.text)):
            found.append(Number(part.start, part.end, _digit_values(part.text), False))
    return [*found, *_read_run(run)]


def all_values(text: str, is_english: bool = True) -> frozenset[str]:
    """Return every value that a text may be said to name, those of the parts of a number among them."""
    parts = [_number_text(part.value) for part in _parts(text, is_english) if part.value is not None]
    whole = (number.values for number in find_numbers(text, is_english))
    return frozenset(parts).union(*whole, *map(_clock_values, _clock_times(text)))


def _parts(text: str, is_english: bool) -> Iterator[_Part]:
    words = _word_values()
    for match in _PATTERNS.part.finditer(text):
        word = fold(match[0])
        if word.isdecimal():
            value: float | None = float(word[:15])
        elif _PATTERNS.han.fullmatch(word):
            value = _read_han(word)
        else:
            value = None if is_english and word in _PATTERNS.words["not_english"] else words.get(word)
        yield _Part(word, match.start(), match.end(), value)


def _goes_on(text: str, run: list[_Part], part: _Part) -> bool:
    """Whether a part belongs to the number before it: "eighteen hundred and fifty", "thirty-five", "40k"."""
    between = text[run[-1].end : part.start]
    if between.strip(" -") or len(between) > 1:
        return False
    before = next(known.value or 0.0 for known in reversed(run) if known.value is not None)
    if part.text in _AND or part.value is None:
        return part.text in _AND and before in _MULTIPLIERS
    if part.value in _MULTIPLIERS:
        return before > 0
    return not part.text.isdecimal() and _completes(before, part.value)


def _completes(before: float, value: float) -> bool:
    """Whether a number word is added to the one before it: units to tens, anything less to hundreds."""
    return (before in range(20, 100, 10) and 0 < value < 10) or (before in _MULTIPLIERS and value < before)


def _read_run(run: Iterable[_Part]) -> list[Number]:
    parts = [part for part in run if part.value is not None]
    if not parts:
        return []
    first = parts[0].text
    # A character that counts is also a part of other words.
    is_loose = len(parts) == 1 and (first in _loose_words() or bool(_PATTERNS.han.match(first)))
    is_plain = len(parts) == 1 and first.isdecimal()
    value = (first.lstrip("0") or "0") if is_plain else _number_text(_add_up(parts))
    return [Number(parts[0].start, parts[-1].end, frozenset([value]), is_loose)]


def _add_up(parts: Iterable[_Part]) -> float:
    total = current = 0.0
    for part in parts:
        value = part.value or 0.0
        if value < 100 or part.text.isdecimal():
            current += value
        elif value == 100:
            current = max(current, 1.0) * value
        else:
            total, current = total + max(current, 1.0) * value, 0.0
    return total + current


def _digit_values(digits: str) -> frozenset[str]:
    """What digits with signs between them may mean."""
    if _PATTERNS.clock.fullmatch(digits):
        return _clock_values(digits)
    values = {digits}
    if _PATTERNS.thousands.fullmatch(digits):
        values.add(digits.replace(",", "").replace(".", ""))
    if digits.count(",") + digits.count(".") == 1 and ":" not in digits:
        values.add(_number_text(float(digits.replace(",", "."))))
    return frozenset(values)


def _clock_values(time: str) -> frozenset[str]:
    """A time of day by either half of the day, and as an hour where it has no minutes."""
    hour, _, minute = time.partition(":")
    hours = {int(hour), (int(hour) + _HOURS) % (2 * _HOURS), int(hour) % _HOURS or _HOURS}
    return frozenset([f"{one}:{minute}" for one in hours] + [str(one) for one in hours if minute == "00"])


def _clock_times(text: str) -> Iterator[str]:
    """Times told as "half past four" and "quarter to five"."""
    for match in _PATTERNS.part_of_hour.finditer(fold(text)):
        value = _word_values().get(match[2]) if not match[2].isdecimal() else float(match[2])
        if value is not None and value <= 2 * _HOURS:
            is_past = "past" in match[0]
            minutes = 30 if match[1] == "half" else 15 if is_past else 45
            yield f"{int(value) - (0 if is_past else 1)}:{minutes}"


def _read_han(word: str) -> float:
    """A number in Chinese characters, up to the thousands."""
    total, digit = 0.0, 0.0
    for sign in word:
        value = _word_values()[sign]
        if value >= 10:
            total, digit = total + max(digit, 1.0) * value, 0.0
        else:
            digit = value
    return total + digit


def _number_text(value: float) -> str:
    return f"{value:.10g}" if value < 1e10 else str(int(value))


@cache
def _loose_words() -> frozenset[str]:
    return frozenset(map(fold, _PATTERNS.words["loose"]))


@cache
def _word_values() -> Mapping[str, float]:
    rows = _PATTERNS.content["values"].items()
    return {fold(word): float(value) for value, words in rows for word in words.split()}
