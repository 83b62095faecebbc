"""Extraction by an LLM: one call for all streams, its answer checked, repaired or asked for again.

What was said, what is known and what a stream's settings say is data: it is escaped, fenced and numbered, and never
part of the system text. No text is ever read as a template.
"""

import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

from eunoe.errors import LlmError
from eunoe.form.content_words import content_words
from eunoe.form.data_files import load_prompt
from eunoe.form.proposal import Extraction, KnownAtom, Proposal
from eunoe.llm.answers import ask_structured
from eunoe.llm.contract import Llm, Prompt, Reply
from eunoe.model.choices import AtomKind
from eunoe.model.stream import Target
from eunoe.model.turn import Turn, limit_growth
from eunoe.text.markup import escape_xml, quote_xml
from eunoe.text.sentences import cut_to_words, word_count

_LENGTH_TOLERANCE = 1.5
"""Items may have so many times more words than was asked for before they are cut."""
_MIN_SHARE = 0.5
"""Share of an item's content words that a turn must have to bear it out without being named."""
_MAX_NAME_CHARACTERS = 80
_MAX_PEOPLE = 20
_DIGITS = re.compile(r"[0-9]{1,9}")
_EMPTY_LIST = re.compile(r"\[\s*\]")
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_TOKENS_PER_WORD = 2
_TOKENS_PER_ITEM = 80
_MIN_ANSWER_TOKENS = 1000
_MAX_ANSWER_TOKENS = 16_000
_log = logging.getLogger("eunoe")
T = TypeVar("T")


class Quota(NamedTuple):
    """How many atoms of one kind a stream wants, and how long they may be."""

    kind: AtomKind
    least: int
    most: int
    max_words: int


class PromptStream(NamedTuple):
    """One stream as it is shown to the LLM."""

    target: Target
    quotas: Sequence[Quota]
    known: Sequence[KnownAtom]
    """Numbered from 1."""


class UnusableAnswer(LlmError):
    """An LLM answered, and neither its answer nor the one after it can be used."""


def extract_by_llm(
    llm: Llm, targets: Sequence[Target], turns: Sequence[Turn], known: Sequence[KnownAtom], now: datetime
) -> Extraction:
    """Ask an LLM for proposals. Items that cannot be used are left out; if all of them are, it is asked again.

    Raise UnusableAnswer if that does not help, LlmError if it does not answer.
    """
    streams = {
        place: PromptStream(target, quotas, [atom for atom in known if atom.target == place])
        for place, target in enumerate(targets)
        if (quotas := _quotas(target, turns))
    }
    if not turns or not streams:
        return Extraction([])
    reader = _AnswerReader(streams, turns)
    prompt = extraction_prompt(list(streams.values()), turns, now)
    recorder = SchemaLlm(llm, prompt.schema)
    try:
        return ask_structured(recorder, replace(prompt, schema=None), lambda answer: reader.read(answer, recorder.last))
    except LlmError as error:
        if recorder.last is None:
            raise
        raise UnusableAnswer(str(error)) from error


def _quotas(target: Target, turns: Sequence[Turn]) -> list[Quota]:
    settings, growth = target.settings, limit_growth(turns, target.settings)
    quotas = [
        Quota(
            kind,
            round(getattr(settings, f"{kind}_extraction_min") * growth),
            round(getattr(settings, f"{kind}_extraction_max") * growth),
            getattr(settings, f"{kind}_max_words"),
        )
        for kind in settings.extraction_fields
    ]
    return [quota for quota in quotas if quota.most]


def extraction_prompt(streams: Sequence[PromptStream], turns: Sequence[Turn], now: datetime) -> Prompt:
    """Ask one question for all streams at once."""
    lines = [
        f'<material time="{_format_time(now)}">',
        *(line for number, stream in enumerate(streams, 1) for line in _stream_lines(number, stream)),
        "<conversation>",
        *(_turn_line(number, turn) for number, turn in enumerate(turns, 1)),
        "</conversation>",
        "</material>",
    ]
    quotas = [quota for stream in streams for quota in stream.quotas]
    tokens = sum(quota.most * (quota.max_words * _TOKENS_PER_WORD + _TOKENS_PER_ITEM) for quota in quotas)
    system, schema = load_prompt("extraction")
    return Prompt(
        system,
        "\n".join(lines),
        schema,
        name="memories",
        max_tokens=min(max(tokens, _MIN_ANSWER_TOKENS), _MAX_ANSWER_TOKENS),
        operation="extraction",
    )


def _stream_lines(number: int, stream: PromptStream) -> Iterable[str]:
    target = stream.target
    name = target.user or target.scope.get(target.settings.owner[-1], "")
    yield f'<stream number="{number}" kind={quote_xml(target.preset)} name={quote_xml(name)}>'
    yield f"<looks_for>{escape_xml(target.settings.extraction_prompt)}</looks_for>"
    for kind, least, most, max_words in stream.quotas:
        yield f'<wants kind="{kind}" least="{least}" most="{most}" words="{max_words}"/>'
    for place, known in enumerate(stream.known, 1):
        yield f'<known number="{place}">{escape_xml(known.text)}</known>'
    yield "</stream>"


def _turn_line(number: int, turn: Turn) -> str:
    time = f' time="{_format_time(turn.time)}"' if turn.time else ""
    speaker = f"speaker={quote_xml(turn.name)} role={quote_xml(turn.role)}"
    return f'<turn number="{number}"{time} {speaker}>{escape_xml(turn.text)}</turn>'


def _format_time(moment: datetime) -> str:
    utc = moment.astimezone(UTC)
    return f"{_WEEKDAYS[utc.weekday()]} {utc:%Y-%m-%d %H:%M} UTC"


class SchemaLlm:
    """An LLM that is told the schema, while its answer is checked item by item: a bad item costs no good one."""

    def __init__(self, llm: Llm, schema: Mapping[str, Any] | None) -> None:
        self._llm = llm
        self._schema = schema
        self.name = llm.name
        self.last: str | None = None
        """Its last answer; None if the last question was not answered."""

    def ask(self, prompt: Prompt) -> Reply:
        self.last = None
        reply = self._llm.ask(replace(prompt, schema=self._schema))
        self.last = reply.text
        return reply


class _AnswerReader:
    """Turns answers into proposals: numbers into what was shown under them, and nothing else."""

    def __init__(self, streams: Mapping[int, PromptStream], turns: Sequence[Turn]) -> None:
        self._streams = list(streams.items())
        """The streams that were shown, each with its place among the targets."""
        self._turns = turns

    def read(self, answer: Any, text: str | None) -> Extraction:
        items = _find_items(answer)
        if not items and not _EMPTY_LIST.search(text or ""):
            raise LlmError("the answer breaks off before its first memory")
        results = [self._propose(item) for item in items]
        kept = list(self._limit([result for result in results if isinstance(result, Proposal)]))
        if items and not kept:
            reasons = dict.fromkeys(str(result) for result in results if isinstance(result, LlmError))
            raise LlmError(f"none of its memories can be used: {'; '.join(reasons)}")
        if len(kept) < len(items):
            _log.info("extraction: %d of %d items were refused", len(items) - len(kept), len(items))
        return Extraction(kept, len(items) - len(kept))

    def _limit(self, proposals: Iterable[Proposal]) -> Iterator[Proposal]:
        room = Counter({(place, quota.kind): quota.most for place, own in self._streams for quota in own.quotas})
        for proposal in proposals:
            if room[proposal.target, proposal.kind] > 0:
                room[proposal.target, proposal.kind] -= 1
                yield proposal

    def _propose(self, item: Any) -> Proposal | LlmError:
        """The proposal, or what is wrong: its stream was not shown, it says nothing, or no turn bears it out. Whatever
        else is odd about it is made up for."""
        if not isinstance(item, dict) or not isinstance(item.get("text"), str):
            return LlmError("each of memories must be an object with stream, kind, text and turns")
        number = 1 if len(self._streams) == 1 else _parse_number(item.get("stream"))
        if not 1 <= number <= len(self._streams):
            return LlmError(f"`stream` must be the number of a stream that is shown, from 1 to {len(self._streams)}")
        text = _parse_text(item["text"])
        if not text:
            return LlmError("`text` must not be empty; where nothing is worth keeping, give an empty list")
        place, stream = self._streams[number - 1]
        turns = self._find_sources(_parse_numbers(item.get("turns")), text, stream.target.user)
        if not turns:
            return LlmError(self._describe_missing_sources(number, stream.target.user))
        kind = _parse_text(item.get("kind")).lower()
        quota = next((quota for quota in stream.quotas if quota.kind == kind), stream.quotas[0])
        max_words = quota.max_words * _LENGTH_TOLERANCE
        names = dict.fromkeys(filter(None, map(_parse_name, _as_list(item.get("people")))))
        return Proposal(
            target=place,
            kind=quota.kind,
            text=text if word_count(text) <= max_words else cut_to_words(text, int(max_words)),
            sources=tuple(turn.id for turn in turns),
            key=_parse_name(item.get("key")).lower(),
            people=tuple(names)[:_MAX_PEOPLE],
            replaces=tuple(atom.id for atom in _pick(stream.known, _parse_numbers(item.get("replaces")))),
        )

    def _find_sources(self, numbers: Sequence[int], text: str, user: str) -> list[Turn]:
        """The turns it names, else the one whose words bear it out. A user's memory needs a word of that user."""
        named = _pick(self._turns, numbers)
        if not named:
            own = [turn for turn in self._turns if not user or turn.user == user]
            best = max(own, key=lambda turn: _share_in(turn, text), default=None)
            named = [best] if best and _share_in(best, text) >= _MIN_SHARE else []
        return named if not user or self._is_said_by(user, named, text) else []

    def _describe_missing_sources(self, number: int, user: str) -> str:
        own = [str(place) for place, turn in enumerate(self._turns, 1) if turn.user == user]
        if not user:
            return f"`turns` must hold numbers of turns that bear it out, from 1 to {len(self._turns)}"
        return f"stream {number} takes only what its own user said, in turns {', '.join(own) or 'that are not shown'}"

    def _is_said_by(self, user: str, named: Sequence[Turn], text: str) -> bool:
        """Whether the turns named are this user's, if need be with answers to them, and no other user said it rather
        than they did."""
        own = max((_share_in(turn, text) for turn in self._turns if turn.user == user), default=0.0)
        others = (_share_in(turn, text) for turn in self._turns if turn.user and turn.user != user)
        users = {turn.user for turn in named}
        return users in ({user}, {user, ""}) and max(others, default=0.0) <= max(own, _MIN_SHARE)


def _find_items(answer: Any) -> list[Any]:
    if isinstance(answer, dict):
        answer = answer.get("memories", [answer] if "text" in answer else None)
    if not isinstance(answer, list):
        raise LlmError('the answer must be {"memories": [...]}, with an empty list if there is nothing to remember')
    return answer


def _parse_numbers(value: Any) -> list[int]:
    return list(map(_parse_number, _as_list(value)))


def _parse_number(value: Any) -> int:
    """A number, also out of words such as "turn 3"; 0, which nothing is shown under, if there is none."""
    if isinstance(value, str):
        digits = _DIGITS.search(value)
        return int(digits[0]) if digits else 0
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0


def _parse_text(value: Any) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


def _parse_name(value: Any) -> str:
    name = _parse_text(value)
    return name if len(name) <= _MAX_NAME_CHARACTERS else ""


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _pick(shown: Sequence[T], numbers: Iterable[int]) -> list[T]:
    """What was shown under these numbers, in the order shown; numbers that were not shown are passed over."""
    return [shown[number - 1] for number in sorted(set(numbers)) if 1 <= number <= len(shown)]


def _share_in(turn: Turn, text: str) -> float:
    """How much of a text's content words a turn has, its speaker's name among them."""
    wanted = content_words(text)
    return len(wanted & content_words(f"{turn.name} {turn.text}")) / len(wanted) if wanted else 0.0
