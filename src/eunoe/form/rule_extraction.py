"""Extraction without a language model: sentences that say something worth keeping, in their own words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from eunoe.form.duplicates import same
from eunoe.form.keys import clauses, key_of
from eunoe.form.proposal import Proposal
from eunoe.form.sharing import is_for_all
from eunoe.form.statements import KEPT, is_fragment, is_question, is_secret, people, statement
from eunoe.model.choices import ATOM_KINDS, AtomKind
from eunoe.model.presets import PRESETS
from eunoe.model.stream import Target
from eunoe.model.turn import AGENT_ROLES, TOOL_ROLES, Turn, limit_growth
from eunoe.text.analyzer import stem
from eunoe.text.languages import FRAME_WORDS, detect_language, is_stop_word
from eunoe.text.normalize import fold
from eunoe.text.sentences import cut_to_words, split_sentences, word_count
from eunoe.text.word_lists import word_set

_OF_USERS: Final = {"instruction": 0.6, "preference": 0.8, "identity": 0.8, "relationship": 0.2}
_OF_SESSIONS: Final = {"decision": 0.5, "plan": 0.0, "event": 0.0, "instruction": 0.0}
"""What a kind of statement is worth more to a user's memory and to a session's, which takes no others."""
_LASTING: Final = frozenset(["identity", "relationship", "state", "event"])
_LONGEST_ANSWER: Final = 12
_LONGEST_QUESTION: Final = 20
_ANSWERS: Final = 0.5
_KEYED: Final = 1.0
"""What an answer to a question and a value with a key are worth more."""
_AGAIN: Final = 0.6
"""What a second sentence of the same turn is worth less."""
_MOST: Final = 3000
"""Sentences of one turn that are looked at closely. Longer ones are documents, and little is kept of any turn."""
_LONGEST_REST: Final = 12
_LONGEST_NOTE: Final = 6
"""Words of a sentence that goes with the one before, and of one that goes with a value that may change."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A sentence of a turn that could be kept."""

    place: int
    turn: Turn
    text: str
    before: str
    """The sentence before it, if this one cannot be understood without."""
    asked: str
    """The question that it answers, if it cannot be understood without."""
    asker: str
    label: str
    score: float
    key: str = ""
    number: int = 0
    """Its place within the turn."""
    after: str = ""
    """The sentence after it, if that one takes something back."""
    foreign: bool = False
    """Whether another of the users asked the question, so that it is not for this user's memory."""


def propose(targets: Sequence[Target], turns: Sequence[Turn]) -> list[Proposal]:
    """What the turns offer to each target, within its limits."""
    candidates = list(_candidates(turns))
    speakers = frozenset(
        word for turn in turns for name in (turn.user, turn.speaker) for word in _words(name) if len(word) > 2
    )
    return [
        proposal
        for place, target in enumerate(targets)
        for proposal in _offered(
            place, target, _wanted(target, candidates, speakers), limit_growth(turns, target.settings)
        )
    ]


def _candidates(turns: Sequence[Turn]) -> Iterator[_Candidate]:
    asked: tuple[str, Turn] | None = None
    for place, turn in enumerate(turns):
        if turn.role.lower() in TOOL_ROLES:
            continue
        found = [part for sentence in _looked_at(turn.text) for part in _apart(turn, sentence)]
        yield from _of_turn(place, turn, found, asked if asked and asked[1].name != turn.name else None)
        asked = (found[-1], turn) if found and is_question(found[-1]) else None


def _looked_at(text: str) -> list[str]:
    """The sentences of a turn without what it quotes; of very many, those that seem to say most of the speaker."""
    found = split_sentences(_QUOTED.sub("", text))
    if len(found) <= _MOST:
        return found
    last = {sentence: place for place, sentence in enumerate(found)}
    told = {place: len(_SPEAKING.findall(sentence[:_LOOK])) for sentence, place in last.items()}
    best = sorted(told, key=lambda place: (-min(told[place], 2), place))[:_MOST]
    return [found[place] for place in sorted(best)]


_QUOTED: Final = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
_LOOK: Final = 300
_SPEAKING: Final = re.compile(
    r"\b(?:I|[Mm]y|[Ww]e|[Oo]ur|[Aa]lways|[Nn]ever|allergic|[Ii]ch|[Mm]eine?|[Ww]ir|[Jj]e|[Mm]on|[Mm]a|[Yy]o|[Mm]i|"
    r"[Ss]oy|[Tt]engo|[Ii]o|[Ss]ono|[Ee]u|[Ss]ou|[Mm]eu|[Mm]inha|[Ii]k|[Mm]ijn)\b|[我私僕]"
)


def _apart(turn: Turn, sentence: str) -> list[str]:
    """A sentence, or its clauses where one of them has a value that may change while the others stay."""
    parts = clauses(sentence)
    return parts if len(parts) > 1 and any(key_of(turn.name, part) for part in parts) else [sentence]


def _of_turn(place: int, turn: Turn, found: list[str], asked: tuple[str, Turn] | None) -> Iterator[_Candidate]:
    taken = -1
    for number, sentence in enumerate(found):
        if asked and number == 0 and (answer := _answer(place, turn, sentence, asked)):
            yield answer
            continue
        read = statement(sentence)
        if read is None or number == taken:
            continue
        before = _needed(found, number)
        key = "" if before else key_of(turn.name, sentence)
        after = _rest(found, number, _LONGEST_NOTE if key else _LONGEST_REST)
        taken = number + 1 if after else taken
        worth = max(read.score + _KEYED, KEPT) if key else read.score
        label, score = _heard(turn, read.label, worth + (_ANSWERS if asked else 0.0))
        yield _Candidate(place, turn, sentence, before, "", "", label, score, key, number, after)


def _rest(found: list[str], number: int, most: int) -> str:
    """The sentence after, if it is short, takes something back ("Fish is fine though.") and says little alone."""
    after = found[number + 1] if number + 1 < len(found) else ""
    if not _TAKING_BACK.search(after) or word_count(after) > most or is_question(after) or is_secret(after):
        return ""
    alone = statement(after)
    return after if alone is None or alone.score < KEPT else ""


def _needed(found: list[str], number: int) -> str:
    """The sentence before, if this one speaks of something named there."""
    before = found[number - 1] if number and _LEANING.match(found[number]) else ""
    return "" if is_question(before) else before


def _heard(turn: Turn, label: str, score: float) -> tuple[str, float]:
    """An agent's advice is not an instruction, and it says more than it decides."""
    if turn.role.lower() not in AGENT_ROLES:
        return label, score
    return ("state" if label == "instruction" else label), score - 0.5


def _answer(place: int, turn: Turn, sentence: str, asked: tuple[str, Turn]) -> _Candidate | None:
    """A short answer, which says nothing without its question."""
    question, asker = asked
    if word_count(question) > _LONGEST_QUESTION or word_count(sentence) > _LONGEST_ANSWER:
        return None
    if is_question(sentence) or is_secret(question) or sentence.endswith("!!") or not is_fragment(sentence):
        return None
    key = key_of(turn.name, sentence, asked=question)
    if turn.role.lower() in AGENT_ROLES or not (key or _TELLS.search(sentence)) or not _ABOUT.search(question.lower()):
        return None
    score = KEPT + 0.3 * min(len(_TELLS.findall(sentence)), 2) + (_KEYED if key else 0.0)
    foreign = asker.role.lower() not in AGENT_ROLES and asker.user != turn.user
    return _Candidate(place, turn, sentence, "", question, asker.id, "state", score, key, foreign=foreign)


def _unasked(candidate: _Candidate) -> _Candidate | None:
    """The answer without another user's question, if it stands on its own."""
    if not candidate.foreign:
        return candidate
    place, turn, text = candidate.place, candidate.turn, candidate.text
    return next((each for each in _of_turn(place, turn, [text], None)), None)


_LEANING: Final = re.compile(
    r"(?i:(?:he|she|it|they|that|this|these|those|him|her|his|their|its|er|sie|es|il|elle|él|"
    r"ella)(?:'s|’s|'ll|'re|'d)?)\b"
)
_TAKING_BACK: Final = re.compile(
    r"(?i:\bthough\W*$|\bhowever\W*$|^(?:but|except|though|although|only not|just not|unless|however|aber|außer|nur|"
    r"mais|sauf|pero|salvo|excepto|ma|tranne|mas|exceto|maar|behalve)\b|^(?:但是?|除了|でも|ただし))"
)
_TELLS: Final = re.compile(
    r"\d|(?<=\w )[A-Z][a-z]+|^(?!(?:Yes|Yeah|Yep|No|Nope|Not|Ha|Haha|Oh|Ok|Okay|Sure|Maybe|Never|"
    r"Nothing|Good|Great|Fine|The|That|It|My|"
    r"Don|Very|Sort|Just|So|Sorry|What|Why|He|She|They|We|You|And|But|Of|All|Who|Thanks|Thank|"
    r"Exactly|Absolutely|Definitely)\b)[A-Z][a-z]{2,}|"
    r"\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|"
    r"hundred|thousand|half|once|twice)\b|"
    r"^(?:Yes|Yeah|No|Yep|Ja|Nein|Oui|Non|Sí|Sim|Si)\b, \w+ \w+"
)
_ABOUT: Final = re.compile(
    r"\b(?:you|your|which|what|when|where|who|how (?:much|many|old|long|far|big)|du|dein\w*|ihr|"
    r"tu|ton|ta|vous|te|tus?|wo|wann|wer|où|quand|"
    r"dónde|cuándo|quién)\b|[你您吗何誰]"
)


def _wanted(target: Target, candidates: Sequence[_Candidate], speakers: frozenset[str]) -> list[_Candidate]:
    """Those that may go into the target, each worth what it is worth there."""
    owner = target.settings.owner[-1]
    if owner == "shard":
        return list(_for_shard(target, candidates, speakers))
    if owner == "user" or target.user:
        own = (each for each in candidates if each.turn.user and each.turn.user == target.user)
        return [_moved(each, _OF_USERS.get(each.label, 0.0)) for each in filter(None, map(_unasked, own))]
    return [_moved(each, _OF_SESSIONS.get(each.label, -KEPT)) for each in candidates]


def _for_shard(target: Target, candidates: Sequence[_Candidate], speakers: frozenset[str]) -> Iterator[_Candidate]:
    """What bears on the shard's subject and tells nothing of a person."""
    subject = _subject(target)
    for each in candidates:
        if each.before or each.asked or not is_for_all(each.text, subject):
            continue
        said = _words(each.text)
        shared = len({stem(word) for word in said} & subject)
        if shared and speakers.isdisjoint(said):
            yield _moved(each, 0.6 + 0.4 * min(shared, 2))


def _subject(target: Target) -> frozenset[str]:
    """The words that say what a shard is about; what its prompt keeps out does not count."""
    prompt = target.settings.extraction_prompt
    parts = [] if prompt == PRESETS["agent"].extraction_prompt else re.split(r"[.;:!?\n]", prompt)
    wanted = " ".join([target.scope.get("shard", ""), *(part for part in parts if not _KEPT_OUT.search(part))])
    spoken = detect_language(wanted)
    return frozenset(
        stem(word)
        for word in _words(wanted)
        if len(word) > 2 and not is_stop_word(word, spoken) and word not in _GENERAL
    )


_KEPT_OUT: Final = re.compile(r"(?i:\b(?:not|no|nothing|never|without|except|avoid|nicht|kein\w*|pas|sin|nada)\b)")
_GENERAL: Final = FRAME_WORDS | word_set(
    "anything everything everyone something learn learned know known remember user users agent "
    "fact facts keep about people useful"
)
_WORDS: Final = re.compile(r"[^\W_]+")


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORDS.findall(fold(text)))


def _moved(candidate: _Candidate, by: float) -> _Candidate:
    return replace(candidate, score=candidate.score + by) if by else candidate


def _offered(place: int, target: Target, wanted: Sequence[_Candidate], times: float) -> list[Proposal]:
    """The best of them, in the order they were said."""
    settings = target.settings
    room = {kind: round(getattr(settings, f"{kind}_extraction_max") * times) for kind in settings.extraction_fields}
    least = sum(getattr(settings, f"{kind}_extraction_min") for kind in settings.extraction_fields)
    chosen: list[tuple[_Candidate, AtomKind, str]] = []
    for each in _ranked(wanted):
        kind = _kind(each, room)
        if not kind:
            break
        if each.score < KEPT and len(chosen) >= least:
            continue
        text = _written(each, getattr(settings, f"{kind}_max_words"), named=settings.owner[-1] != "shard")
        if text and not any(same(text, known) for _, _, known in chosen):
            chosen.append((each, kind, text))
            room[kind] -= 1
    chosen.sort(key=lambda one: (one[0].place, one[0].number))
    return [_proposal(place, *one, named=settings.owner[-1] != "shard") for one in chosen]


def _ranked(wanted: Sequence[_Candidate]) -> list[_Candidate]:
    """The best first; of several values of one key only the last; not all from one turn."""
    latest = {each.key: each for each in wanted if each.key}
    live = [each for each in wanted if not each.key or latest[each.key] is each]
    live.sort(key=lambda each: (-each.score, -each.place))
    seen: set[int] = set()
    worth: dict[int, float] = {}
    for number, each in enumerate(live):
        worth[number] = each.score - (_AGAIN if each.place in seen and not each.key else 0.0)
        seen.add(each.place)
    return [live[number] for number in sorted(worth, key=lambda number: (-worth[number], -live[number].place))]


def _kind(candidate: _Candidate, room: dict[AtomKind, int]) -> AtomKind | None:
    """What lasts is rather a fact, what shows a person rather an observation, as far as there is room."""
    first: AtomKind = "fact" if candidate.key or candidate.label in _LASTING else "observation"
    order = (first, *(kind for kind in ATOM_KINDS if kind != first))
    return next((kind for kind in order if room.get(kind, 0) > 0), None)


def _written(candidate: _Candidate, most: int, named: bool) -> str:
    """The sentence in the speaker's words, with what it needs to be understood; empty if that does not fit. What
    everybody may see does not say whose words they are."""
    if not named:
        return cut_to_words(candidate.text, most)
    who = candidate.turn.name
    if candidate.asked:
        whole = f"{who}: {candidate.text} (asked: {candidate.asked})"
        return whole if word_count(whole) <= most else ""
    if candidate.before:
        whole = f"{who}: {candidate.before} {candidate.text}"
        if word_count(whole) <= most:
            return whole
    if candidate.after and word_count(whole := f"{who}: {candidate.text} {candidate.after}") <= most:
        return whole
    return (
        cut_to_words(f"{who}: {candidate.text}", most)
        if most > word_count(who) + 1
        else cut_to_words(candidate.text, most)
    )


def _proposal(place: int, candidate: _Candidate, kind: AtomKind, text: str, named: bool) -> Proposal:
    return Proposal(
        target=place,
        kind=kind,
        text=text,
        sources=(candidate.turn.id, *([candidate.asker] if candidate.asked else [])),
        label=candidate.label,
        key=candidate.key,
        people=tuple(dict.fromkeys([candidate.turn.name, *people(candidate.text)])) if named else (),
    )
