"""Summaries without an LLM: what holds now, by subject, the newest first, within a number of words."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from eunoe.form.duplicates import is_duplicate
from eunoe.form.memory_keys import find_memory_key
from eunoe.form.rivals import is_rival, says_more
from eunoe.form.statements import read_statement
from eunoe.model.arguments import INSTRUCTION, KEPT_KINDS
from eunoe.model.atom import AUTHOR, EXTRACTIVE, MEMORY_KEY, Atom
from eunoe.text.normalize import fold
from eunoe.text.planned_days import is_day_over
from eunoe.text.sentences import cut_to_words, split_sentences, word_count
from eunoe.text.summary_lines import HEADINGS, PAST, SummaryLine, is_subject, read_summary, write_summary
from eunoe.text.third_person import quotation_of, third_person

_SPEAKER: Final = re.compile(r"(?P<name>[^\s:][^:.!?\n]{0,60}): (?P<words>.+)", re.DOTALL)
_QUESTION: Final = re.compile(r" \(asked: (?P<question>(?:(?! \(asked: ).)+)\)$")
_UNTIL: Final = re.compile(r" \(until \d{4}-\d\d-\d\d\)$")
"""The mark of what is left of a closed memory: it has no value that another could take the place of."""
_MAX_PASSES: Final = 50
_MAX_COMPARED_ENTRIES: Final = 200
"""An entry is compared with so many that were said after it: more than any summary keeps."""
_NOBODY: Final = "?"
"""Stands for a missing speaker: what is said of somebody by name has a memory key all the same."""
_PLAIN_VALUE: Final = 0.5
"""What a sentence is worth that is no statement."""
_RECENCY_BONUS: Final = 1.0
"""What the latest is worth more than the oldest."""
_INSTRUCTION_BONUS: Final = 100.0
_PAST_LOSS: Final = 10.0
"""More than any statement is worth: instructions go last where room is short, and what is past goes first."""
_LIST_MARKS: Final = re.compile(r"^(?:- )+")
_LABELS: Final = {heading: label for label, heading in HEADINGS.items()}


@dataclass(frozen=True, slots=True)
class _Entry:
    """What is kept or dropped as a whole: a statement, or a sentence of a line that somebody wrote."""

    text: str
    """As it was said, with its speaker."""
    date: str = ""
    is_past: bool = False
    line: int = 0
    """Sentences of one line stay on one line."""
    keys: tuple[str, ...] = ()
    """Memory keys that rules found, or that somebody gave by hand."""
    llm_key: str = ""
    """The memory key that an LLM gave: it may stand for a category."""
    value: float = _PLAIN_VALUE
    is_plan: bool = False
    label: str = ""
    subject: str = ""
    """Whom it is about."""

    @property
    def heading(self) -> str:
        return PAST if self.is_past else HEADINGS.get(self.label, self.subject)

    @property
    def summary_line(self) -> SummaryLine:
        """As a statement where that is safe. Whose instruction it is must be seen."""
        stated = "" if self.label == INSTRUCTION else third_person(self.text)
        return SummaryLine(stated or self.text, self.heading, self.date, self.is_past, number=self.line)

    @property
    def worth(self) -> float:
        bonus = _INSTRUCTION_BONUS if self.label == INSTRUCTION else 0.0
        return self.value + bonus - (_PAST_LOSS if self.is_past else 0.0)


def summarize_by_rules(previous: str, observations: Sequence[Atom], max_words: int, now: datetime) -> str:
    """Choose the most valuable statements of the old summary and the observations.

    They stand below their subjects, the newest first, with their dates. A later one takes the place of an earlier one
    with the same memory key, and a plan whose day is over is marked as past. Prose stays as it is, before the rest.
    """
    text = _write([*_parse_summary(previous), *_read_observations(observations)], max_words, now)
    # What was written may read a little differently: it is read until it says the same twice.
    for _ in range(_MAX_PASSES):
        before, text = text, _write(list(_parse_summary(text)), max_words, now)
        if before == text:
            break
    return text


def _parse_summary(text: str) -> Iterator[_Entry]:
    """The entries of a summary: prose, and then statements from the oldest on."""
    lines = list(read_summary(text))
    yield from (_entry(line.text, line=line.number) for line in lines if line.is_prose)
    yield from (_read_line(line) for line in reversed(lines) if not (line.is_prose or line.is_heading))


def _read_line(line: SummaryLine) -> _Entry:
    if not line.subject:
        return _classify(_entry(line.text, line.date, is_past=line.is_past))
    label = _LABELS.get(line.subject, "fact")
    quotation = "" if label == INSTRUCTION else quotation_of(line.text)
    entry = _entry(quotation or line.text, line.date, is_past=line.is_past)
    subject = line.subject if is_subject(line.subject) else ""
    return replace(entry, label=label, subject=subject, is_plan=entry.is_plan or label == "plan")


def _read_observations(observations: Sequence[Atom]) -> Iterator[_Entry]:
    for number, atom in enumerate(observations):
        text = _LIST_MARKS.sub("", " ".join(atom.text.split()))
        date = "" if atom.time is None else atom.time.astimezone(UTC).strftime("%Y-%m-%d")
        if text:
            key = str(atom.metadata.get(MEMORY_KEY) or "")
            is_by_llm = atom.metadata.get(AUTHOR, EXTRACTIVE) != EXTRACTIVE
            entry = _entry(text, date, line=-1 - number, key="" if is_by_llm else key)
            entry = _classify(entry, atom.label, atom.people)
            yield replace(entry, llm_key=key) if is_by_llm else entry


def _entry(text: str, date: str = "", *, is_past: bool = False, line: int = 0, key: str = "") -> _Entry:
    name, said = _split_speaker(text)
    question = _QUESTION.search(said)
    said, asked = (said[: question.start()], question["question"]) if question else (said, "")
    statements = [statement for statement in map(read_statement, split_sentences(said)) if statement]
    keys = () if _UNTIL.search(text) else tuple(filter(None, (key, find_memory_key(name or _NOBODY, said, asked))))
    if not statements:
        return _Entry(text, date, is_past, line, keys)
    best = max(statements, key=lambda statement: statement.score)
    return _Entry(text, date, is_past, line, keys, value=best.score, is_plan=best.label == "plan")


def _split_speaker(text: str) -> tuple[str, str]:
    match = _SPEAKER.fullmatch(text)
    return (match["name"], match["words"]) if match else ("", text)


def _classify(entry: _Entry, label: str = "", people: Sequence[str] = ()) -> _Entry:
    """With its label and its subject: a person whom it begins with, else who said it, else the only one it names."""
    name, said = _split_speaker(entry.text)
    named = (person for person in people if person != name and re.match(rf"{re.escape(person)}(?:'s)? ", said))
    subject = next(named, "") or name or (people[0] if len(people) == 1 else "")
    kind = label if label in KEPT_KINDS else "plan" if entry.is_plan else "fact"
    is_plan = entry.is_plan or kind == "plan"
    return replace(entry, label=kind, subject=subject if is_subject(subject) else "", is_plan=is_plan)


def _write(entries: list[_Entry], max_words: int, now: datetime) -> str:
    ordered = sorted(entries, key=lambda entry: entry.date)  # those without a date come first
    kept = _drop_duplicates(_drop_replaced(ordered))
    over = [entry.is_past or (entry.is_plan and is_day_over(entry.text, entry.date, now)) for entry in kept]
    return _fit([replace(entry, is_past=is_past) for entry, is_past in zip(kept, over, strict=True)], max_words)


def _drop_replaced(entries: list[_Entry]) -> list[_Entry]:
    """Without those that a later one takes the place of. What says something else besides is kept as past, if it has a
    date to say so by."""
    latest = {key: entry for entry in entries for key in (*entry.keys, entry.llm_key) if key}
    kept: list[_Entry] = []
    for entry in entries:
        later = _find_later(entry, latest)
        if later is None:
            kept.append(entry)
        elif entry.date and says_more(entry.text, later.text):
            kept.append(replace(entry, is_past=True))
    return kept


def _find_later(entry: _Entry, latest: Mapping[str, _Entry]) -> _Entry | None:
    """The entry that takes its place, if there is one."""
    for key in entry.keys:
        if latest[key] is not entry:
            return latest[key]
    rival = latest.get(entry.llm_key, entry)
    return rival if rival is not entry and is_rival(entry.text, rival.text, entry.llm_key) else None


def _drop_duplicates(entries: list[_Entry]) -> list[_Entry]:
    """Each thing once, as it was said last."""
    kept: list[_Entry] = []
    for entry in reversed(entries):
        if not any(is_duplicate(entry.text, other.text) for other in kept[-_MAX_COMPARED_ENTRIES:]):
            kept.append(entry)
    return kept[::-1]


def is_past_plan(atom: Atom, now: datetime) -> bool:
    """Return whether an atom names a day that was to come when it was said and is over."""
    said = atom.time or atom.recorded
    return said is not None and is_day_over(atom.text, f"{said.astimezone(UTC):%Y-%m-%d}", now)


def _fit(entries: list[_Entry], max_words: int) -> str:
    """The entries as text; while it is too long, the least valuable and oldest goes."""
    sizes = [word_count(str(entry.summary_line)) for entry in entries]
    headings = [fold(entry.heading) for entry in entries]
    values = [entry.worth + _RECENCY_BONUS * place / len(entries) for place, entry in enumerate(entries)]
    left, in_group = set(range(len(entries))), Counter(headings)
    size = sum(sizes) + sum(map(word_count, in_group))
    for place in sorted(left, key=lambda place: (values[place], place)):
        if len(left) == 1 or size <= max_words:
            break
        left.remove(place)
        in_group[headings[place]] -= 1
        size -= sizes[place] + (0 if in_group[headings[place]] else word_count(headings[place]))
    kept = [entries[place] for place in sorted(left)]
    if size <= max_words:
        return write_summary([entry.summary_line for entry in kept])
    # A heading with a part of a statement says less than the part alone.
    return "".join(cut_to_words(str(entry.summary_line).removeprefix("- "), max_words) for entry in kept)
