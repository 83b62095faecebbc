"""Summaries without a language model: the sentences that matter most, within a number of words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from eunoe.form.duplicates import same
from eunoe.form.keys import key_of
from eunoe.form.statements import Statement, statement
from eunoe.model.atom import Atom
from eunoe.text.sentences import cut_to_words, split_sentences, word_count

_LINE: Final = re.compile(r"(?P<date>\d{4}-\d\d-\d\d)(?P<past> \(past\))?: (?P<said>.+)")
_SPEAKER: Final = re.compile(r"(?P<who>[^\s:][^:.!?\n]{0,60}): (?P<said>.+)", re.DOTALL)
_ASKED: Final = re.compile(r" \(asked: (?P<question>.+)\)$")
_DAY: Final = 86_400.0
_YEAR: Final = 366 * _DAY
_PASSES: Final = 50
_NOBODY: Final = "?"
"""Who says what has no speaker: what it says of somebody by name has a key all the same."""
_RECENT: Final = 1.0
"""What the latest is worth more than the oldest."""


@dataclass(frozen=True, slots=True)
class _Unit:
    """What is kept or dropped as a whole: a dated line, or a sentence of a line without a date."""

    text: str
    date: str = ""
    past: bool = False
    line: int = 0
    """Sentences of one line stay on one line."""
    keys: tuple[str, ...] = ()
    value: float = 0.0
    plan: bool = False

    @property
    def written(self) -> str:
        return f"{self.date}{' (past)' if self.past else ''}: {self.text}" if self.date else self.text


def summarise(previous: str, observations: Sequence[Atom], max_words: int, now: datetime) -> str:
    """The sentences of the old summary and the observations, the most valuable first to be kept.

    Each on its line, the oldest first, with its date where it has one. What a later one with the same key says takes
    the place of the earlier, and a plan whose day is over is marked as past.
    """
    text = _pass([*_read(previous), *_added(observations)], max_words, now)
    # What was written may read a little differently: it is read until it says the same twice.
    for _ in range(_PASSES):
        again, text = text, _pass(list(_read(text)), max_words, now)
        if again == text:
            break
    return text


def _pass(units: list[_Unit], max_words: int, now: datetime) -> str:
    ordered = sorted(units, key=lambda unit: unit.date)
    kept = _distinct(_current(ordered))
    dated = [replace(unit, past=unit.past or (unit.plan and _is_over(unit, now))) for unit in kept]
    return _fitted(dated, max_words)


def _read(text: str) -> Iterator[_Unit]:
    """The units of a summary."""
    for number, line in enumerate(text.splitlines()):
        if match := _LINE.fullmatch(line.strip()):
            yield _unit(match["said"].strip(), match["date"], past=bool(match["past"]))
        else:
            yield from (_unit(found, line=number) for found in _pieces(line))


def _pieces(line: str) -> list[str]:
    """The sentences of a line; one without any, such as a mark, is none."""
    stripped = " ".join(line.split())
    found = split_sentences(stripped)
    return found if " ".join(found) == stripped else [stripped] if stripped else []


def _added(observations: Sequence[Atom]) -> Iterator[_Unit]:
    """The units of observations; those without a time come before all that have one."""
    for number, atom in enumerate(observations):
        text = " ".join(atom.text.split())
        date = "" if atom.time is None else atom.time.astimezone(UTC).strftime("%Y-%m-%d")
        if text:
            yield _unit(text, date, key=str(atom.metadata.get("memory_key") or ""), line=-1 - number)


def _unit(text: str, date: str = "", *, past: bool = False, line: int = 0, key: str = "") -> _Unit:
    found = _stated(text)
    score, plan = (found.score, found.label == "plan") if found else (0.5, False)
    return _Unit(text, date, past, line, tuple(filter(None, (key, _key(text)))), score, plan)


def _parts(text: str) -> tuple[str, str, str]:
    """Who says it, what, and what was asked."""
    match = _SPEAKER.fullmatch(text)
    who, said = (match["who"], match["said"]) if match else ("", text)
    asked = _ASKED.search(said)
    return (who, said[: asked.start()], asked["question"]) if asked else (who, said, "")


def _key(text: str) -> str:
    who, said, asked = _parts(text)
    return key_of(who or _NOBODY, said, asked)


def _stated(text: str) -> Statement | None:
    """The weightiest sentence of a unit."""
    found = [each for each in map(statement, split_sentences(_parts(text)[1])) if each]
    return max(found, key=lambda each: each.score, default=None)


def _current(ordered: list[_Unit]) -> list[_Unit]:
    """Without what a later one with the same key has replaced."""
    latest = {key: place for place, unit in enumerate(ordered) for key in unit.keys}
    return [unit for place, unit in enumerate(ordered) if all(latest[key] == place for key in unit.keys)]


def _distinct(units: list[_Unit]) -> list[_Unit]:
    """Each thing once, as it was said last."""
    kept: list[_Unit] = []
    for unit in reversed(units):
        if not any(same(unit.text, other.text) for other in kept):
            kept.append(unit)
    return kept[::-1]


def _is_over(unit: _Unit, now: datetime) -> bool:
    """Whether the day a plan names is over."""
    # Reading dates costs a start-up that most calls do not need.
    from eunoe.text.dates import find_date_ranges

    try:
        said = datetime.fromisoformat(unit.date).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return False
    ends = [_ahead(found.start, found.end, said) for found in find_date_ranges(unit.text, said, (said, said + _YEAR))]
    due = [end for end in ends if end > said]
    return bool(due) and min(due) <= now.timestamp()


def _ahead(start: float, end: float, said: float) -> float:
    """The end of a range; a weekday in a plan is the next one, not the last."""
    return end + 7 * _DAY if said - 7 * _DAY <= start < said and end - start <= _DAY else end


def _fitted(units: list[_Unit], max_words: int) -> str:
    """The units as text; while it is too long, the least valuable and oldest goes."""
    sizes = [word_count(unit.written) for unit in units]
    value = [unit.value + _RECENT * place / len(units) for place, unit in enumerate(units)]
    left = set(range(len(units)))
    for place in sorted(left, key=lambda place: (value[place], place)):
        if len(left) == 1 or sum(sizes[each] for each in left) <= max_words:
            break
        left.remove(place)
    return cut_to_words(_joined([units[place] for place in sorted(left)]), max_words)


def _joined(units: list[_Unit]) -> str:
    lines: list[str] = []
    for before, unit in zip([None, *units], units, strict=False):
        if before and not unit.date and not before.date and unit.line == before.line:
            lines[-1] += f" {unit.written}"
        else:
            lines.append(unit.written)
    return "\n".join(lines)
