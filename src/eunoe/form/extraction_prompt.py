"""What an LLM is asked when it extracts memories: one question for all streams at once.

What was said, what is known and what a stream's settings say is data: it is escaped, fenced and numbered, and never
part of the system text. No text is ever read as a template.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from eunoe.form.chunk import KnownAtom
from eunoe.form.data_files import load_prompt
from eunoe.llm.contract import Prompt
from eunoe.model.arguments import AtomKind
from eunoe.model.stream import Target
from eunoe.model.turn import Turn, limit_growth
from eunoe.text.normalize import escape_xml, quote_xml
from eunoe.text.sentences import cut_to_words

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_TOKENS_PER_WORD = 2
_TOKENS_PER_ITEM = 80
_MIN_ANSWER_TOKENS = 1000
_MAX_ANSWER_TOKENS = 16_000
_SHOWN_EARLIER_TURNS = 6
_SHOWN_EARLIER_WORDS = 80
"""How much of the talk before is shown: enough to know whom and what the first turns speak of."""
_SHOWN_SUMMARY_WORDS = 300


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
    lines = [
        f'<material time="{_format_time(now)}">',
        *(line for number, stream in enumerate(streams, 1) for line in _stream_lines(number, stream)),
        *_context_lines(earlier[-_SHOWN_EARLIER_TURNS:], summary),
        "<conversation>",
        *(_turn_line("turn", turn, turn.text, f' number="{number}"') for number, turn in enumerate(turns, 1)),
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


def _context_lines(earlier: Sequence[Turn], summary: str) -> Iterable[str]:
    if not earlier and not summary:
        return
    yield "<context>"
    if summary:
        yield f"<summary>{escape_xml(cut_to_words(summary, _SHOWN_SUMMARY_WORDS))}</summary>"
    for turn in earlier:
        yield _turn_line("earlier", turn, cut_to_words(turn.text, _SHOWN_EARLIER_WORDS))
    yield "</context>"


def _turn_line(tag: str, turn: Turn, text: str, number: str = "") -> str:
    time = f' time="{_format_time(turn.moment)}"' if turn.moment else ""
    speaker = f"speaker={quote_xml(turn.name)} role={quote_xml(turn.role)}"
    return f"<{tag}{number}{time} {speaker}>{escape_xml(text)}</{tag}>"


def _format_time(moment: datetime) -> str:
    utc = moment.astimezone(UTC)
    return f"{_WEEKDAYS[utc.weekday()]} {utc:%Y-%m-%d %H:%M} UTC"
