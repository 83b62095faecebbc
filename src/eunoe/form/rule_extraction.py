"""Extraction without an LLM: sentences that say something worth keeping, in their own words."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from eunoe.form.data_files import PatternFile
from eunoe.form.duplicates import is_duplicate
from eunoe.form.memory_keys import find_memory_key, split_clauses
from eunoe.form.proposal import Proposal
from eunoe.form.relative_days import add_dates
from eunoe.form.rivals import says_more
from eunoe.form.shareable_text import is_shareable
from eunoe.form.statements import MIN_SCORE, Statement, find_people, is_fragment, is_question, is_secret, read_statement
from eunoe.model.choices import ATOM_KINDS, AtomKind
from eunoe.model.presets import PRESETS
from eunoe.model.settings import Settings
from eunoe.model.stream import Target
from eunoe.model.turn import AGENT_ROLES, TOOL_ROLES, Turn, limit_growth
from eunoe.text.analyzer import stem
from eunoe.text.languages import FRAME_WORDS, detect_language, is_stop_word
from eunoe.text.normalize import fold
from eunoe.text.sentences import cut_to_words, split_sentences, word_count

_USER_BONUS: Final = {"instruction": 0.6, "preference": 0.8, "identity": 0.8, "relationship": 0.2}
"""What a label is worth more in a user's memory."""
_SESSION_BONUS: Final = {"decision": 0.5, "plan": 0.0, "event": 0.0, "instruction": 0.0}
"""The same in a session's, which wants no other labels."""
_LASTING_LABELS: Final = frozenset(["identity", "relationship", "state", "event"])
_ANSWER_BONUS: Final = 0.5
_KEY_BONUS: Final = 1.0
_SAME_TURN_MALUS: Final = 0.6
"""What a second sentence of the same turn is worth less."""
_AGENT_MALUS: Final = 0.5
_SURE_SCORE: Final = 2.0
"""What is worth less is doubtful."""
_MAX_ANSWER_WORDS: Final = 12
_MAX_QUESTION_WORDS: Final = 20
_MAX_EXCEPTION_WORDS: Final = 12
_MAX_EXCEPTION_WORDS_WITH_KEY: Final = 6
"""What takes back a value that may change is short, or says something of its own."""
_MAX_SENTENCES: Final = 3000
"""Sentences of one turn that are read. Longer ones are documents, and little is kept of any turn."""
_SCANNED_CHARACTERS: Final = 300
"""How much of each sentence of a document is looked at to choose those that are read."""
_PROMPT_BREAK: Final = re.compile(r"[.;:!?\n]")
_PATTERNS: Final = PatternFile("turns")


class _Question(NamedTuple):
    """A question that ended the turn before."""

    text: str
    turn: Turn
    name: str


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A sentence of a turn that could be kept."""

    place: int
    """The place of its turn in the chunk."""
    number: int
    """Its place within the turn."""
    turn: Turn
    name: str
    """How its speaker is called."""
    text: str
    label: str
    score: float
    key: str = ""
    before: str = ""
    """The sentence before it, if this one cannot be understood without."""
    after: str = ""
    """The sentence after it, if that one takes something back."""
    question: _Question | None = None
    """The question that it answers, if it cannot be understood without."""

    @property
    def answers_other_user(self) -> bool:
        """Whether another of the users asked, so that the question is not for this user's memory."""
        asker = self.question.turn if self.question else None
        return asker is not None and asker.role.lower() not in AGENT_ROLES and asker.user != self.turn.user


def extract_by_rules(targets: Sequence[Target], turns: Sequence[Turn]) -> list[Proposal]:
    """Propose what the turns hold for each target, within its limits."""
    candidates = list(_find_candidates(turns))
    growths = [limit_growth(turns, target.settings) for target in targets]
    return [
        proposal
        for place, (target, growth) in enumerate(zip(targets, growths, strict=True))
        for proposal in _propose(place, target, _rank(_candidates_for(target, candidates, turns)), growth)
    ]


def _find_candidates(turns: Sequence[Turn]) -> Iterator[_Candidate]:
    question: _Question | None = None
    for place, turn in enumerate(turns):
        if turn.role.lower() in TOOL_ROLES:
            continue
        name, parts, keys = turn.name, list[str](), dict[str, str]()
        for sentence in _choose_sentences(turn.text):
            clauses = split_clauses(sentence)
            clause_keys = {clause: find_memory_key(name, clause) for clause in clauses} if len(clauses) > 1 else {}
            # A value that may change is kept apart from what stays.
            parts += clauses if any(clause_keys.values()) else [sentence]
            keys |= clause_keys
        yield from _read_turn(place, turn, name, parts, question if question and question.name != name else None, keys)
        question = _Question(parts[-1], turn, name) if parts and is_question(parts[-1]) else None


def _choose_sentences(text: str) -> list[str]:
    """The sentences of a turn without what it quotes; of very many, those that seem to say most of the speaker."""
    found = split_sentences(_PATTERNS.quoted_line.sub("", text))
    if len(found) <= _MAX_SENTENCES:
        return found
    last_places = {sentence: place for place, sentence in enumerate(found)}
    scores = {
        place: min(len(_PATTERNS.speaker_word.findall(sentence[:_SCANNED_CHARACTERS])), 2)
        for sentence, place in last_places.items()
    }
    best = sorted(scores, key=lambda place: (-scores[place], place))[:_MAX_SENTENCES]
    return [found[place] for place in sorted(best)]


def _read_turn(
    place: int, turn: Turn, name: str, parts: list[str], question: _Question | None, keys: dict[str, str]
) -> Iterator[_Candidate]:
    """The candidates of a turn. `keys` has those memory keys that are known already."""
    next_number = 0
    for number, sentence in enumerate(parts):
        if question and number == 0 and (answer := _read_answer(place, turn, name, sentence, question)):
            yield answer
            continue
        statement = read_statement(sentence)
        if statement is None or number < next_number:
            continue
        before = _sentence_referred_to(parts, number)
        key = "" if before else keys[sentence] if sentence in keys else find_memory_key(name, sentence)
        after = _exception_after(parts, number, _MAX_EXCEPTION_WORDS_WITH_KEY if key else _MAX_EXCEPTION_WORDS)
        next_number = number + 2 if after else next_number
        label, score = _weigh(turn, statement, key, question)
        dated = add_dates(sentence, turn.moment, label == "plan")
        yield _Candidate(place, number, turn, name, dated, label, score, key, before, after)


def _weigh(turn: Turn, statement: Statement, key: str, question: _Question | None) -> tuple[str, float]:
    score = max(statement.score + _KEY_BONUS, MIN_SCORE) if key else statement.score
    score += _ANSWER_BONUS if question else 0.0
    if turn.role.lower() not in AGENT_ROLES:
        return statement.label, score
    # An agent's advice is not an instruction, and it says more than it decides.
    return "state" if statement.label == "instruction" else statement.label, score - _AGENT_MALUS


def _sentence_referred_to(parts: list[str], number: int) -> str:
    before = parts[number - 1] if number and _PATTERNS.back_reference.match(parts[number]) else ""
    return "" if before and is_question(before) else before


def _exception_after(parts: list[str], number: int, max_words: int) -> str:
    """The sentence after, if it is short, takes something back ("Fish is fine though.") and says little alone."""
    after = parts[number + 1] if number + 1 < len(parts) else ""
    if not _PATTERNS.exception.search(after) or word_count(after) > max_words or is_question(after) or is_secret(after):
        return ""
    statement = read_statement(after)
    return after if statement is None or statement.score < MIN_SCORE else ""


def _read_answer(place: int, turn: Turn, name: str, sentence: str, question: _Question) -> _Candidate | None:
    if turn.role.lower() in AGENT_ROLES or not _PATTERNS.question_about_person.search(question.text.lower()):
        return None
    if word_count(question.text) > _MAX_QUESTION_WORDS or word_count(sentence) > _MAX_ANSWER_WORDS:
        return None
    if is_question(sentence) or is_secret(question.text) or sentence.endswith("!!") or not is_fragment(sentence):
        return None
    key = find_memory_key(name, sentence, question.text)
    details = len(_PATTERNS.telling_answer.findall(sentence))
    if not key and not details:
        return None
    score = MIN_SCORE + 0.3 * min(details, 2) + (_KEY_BONUS if key else 0.0)
    return _Candidate(place, 0, turn, name, sentence, "state", score, key, question=question)


def _candidates_for(target: Target, candidates: Sequence[_Candidate], turns: Sequence[Turn]) -> Iterator[_Candidate]:
    owner = target.settings.owner[-1]
    if owner == "shard":
        yield from _candidates_for_shard(target, candidates, turns)
    elif owner == "user" or target.user:
        own = (candidate for candidate in candidates if candidate.turn.user and candidate.turn.user == target.user)
        for candidate in filter(None, map(_without_foreign_question, own)):
            yield _with_bonus(candidate, _USER_BONUS.get(candidate.label, 0.0))
    else:
        for candidate in candidates:
            yield _with_bonus(candidate, _SESSION_BONUS.get(candidate.label, -MIN_SCORE))


def _without_foreign_question(candidate: _Candidate) -> _Candidate | None:
    """The answer without another user's question, if it stands on its own."""
    if not candidate.answers_other_user:
        return candidate
    alone = _read_turn(candidate.place, candidate.turn, candidate.name, [candidate.text], None, {})
    return next(alone, None)


def _candidates_for_shard(
    target: Target, candidates: Sequence[_Candidate], turns: Sequence[Turn]
) -> Iterator[_Candidate]:
    """What is about the shard's subject and tells nothing of a person."""
    names = [name for turn in turns for name in (turn.user, turn.speaker)]
    speakers = frozenset(word for name in names for word in _folded_words(name) if len(word) > 2)
    subject = _subject_stems(target)
    for candidate in candidates:
        if candidate.before or candidate.question or not is_shareable(candidate.text, subject):
            continue
        found = _folded_words(candidate.text)
        shared = len(subject.intersection(map(stem, found)))
        if shared and speakers.isdisjoint(found):
            yield _with_bonus(candidate, 0.6 + 0.4 * min(shared, 2))


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


def _with_bonus(candidate: _Candidate, bonus: float) -> _Candidate:
    return replace(candidate, score=candidate.score + bonus) if bonus else candidate


def _rank(candidates: Iterator[_Candidate]) -> list[_Candidate]:
    """The best first; of several values of one key only the last, and those that say something else besides; not all
    from one turn."""
    wanted = list(candidates)
    latest = {candidate.key: candidate for candidate in wanted if candidate.key}
    current = [each for each in wanted if not each.key or _outlasts(each, latest[each.key])]
    current.sort(key=lambda candidate: (-candidate.score, -candidate.place))
    places: set[int] = set()
    ranked: list[tuple[float, int, _Candidate]] = []
    for candidate in current:
        malus = _SAME_TURN_MALUS if candidate.place in places and not candidate.key else 0.0
        ranked.append((malus - candidate.score, -candidate.place, candidate))
        places.add(candidate.place)
    return [candidate for *_, candidate in sorted(ranked, key=lambda row: row[:2])]


def _outlasts(candidate: _Candidate, latest: _Candidate) -> bool:
    return candidate is latest or says_more(candidate.text, latest.text)


def _propose(place: int, target: Target, ranked: Sequence[_Candidate], growth: float) -> list[Proposal]:
    """The best of them, in the order they were said. What everybody may see does not say whose words they are."""
    is_named = target.settings.owner[-1] != "shard"
    chosen = sorted(_choose(target.settings, ranked, growth, is_named), key=lambda row: (row[0].place, row[0].number))
    return [
        Proposal(
            target=place,
            kind=kind,
            text=text,
            sources=(candidate.turn.id, *([candidate.question.turn.id] if candidate.question else [])),
            label=candidate.label,
            key=candidate.key,
            is_doubtful=candidate.score < _SURE_SCORE,
            people=tuple(dict.fromkeys([candidate.name, *find_people(candidate.text)])) if is_named else (),
        )
        for candidate, kind, text in chosen
    ]


def _choose(
    settings: Settings, ranked: Sequence[_Candidate], growth: float, is_named: bool
) -> list[tuple[_Candidate, AtomKind, str]]:
    room = {kind: round(getattr(settings, f"{kind}_extraction_max") * growth) for kind in settings.extraction_fields}
    least = sum(getattr(settings, f"{kind}_extraction_min") for kind in settings.extraction_fields)
    chosen: list[tuple[_Candidate, AtomKind, str]] = []
    for candidate in ranked:
        kind = _choose_kind(candidate, room)
        if not kind:
            break
        if candidate.score < MIN_SCORE and len(chosen) >= least:
            continue
        text = _write(candidate, getattr(settings, f"{kind}_max_words"), is_named)
        if text and not any(is_duplicate(text, known) for _, _, known in chosen):
            chosen.append((candidate, kind, text))
            room[kind] -= 1
    return chosen


def _choose_kind(candidate: _Candidate, room: dict[AtomKind, int]) -> AtomKind | None:
    """What lasts is rather a fact, what shows a person rather an observation, as far as there is room."""
    first: AtomKind = "fact" if candidate.key or candidate.label in _LASTING_LABELS else "observation"
    order = (first, *(kind for kind in ATOM_KINDS if kind != first))
    return next((kind for kind in order if room.get(kind, 0) > 0), None)


def _write(candidate: _Candidate, max_words: int, is_named: bool) -> str:
    """The sentence in the speaker's words, with what it needs to be understood; empty if that does not fit."""
    if not is_named:
        return cut_to_words(candidate.text, max_words)
    text = f"{candidate.name}: {candidate.text}"
    if candidate.question:
        with_question = f"{text} (asked: {candidate.question.text})"
        return with_question if word_count(with_question) <= max_words else ""
    if candidate.before and word_count(whole := f"{candidate.name}: {candidate.before} {candidate.text}") <= max_words:
        return whole
    if candidate.after and word_count(whole := f"{text} {candidate.after}") <= max_words:
        return whole
    return cut_to_words(text if max_words > word_count(candidate.name) + 1 else candidate.text, max_words)
