"""Which turns bear out what is claimed of a conversation, and what a claim says otherwise than they do.

`evidence` asks whether the words of a claim are there. Here it is asked whether they say the same: who, whether or not,
whether really, how often, and which number or name belongs to what. Nothing is found where a claim has too few words of
any one sentence to tell.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Final, NamedTuple

from eunoe.form.data_files import PatternFile
from eunoe.form.evidence import (
    Claim,
    Finding,
    Source,
    compare,
    count_common,
    find_language,
    find_numbers,
    read_claim,
    read_forms,
    read_roots,
)
from eunoe.form.likeness import count_negations
from eunoe.form.statements import is_question
from eunoe.model.turn import Turn
from eunoe.text.analyzer import folded_words, stem
from eunoe.text.dates import MONTHS, WEEKDAYS
from eunoe.text.languages import ENGLISH
from eunoe.text.normalize import fold
from eunoe.text.sentences import split_sentences

_MIN_SHARE: Final = 0.65
"""Share of a claim that a sentence must have to be compared with it. What has less is a free paraphrase."""
_MIN_OPPOSED_SHARE: Final = 0.3
"""The same where one has the opposite of a word of the other."""
_MAX_CLAUSES: Final = 3
"""Clauses of a sentence in which each number has its own thing, as in "the exam on Tuesday and the party on Friday"."""
_PATTERNS: Final = PatternFile("claims")

_REACH: Final = 10
"""Turns before and after a source in which its pronouns, numbers and dates are explained."""
_ANSWER_REACH: Final = 2
"""Turns between a question and what belongs to its answer."""
_MIN_NEW_SHARE: Final = 0.25
"""Share of a claim that the chunk's own turns must have: what was said before them is formed already."""
_MIN_JUDGED_SIZE: Final = 3
_MIN_SENTENCE_SHARE: Final = 0.3
"""Share that each sentence must have which says something of its own."""
_USER_BONUS: Final = 0.5
_MAX_ADDED: Final = 4
"""Turns that are added to those that were cited. What needs more is put together from all over the talk."""

Likeness = Callable[[str, Sequence[Turn]], float]
"""How close a claim is to turns by vectors, beyond what any two texts are, up to 1."""


class Said(NamedTuple):
    """A sentence, who said it, and what was answered."""

    text: str
    names: frozenset[str] = frozenset()
    """The words of what the speaker is called, folded. Empty if nobody speaks."""
    answer: str = ""
    """What another one said next."""
    is_statement: bool = False
    """Whether it is a statement that holds, of a memory or a summary, and no turn."""


def find_doubt(claim: str, said: Sequence[Said], people: Iterable[str] = ()) -> str:
    """Return in a word what a claim says otherwise than what was said; "" if nothing. `people` are those who speak.

    >>> find_doubt("Anna moved to Rome.", [Said("I might move to Rome.", frozenset(["anna"]))])
    'unreal'
    """
    names = frozenset(word for name in people for word in folded_words(name)).union(*(each.names for each in said))
    return next(filter(None, (_doubt_sentence(part, said, names) for part in split_sentences(claim) or [claim])), "")


def split_clauses(sentence: str) -> list[str]:
    """Return the parts of a sentence that may each say something of their own."""
    return [part for part in _PATTERNS.clause_break.split(sentence) if part.strip()] or [sentence]


def without_speaker(quotation: str) -> str:
    """Return what is said in "Anna: I live in Rome."; a text that is no quotation as it is."""
    return _PATTERNS.speaker_name.sub("", quotation)


def _doubt_sentence(claim: str, said: Sequence[Said], names: frozenset[str]) -> str:
    if _PATTERNS.markup.search(claim) and not any(_PATTERNS.markup.search(each.text) for each in said):
        return "markup"
    spoken = find_language(claim, [Source(each.text) for each in said])
    own = read_claim(claim, spoken)
    own = own._replace(strict={item: forms for item, forms in own.strict.items() if forms.isdisjoint(names)})
    common = [len(_shared(own, each.text)) for each in said]
    best = max(common, default=0)
    pairs = (_Pair(claim, own, each) for each, count in zip(said, common, strict=True) if count == best)
    doubts = [next(pair.find_doubts(best), "") for pair in pairs] if best else []
    if doubts and all(doubts):
        return doubts[0]
    # More words of its own than are left of what was said stand for nothing.
    there = frozenset[str]().union(*(read_roots(f"{each.text} {each.answer}", spoken) for each in said))
    marks = (row.pattern.sub(" ", claim) for row in _PATTERNS.tables["claimed"])
    content = frozenset.intersection(*(read_claim(text, spoken).content for text in (claim, *marks)))
    return "detail" if len(content - there) > len(there - content) else ""


def _shared(own: Claim, text: str) -> frozenset[str]:
    """What a text has of a claim."""
    forms = read_forms(text)
    strict = {item for item, wanted in own.strict.items() if not wanted.isdisjoint(forms)}
    return frozenset(strict | (own.content & read_roots(text, own.spoken)))


class _Pair:
    """A claim and a sentence that it may have taken its words from."""

    def __init__(self, claim: str, own: Claim, said: Said) -> None:
        self._claim, self._own, self._said = claim, own, said
        self._clauses = split_clauses(said.text)

    def find_doubts(self, common: int) -> Iterator[str]:
        """What the claim says otherwise, where it has so many words in common with the sentence."""
        claim, said, size = self._claim, self._said.text, len(self._own.content) + len(self._own.strict)
        is_close = common >= _MIN_SHARE * size
        if said.rstrip().endswith("?"):
            if is_close:
                yield from self._doubt_question()
            return
        if common < _MIN_OPPOSED_SHARE * size:
            return
        taken = self._find_taken()
        if self._said.is_statement:
            if bool(_PATTERNS.pretended.search(claim)) != bool(_PATTERNS.pretended.search(said)):
                yield "unreal"
            if _PATTERNS.perfect.search(claim) is None and _is_over(taken, claim):
                yield "past"
        claimed, told = set(_words(claim)), set(_words(taken))
        sides = ((one, other) for pair in _opposites() for one, other in (pair, pair[::-1]))
        if any(claimed & one and told & other and not told & one and not claimed & other for one, other in sides):
            yield "opposite"
        if not is_close:
            return
        if _is_negative(claim) != _is_negative(taken):
            yield "polarity"
        for name, text in (("condition", said), ("unreal", taken)):
            if _rows("marks")[name].search(text) and not _rows("claimed")[name].search(claim):
                yield name
        if _is_over(claim, taken):
            yield "past"
        if self._is_of_other(taken):
            yield "subject"
        words = set(_words(said))
        if any(claimed & always and not words & always for always in _lines("absolute")):
            yield "frequency"
        if not told.isdisjoint(_PATTERNS.words["parts"]) and claimed.isdisjoint(_PATTERNS.words["parts"]):
            yield "amount"
        if self._mixes_values():
            yield "value"
        if self._moves_unit():
            yield "unit"
        if self._is_turned_round():
            yield "order"

    def _find_taken(self) -> str:
        """The clauses that the claim took its words from: the fewest that have them."""
        left, taken = _shared(self._own, self._said.text), list[str]()
        while left:
            clause = max(self._clauses, key=lambda part: (len(_shared(self._own, part) & left), -len(part)))
            if _shared(self._own, clause).isdisjoint(left):
                return self._said.text
            left -= _shared(self._own, clause)
            taken.append(clause)
        return ", ".join(taken)

    def _is_of_other(self, taken: str) -> bool:
        """Whether it is told of the speaker what was said of somebody else, or the other way round."""
        names, report = self._said.names, _PATTERNS.reporter.search(self._said.text)
        reporter = _words(report["who"])[-1] if report else ""
        mine, other = self._find_subject(self._claim), self._find_subject(taken)
        if reporter and mine in names and reporter not in {*_words(self._claim), *names, *_PATTERNS.words["pronouns"]}:
            return True
        if not mine or not other or mine in (other, reporter):
            return False
        people = {_plain(match[0]) for match in _PATTERNS.person.finditer(taken)}
        return mine in names or (mine in people and not _PATTERNS.opinion.search(taken))

    def _find_subject(self, text: str) -> str:
        """Who does it: a name of the speaker, or the last word of what another one is called; "" if it is not told."""
        text = without_speaker(text)
        word = _PATTERNS.word.search(text)
        is_possessive = word is not None and word[0].replace("’", "'").endswith(("'s", "'"))
        is_named = word is not None and _plain(word[0]) in self._said.names and not is_possessive
        if is_named or _PATTERNS.speaker.match(text):
            return min(self._said.names, default="")
        match = _PATTERNS.other.match(text)
        last = _words(match["who"])[-1] if match else ""
        return "" if last in _PATTERNS.words["pronouns"] else last

    def _mixes_values(self) -> bool:
        """Whether a number or a name of one clause is put to what another clause says, which has its own."""
        if len(self._clauses) > _MAX_CLAUSES or len(split_clauses(self._claim)) > 1:
            return False
        names, spoken = self._said.names, self._own.spoken
        wanted = [values - names for values in _values(self._claim, spoken)]
        rows = [([v - names for v in _values(part, spoken)], _shared(self._own, part)) for part in self._clauses]
        for own, shared in rows:
            for others, other_shared in rows:
                for claimed, mine, theirs in zip(wanted, own, others, strict=True) if own is not others else ():
                    first, second = mine - theirs, theirs - mine
                    # It leaves out the value of a clause for one of the same kind from another clause, and has words
                    # of the first, or leaves out a value of both.
                    if shared - other_shared and mine and mine.isdisjoint(claimed) and second & claimed:
                        return True
                    if first & claimed and second & claimed and first - claimed and second - claimed:
                        return True
        return False

    def _moves_unit(self) -> bool:
        """Whether a number stands before the word that another number was said of."""
        claimed, said = _units(self._claim), _units(self._said.text)
        units = frozenset[str]().union(*said.values())
        return any(
            value in said and one.isdisjoint(said[value]) and one & (units - said[value])
            for value, one in claimed.items()
        )

    def _is_turned_round(self) -> bool:
        """Whether what is compared stands in the other order."""
        if not all(map(_PATTERNS.comparison.search, (self._claim, self._said.text))):
            return False
        one, other = ([stem(word) for word in _words(text)] for text in (self._claim, self._said.text))
        pronouns = _PATTERNS.words["pronouns"]
        shared = [word for word in one if one.count(word) == other.count(word) == 1 and word not in pronouns]
        shared = [word for word in shared if not _PATTERNS.comparison.search(word)]
        return shared != sorted(shared, key=other.index)

    def _doubt_question(self) -> Iterator[str]:
        """What it says otherwise than a question: it states what the speaker asked, or not what was answered."""
        claim, said, answer = self._claim, self._said.text, self._said.answer
        tells_asking = bool(_rows("claimed")["question"].search(claim))
        if not answer.strip():
            if self._said.names and not tells_asking:
                yield "question"
        elif _PATTERNS.yes_no.match(said):
            is_yes, is_no = bool(_PATTERNS.yes.match(answer)), bool(count_negations(split_sentences(answer)[0]))
            if is_yes == is_no:
                is_otherwise = not is_yes and not _shared(self._own, answer) and not tells_asking
            else:
                is_otherwise = (_is_negative(said) != is_no) != _is_negative(claim)
            if is_otherwise:
                yield "answer"


def _is_over(present: str, past: str) -> bool:
    """Whether a text that tells no past tells as a present what another one tells as over."""
    if _PATTERNS.past.search(present):
        return False
    before, now = _words(past), _words(present)
    shifts = [("was", "is"), ("were", "are"), ("had", "has"), ("was", "'s"), ("was", "has")]
    ended = {stem(word) for word in before if word.endswith("ed")}
    is_shifted = bool(ended & {stem(word) for word in now if word.endswith("s")})
    return (
        is_shifted or any(one in before and other in now for one, other in shifts) or bool(_PATTERNS.over.search(past))
    )


def _values(text: str, spoken: int) -> tuple[frozenset[str], ...]:
    """The numbers, the days and months, and the names of a text."""
    words = _words(text)
    numbers = {word for word in words if any(map(str.isdecimal, word))}
    numbers |= {
        fold(text[each.start : each.end]) for each in find_numbers(text, spoken == ENGLISH) if not each.is_loose
    }
    times = _times().intersection(words)
    names = {_plain(item) for item in read_claim(text, spoken).strict} - numbers - times
    return frozenset(numbers), times, frozenset(names)


def _units(text: str) -> dict[str, set[str]]:
    """The numbers of a text, each with the words that follow it."""
    units: dict[str, set[str]] = {}
    for word, following in pairwise(_words(text)):
        for number in find_numbers(word):
            units.setdefault(min(number.values), set()).add(stem(following))
    return units


def _is_negative(text: str) -> bool:
    negative = _PATTERNS.words["negative"]
    return (count_negations(text) + sum(word in negative for word in _words(text))) % 2 == 1


def _words(text: str) -> list[str]:
    return [_plain(match[0]) for match in _PATTERNS.word.finditer(text)]


def _plain(word: str) -> str:
    return fold(word).replace("’", "'").removesuffix("'s")


@cache
def _times() -> frozenset[str]:
    return frozenset(map(fold, [*MONTHS, *WEEKDAYS]))


@cache
def _lines(name: str) -> list[frozenset[str]]:
    return [frozenset(line.split()) for line in _PATTERNS.content["words"][name].strip().splitlines()]


@cache
def _opposites() -> list[tuple[frozenset[str], ...]]:
    lines = _PATTERNS.content["words"]["opposites"].strip().splitlines()
    return [tuple(frozenset(side.split()) for side in line.split("/")) for line in lines]


@cache
def _rows(table: str) -> dict[str, re.Pattern[str]]:
    return {row.name: row.pattern for row in _PATTERNS.tables[table]}


class TurnEvidence:
    """Finds the turns that bear a claim out, among those of a chunk and those before it."""

    def __init__(
        self,
        turns: Sequence[Turn],
        earlier: Sequence[Turn] = (),
        names: Iterable[str] = (),
        likeness: Likeness | None = None,
    ) -> None:
        self._likeness = likeness
        self._turns = [*earlier, *turns]
        self._first = len(earlier)
        """Where the turns of the chunk begin."""
        people = dict.fromkeys([*names, *(name for turn in self._turns for name in (turn.speaker, turn.user) if name)])
        self._people, self._sources = tuple(people), list[Source]()
        for turn in self._turns:
            own = tuple(filter(None, dict.fromkeys([turn.speaker, turn.user])))
            others = tuple(name for name in self._people if name not in own)
            self._sources.append(Source(turn.text, own, turn.moment, others))

    def compare(self, claim: str, turns: Sequence[Turn]) -> Finding:
        """Return what some of the turns have of a claim."""
        return self._compare(claim, self._places(turns))

    def find_sources(
        self,
        claim: str,
        cited: Collection[str],
        allows: Callable[[Turn], bool],
        is_needed: Callable[[Turn], bool] | None = None,
    ) -> list[Turn]:
        """Return the turns that together bear out a claim, the cited ones as far as they do; none if they do not.

        The turn of the chunk that has most of the claim's words is always among them, whichever was cited. Where
        `is_needed` is given, one of them is such a turn.
        """
        places = [place for place, turn in enumerate(self._turns) if allows(turn)]
        chosen = self._complete(claim, self._begin(claim, cited, places), places)
        if not self._is_enough(claim, chosen):
            return []
        kept = [self._turns[place] for place in self._without_idle(claim, chosen, cited)]
        return kept if is_needed is None or any(map(is_needed, kept)) else []

    def find_doubt(self, claim: str, turns: Sequence[Turn]) -> str:
        """Return in a word what a claim says otherwise than the turns that it rests on; "" if nothing."""
        said = [each for place in self._places(turns) for each in self._sentences(place)]
        return find_doubt(claim, said, self._people)

    def quote(self, claim: str, turns: Sequence[Turn]) -> str:
        """Return what a speaker said of what is claimed, in their own words; "" if they only asked."""
        said = [(place, each) for place in self._places(turns) for each in self._sentences(place)]
        place, best = max(said, key=lambda row: count_common(claim, Source(row[1].text)))
        if not is_question(best.text):
            return f"{self._turns[place].name}: {best.text}"
        return f"{self._turns[place + 1].name}: {best.answer} (asked: {best.text})" if best.answer else ""

    def _places(self, turns: Sequence[Turn]) -> list[int]:
        wanted = {turn.id for turn in turns}
        return [place for place, turn in enumerate(self._turns) if turn.id in wanted]

    def _sentences(self, place: int) -> list[Said]:
        """The sentences of a turn, the last with what another one answered."""
        turn, following = self._turns[place], next(iter(self._turns[place + 1 : place + 2]), None)
        names = frozenset(word for name in (turn.name, turn.user) for word in folded_words(name))
        said = [Said(text, names) for text in split_sentences(turn.text)]
        if said and following is not None and following.name != turn.name:
            said[-1] = said[-1]._replace(answer=following.text)
        return said

    def _begin(self, claim: str, cited: Collection[str], places: Sequence[int]) -> list[int]:
        """The cited turns, and the one that has most of the claim if it has more than these. What a user said counts
        more than an agent's echo of it."""

        def rank(place: int) -> tuple[float, bool]:
            common = count_common(claim, self._sources[place])
            is_users = bool(common and self._turns[place].user)
            return common + _USER_BONUS * is_users, self._turns[place].id in cited

        own = [place for place in places if place >= self._first]
        chosen = [place for place in own if self._turns[place].id in cited]
        best = max(own, key=rank, default=None)
        if best is not None and self._compare(claim, [best]).found - self._compare(claim, chosen).found:
            chosen.append(best)
        return chosen

    def _compare(self, claim: str, places: Sequence[int]) -> Finding:
        return compare(claim, [self._sources[place] for place in places])

    def _complete(self, claim: str, chosen: list[int], places: Sequence[int]) -> list[int]:
        """Add the turns that have what is missing: those around for everything, those before for names; and one that
        has more of its words."""
        for _ in range(_MAX_ADDED):
            before = self._compare(claim, chosen)
            if not before.missing:
                break
            added = self._find_missing(claim, chosen, places, before)
            if added is None:
                return chosen
            chosen = [*chosen, added]
        before = self._compare(claim, chosen)
        near = [place for place in places if _distance(place, chosen) <= _ANSWER_REACH]
        gains = {place: len(self._compare(claim, [*chosen, place]).found) - len(before.found) for place in near}
        best = max(near, key=lambda place: (gains[place], place), default=-1)
        return chosen if before.is_enough or gains.get(best, 0) <= 0 else [*chosen, best]

    def _find_missing(self, claim: str, chosen: Sequence[int], places: Sequence[int], before: Finding) -> int | None:
        """The turn that has most of what is missing: one around, else the last one that has a name."""
        gains = {
            place: len(before.missing) - len(self._compare(claim, [*chosen, place]).missing)
            for place in places
            if 0 < _distance(place, chosen) <= _REACH
        }
        # A number somewhere is another number; one in an answer, or beside the same words, may be the one meant.
        related = [
            place
            for place, gain in gains.items()
            if gain
            and (_distance(place, chosen) <= _ANSWER_REACH or count_common(claim, self._sources[place]) > gain + 1)
        ]
        if related:
            return max(related, key=lambda place: (gains[place], -_distance(place, chosen)))
        names = [item for item in before.missing if item[:1].isupper()]
        others = (place for place in reversed(places) if place not in chosen)
        return next((p for p in others if any(not self._compare(name, [p]).missing for name in names)), None)

    def _is_enough(self, claim: str, chosen: Sequence[int]) -> bool:
        """Whether they bear it out and have each sentence of it, and the chunk's own turns have a share in it."""
        finding, new = self._compare(claim, chosen), [place for place in chosen if place >= self._first]
        if not (finding.is_enough and self._compare(claim, new).share >= _MIN_NEW_SHARE):
            if finding.missing or not new or self._likeness is None:
                return False
            if not finding.is_enough_if_like(self._likeness(claim, [self._turns[place] for place in new])):
                return False
        sentences = split_sentences(claim)
        findings = [self._compare(sentence, chosen) for sentence in sentences] if len(sentences) > 1 else []
        return all(each.size < _MIN_JUDGED_SIZE or each.share >= _MIN_SENTENCE_SHARE for each in findings)

    def _without_idle(self, claim: str, chosen: Sequence[int], cited: Collection[str]) -> list[int]:
        """Those that have something of the claim, if that is enough, with the cited ones around, which may answer
        them; of those that were not cited, only what the others lack."""
        everything = sorted(set(chosen))
        telling = [place for place in chosen if self._compare(claim, [place]).found]
        kept = [place for place in everything if place in telling or _distance(place, telling) <= _ANSWER_REACH]
        if not self._compare(claim, kept).is_enough:
            kept = everything
        whole = self._compare(claim, kept)
        for place in [place for place in kept if self._turns[place].id not in cited]:
            rest = [other for other in kept if other != place]
            if rest and self._compare(claim, rest) == whole:
                kept = rest
        return kept


def _distance(place: int, chosen: Sequence[int]) -> int:
    return min((abs(place - one) for one in chosen), default=_REACH)
