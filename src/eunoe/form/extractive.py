"""Extraction without an LLM: sentences that hold something worth keeping, in their own words."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from eunoe.form.chunk import Proposal
from eunoe.form.data_files import PatternFile
from eunoe.form.likeness import is_duplicate, says_more
from eunoe.form.statements import (
    find_memory_key,
    find_people,
    is_fragment,
    is_question,
    is_secret,
    is_shareable,
    read_statement,
    split_clauses,
)
from eunoe.form.turns import MIN_WORTH, Question, Sentence, TurnReading
from eunoe.model.arguments import ATOM_KINDS, INSTRUCTION, KEPT_KINDS, AtomKind, TurnKind
from eunoe.model.stream import PRESETS, Settings, Target
from eunoe.model.turn import AGENT_ROLES, Turn, limit_growth
from eunoe.text.analyzer import stem
from eunoe.text.dates import DAY_SECONDS, find_date_ranges
from eunoe.text.languages import FRAME_WORDS, detect_language, is_stop_word
from eunoe.text.normalize import fold
from eunoe.text.sentences import cut_to_words, word_count

_YEAR_SECONDS: Final = 366 * DAY_SECONDS
_WEEK_SECONDS: Final = 7 * DAY_SECONDS
_LAST: Final = ("last", "past", "previous", "letzt", "vorig", "vergangen", "afgelopen")
_ONE_DAY: Final = ("the day", "this morning", "this afternoon", "this evening", "last night")
"""How names of a day begin that have several words."""
_ARTICLE: Final = r"(?:(?:the|den|der|dem|de|le|el|il|of|in) )?"
_GAP: Final = re.compile(rf"[\s,(]*{_ARTICLE}", re.IGNORECASE)
"""What may stand between a weekday and its date."""
_DAY_NUMBER: Final = re.compile(rf"[\s,(]+{_ARTICLE}\d\d?(?:st|nd|rd|th|º|\.|/)", re.IGNORECASE)
"""A date without its month, or with the month as a number."""


_SESSION_FACTORS: Final[dict[TurnKind, float]] = {"preference": 0.5, "fact": 0.8}
"""What kinds are worth in a session's memory, which follows what was decided and is still open. What nobody may
overlook keeps its worth."""
_SUBJECT_BONUS: Final = (0.0, 1.0, 1.4)
"""What a statement is worth more to a shard, by how many words of its subject it has."""
_LASTING_KINDS: Final = ("fact", "plan", "change")
_KEY_WORTH: Final = 0.6
"""At least: what has one value at a time is worth knowing."""
_LEAST_WORTH: Final = 0.45
"""What is worth less is not kept for want of something better either."""
_SURE_WORTH: Final = 0.65
"""What is worth less is doubtful."""
_RUN_WORDS: Final = 36
"""Sentences of one kind that follow each other are one memory, up to so many words."""
_INSTRUCTION_WORDS: Final = 120
"""Instructions are kept whole, up to so many words."""
_MAX_EXCEPTION_WORDS: Final = 12
_MAX_EXCEPTION_WORDS_WITH_KEY: Final = 6
"""What takes back a value that may change is short, or says something of its own."""
_MAX_BARE_WORDS: Final = 3
_MAX_INSTRUCTIONS: Final = 40
"""Of one chunk. Other memories have less room, but an instruction that is lost is one that is not followed."""
_PROMPT_BREAK: Final = re.compile(r"[.;:!?\n]")
_PATTERNS: Final = PatternFile("turns")


@dataclass(frozen=True, slots=True)
class _Part:
    """A sentence, or a clause that has a memory key of its own."""

    sentence: Sentence
    key: str

    @property
    def text(self) -> str:
        return self.sentence.text

    @property
    def kind(self) -> TurnKind:
        return self.sentence.kind if self.sentence.kind in KEPT_KINDS else "fact"

    @property
    def worth(self) -> float:
        return max(self.sentence.worth, _KEY_WORTH) if self.key else self.sentence.worth


@dataclass(frozen=True, slots=True)
class _Candidate:
    """What could be kept of a turn."""

    place: int
    """The place of its turn in the chunk."""
    number: int
    """Its place within the turn."""
    turn: Turn
    text: str
    kind: TurnKind
    worth: float
    key: str = ""
    before: str = ""
    """The sentence before it, if this one cannot be understood without."""
    after: str = ""
    """The sentence after it, if that one takes something back."""
    question: Question | None = None
    """The question that it answers, if it cannot be understood without."""
    correction: str = ""

    def repeats(self, text: str) -> bool:
        """Whether it says nothing but these words."""
        is_plain = not self.key and not self.before and not self.after and self.question is None
        return is_plain and self.kind != INSTRUCTION and self.text == text


def extract_extractively(targets: Sequence[Target], readings: Sequence[TurnReading]) -> list[Proposal]:
    """Propose what the turns hold for each target, within its limits."""
    turns = [reading.turn for reading in readings]
    candidates = [each for place, reading in enumerate(readings) for each in _find_candidates(place, reading)]
    return [
        proposal
        for place, target in enumerate(targets)
        for proposal in _propose(place, target, _candidates_for(target, candidates, turns), turns)
    ]


def _find_candidates(place: int, reading: TurnReading) -> list[_Candidate]:
    turn, found = reading.turn, list[_Candidate]()
    parts = [part for sentence in reading.sentences for part in _split(turn.name, sentence)]
    number = 0
    while number < len(parts):
        part, end = parts[number], _end_of_run(parts, number)
        if part.worth > 0:
            run = parts[number:end]
            before = "" if part.sentence.question else _sentence_referred_to(parts, number, turn)
            key = "" if before else part.key
            after = _exception_after(parts, end, _MAX_EXCEPTION_WORDS_WITH_KEY if key else _MAX_EXCEPTION_WORDS)
            if before and found and found[-1].repeats(before) and max(each.worth for each in run) >= MIN_WORTH:
                del found[-1]  # the memory that begins with these words says it too
            found.append(
                _Candidate(
                    place,
                    number,
                    turn,
                    " ".join(_dated_text(each, turn) for each in run),
                    part.kind,
                    max(each.worth for each in run) if key == part.key else part.sentence.worth,
                    key,
                    before,
                    after,
                    part.sentence.question,
                    part.sentence.correction,
                )
            )
            end += bool(after)
        number = end
    return found


def _split(name: str, sentence: Sentence) -> list[_Part]:
    """A sentence in parts: a value that may change is kept apart from what stays."""
    if sentence.question:
        return [_Part(sentence, find_memory_key(name, sentence.text, sentence.question.text))]
    clauses = split_clauses(sentence.text) if sentence.worth > 0 else []
    keys = [find_memory_key(name, clause) for clause in clauses] if len(clauses) > 1 else []
    pairs = list(zip(clauses, keys, strict=False))
    # A clause may say nothing of its own, as in "Hi, I live in Turin" and "Eva and I live in Turin".
    is_bare = any(word_count(clause) <= _MAX_BARE_WORDS and is_fragment(clause) for clause, key in pairs if not key)
    if any(keys) and not is_bare:
        return [_Part(sentence._replace(text=clause), key) for clause, key in pairs]
    whole = find_memory_key(name, sentence.text) if sentence.worth > 0 else ""
    return [_Part(sentence, whole or (next(filter(None, keys)) if sum(map(bool, keys)) == 1 else ""))]


def _end_of_run(parts: Sequence[_Part], start: int) -> int:
    """Where the sentences end that are kept together with the one at a place: of one kind, and without a key."""
    first, end = parts[start], start + 1
    if first.key or first.worth < MIN_WORTH:
        return end
    words = word_count(first.text)
    most = _INSTRUCTION_WORDS if first.sentence.kind == INSTRUCTION else _RUN_WORDS
    while end < len(parts) and not parts[end].key and parts[end].worth >= MIN_WORTH:
        words += word_count(parts[end].text)
        if parts[end].sentence.kind != first.sentence.kind or words > most:
            break
        end += 1
    return end


def _dated_text(part: _Part, turn: Turn) -> str:
    return add_dates(part.text, turn.moment, part.sentence.kind == "plan")


def _sentence_referred_to(parts: Sequence[_Part], number: int, turn: Turn) -> str:
    """The sentence before one that begins or ends with what points at it. Instructions may point back anywhere."""
    text, is_standing = parts[number].text, parts[number].sentence.kind == INSTRUCTION
    reference = _PATTERNS.back_reference
    points_back = (
        reference.search(text) if is_standing else reference.match(text) or _PATTERNS.last_reference.search(text)
    )
    before = parts[number - 1] if number and points_back else None
    return "" if before is None or is_question(before.text) or is_secret(before.text) else _dated_text(before, turn)


def _exception_after(parts: Sequence[_Part], number: int, max_words: int) -> str:
    """The sentence at a place, if it is short, takes something back ("Fish is fine though.") and says little alone."""
    after = parts[number] if number < len(parts) else None
    if after is None or after.worth >= MIN_WORTH or not _PATTERNS.exception.search(after.text):
        return ""
    is_short = word_count(after.text) <= max_words
    return after.text if is_short and not is_question(after.text) and not is_secret(after.text) else ""


def _candidates_for(target: Target, candidates: Sequence[_Candidate], turns: Sequence[Turn]) -> Iterator[_Candidate]:
    owner = target.settings.owner[-1]
    if owner == "shard":
        yield from _candidates_for_shard(target, candidates, turns)
        return
    for candidate in candidates:
        if owner != "user" and not target.user:
            factor = 1.0 if candidate.worth == 1 else _SESSION_FACTORS.get(candidate.kind, 1.0)
            yield replace(candidate, worth=candidate.worth * factor)
        elif candidate.turn.user and candidate.turn.user == target.user:
            asker = candidate.question.turn if candidate.question else None
            if asker is None or asker.role.lower() in AGENT_ROLES or asker.user == candidate.turn.user:
                yield candidate
            # Without another user's question, which is not for this user's memory, an answer has to stand on its own.
            elif statement := read_statement(candidate.text, is_answer=True):
                yield replace(candidate, question=None, key="", worth=statement.worth)


def _candidates_for_shard(
    target: Target, candidates: Sequence[_Candidate], turns: Sequence[Turn]
) -> Iterator[_Candidate]:
    """What is about the shard's subject and tells nothing of a person."""
    names = [name for turn in turns for name in (turn.user, turn.speaker)]
    speakers = frozenset(word for name in names for word in _folded_words(name) if len(word) > 2)
    subject = _subject_stems(target)
    for candidate in candidates:
        statement = read_statement(candidate.text)
        if statement is None or candidate.before or candidate.question or not is_shareable(candidate.text, subject):
            continue
        found = _folded_words(candidate.text)
        bonus = _SUBJECT_BONUS[: len(subject.intersection(map(stem, found))) + 1][-1]
        if bonus and speakers.isdisjoint(found):
            yield replace(candidate, worth=statement._replace(score=statement.score + bonus).worth)


def _subject_stems(target: Target) -> frozenset[str]:
    """The words that say what a shard is about; what its prompt keeps out does not count."""
    prompt = target.settings.extraction_prompt
    parts = [] if prompt == PRESETS["agent"].extraction_prompt else _PROMPT_BREAK.split(prompt)
    wanted = [part for part in parts if not _PATTERNS.exclusion.search(part)]
    text = " ".join([target.scope.get("shard", ""), *wanted])
    spoken, general = detect_language(text), FRAME_WORDS | _PATTERNS.words["general"]
    named = (word for word in _folded_words(text) if len(word) > 2 and word not in general)
    return frozenset(stem(word) for word in named if not is_stop_word(word, spoken))


def _folded_words(text: str) -> frozenset[str]:
    return frozenset(_PATTERNS.word.findall(fold(text)))


def _propose(place: int, target: Target, candidates: Iterable[_Candidate], turns: Sequence[Turn]) -> list[Proposal]:
    """The best of them, in the order they were said. What everybody may see does not say whose words they are."""
    settings, is_named = target.settings, target.settings.owner[-1] != "shard"
    chosen = _choose(settings, _rank(candidates), limit_growth(turns, settings), is_named)
    return [
        Proposal(
            target=place,
            kind=kind,
            text=text,
            sources=(candidate.turn.id, *([candidate.question.turn.id] if candidate.question else [])),
            label=candidate.kind,
            key=candidate.key,
            worth=round(candidate.worth, 2),
            is_doubtful=candidate.worth < _SURE_WORTH,
            correction=candidate.correction,
            people=tuple(dict.fromkeys([candidate.turn.name, *find_people(candidate.text)])) if is_named else (),
        )
        for candidate, kind, text in sorted(chosen, key=lambda row: (row[0].place, row[0].number))
    ]


def _rank(candidates: Iterable[_Candidate]) -> list[_Candidate]:
    """The best first; of several values of one key only the last, those said with it in one turn, and those that say
    something else besides."""
    wanted, current = list(candidates), list[_Candidate]()
    latest = {candidate.key: candidate for candidate in wanted if candidate.key}
    for each in wanted:
        last = latest[each.key] if each.key else each
        if each is not last and each.place == last.place:
            current.append(replace(each, key=""))  # both hold: the key would let the later one end it
        elif each is last or says_more(each.text, last.text):
            current.append(each)
    return sorted(current, key=lambda each: (each.kind != INSTRUCTION, -each.worth, -each.place))


def _choose(
    settings: Settings, ranked: Sequence[_Candidate], growth: float, is_named: bool
) -> list[tuple[_Candidate, AtomKind, str]]:
    room = {kind: round(getattr(settings, f"{kind}_extraction_max") * growth) for kind in settings.extraction_fields}
    least = sum(getattr(settings, f"{kind}_extraction_min") for kind in settings.extraction_fields)
    first = next((kind for kind, count in room.items() if count > 0), None)
    chosen: list[tuple[_Candidate, AtomKind, str]] = []
    for candidate in ranked:
        # What lasts is rather a fact, what shows a person rather an observation, as far as there is room.
        best: AtomKind = "fact" if candidate.key or candidate.kind in _LASTING_KINDS else "observation"
        order = (best, *(kind for kind in ATOM_KINDS if kind != best))
        kind = next((kind for kind in order if room.get(kind, 0) > 0), None)
        if candidate.kind == INSTRUCTION and len(chosen) < _MAX_INSTRUCTIONS:
            kind = kind or first
        if not kind:
            break
        if candidate.worth < (_LEAST_WORTH if len(chosen) < least else MIN_WORTH):
            continue
        text = _write(candidate, getattr(settings, f"{kind}_max_words"), is_named)
        if text and not any(is_duplicate(text, known) for _, _, known in chosen):
            chosen.append((candidate, kind, text))
            room[kind] -= 1
    return chosen


def _write(candidate: _Candidate, max_words: int, is_named: bool) -> str:
    """The words of the speaker, with what is needed to understand them; empty if that does not fit."""
    if candidate.kind == INSTRUCTION:
        max_words = max(max_words, _INSTRUCTION_WORDS)
    if not is_named:
        return cut_to_words(candidate.text, max_words)
    name = candidate.turn.name
    text = f"{name}: {candidate.text}"
    if candidate.question:
        with_question = f"{text} (asked: {candidate.question.text})"
        return with_question if word_count(with_question) <= max_words else ""
    if candidate.before and word_count(whole := f"{name}: {candidate.before} {candidate.text}") <= max_words:
        return whole
    if candidate.after and word_count(whole := f"{text} {candidate.after}") <= max_words:
        return whole
    return cut_to_words(text if max_words > word_count(name) + 1 else candidate.text, max_words)


def add_dates(text: str, said: datetime | None, is_plan: bool) -> str:
    """Return a text with the date behind each day that it names only from the day on which it was said.

    In a plan a weekday is the next one, unless its date is named beside it; elsewhere it may be either, and is left
    as it is.

    >>> add_dates("I fly to Oslo tomorrow.", datetime(2026, 5, 8, tzinfo=UTC), is_plan=True)
    'I fly to Oslo tomorrow (2026-05-09).'
    """
    if said is None:
        return text
    now = said.timestamp()
    found = {each.span: each for each in find_date_ranges(text, now, (now, now + _YEAR_SECONDS))}
    for (start, end), day in sorted(found.items(), reverse=True):
        words, moment = text[start:end], day.start
        # One that has its date, or is longer than a day, or may be another one, is left as it is.
        if day.end - day.start > DAY_SECONDS or any(map(str.isdecimal, words)):
            continue
        if " " in words and not words.lower().startswith(_ONE_DAY):
            moment += _WEEK_SECONDS if day.end <= now else 0.0
            is_next = now < moment <= now + _WEEK_SECONDS and not words.lower().startswith(_LAST)
            if not is_plan or not is_next or _has_date_beside(text, (start, end), found):
                continue
        text = f"{text[:end]} ({datetime.fromtimestamp(moment, UTC):%Y-%m-%d}){text[end:]}"
    return text


def _has_date_beside(text: str, span: tuple[int, int], others: Iterable[tuple[int, int]]) -> bool:
    """Whether the words beside a weekday say which one is meant: "Saturday the 12th of April", "Saturday next week"."""
    if _DAY_NUMBER.match(text, span[1]):
        return True
    for start, end in others:
        gap = text[span[1] : start] if start >= span[1] else text[end : span[0]]
        has_number = any(map(str.isdecimal, text[start:end]))
        if (start, end) != span and _GAP.fullmatch(gap) and (has_number or "," not in gap):
            return True
    return False
