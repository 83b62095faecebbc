"""Summaries: written by rules without an LLM, and the checks of those that an LLM writes.

By rules a summary is what holds now, by subject, the newest first, within a number of words. A model's word is
evidence: an observation is absorbed if the text bears it out, or if the model names it as dropped and the store knows
why. The rest waits.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from eunoe.errors import EunoeError, LlmError
from eunoe.form.claims import Said, find_doubt, split_clauses, without_speaker
from eunoe.form.data_files import PatternFile, load_prompt
from eunoe.form.evidence import (
    Source,
    compare,
    content_words,
    covered_share,
    is_borne_out,
    kept_share,
    language_or_script,
)
from eunoe.form.likeness import is_duplicate, is_rival, key_words, says_more
from eunoe.form.statements import find_memory_key, is_instruction, read_statement
from eunoe.llm.contract import Llm, Prompt
from eunoe.model.arguments import INSTRUCTION, KEPT_KINDS
from eunoe.model.atom import AUTHOR, EXTRACTIVE, MEMORY_KEY, Atom
from eunoe.records.identity import memory_key
from eunoe.text.dates import is_day_over
from eunoe.text.languages import LANGUAGES
from eunoe.text.normalize import SPACELESS, fold, replace_surrogates
from eunoe.text.sentences import (
    HEADINGS,
    PAST,
    SummaryLine,
    cut_to_words,
    is_subject,
    quotation_of,
    read_summary,
    split_sentences,
    third_person,
    without_headings,
    word_count,
    write_summary,
)

PATTERNS: Final = PatternFile("summaries", languages="|".join(LANGUAGES))
_THOUGHT: Final = re.compile(r"<think>.*?</think>", re.DOTALL)
_FENCE: Final = re.compile(r"```\w*\n(.*)\n```", re.DOTALL)
_OBJECT_START: Final = re.compile(r'\{\s*"[^"]*"\s*:')
_NUMBER: Final = re.compile(r"\d{1,6}")
_WORD: Final = re.compile(r"\w+")
_MAX_LAYERS: Final = 3
"""How often something is taken off: a polite start, a code fence, a heading."""


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

_MIN_COMPARED_WORDS: Final = 40
"""From so many words on a summary may not shrink to less than half, lose what it says, or go round in circles."""
_MIN_COVERED_SHARE: Final = 0.3
"""Share of an answer's content that the old summary and the observations must have. Free paraphrases in a dozen
languages have 0.38 and more of it, texts about something else 0.19 and less."""
_MIN_KEPT_SHARE: Final = 1 / 3
"""Share of what the old summary says that the new one must still say."""
_MAX_REPETITION: Final = 10
"""An answer with more than so many words for each different one goes round in circles."""
_MAX_CHARACTERS_PER_WORD: Final = 20
"""Three times the length of a word with its blank in the languages with the longest ones."""
_MAX_WORD_CHARACTERS: Final = 200
"""Longer than any word, and than most addresses of pages."""
_MAX_EXCESS: Final = 10
"""An answer of so many times the words that were asked for is not cut but refused."""
_MIN_TRANSLATED_SHARE: Final = 0.25
"""Words that a translation must have for each word that is translated; the terse have half."""
_MIN_ECHO_CHARACTERS: Final = 40
_MIN_CODE_CHARACTERS: Final = 4
"""Shorter numbers are written in many ways, and counted by whoever writes."""
_CODE: Final = re.compile(r"[^\W_]+")
_DIGIT_GROUP: Final = re.compile(r"(?<=\d)[,.'\u00a0\u202f ](?=\d{3}(?!\d))")
_SPACELESS: Final = re.compile(rf"[{SPACELESS}]")

UNUSABLE_SUMMARY = "no summary that can be used"
"""What every error says after an LLM answered in vain."""
_MAX_ANSWERS = 2
_MAX_ANSWER_TOKENS = 8000

_MIN_KEY_SHARE: Final = 0.75
"""Share of an observation's key words that a text must have to say it: all of three, all but one of four."""
_MIN_SENTENCE_SHARE: Final = 0.5
"""The same of a sentence of a summary, which may be put into other words, and of a clause that bears on a statement."""
_MAX_SIZE: Final = 6
"""What is told in so few words is told by one observation."""


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
    best = max(statements, key=lambda statement: statement.score, default=None)
    value, label = (best.score, best.label) if best else (_PLAIN_VALUE, "")
    return _Entry(text, date, is_past, line, keys, value=value, is_plan=label == "plan")


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
    latest = {key: entry for entry in ordered for key in (*entry.keys, entry.llm_key) if key}
    holding: list[_Entry] = []
    for entry in ordered:
        later = _find_later(entry, latest)
        if later is None:
            holding.append(entry)
        # What says something else besides is kept as past, if it has a date to say so by.
        elif entry.date and says_more(entry.text, later.text):
            holding.append(replace(entry, is_past=True))
    kept: list[_Entry] = []  # each thing once, as it was said last
    for entry in reversed(holding):
        if not any(is_duplicate(entry.text, other.text) for other in kept[-_MAX_COMPARED_ENTRIES:]):
            is_over = entry.is_past or (entry.is_plan and is_day_over(entry.text, entry.date, now))
            kept.append(replace(entry, is_past=is_over))
    return _fit(kept[::-1], max_words)


def _find_later(entry: _Entry, latest: Mapping[str, _Entry]) -> _Entry | None:
    """The entry that takes its place, if there is one."""
    for key in entry.keys:
        if latest[key] is not entry:
            return latest[key]
    rival = latest.get(entry.llm_key, entry)
    return rival if rival is not entry and is_rival(entry.text, rival.text, entry.llm_key) else None


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


@dataclass(frozen=True, slots=True)
class SummaryTask:
    """What a summary is to be written from."""

    purpose: str
    max_words: int
    summary: str
    observations: Sequence[Atom]
    untrue: Sequence[Atom]
    """What the summary holds and was superseded."""
    now: datetime
    absorbed: Sequence[Atom] = ()
    """What the summary absorbed before and still holds."""

    @property
    def sources(self) -> list[str]:
        """All that an answer may take its words from."""
        return [self.summary, *(f"{format_time(atom)} {atom.text}" for atom in (*self.observations, *self.untrue))]


def format_time(atom: Atom) -> str:
    moment = atom.time or atom.recorded
    return f"{moment:%Y-%m-%d %H:%M}" if moment else ""


def find_fault(text: str, task: SummaryTask) -> str:
    """Say why an answer is not taken, in words that repeat none of it; "" if it is."""
    return next(_find_faults(text, task), "")


def _find_faults(text: str, task: SummaryTask) -> Iterator[str]:
    if not any(map(str.isalnum, text)):
        yield "it was empty"
        return
    if PATTERNS.refusal.match(text):
        yield "it was a refusal and no summary"
    if _OBJECT_START.match(text) and read_object(text) is None:
        yield "it was JSON that breaks off; write the text of the summary alone"
    size, before, known = word_count(text), word_count(task.summary), " ".join(task.sources)
    if size > _MAX_EXCESS * task.max_words:
        yield f"it had {size} words; the limit is {task.max_words}"
    if len(text) > _MAX_CHARACTERS_PER_WORD * max(size, task.max_words):
        yield f"it had {len(text)} characters for {size} words"
    longest = max((word for word in text.split() if not _SPACELESS.search(word)), key=len, default="")
    if len(longest) > _MAX_WORD_CHARACTERS and longest not in known:
        yield f"it had a word of {len(longest)} characters"
    plain, plainly_known = (" ".join(part.split()) for part in (text, known))
    asked = (line for line in load_prompt("summary").system.splitlines() if len(line) > _MIN_ECHO_CHARACTERS)
    lines = [line.removeprefix("- ").strip() for line in asked]
    if any(line in plain and line not in plainly_known for line in lines) or "word_limit" in (read_object(text) or ()):
        yield "it repeated the question; write the summary itself"
    different = len(content_words(text))
    if size >= _MIN_COMPARED_WORDS and _MAX_REPETITION * different < size:
        yield f"it repeated the same words over and over, {different} in a text of {size}"
    # What is no longer true may go, in whatever words the summary has it.
    still_true = before - 2 * sum(word_count(atom.text) for atom in task.untrue)
    if before >= _MIN_COMPARED_WORDS and 2 * size < min(still_true, task.max_words):
        yield f"it had {size} words where the summary had {before}: keep what still holds"
    if is_translated(text, known, task):
        needed = _MIN_TRANSLATED_SHARE * min(task.max_words, sum(word_count(atom.text) for atom in task.observations))
        if size < needed:
            yield "it was shorter than a translation can be"
    elif (share := covered_share(text, task.sources)) < _MIN_COVERED_SHARE:
        yield (
            f"of its words only {share:.0%} are in the summary and the observations: keep to them and to their language"
        )
    # A number or code that stands in nothing the model was shown comes from elsewhere, perhaps from another scope. What
    # divides the digits of a number, as in 1,000 and 1 000, tells nothing.
    codes = [code for code in _CODE.findall(_DIGIT_GROUP.sub("", text.casefold())) if len(code) >= _MIN_CODE_CHARACTERS]
    shown = _DIGIT_GROUP.sub("", known.casefold())
    if unknown := sum(code not in shown for code in codes if any(map(str.isdigit, code))):
        yield f"{unknown} of its numbers or codes are not in the summary and the observations"
    if before >= _MIN_COMPARED_WORDS and not is_translated(text, task.summary, task):
        # Under a limit that is lower than what there was, less can be kept.
        needed = _MIN_KEPT_SHARE * min(1.0, task.max_words / before)
        share = kept_share(task.summary, [atom.text for atom in task.untrue], text)
        if share < needed:
            yield f"it kept only {share:.0%} of what the summary says: keep what still holds"


def is_translated(text: str, other: str, task: SummaryTask) -> bool:
    """Whether the words cannot be compared, because the purpose asks for another language."""
    is_asked_for = bool(PATTERNS.language_name.search(task.purpose))
    return is_asked_for and language_or_script(text) != language_or_script(other)


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
    lines = [f"{atom.time:%Y-%m-%d}: {atom.text}" if atom.time else atom.text for atom in lost]
    return [*_without_superseded(sentences, task.observations), *lines]


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
    """Whether a sentence and each clause of it is said. An order needs more of its words, and a short statement has
    none of one observation beside those of another."""
    findings = [compare(part, given) for part in split_clauses(statement)]
    if any(finding.size and not finding.found for finding in findings) or not is_borne_out(statement, given):
        return False
    if is_instruction(without_speaker(statement)) and compare(statement, given).share < _MIN_KEY_SHARE:
        return False
    if find_doubt(statement, said):
        return False
    single = [compare(statement, [source]) for source in given] if len(findings) == 1 else []
    best = max(single, key=lambda finding: len(finding.found), default=None)
    return best is None or best.size > _MAX_SIZE or not any(finding.found - best.found for finding in single)


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
    """Whether it is past, or names a day that was to come when it was said and is over, or another one that was said
    later takes its place."""
    said = atom.time or atom.recorded
    if (atom.valid_to is not None and atom.valid_to <= now) or (
        said is not None and is_day_over(atom.text, f"{said.astimezone(UTC):%Y-%m-%d}", now)
    ):
        return True
    key = memory_key(atom.metadata)
    later = (other for other in others if _order(other) > _order(atom))
    return any(is_rival(atom.text, other.text, key, atom.people) for other in later)


def _order(atom: Atom) -> tuple[float, str]:
    moment = atom.time or atom.recorded
    return (moment.timestamp() if moment else 0.0, atom.id)


class Answer(NamedTuple):
    """The text of a summary, and the numbers of the observations that it names as dropped."""

    text: str
    dropped: frozenset[int] = frozenset()


def read_answer(answer: str, sources: Sequence[str]) -> Answer:
    """Take off thoughts, a code fence, a JSON object, a polite start or end and a heading, unless they were said."""
    thoughts, end, rest = answer.rpartition("</think>")  # every thought that begins there has an end
    text = (_THOUGHT.sub("", thoughts + end) + rest).strip()
    for _ in range(_MAX_LAYERS):
        text = _unwrap(text, sources)
    given = read_object(text) or {}
    texts = [value for name, value in given.items() if isinstance(value, str) and name != "dropped"]
    if len(texts) == 1:
        named = frozenset(map(int, _NUMBER.findall(json.dumps(given.get("dropped", "")))))
        return Answer(_unwrap(replace_surrogates(texts[0]).strip(), sources), named)
    # The last line may be such as "Dropped: 3 (past), 5 (superseded)".
    before, _, last = text.rpartition("\n")
    words = [word.lower() for word in _WORD.findall(last)]
    numbers = [word for word in words if word.isdecimal() and len(word) <= 6]
    if words[:1] == ["dropped"] and ":" in last and PATTERNS.words["dropped"].issuperset({*words[1:]} - {*numbers}):
        return Answer(before.strip(), frozenset(map(int, numbers)))
    return Answer(text)


def read_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object that a text is, if it is one."""
    try:
        value = json.loads(text, strict=False) if _OBJECT_START.match(text) else None
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _unwrap(text: str, sources: Sequence[str]) -> str:
    fenced = _FENCE.fullmatch(text)
    text = (fenced[1] if fenced else text).strip()
    start = PATTERNS.preamble.match(text)
    if start and start.end() < len(text) and not any(start[0].strip() in source for source in sources):
        text = text[start.end() :]
    before, line_end, last = text.rpartition("\n")
    if before.strip() and line_end and PATTERNS.closing.match(last.strip()):
        text = text if any(last.strip() in source for source in sources) else before
    return text.strip()


class UnusableSummaryError(LlmError):
    """An LLM answered, and none of its answers can be used."""


class Summary(NamedTuple):
    """A summary that was written, by whom, and the observations that it absorbs."""

    text: str
    author: str
    absorbed: Sequence[Atom]
    lost: Sequence[str] = ()
    """What it does not say any more although it still holds."""


def summarize_by_llm(llm: Llm, task: SummaryTask) -> Summary:
    """Return the new summary. One that is too long is cut to its best sentences, one that leaves out what still holds
    is completed; its author says so.

    Raise UnusableSummaryError if no answer can be used.
    """
    problem, usable = "", list[Summary]()
    for _ in range(_MAX_ANSWERS):
        try:
            said = replace_surrogates(llm.ask(summary_prompt(task, problem)).text)
        except EunoeError:
            raise
        except Exception as error:  # an LLM of somebody else's making may raise anything
            raise LlmError(f"{llm.name} failed: {type(error).__name__}") from error
        answer = read_answer(said, task.sources)
        problem = find_fault(answer.text, task)
        if problem:
            continue
        summary, problem = _judge(llm.name, answer, task)
        if not problem:
            return summary
        usable += [summary] if summary.text and (summary.absorbed or not task.observations) else []
    if not usable:
        raise UnusableSummaryError(f"{llm.name} wrote {UNUSABLE_SUMMARY}: {problem}")
    best = max(reversed(usable), key=lambda each: (len(each.absorbed), -len(each.lost)))
    text = best.text
    for sentence in best.lost:  # what was left out is put back, as far as there is room
        longer = f"{text}\n{sentence}"
        text = longer if word_count(longer) <= task.max_words else text
    return best if text == best.text else best._replace(text=text, author=f"{best.author}, completed")


def _judge(name: str, answer: Answer, task: SummaryTask) -> tuple[Summary, str]:
    """The summary that an answer gives, without what nobody said, and what is wrong with it."""
    unfounded, lines = find_unfounded(answer.text, task), answer.text.splitlines()
    for sentence in unfounded:
        lines = [line.replace(sentence, "").strip() for line in lines]
    kept = (line.strip() for line in lines if any(map(str.isalnum, line)))
    text, author = "\n".join(kept) if unfounded else answer.text, name
    size = word_count(text)
    if size > task.max_words:
        text = summarize_by_rules(text, [], task.max_words, task.now).strip() or cut_to_words(text, task.max_words)
        author = f"{name}, cut"
    absorbed, lost, problem = find_absorbed(text, answer.dropped, task), find_lost(text, task), ""
    if unfounded:
        problem = f"{len(unfounded)} of its sentences are not said by the summary or an observation: leave them out"
    elif size > task.max_words:
        problem = f"it had {size} words; the limit is {task.max_words}"
    elif task.observations and not absorbed:
        problem = "it takes in none of the observations: say what each of them says, with its names and numbers"
    elif lost:
        problem = f"it leaves out {len(lost)} things that the summary said and that still hold: keep them"
    return Summary(text, author, absorbed, lost), problem


def summary_prompt(task: SummaryTask, problem: str = "") -> Prompt:
    """Put everything that was said or set inside JSON, where no character in it means anything."""
    data = {
        "purpose": task.purpose,
        "now": f"{task.now:%Y-%m-%d %H:%M} UTC",
        "word_limit": task.max_words,
        "summary": task.summary,
        "observations": [
            {"number": number, "date": format_time(atom), "text": atom.text}
            for number, atom in enumerate(task.observations, 1)
        ],
        "no_longer_true": [atom.text for atom in task.untrue],
        **({"problem": problem} if problem else {}),
    }
    return Prompt(
        load_prompt("summary").system,
        json.dumps(data, ensure_ascii=False, indent=1),
        name="summary",
        max_tokens=min(_MAX_ANSWER_TOKENS, 500 + 3 * task.max_words),
        operation="consolidation",
    )
