"""Which turns bear out what is claimed of a conversation."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from eunoe.form.claims import Said, find_doubt
from eunoe.form.evidence import Finding, Source, compare, count_common
from eunoe.form.statements import is_question
from eunoe.model.turn import Turn
from eunoe.text.analyzer import folded_words
from eunoe.text.sentences import split_sentences

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
        self._people = tuple(people)
        self._sources = [_read_source(turn, self._people) for turn in self._turns]

    def compare(self, claim: str, turns: Sequence[Turn]) -> Finding:
        """Return what some of the turns have of a claim."""
        wanted = {turn.id for turn in turns}
        return self._compare(claim, [place for place, turn in enumerate(self._turns) if turn.id in wanted])

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
        if not self._is_enough(claim, chosen) or not self._has_each_sentence(claim, chosen):
            return []
        kept = [self._turns[place] for place in self._without_idle(claim, chosen, cited)]
        return kept if is_needed is None or any(map(is_needed, kept)) else []

    def find_doubt(self, claim: str, turns: Sequence[Turn]) -> str:
        """Return in a word what a claim says otherwise than the turns that it rests on; "" if nothing."""
        wanted = {turn.id for turn in turns}
        places = [place for place, turn in enumerate(self._turns) if turn.id in wanted]
        return find_doubt(claim, [each for place in places for each in self._sentences(place)], self._people)

    def quote(self, claim: str, turns: Sequence[Turn]) -> str:
        """Return what a speaker said of what is claimed, in their own words; "" if they only asked."""
        wanted = {turn.id for turn in turns}
        places = [place for place, turn in enumerate(self._turns) if turn.id in wanted]
        said = [(place, each) for place in places for each in self._sentences(place)]
        place, best = max(said, key=lambda row: count_common(claim, Source(row[1].text)))
        if not is_question(best.text):
            return f"{self._turns[place].name}: {best.text}"
        return f"{self._turns[place + 1].name}: {best.answer} (asked: {best.text})" if best.answer else ""

    def _sentences(self, place: int) -> list[Said]:
        """The sentences of a turn, the last with what another one answered."""
        turn, following = self._turns[place], next(iter(self._turns[place + 1 : place + 2]), None)
        names = frozenset(word for name in (turn.name, turn.user) for word in folded_words(name))
        said = [Said(text, names) for text in split_sentences(turn.text)]
        if said and following is not None and following.name != turn.name:
            said[-1] = said[-1]._replace(answer=following.text)
        return said

    def _begin(self, claim: str, cited: Collection[str], places: Sequence[int]) -> list[int]:
        """The cited turns, and the one that has most of the claim if it has more than these."""
        own = [place for place in places if place >= self._first]
        chosen = [place for place in own if self._turns[place].id in cited]
        best = max(own, key=lambda place: (self._rank(claim, place), self._turns[place].id in cited), default=None)
        if best is not None and self._compare(claim, [best]).found - self._compare(claim, chosen).found:
            chosen.append(best)
        return chosen

    def _rank(self, claim: str, place: int) -> float:
        """How much of a claim a turn has. What a user said counts more than an agent's echo of it."""
        common = count_common(claim, self._sources[place])
        return common + _USER_BONUS if common and self._turns[place].user else common

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
        near = [place for place in places if self._is_answer(place, chosen)]
        gains = {place: len(self._compare(claim, [*chosen, place]).found) - len(before.found) for place in near}
        best = max(near, key=lambda place: (gains[place], place), default=-1)
        return chosen if before.is_enough or gains.get(best, 0) <= 0 else [*chosen, best]

    def _is_answer(self, place: int, chosen: Sequence[int]) -> bool:
        """Whether a turn is so near that it may answer one of these, or be answered by it."""
        return self._distance(place, chosen) <= _ANSWER_REACH

    @staticmethod
    def _distance(place: int, chosen: Sequence[int]) -> int:
        return min((abs(place - one) for one in chosen), default=_REACH)

    def _find_missing(self, claim: str, chosen: Sequence[int], places: Sequence[int], before: Finding) -> int | None:
        """The turn that has most of what is missing: one around, else the last one that has a name."""
        near = [place for place in places if 0 < self._distance(place, chosen) <= _REACH]
        gains = {place: len(before.missing) - len(self._compare(claim, [*chosen, place]).missing) for place in near}
        related = [place for place in near if gains[place] and self._is_related(claim, place, chosen, gains[place])]
        if related:
            return max(related, key=lambda place: (gains[place], -self._distance(place, chosen)))
        return self._last_with_name([item for item in before.missing if item[:1].isupper()], places, chosen)

    def _last_with_name(self, names: Sequence[str], places: Sequence[int], chosen: Sequence[int]) -> int | None:
        others = [place for place in reversed(places) if place not in chosen]
        return next((place for place in others if self._has_one(place, names)), None)

    def _is_related(self, claim: str, place: int, chosen: Sequence[int], gain: int) -> bool:
        """A number somewhere is another number; one in an answer, or beside the same words, may be the one meant."""
        return self._is_answer(place, chosen) or count_common(claim, self._sources[place]) > gain + 1

    def _has_one(self, place: int, names: Sequence[str]) -> bool:
        return any(not compare(name, [self._sources[place]]).missing for name in names)

    def _is_enough(self, claim: str, chosen: Sequence[int]) -> bool:
        """Whether they bear it out, and do not leave the chunk's own turns without a share in it."""
        finding, new = self._compare(claim, chosen), [place for place in chosen if place >= self._first]
        if finding.is_enough and self._compare(claim, new).share >= _MIN_NEW_SHARE:
            return True
        if finding.missing or not new or self._likeness is None:
            return False
        return finding.is_enough_if_like(self._likeness(claim, [self._turns[place] for place in new]))

    def _has_each_sentence(self, claim: str, chosen: Sequence[int]) -> bool:
        """Whether no sentence of the claim is about something else than the turns."""
        sentences = split_sentences(claim)
        findings = [self._compare(sentence, chosen) for sentence in sentences] if len(sentences) > 1 else []
        return all(each.size < _MIN_JUDGED_SIZE or each.share >= _MIN_SENTENCE_SHARE for each in findings)

    def _without_idle(self, claim: str, chosen: Sequence[int], cited: Collection[str]) -> list[int]:
        """Those that have something of the claim, if that is enough, with the cited ones around, which may answer
        them; of those that were not cited, only what the others lack."""
        kept, everything = self._without_strangers(claim, chosen), sorted(set(chosen))
        if not self._compare(claim, kept).is_enough:
            kept = everything
        whole = self._compare(claim, kept)
        for place in [place for place in kept if self._turns[place].id not in cited]:
            rest = [other for other in kept if other != place]
            if rest and self._compare(claim, rest) == whole:
                kept = rest
        return kept

    def _without_strangers(self, claim: str, chosen: Sequence[int]) -> list[int]:
        telling = [place for place in chosen if self._compare(claim, [place]).found]
        return [place for place in sorted(set(chosen)) if place in telling or self._is_answer(place, telling)]


def _read_source(turn: Turn, people: tuple[str, ...]) -> Source:
    names = tuple(filter(None, dict.fromkeys([turn.speaker, turn.user])))
    return Source(turn.text, names, turn.moment, tuple(name for name in people if name not in names))
