"""What is learned from conversations without an LLM, beside what their writers say is worth keeping."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from html import unescape
from math import inf
from pathlib import Path
from statistics import fmean
from typing import Final, NamedTuple

import eunoe
from bench import Progress, Result
from bench.conversations import BUILT_IN, GoldConversation, GoldInstruction, read_conversations
from bench.labelled_turns import form_session, formed_atoms, read_session, source_ids
from bench.metrics import f1_scores, group_by, mean_percent, precision_at_recall, score_views, track
from eunoe.cli.display import Grid, View
from eunoe.errors import InputError
from eunoe.memory import Memory
from eunoe.model.message import Message
from eunoe.model.turn import USER_ROLES
from eunoe.text.normalize import fold
from eunoe.text.sentences import split_sentences

RECALL: Final = 65
"""The recall, in percent, at which rankings of turns are compared: about what rules alone reached."""
_HELD_SHARE: Final = 0.8
"""The share of an instruction's words that a line must have: a memory may put a few of them in another way."""
_WORD: Final = re.compile(r"\w+")
_ONLY_SESSION: Final = "1"
_AFTERWARDS: Final = "afterwards"
"""The session in which the questions of a file are asked, when all else has been said."""


class TurnOutcome(NamedTuple):
    """One turn: whether it is worth keeping, and whether it was kept."""

    is_gold: bool
    is_kept: bool
    score: float | None
    """How much it is worth keeping, where something ranks turns."""


class InstructionOutcome(NamedTuple):
    """One standing instruction, and which of the contexts after its session held it."""

    conversation: str
    gold: GoldInstruction
    contexts: list[bool]


class Lesson:
    """One conversation that is learned from, session by session as it was held."""

    def __init__(self, gold: GoldConversation, user: str) -> None:
        self.gold = gold
        self.sessions: dict[str, list[Message]] = {}
        for turn in gold.turns:
            self.sessions.setdefault(turn.session or _ONLY_SESSION, []).append(turn)
        self.turns: list[TurnOutcome] = []
        self.instructions = [InstructionOutcome(gold.id, each, []) for each in gold.instructions]
        self._user = user

    def learn(self, memory: Memory) -> Iterator[str]:
        """Observe and form one session after the other, and look at the contexts of later ones; yield each session."""
        due, scores = list[InstructionOutcome](), dict[str, float]()
        for session, turns in self.sessions.items():
            scope = {"user": self._user, "session": session}
            for turn in turns:
                if turn.role in USER_ROLES:
                    _look_for(due, memory, scope, turn.text, turn.time)
                memory.observe(scope, turn)
            form_session(memory, scope)
            ids = [turn.id for turn in turns]
            due += [each for each in self.instructions if each.gold.turn in ids]
            scores |= {reading.turn.id: reading.worth for reading in read_session(memory, turns)}
            yield session
        for question in self.gold.questions:
            afterwards = {"user": self._user, "session": _AFTERWARDS}
            _look_for(due, memory, afterwards, question.text, self.gold.end)
        self.turns = self._compare(memory, scores)

    def _compare(self, memory: Memory, scores: Mapping[str, float]) -> list[TurnOutcome]:
        """Every turn of a conversation whose writer says what is worth keeping."""
        if not self.gold.facts:
            return []
        gold = {id for fact in self.gold.facts for id in fact.gold}
        kept = {id for atom in formed_atoms(memory, self._user) for id in source_ids(atom)}
        return [TurnOutcome(turn.id in gold, turn.id in kept, scores.get(turn.id)) for turn in self.gold.turns]


def measure(path: str | Path | None = None, *, embedder: str = "auto", progress: Progress | None = None) -> Result:
    """Measure the conversations of one file, or those in the package; percentages from 0 to 100."""
    path = path or BUILT_IN
    lessons = [Lesson(each, f"{place}") for place, each in enumerate(read_conversations(path), 1)]
    if not any(lesson.gold.facts or lesson.instructions for lesson in lessons):
        raise InputError(f"{path} has neither facts nor questions about instructions: nothing to measure learning by")
    total = sum(len(lesson.sessions) for lesson in lessons)
    with eunoe.open(":memory:", embedder=embedder, llm="none", form=False) as memory:
        sessions = (session for lesson in lessons for session in lesson.learn(memory))
        for _ in track(sessions, total, progress):
            pass
        status = memory.status()
    return {
        **_figures(lessons),
        "by_kind": {
            kind: _figures(own) for kind, own in group_by(lessons, lambda lesson: lesson.gold.kind).items() if kind
        },
        "each_instruction": [_instruction_row(each) for each in _asked_instructions(lessons)],
        "formed": {"facts": status.facts, "observations": status.observations, "summaries": status.revisions},
        "embedder": status.embedder,
    }


def holds_words(text: str, quotes: Sequence[str]) -> bool:
    """Whether one of these texts stands in a context: for each of its sentences a line that has most of the words.

    >>> holds_words("## Facts\\n- Anna: Metric only, please! (2024-05-07)", ["metric only please"])
    True
    """
    lines = [_words(line) for line in unescape(text).splitlines()]

    def is_held(sentence: str) -> bool:
        words = _words(sentence)
        return any(len(words & line) >= _HELD_SHARE * len(words) for line in lines)

    return any(all(map(is_held, split_sentences(quote))) for quote in quotes if _words(quote))


def _words(text: str) -> set[str]:
    return set(_WORD.findall(fold(text)))


def _look_for(
    due: Sequence[InstructionOutcome], memory: Memory, scope: Mapping[str, str], message: str, now: datetime | None
) -> None:
    """Note which instructions of sessions before stand in the context of a message."""
    if due:
        text = memory.context(scope, message, now=now).text
        for each in due:
            each.contexts.append(holds_words(text, each.gold.quotes))


def _figures(lessons: Sequence[Lesson]) -> Result:
    turns = [turn for lesson in lessons for turn in lesson.turns]
    asked = _asked_instructions(lessons)
    return {
        "turns": _turn_figures(turns) if turns else None,
        "instructions": _instruction_figures(asked) if asked else None,
    }


def _asked_instructions(lessons: Sequence[Lesson]) -> list[InstructionOutcome]:
    """Those after which there was still something said or asked."""
    return [each for lesson in lessons for each in lesson.instructions if each.contexts]


def _turn_figures(turns: Sequence[TurnOutcome]) -> Result:
    gold, kept = sum(turn.is_gold for turn in turns), sum(turn.is_kept for turn in turns)
    is_ranked = any(turn.score is not None for turn in turns)
    ranked = [(-inf if turn.score is None else turn.score, turn.is_gold) for turn in turns]
    return {
        "turns": len(turns),
        "gold": gold,
        "kept": kept,
        **f1_scores(sum(turn.is_gold and turn.is_kept for turn in turns), kept, gold),
        f"precision@{RECALL}": precision_at_recall(RECALL, ranked) if is_ranked else None,
    }


def _instruction_figures(outcomes: Sequence[InstructionOutcome]) -> Result:
    return {
        "count": len(outcomes),
        "always": mean_percent(all(each.contexts) for each in outcomes),
        "mean": mean_percent(fmean(each.contexts) for each in outcomes),
    }


def _instruction_row(outcome: InstructionOutcome) -> Result:
    return {
        "conversation": outcome.conversation,
        "turn": outcome.gold.turn,
        "words": " ".join(outcome.gold.quotes),
        "contexts": len(outcome.contexts),
        "held": mean_percent(outcome.contexts),
    }


def rows(result: Result) -> list[View]:
    rows = {"all": result, **result["by_kind"]}
    turns = {label: _without_none(own["turns"]) for label, own in rows.items() if own["turns"]}
    instructions = {label: own["instructions"] for label, own in rows.items() if own["instructions"]}
    formed = ", ".join(f"{count:,} {name}" for name, count in result["formed"].items())
    views: list[View] = [f"formed without a language model: {formed}; embedder {result['embedder']}"]
    views += score_views("\nturns: worth keeping, and kept", [turns]) if turns else []
    if instructions:
        views += score_views("\nstanding instructions: in every later context, and on average", [instructions])
        each = [
            (f"{own['conversation']} {own['turn']}", f"{own['held']:.1f}", own["words"])
            for own in result["each_instruction"]
        ]
        views.append(Grid(("", "held", "words"), each))
    return views


def _without_none(figures: Result) -> Result:
    return {name: value for name, value in figures.items() if value is not None}
