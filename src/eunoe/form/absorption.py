"""Which observations a new text of a summary absorbs, and what it does not say any more although it still holds.

A model's word is evidence: an observation is absorbed if the text bears it out, or if the model names it as dropped and
the store knows why. The rest waits.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final

from eunoe.form.claims import Said, find_doubt, split_clauses, without_speaker
from eunoe.form.content_words import covered_share
from eunoe.form.evidence import Source, compare, is_borne_out
from eunoe.form.rivals import is_rival, key_words
from eunoe.form.rule_summary import is_past_plan
from eunoe.form.statements import is_instruction
from eunoe.form.summary_answer import PATTERNS
from eunoe.form.summary_guard import SummaryTask, is_translated
from eunoe.model.atom import Atom
from eunoe.records.identity import memory_key
from eunoe.text.normalize import fold
from eunoe.text.sentences import split_sentences
from eunoe.text.summary_lines import without_headings
from eunoe.text.third_person import third_person

_MIN_KEY_SHARE: Final = 0.75
"""Share of an observation's key words that a text must have to say it: all of three, all but one of four."""
_MIN_SENTENCE_SHARE: Final = 0.5
"""The same of a sentence of a summary, which may be put into other words, and of a clause that bears on a statement."""
_MAX_SIZE: Final = 6
"""What is told in so few words is told by one observation."""


def find_absorbed(text: str, dropped: Collection[int], task: SummaryTask) -> list[Atom]:
    """Return the observations that a text says, and those named as dropped by their numbers that are past or superseded
    by what the summary knows."""
    names, sentences = _common_names(task), split_sentences(text)
    taken_in = [atom for atom in task.observations if _is_taken_in(atom, text, sentences, names, task)]
    known = [*task.absorbed, *taken_in]
    named = (atom for number, atom in enumerate(task.observations, 1) if number in dropped and atom not in taken_in)
    return [*taken_in, *(atom for atom in named if _may_drop(atom, known, task.now))]


def find_lost(text: str, task: SummaryTask) -> list[str]:
    """Return what the old summary says, still holds, and cannot be found in the new text."""
    if is_translated(text, task.summary, task):
        return []
    names, old, new = _common_names(task), split_sentences(without_headings(task.summary)), split_sentences(text)
    known = [atom for atom in task.absorbed if _says(old, atom.text, names)]
    missing = [atom for atom in known if not _says(new, atom.text, names)]
    lost = [atom for atom in missing if not _may_drop(atom, task.observations, task.now)]
    # A sentence that says what an observation says goes or stays with it.
    said = [*new, *(atom.text for atom in (*task.untrue, *known))]
    sentences = [sentence for sentence in old if not _says(said, sentence, names, _MIN_SENTENCE_SHARE)]
    return [*_without_superseded(sentences, task.observations), *map(_dated_line, lost)]


def find_unfounded(text: str, task: SummaryTask) -> list[str]:
    """Return the sentences of a new text that neither an observation nor the old summary says."""
    names, known = _common_names(task), " ".join(" ".join(task.sources).split())
    atoms = (*task.observations, *task.untrue, *task.absorbed)
    given = [Source(atom.text, tuple(names), atom.time or atom.recorded) for atom in atoms]
    given.append(Source(without_headings(task.summary), tuple(names)))
    sentences = [sentence for source in given for sentence in split_sentences(source.text)]
    said = _as_said(sentences, names, _without_superseded(sentences, task.observations))
    own = [part for part in split_sentences(without_headings(text)) if part not in known]
    return [part for part in own if not is_translated(part, known, task) and not _is_founded(part, given, said)]


def _is_founded(statement: str, given: Sequence[Source], said: Sequence[Said]) -> bool:
    """Whether a sentence and each clause of it is said. An order needs more of its words."""
    findings = [compare(part, given) for part in split_clauses(statement)]
    if any(finding.size and not finding.found for finding in findings) or not is_borne_out(statement, given):
        return False
    if is_instruction(without_speaker(statement)) and compare(statement, given).share < _MIN_KEY_SHARE:
        return False
    return not find_doubt(statement, said) and (len(findings) > 1 or not _is_pieced_together(statement, given))


def _is_pieced_together(statement: str, given: Sequence[Source]) -> bool:
    """Whether a short statement has a word of one observation beside those of another."""
    findings = [compare(statement, [source]) for source in given]
    best = max(findings, key=lambda finding: len(finding.found))
    return best.size <= _MAX_SIZE and any(finding.found - best.found for finding in findings)


def _as_said(sentences: Sequence[str], names: Collection[str], holding: Collection[str]) -> list[Said]:
    """Sentences, of which those that still hold leave a claim no past and no pretence."""
    folded = frozenset(map(fold, names))
    return [Said(part, folded, is_statement=part in holding) for part in sentences]


def _without_superseded(sentences: Sequence[str], observations: Sequence[Atom]) -> list[str]:
    return [part for part in sentences if not any(is_rival(part, atom.text) for atom in observations)]


def _is_taken_in(atom: Atom, text: str, sentences: Sequence[str], names: Collection[str], task: SummaryTask) -> bool:
    plain, said = (" ".join(part.split()) for part in (text, atom.text))
    if said in plain or ((stated := third_person(said)) and stated in plain):
        return True
    if is_translated(text, said, task):
        return set(PATTERNS.number.findall(said)) <= set(PATTERNS.number.findall(plain))
    return _says(sentences, said, names)


def _says(sentences: Sequence[str], statement: str, names: Collection[str], share: float = _MIN_KEY_SHARE) -> bool:
    """Whether sentences together say what a statement says, without denial. Whom all is about they need not name."""
    if PATTERNS.vital.search(statement):
        sentences = [part for part in sentences if PATTERNS.vital.search(part) or PATTERNS.avoided.search(part)]
    words, sources = " ".join(key_words(statement, names)), [Source(part, tuple(names)) for part in sentences]
    if not words or covered_share(words, sentences) < share or not is_borne_out(statement, sources):
        return False
    return not find_doubt(statement, _as_said(sentences, names, sentences))


def _common_names(task: SummaryTask) -> frozenset[str]:
    """Names that most observations begin with: whom they are about."""
    starts = Counter(atom.text.split()[0] for atom in (*task.observations, *task.absorbed) if atom.text.strip())
    return frozenset(name for name, count in starts.items() if name[:1].isupper() and 2 * count > starts.total())


def _may_drop(atom: Atom, others: Sequence[Atom], now: datetime) -> bool:
    """Whether it is past, or another one that was said later takes its place."""
    if (atom.valid_to is not None and atom.valid_to <= now) or is_past_plan(atom, now):
        return True
    key = memory_key(atom.metadata)
    later = (other for other in others if _order(other) > _order(atom))
    return any(is_rival(atom.text, other.text, key, atom.people) for other in later)


def _order(atom: Atom) -> tuple[float, str]:
    moment = atom.time or atom.recorded
    return (moment.timestamp() if moment else 0.0, atom.id)


def _dated_line(atom: Atom) -> str:
    """An observation as a summary by rules has it."""
    return f"{atom.time:%Y-%m-%d}: {atom.text}" if atom.time else atom.text
