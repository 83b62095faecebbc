"""Extraction by an LLM: one call for all streams, its answer checked, repaired or asked for again.

What an answer says is evidence, never truth: a memory is taken only if turns bear it out, and it rests on those.
"""

import logging
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import accumulate, takewhile
from typing import Any, NamedTuple, TypeVar

from eunoe.errors import LlmError
from eunoe.form.chunk import Extraction, KnownAtom, Proposal, Refusal
from eunoe.form.claims import Likeness, TurnEvidence
from eunoe.form.data_files import load_prompt
from eunoe.form.evidence import all_values, compare, content_words
from eunoe.form.statements import find_names, is_instruction
from eunoe.llm.contract import Llm, Prompt, Reply
from eunoe.llm.structured import ask_structured, read_json
from eunoe.model.arguments import AtomKind
from eunoe.model.atom import EXTRACTIVE
from eunoe.model.stream import Target
from eunoe.model.turn import Turn, limit_growth
from eunoe.text.analyzer import folded_words
from eunoe.text.normalize import escape_xml, quote_xml
from eunoe.text.sentences import cut_to_words, split_line, word_count

_MIN_SHARE = 0.5
"""Share of an item's content words from which on another user's turn may be where it comes from."""
_SURE_SHARE = 0.7
"""Share of what an item says that its turns must have, or it is doubtful."""
_MAX_NAME_CHARACTERS = 80
_MAX_PEOPLE = 20
_MAX_TELLING_PARTS = 2
"""Names and numbers that make a memory worth more than others; more of them are a list."""
_DIGITS = re.compile(r"[0-9]{1,9}")
_EMPTY_LIST = re.compile(r"\[\s*\]")
_log = logging.getLogger("eunoe")

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_TOKENS_PER_WORD = 2
_TOKENS_PER_ITEM = 80
_MIN_ANSWER_TOKENS = 1000
_MAX_ANSWER_TOKENS = 16_000
_SHOWN_EARLIER_TURNS = 6
_SHOWN_EARLIER_WORDS = 80
"""How much of the talk before is shown: enough to know whom and what the first turns speak of."""
_SHOWN_SUMMARY_WORDS = 300
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

    def find_quota(self, kind: str) -> Quota:
        """Return the quota of a kind, or the first one for a kind that the stream does not want."""
        return next((quota for quota in self.quotas if quota.kind == kind), self.quotas[0])


def read_quotas(target: Target, turns: Sequence[Turn]) -> list[Quota]:
    """Return what a stream wants of these turns."""
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


def extraction_prompt(
    streams: Sequence[PromptStream],
    turns: Sequence[Turn],
    now: datetime,
    earlier: Sequence[Turn] = (),
    summary: str = "",
) -> Prompt:
    """Ask one question for all streams at once. The turns before and the summary help to understand; they have no
    numbers, so that nothing can rest on them."""
    lines = [f'<material time="{_format_time(now)}">']
    for number, (target, quotas, known) in enumerate(streams, 1):
        name = target.user or target.scope.get(target.settings.owner[-1], "")
        lines.append(f'<stream number="{number}" kind={quote_xml(target.preset)} name={quote_xml(name)}>')
        lines.append(f"<looks_for>{escape_xml(target.settings.extraction_prompt)}</looks_for>")
        for kind, least, most, max_words in quotas:
            lines.append(f'<wants kind="{kind}" least="{least}" most="{most}" words="{max_words}"/>')
        lines += [f'<known number="{place}">{escape_xml(one.text)}</known>' for place, one in enumerate(known, 1)]
        lines.append("</stream>")
    if earlier or summary:
        shown = f"<summary>{escape_xml(cut_to_words(summary, _SHOWN_SUMMARY_WORDS))}</summary>"
        before = [
            _turn_line("earlier", turn, cut_to_words(turn.text, _SHOWN_EARLIER_WORDS))
            for turn in earlier[-_SHOWN_EARLIER_TURNS:]
        ]
        lines += ["<context>", *([shown] if summary else []), *before, "</context>"]
    said = (_turn_line("turn", turn, turn.text, f' number="{number}"') for number, turn in enumerate(turns, 1))
    lines += ["<conversation>", *said, "</conversation>", "</material>"]
    wanted = [quota for stream in streams for quota in stream.quotas]
    tokens = sum(quota.most * (quota.max_words * _TOKENS_PER_WORD + _TOKENS_PER_ITEM) for quota in wanted)
    system, schema = load_prompt("extraction")
    return Prompt(
        system,
        "\n".join(lines),
        schema,
        name="memories",
        max_tokens=min(max(tokens, _MIN_ANSWER_TOKENS), _MAX_ANSWER_TOKENS),
        operation="extraction",
    )


def _turn_line(tag: str, turn: Turn, text: str, number: str = "") -> str:
    time = f' time="{_format_time(turn.moment)}"' if turn.moment else ""
    speaker = f"speaker={quote_xml(turn.name)} role={quote_xml(turn.role)}"
    return f"<{tag}{number}{time} {speaker}>{escape_xml(text)}</{tag}>"


def _format_time(moment: datetime) -> str:
    utc = moment.astimezone(UTC)
    return f"{_WEEKDAYS[utc.weekday()]} {utc:%Y-%m-%d %H:%M} UTC"


class UnusableAnswer(LlmError):
    """An LLM answered, and neither its answer nor the one after it can be used."""


def _no_foreign_texts(place: int, text: str) -> Sequence[str]:
    return ()


class Background(NamedTuple):
    """What is known of a conversation besides the turns that memories are made from."""

    earlier: Sequence[Turn] = ()
    """The turns before them, the latest last."""
    summary: str = ""
    """The summary of the conversation so far, if all who can read what is made may read it."""
    likeness: Likeness | None = None
    find_foreign: Callable[[int, str], Sequence[str]] = _no_foreign_texts
    """Finds the memories near a text that readers of the target at this place may not read."""


def extract_by_llm(
    llm: Llm,
    targets: Sequence[Target],
    turns: Sequence[Turn],
    known: Sequence[KnownAtom],
    now: datetime,
    background: Background = Background(),  # noqa: B008 - a named tuple does not change
) -> Extraction:
    """Ask an LLM for proposals. Items that cannot be used are left out; if all of them are, it is asked again.

    Raise UnusableAnswer if that does not help, LlmError if it does not answer.
    """
    streams = {
        place: PromptStream(target, quotas, [atom for atom in known if atom.target == place])
        for place, target in enumerate(targets)
        if (quotas := read_quotas(target, turns))
    }
    if not turns or not streams:
        return Extraction([])
    reader = _AnswerReader(streams, turns, background)
    prompt = extraction_prompt(list(streams.values()), turns, now, background.earlier, background.summary)
    recorder = SchemaLlm(llm, prompt.schema)
    try:
        return ask_structured(recorder, replace(prompt, schema=None), lambda answer: reader.read(answer, recorder.last))
    except LlmError as error:
        if recorder.last is None:
            raise
        if reader.refusals:
            return Extraction([], len(reader.refusals), refusals=reader.refusals)
        raise UnusableAnswer(str(error)) from error


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


class _Fault(NamedTuple):
    """What is wrong with an item."""

    reason: str
    refusal: Refusal | None = None
    """Set if the item is in order but not borne out."""


class _AnswerReader:
    """Turns answers into proposals: numbers into what was shown under them, and nothing else."""

    def __init__(self, streams: Mapping[int, PromptStream], turns: Sequence[Turn], background: Background) -> None:
        self._streams = list(streams.items())
        """The streams that were shown, each with its place among the targets."""
        self._turns = turns
        self._background = background
        users = [stream.target.user for stream in streams.values() if stream.target.user]
        self._evidence = TurnEvidence(turns, background.earlier, users, background.likeness)
        self.refusals: tuple[Refusal, ...] = ()
        """Items of the last answer that were in order but not borne out."""

    def read(self, answer: Any, text: str | None) -> Extraction:
        self.refusals = ()
        if isinstance(answer, dict):
            answer = answer.get("memories", [answer] if "text" in answer else None)
        if not isinstance(answer, list):
            raise LlmError('the answer must be {"memories": [...]}, with an empty list if there is nothing to remember')
        items = list(map(_read_item, answer))
        if not items and not _EMPTY_LIST.search(text or ""):
            raise LlmError("the answer breaks off before its first memory")
        results = [self._propose(item) for item in items]
        kept = self._limit([result for result in results if isinstance(result, Proposal)])
        faults = [result for result in results if isinstance(result, _Fault)]
        self.refusals = tuple(fault.refusal for fault in faults if fault.refusal)
        if items and not kept:
            reasons = dict.fromkeys(fault.reason for fault in faults)  # they repeat nothing of the answer
            raise LlmError(f"none of its memories can be used: {'; '.join(reasons)}")
        refused = len(items) - sum(not proposal.author for proposal in kept)
        if refused:
            _log.info("extraction: %d of %d items were refused", refused, len(items))
        return Extraction(kept, refused, refusals=self.refusals)

    def _limit(self, proposals: Sequence[Proposal]) -> list[Proposal]:
        """As many of each kind as its stream wants: the most valuable, of those the newest, in the answer's order."""
        rivals: dict[tuple[int, str], list[int]] = defaultdict(list)
        for number, proposal in enumerate(proposals):
            rivals[proposal.target, proposal.kind].append(number)
        places = {turn.id: place for place, turn in enumerate(self._turns)}
        kept: set[int] = set()
        for place, stream in self._streams:
            for quota in stream.quotas:
                numbers = rivals[place, quota.kind]
                numbers.sort(key=lambda number: _rank(proposals[number], places), reverse=True)
                kept.update(numbers[: quota.most])
        return [proposals[number] for number in sorted(kept)]

    def _propose(self, item: Any) -> Proposal | _Fault:
        """The proposal, or what is wrong: its stream was not shown, it says nothing, or no turn bears it out. Whatever
        else is odd about it is made up for."""
        if not isinstance(item, dict) or not isinstance(item.get("text"), str):
            return _Fault("each of memories must be an object with stream, kind, text and turns")
        number = 1 if len(self._streams) == 1 else _parse_number(item.get("stream"))
        if not 1 <= number <= len(self._streams):
            return _Fault(f"`stream` must be the number of a stream that is shown, from 1 to {len(self._streams)}")
        place, stream = self._streams[number - 1]
        quota = stream.find_quota(_parse_text(item.get("kind")).lower())
        text = _cut(_parse_text(item["text"]), quota.max_words)
        if not text:
            return _Fault("`text` must not be empty; where nothing is worth keeping, give an empty list")
        cited = {turn.id for turn in _pick(self._turns, _parse_numbers(item.get("turns")))}
        turns = self._find_sources(cited, text, place, stream.target.user)
        if not turns:
            reason = (
                f"`turns` must hold numbers of turns that bear it out, from 1 to {len(self._turns)}: all its names, "
                "numbers and dates, and most of its words"
            )
            if user := stream.target.user:
                own = [str(place) for place, turn in enumerate(self._turns, 1) if turn.user == user]
                shown = ", ".join(own) or "that are not shown"
                reason = f"stream {number} takes only what its own user said, in turns {shown}"
            return _Fault(reason, Refusal(place, frozenset(cited)))
        proposal = Proposal(
            target=place,
            kind=quota.kind,
            text=text,
            sources=tuple(turn.id for turn in turns),
            key=_parse_key(item.get("key"), text, turns),
            people=_parse_people(item.get("people"), text, turns),
            is_doubtful=self._evidence.compare(text, turns).share < _SURE_SHARE,
            replaces=tuple(atom.id for atom in _pick(stream.known, _parse_numbers(item.get("replaces")))),
        )
        doubt = self._evidence.find_doubt(text, turns)
        return self._quote(proposal, stream, turns, doubt, cited) if doubt else proposal

    def _quote(
        self, proposal: Proposal, stream: PromptStream, turns: Sequence[Turn], doubt: str, cited: Iterable[str]
    ) -> Proposal | _Fault:
        """What the speaker said, in the place of a memory that says it otherwise. What everybody may see is not put
        in anybody's words."""
        is_shared = stream.target.settings.owner[-1] == "shard"
        said = "" if is_shared else self._evidence.quote(proposal.text, turns)
        if not said:
            reason = f"a memory must say what its turns say, and not otherwise ({doubt})"
            return _Fault(reason, Refusal(proposal.target, frozenset(cited)))
        quota = stream.find_quota("observation")
        text = _cut(said, quota.max_words)
        return replace(proposal, kind=quota.kind, text=text, key="", is_doubtful=True, replaces=(), author=EXTRACTIVE)

    def _find_sources(self, cited: frozenset[str] | set[str], text: str, place: int, user: str) -> list[Turn]:
        """The turns that bear it out. A user's memory needs a word of that user, and none of another's."""
        turns = self._evidence.find_sources(
            text,
            cited,
            allows=lambda turn: not user or turn.user in (user, ""),
            is_needed=(lambda turn: turn.user == user) if user else None,
        )
        if user:
            wanted, shares = content_words(text), {True: 0.0, False: 0.0}
            for turn in self._turns:
                if turn.user and wanted:
                    share = len(wanted & content_words(f"{turn.name} {turn.text}")) / len(wanted)
                    shares[turn.user == user] = max(shares[turn.user == user], share)
            if shares[False] > max(shares[True], _MIN_SHARE):  # it is rather said by others
                return []
        # It may not have what its turns do not have, and a memory has that its readers may not read.
        own = self._evidence.compare(text, turns).found if turns else frozenset[str]()
        foreign = self._background.find_foreign(place, text) if turns else ()
        return [] if any(compare(text, [each]).found - own for each in foreign) else turns


def _cut(text: str, max_words: int) -> str:
    """The first of its sentences that fit, then "…"; of one that is too long alone, its first clauses."""
    if word_count(text) <= max_words:
        return text
    beginnings = accumulate(split_line(text), "{} {}".format)
    fitting = list(takewhile(lambda beginning: word_count(beginning) <= max_words, beginnings))
    return f"{fitting[-1]} …" if fitting else cut_to_words(text, max_words)


def _rank(proposal: Proposal, places: Mapping[str, int]) -> tuple[float, int]:
    """How much a memory is worth beside others of its kind: instructions before what has one value at a time, before
    what has names and numbers; then the newest."""
    telling = len(find_names(proposal.text)) + len(all_values(proposal.text))
    value = 4.0 * is_instruction(proposal.text) + 2.0 * bool(proposal.key) + min(telling, _MAX_TELLING_PARTS) / 2
    return value, max((places.get(source, -1) for source in proposal.sources), default=-1)


def _read_item(item: Any) -> Any:
    """An item, which may come as a JSON text."""
    if not isinstance(item, str) or not item.lstrip().startswith("{"):
        return item
    try:
        return read_json(item)
    except LlmError:
        return item


def _parse_numbers(value: Any) -> list[int]:
    return list(map(_parse_number, _as_list(value)))


def _parse_number(value: Any) -> int:
    """A number, also out of words such as "turn 3"; 0, which nothing is shown under, if there is none."""
    if isinstance(value, str):
        digits = _DIGITS.search(value)
        return int(digits[0]) if digits else 0
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")
    return int(value) if is_number else 0


def _parse_text(value: Any) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


def _parse_name(value: Any) -> str:
    name = _parse_text(value)
    return name if len(name) <= _MAX_NAME_CHARACTERS else ""


def _parse_key(value: Any, text: str, turns: Sequence[Turn]) -> str:
    """The key, if whom it names is spoken of, and it has no number that the text has not."""
    key = _parse_name(value).lower()
    who = key.partition("/")[0]
    is_own = all_values(key) <= all_values(text) and _is_spoken_of(who, text, turns)
    return key if is_own else ""


def _parse_people(value: Any, text: str, turns: Sequence[Turn]) -> tuple[str, ...]:
    names = dict.fromkeys(filter(None, map(_parse_name, _as_list(value))))
    return tuple(name for name in names if _is_spoken_of(name, text, turns))[:_MAX_PEOPLE]


def _is_spoken_of(name: str, text: str, turns: Sequence[Turn]) -> bool:
    """Whether a memory or its turns name somebody, or one of those who speak is called so."""
    said = (part for turn in turns for part in (turn.speaker, turn.user, turn.role, turn.text))
    return set(folded_words(name)) <= {word for part in (text, *said) for word in folded_words(part)}


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _pick(shown: Sequence[T], numbers: Iterable[int]) -> list[T]:
    """What was shown under these numbers, in the order shown; numbers that were not shown are passed over."""
    return [shown[number - 1] for number in sorted(set(numbers)) if 1 <= number <= len(shown)]
