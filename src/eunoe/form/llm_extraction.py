"""Extraction by a language model: one call for all streams, its answer checked, repaired or asked for again."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from eunoe.errors import LlmError
from eunoe.form.evidence import content
from eunoe.form.extraction_prompt import EXTRACTION, Part, Wanted, extraction_prompt
from eunoe.form.proposal import Known, Proposal
from eunoe.llm.answers import ask_structured
from eunoe.llm.contract import Llm, Prompt, Reply
from eunoe.model.choices import AtomKind
from eunoe.model.settings import Settings
from eunoe.model.stream import Target
from eunoe.model.turn import Turn, limit_growth
from eunoe.text.sentences import cut_to_words, word_count

_log = logging.getLogger("eunoe")
_TOLERANCE = 1.5
"""Items may be so many times longer than was asked for before they are cut."""
_BORNE_OUT = 0.5
"""Share of an item's content words that a turn must have to bear it out unasked."""
_LONGEST_NAME = 80
_MOST_PEOPLE = 20
_DIGITS = re.compile(r"[0-9]{1,9}")
_EMPTY = re.compile(r"\[\s*\]")
T = TypeVar("T")


class Unusable(LlmError):
    """A model answered, and neither its answer nor the one after it can be used."""


class Extraction(NamedTuple):
    """What a model offered."""

    proposals: list[Proposal]
    refused: int = 0
    """Items of its answer that cannot be used."""


def propose(
    llm: Llm, targets: Sequence[Target], turns: Sequence[Turn], known: Sequence[Known], now: datetime
) -> Extraction:
    """What the model offers. Items that cannot be used are left out; if all of them are, it is asked again. Unusable if
    that does not help, LlmError if it does not answer."""
    wanted = {place: wants for place, target in enumerate(targets) if (wants := _wanted(target, turns))}
    if not turns or not wanted:
        return Extraction([])
    reader = _Reader(targets, wanted, turns, known)
    prompt = extraction_prompt(reader.parts, turns, now)
    # The schema goes to the model; its answer is checked item by item, so that a bad item costs no good one.
    shaped = _Shaped(llm)
    try:
        return ask_structured(shaped, replace(prompt, schema=None), lambda answer: reader.read(answer, shaped.said))
    except LlmError as error:
        if shaped.is_silent:
            raise
        raise Unusable(str(error)) from error


def _wanted(target: Target, turns: Sequence[Turn]) -> list[Wanted]:
    times = limit_growth(turns, target.settings)
    wanted = [_limits(target.settings, kind, times) for kind in target.settings.extraction_fields]
    return [wants for wants in wanted if wants.most]


def _limits(settings: Settings, kind: AtomKind, times: float) -> Wanted:
    least, most = (round(getattr(settings, f"{kind}_extraction_{name}") * times) for name in ("min", "max"))
    return Wanted(kind, least, most, getattr(settings, f"{kind}_max_words"))


class _Item(NamedTuple):
    """What an answer says of one memory, not yet compared with what was shown."""

    stream: int
    kind: str
    text: str
    turns: list[int]
    key: str
    replaces: list[int]
    people: list[str]


class _Shaped:
    """A model that is told the form of the answer, whatever the prompt says of it, and what it said last."""

    def __init__(self, llm: Llm) -> None:
        self._llm = llm
        self.name = llm.name
        self.said = ""
        self.is_silent = True
        """Whether the last question was not answered."""

    def ask(self, prompt: Prompt) -> Reply:
        self.is_silent = True
        reply = self._llm.ask(replace(prompt, schema=EXTRACTION))
        self.said, self.is_silent = reply.text, False
        return reply


class _Reader:
    """Turns answers into proposals: numbers into what was shown under them, and nothing else."""

    def __init__(
        self,
        targets: Sequence[Target],
        wanted: Mapping[int, Sequence[Wanted]],
        turns: Sequence[Turn],
        known: Sequence[Known],
    ) -> None:
        self._places = list(wanted)
        self._turns = turns
        self._known = [[one for one in known if one.target == place] for place in self._places]
        self.parts = [
            Part(targets[place], wanted[place], [one.text for one in shown])
            for place, shown in zip(self._places, self._known, strict=True)
        ]

    def read(self, answer: Any, said: str) -> Extraction:
        items = _items(answer)
        if not items and not _EMPTY.search(said):
            raise LlmError("the answer breaks off before its first memory")
        read = [self._proposal(item) for item in map(_shaped, items)]
        kept = list(self._within(proposal for proposal in read if isinstance(proposal, Proposal)))
        if items and not kept:
            reasons = dict.fromkeys(str(fault) for fault in read if isinstance(fault, LlmError))
            raise LlmError(f"none of its memories can be used: {'; '.join(reasons)}")
        if len(kept) < len(items):
            _log.info("extraction: %d of %d items were refused", len(items) - len(kept), len(items))
        return Extraction(kept, len(items) - len(kept))

    def _within(self, proposals: Iterable[Proposal]) -> Iterable[Proposal]:
        """The first ones, up to the most of each kind."""
        room = Counter({(place, wants.kind): wants.most for place, part in self._by_place() for wants in part.wanted})
        for proposal in proposals:
            if room[proposal.target, proposal.kind] > 0:
                room[proposal.target, proposal.kind] -= 1
                yield proposal

    def _by_place(self) -> Iterable[tuple[int, Part]]:
        return zip(self._places, self.parts, strict=True)

    def _proposal(self, item: _Item | LlmError) -> Proposal | LlmError:
        """What is wrong with it if its stream is not one of those shown, it says nothing, or no turn bears it out."""
        if isinstance(item, LlmError):
            return item
        number = 1 if len(self.parts) == 1 else item.stream
        if not 1 <= number <= len(self.parts):
            return LlmError(f"`stream` must be the number of a stream that is shown, from 1 to {len(self.parts)}")
        if not item.text:
            return LlmError("`text` must not be empty; where nothing is worth keeping, give an empty list")
        part = self.parts[number - 1]
        turns = self._sources(item.turns, item.text, part.target.user)
        if not turns:
            return LlmError(self._unfounded(number, part.target.user))
        wants = next((wants for wants in part.wanted if wants.kind == item.kind), part.wanted[0])
        return Proposal(
            target=self._places[number - 1],
            kind=wants.kind,
            text=_fitting(item.text, wants.words),
            sources=tuple(turn.id for turn in turns),
            key=item.key,
            people=tuple(item.people[:_MOST_PEOPLE]),
            replaces=tuple(one.id for one in _numbered(self._known[number - 1], item.replaces)),
        )

    def _sources(self, numbers: Sequence[int], text: str, user: str) -> list[Turn]:
        """The turns it names, else the one whose words bear it out. A user's memory needs a word of that user."""
        named = _numbered(self._turns, numbers)
        if not named:
            own = [turn for turn in self._turns if not user or turn.user == user]
            best = max(own, key=lambda turn: _share(text, turn), default=None)
            named = [best] if best and _share(text, best) >= _BORNE_OUT else []
        return named if not user or self._is_said_by(user, named, text) else []

    def _unfounded(self, number: int, user: str) -> str:
        own = [str(place) for place, turn in enumerate(self._turns, 1) if turn.user == user]
        if not user:
            return f"`turns` must hold numbers of turns that bear it out, from 1 to {len(self._turns)}"
        return f"stream {number} takes only what its own user said, in turns {', '.join(own) or 'that are not shown'}"

    def _is_said_by(self, user: str, named: Sequence[Turn], text: str) -> bool:
        """Whether the turns named are this user's, if need be with answers to them, and no other user said it rather
        than they did."""
        own = max((_share(text, turn) for turn in self._turns if turn.user == user), default=0.0)
        others = (_share(text, turn) for turn in self._turns if turn.user and turn.user != user)
        users = {turn.user for turn in named}
        return users in ({user}, {user, ""}) and max(others, default=0.0) <= max(own, _BORNE_OUT)


def _items(answer: Any) -> list[Any]:
    """The list of memories, also where the object around it was left out."""
    if isinstance(answer, dict):
        answer = answer.get("memories", [answer] if "text" in answer else None)
    if not isinstance(answer, list):
        raise LlmError('the answer must be {"memories": [...]}, with an empty list if there is nothing to remember')
    return answer


def _shaped(item: Any) -> _Item | LlmError:
    """An item as it was asked for, as far as it can be understood; only its text cannot be made up for."""
    if not isinstance(item, dict) or not isinstance(item.get("text"), str):
        return LlmError("each of memories must be an object with stream, kind, text and turns")
    return _Item(
        stream=_whole(item.get("stream")),
        kind=_text(item.get("kind")).lower(),
        text=_text(item["text"]),
        turns=list(map(_whole, _listed(item.get("turns")))),
        key=_name(item.get("key")).lower(),
        replaces=list(map(_whole, _listed(item.get("replaces")))),
        people=list(dict.fromkeys(filter(None, map(_name, _listed(item.get("people")))))),
    )


def _whole(value: Any) -> int:
    """A number, also out of words such as "turn 3"; 0, which nothing is shown under, if there is none."""
    if isinstance(value, str):
        found = _DIGITS.search(value)
        return int(found[0]) if found else 0
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0


def _text(value: Any) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _numbered(shown: Sequence[T], numbers: Iterable[int]) -> list[T]:
    """What was shown under these numbers, in the order shown; numbers that were not shown are passed over."""
    return [shown[number - 1] for number in sorted(set(numbers)) if 1 <= number <= len(shown)]


def _fitting(text: str, most: int) -> str:
    return text if word_count(text) <= most * _TOLERANCE else cut_to_words(text, int(most * _TOLERANCE))


def _name(value: Any) -> str:
    name = _text(value)
    return name if len(name) <= _LONGEST_NAME else ""


def _share(text: str, turn: Turn) -> float:
    """How much of a text's content words a turn has, its speaker's name among them."""
    wanted = content(text)
    return len(wanted & content(f"{turn.name} {turn.text}")) / len(wanted) if wanted else 0.0
