"""The lines of a summary: headings with the statements below them, and whatever else somebody wrote."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import Final, NamedTuple

from eunoe.text.normalize import fold
from eunoe.text.sentences import split_sentences

HEADINGS: Final = {"instruction": "Instructions", "plan": "Plans", "decision": "Decisions"}
"""What is gathered by its label rather than by whom it is about."""
PAST: Final = "Past"
_LAST_HEADINGS: Final = (HEADINGS["plan"], HEADINGS["decision"], PAST)
_RESERVED: Final = frozenset(map(fold, [*HEADINGS.values(), PAST]))
"""Headings that no name may take: whoever is called so could put words among the instructions."""
_HEADING: Final = re.compile(r"(?P<subject>[^\s:#*•-][^:\n]{0,60}):")
_STATEMENT: Final = re.compile(r"(?P<mark>- )?(?:(?P<date>\d{4}-\d\d-\d\d)(?P<past> \(past\))?: )?(?P<text>.+)")


class SummaryLine(NamedTuple):
    """One line of a summary, or a sentence of one that is prose."""

    text: str
    """Without its mark and its date."""
    subject: str = ""
    """The heading above it; empty for what is below none."""
    date: str = ""
    is_past: bool = False
    is_heading: bool = False
    number: int = 0
    """Sentences of prose with the same number stand on one line."""

    @property
    def is_prose(self) -> bool:
        return not (self.subject or self.date or self.is_heading)

    def __str__(self) -> str:
        if self.is_heading:
            return f"{self.text}:"
        date = f"{self.date}{' (past)' if self.is_past else ''}: " if self.date else ""
        return f"{'- ' if self.subject else ''}{date}{self.text}"


def read_summary(text: str) -> Iterator[SummaryLine]:
    """Yield the lines of a summary. A heading is a line with a colon that is followed by statements, each with a mark.

    >>> [str(line) for line in read_summary("Tea:\\n- 2024-05-07: Anna likes it.") if line.subject]
    ['- 2024-05-07: Anna likes it.']
    """
    lines = filter(None, (" ".join(line.split()) for line in text.splitlines()))
    subject = ""
    for number, (line, following) in enumerate(pairwise([*lines, ""])):
        heading, statement = _HEADING.fullmatch(line), _STATEMENT.fullmatch(line)
        if heading and following.startswith("- "):
            subject = heading["subject"].strip()
            yield SummaryLine(subject, is_heading=True)
        elif statement:
            subject = subject if statement["mark"] else ""
            if subject or (statement["date"] and not statement["mark"]):
                date, is_past = statement["date"] or "", bool(statement["past"])
                yield SummaryLine(statement["text"], subject, date, is_past, number=number)
            else:
                yield from (SummaryLine(sentence, number=number) for sentence in _split_prose(line))


def _split_prose(line: str) -> list[str]:
    """The sentences of a line; all of it where these leave something out, such as a mark."""
    found = split_sentences(line)
    return found if " ".join(found) == line else [line]


def is_subject(name: str) -> bool:
    """Whether a name can stand in a heading."""
    return bool(_HEADING.fullmatch(f"{name}:")) and name == " ".join(name.split()) and fold(name) not in _RESERVED


def without_headings(summary: str) -> str:
    """The statements of a summary, each on its line."""
    return "\n".join(str(line) for line in read_summary(summary) if not line.is_heading)


def write_summary(lines: Sequence[SummaryLine]) -> str:
    """The text of lines that are given from the oldest on: prose as it was, then each subject with the newest first."""
    prose = groupby((line for line in lines if line.is_prose), key=lambda line: line.number)
    written = [" ".join(map(str, sentences)) for _, sentences in prose]
    groups: dict[str, list[SummaryLine]] = {}
    for line in (line for line in reversed(lines) if not line.is_prose):
        groups.setdefault(fold(line.subject), []).append(line)
    for group in sorted(groups.values(), key=lambda group: _order(group[0].subject)):
        written += [f"{group[0].subject}:"] if group[0].subject else []
        written += map(str, group)
    return "\n".join(written)


def _order(heading: str) -> int:
    """What is below no heading, instructions, people from the one last heard of, and then the rest."""
    if heading in _LAST_HEADINGS:
        return 3 + _LAST_HEADINGS.index(heading)
    return 0 if not heading else 1 if heading == HEADINGS["instruction"] else 2
