"""Single turns, each with the turn before it and the kind of thing it holds: does the engine judge them so too?"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Final, NamedTuple

import eunoe
from bench import Progress, Result
from bench.metrics import f1_scores, score_views, track
from eunoe.cli.display import View, shorten
from eunoe.errors import EunoeError, InputError
from eunoe.form.turns import TurnReader, TurnReading
from eunoe.memory import Memory
from eunoe.model.arguments import KEPT_KINDS, TURN_KINDS
from eunoe.model.atom import Atom, source_place
from eunoe.model.message import Message
from eunoe.model.turn import Turn

DROPPED_KINDS: Final = tuple(kind for kind in TURN_KINDS if kind not in KEPT_KINDS)
_BY_VALUE: Final = ("instruction", "change", "decision", "plan", "preference", "fact")
"""The kinds that are kept, the most valuable first: a turn that holds several things has the first of their kinds."""
_PAGE_SIZE: Final = 1000
_FORMAT: Final = "KIND | ROLE | BEFORE | TURN"
_SEPARATOR: Final = " | "
_NO_TURN: Final = ("", "-")
"""What stands in the place of a turn before the first one."""
_SPEAKERS: Final = {
    "user": (("user", ""), ("assistant", "")),
    "assistant": (("assistant", ""), ("user", "")),
    "person": (("user", "One"), ("user", "Other")),
    "agent": (("agent", ""), ("user", "")),
}
"""For each role in a file, the role and name of who says the turn, and of who said the one before it."""
_CLASSES: Final = {"kept": KEPT_KINDS, "dropped": DROPPED_KINDS}
_MAX_SHOWN_CHARACTERS: Final = 60

Judgements = Sequence[tuple[str, str]]
"""Pairs of the kind that a turn has and the one that it was judged to have."""


class LabelledTurn(NamedTuple):
    """A turn, the one before it, and the kind of thing it holds."""

    kind: str
    role: str
    before: str
    text: str

    @property
    def messages(self) -> list[Message]:
        """The turn, after the one before it if there is one."""
        own, other = _SPEAKERS[self.role]
        turn = Message(id="turn", text=self.text, role=own[0], speaker=own[1])
        before = Message(id="before", text=self.before, role=other[0], speaker=other[1])
        return [turn] if self.before in _NO_TURN else [before, turn]


def load_labelled_turns(path: str | Path) -> list[LabelledTurn]:
    """Read a file of labelled turns, a line each; empty lines and those that begin with # are left out."""
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").split("\n")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}") from error
    rows = [(number, line) for number, line in enumerate(lines, 1) if line.strip() and not line.startswith("#")]
    if not rows:
        raise InputError(f"{path} has no labelled turn: write a line for each, {_FORMAT}")
    return [_parse_line(f"{path}:{number}", line) for number, line in rows]


def _parse_line(place: str, line: str) -> LabelledTurn:
    fields = [field.strip() for field in line.split(_SEPARATOR)]
    if len(fields) != len(LabelledTurn._fields):
        raise InputError(f"{place}: not {_FORMAT}: {shorten(line, _MAX_SHOWN_CHARACTERS)}")
    turn = LabelledTurn(*fields)
    for name, value, known in (("kind", turn.kind, TURN_KINDS), ("role", turn.role, tuple(_SPEAKERS))):
        if value not in known:
            shown = shorten(value, _MAX_SHOWN_CHARACTERS)
            raise InputError(f"{place}: there is no {name} {shown!r}, only {', '.join(known)}")
    if not turn.text:
        raise InputError(f"{place}: the turn is empty")
    return turn


def measure(paths: Sequence[str | Path], *, embedder: str = "auto", progress: Progress | None = None) -> Result:
    """Measure files of labelled turns: the figures of one file, or those of each and of all together; percentages."""
    files = {str(path): load_labelled_turns(path) for path in paths}
    turns = [turn for own in files.values() for turn in own]
    with eunoe.open(":memory:", embedder=embedder, llm="none", form=False) as memory:
        found = (find_kind(memory, f"{number}", turn.messages) for number, turn in enumerate(turns))
        judged = list(track(zip((turn.kind for turn in turns), found, strict=True), len(turns), progress))
    if len(files) == 1:
        return label_figures(judged)
    ends = [sum(map(len, list(files.values())[:place])) for place in range(len(files) + 1)]
    each = {name: label_figures(judged[ends[place] : ends[place + 1]]) for place, name in enumerate(files)}
    return {"files": each, "together": label_figures(judged)}


def label_figures(judged: Judgements) -> Result:
    """Figures for what is kept, for what is dropped and for each kind; the mean is of the kinds that occur."""
    kinds = {kind: _class_figures(judged, (kind,)) for kind in TURN_KINDS}
    counts = {kind: sum(actual == kind for actual, _ in judged) for kind in TURN_KINDS}
    return {
        **{name: _class_figures(judged, own) for name, own in _CLASSES.items()},
        "macro_f1": round(fmean(kinds[kind]["f1"] for kind in TURN_KINDS if counts[kind]), 2),
        "kinds": {kind: {**kinds[kind], "count": counts[kind]} for kind in TURN_KINDS},
    }


def _class_figures(judged: Judgements, kinds: Sequence[str]) -> dict[str, float]:
    pairs = [(actual in kinds, found in kinds) for actual, found in judged]
    right, chosen, wanted = sum(map(all, pairs)), sum(found for _, found in pairs), sum(actual for actual, _ in pairs)
    return f1_scores(right, chosen, wanted)


def rows(result: Result) -> list[View]:
    if "files" not in result:
        return _one_file_views("labelled turns", result)
    rows = {
        Path(name).name: {"turns": _turn_count(own), **_short_figures(own)} for name, own in result["files"].items()
    }
    each = score_views("each file, F1", [rows])
    return [*each, *_one_file_views("\nall files together", result["together"])]


def _one_file_views(title: str, figures: Result) -> list[View]:
    kinds = {
        name: {"turns": own["count"], **{key: own[key] for key in ("precision", "recall", "f1")}}
        for name, own in figures["kinds"].items()
    }
    both = {name: {"turns": _turn_count(figures, kinds), **figures[name]} for name, kinds in _CLASSES.items()}
    return score_views(title, [kinds, both], f"mean F1 of the kinds: {figures['macro_f1']:.1f}")


def _turn_count(figures: Result, kinds: Sequence[str] = TURN_KINDS) -> int:
    return sum(figures["kinds"][kind]["count"] for kind in kinds)


def _short_figures(figures: Result) -> dict[str, float]:
    return {
        "kinds": figures["macro_f1"],
        **{name: figures["kinds"][name]["f1"] for name in ("instruction", "change")},
        **{name: figures[name]["f1"] for name in _CLASSES},
    }


def read_session(memory: Memory, turns: Sequence[Message]) -> list[TurnReading]:
    """What is read of each turn of a session without an LLM."""
    return TurnReader(memory.embedder).read([_turn_of(turn) for turn in turns])


def _turn_of(message: Message) -> Turn:
    return Turn(message.id, message.text, message.role, message.speaker)


def find_kind(memory: Memory, user: str, turns: Sequence[Message]) -> str:
    """The kind of the last of these turns, which are all that a new user's conversation has."""
    judgement = read_session(memory, turns)[-1].judgement
    return judgement.kind if judgement else _find_kind_by_forming(memory, user, turns)


def _find_kind_by_forming(memory: Memory, user: str, turns: Sequence[Message]) -> str:
    """The kind that the labels of what is formed from a turn tell."""
    scope, last = {"user": user, "session": "1"}, turns[-1]
    memory.observe(scope, turns)
    form_session(memory, scope)
    labels = {atom.label for atom in formed_atoms(memory, user) if last.id in source_ids(atom)}
    kinds = {label if label in KEPT_KINDS else "fact" for label in labels}
    dropped = "request" if last.text.rstrip().endswith("?") else "nothing"
    return next((kind for kind in _BY_VALUE if kind in kinds), dropped)


def form_session(memory: Memory, scope: Mapping[str, str]) -> None:
    """Form what was said in a session. What fails would make wrong figures."""
    if failed := memory.form(scope).failed:
        raise EunoeError(failed[0])


def formed_atoms(memory: Memory, user: str) -> Iterator[Atom]:
    """All that was formed for a user and in their sessions, superseded or not."""
    after, is_read = "", False
    while after or not is_read:
        page = memory.recent(user=user, retired=True, limit=_PAGE_SIZE, after=after)
        yield from (item for item in page.items if isinstance(item, Atom))
        after, is_read = page.next, True


def source_ids(atom: Atom) -> set[str]:
    """The ids of the turns that an atom rests on, whichever session they were said in."""
    return {source_place(name, atom.scope)[1] for name in atom.source} if atom.scope else set()
