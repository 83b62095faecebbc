"""Why a candidate was found: signals put into reasons, when somebody asks for them.

An explanation holds what it needs of its row and nothing of the index, which may have changed by then.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eunoe.index.dense import Bools, Floats
from eunoe.index.lexical import TermGroup, group_fits
from eunoe.model.result import Reason
from eunoe.recall.query import QueryPlan
from eunoe.recall.ranking_recipes import Blend

Reasons = tuple[Reason, ...]
Explain = Callable[..., Reasons]

_MIN_SHARE: Final = 0.05
"""A smaller share is no reason."""

_TURN_REASONS: Final = {
    "term": "lexical", "window": "neighbour", "dense": "dense", "session_term": "session", "session_dense": "session",
    "term_before": "neighbour", "term_two_before": "neighbour", "term_after": "neighbour", "term_answer": "neighbour",
    "dense_before": "neighbour", "dense_two_before": "neighbour", "dense_after": "neighbour",
    "dense_answer": "neighbour", "exact": "exact", "speaker": "speaker", "date": "date", "time": "time",
    "number": "number", "user": "role", "feedback": "feedback",
    "later": "later",
}  # fmt: skip
"""The reason that a signal is shown as. Signals that are not here count without being shown."""
LENT_REASONS: Final = frozenset({"neighbour", "session"})
"""What other turns lend to one."""
_ATOM_REASONS: Final = _TURN_REASONS | {
    signal: "dense" if "dense" in signal else "lexical"
    for signal, reason in _TURN_REASONS.items()
    if reason in LENT_REASONS
}
"""An atom has neither neighbours nor a session: its own words and vector stand in."""
_OWN_SIGNAL: Final = {"window": "term", "session_term": "term", "session_dense": "dense"}
"""Signals in which a turn's own words or vector count as well: only what other turns add to these is theirs."""


class BlendExplanation(NamedTuple):
    """The signals of some rows, as arrays by place."""

    is_turn: Bools | None
    """None where there are no turns."""
    in_named_session: Bools | None
    """None where no session has a name."""
    signals: dict[str, Floats]
    matches: Floats
    cosines: Floats | None
    plan: QueryPlan
    blend: Blend

    def reasons(self, place: int, rerank: float = 0.0) -> Reasons:
        shares = {"rerank": rerank}
        for name, share in self._shares(place):
            shares[name] = shares.get(name, 0.0) + share
        if self.in_named_session is None or not self.in_named_session[place]:
            shares.pop("session", None)
        return ranked_reasons(shares, lambda name: self._detail(name, place))

    def _shares(self, place: int) -> Iterator[tuple[str, float]]:
        is_turn = self.is_turn is not None and self.is_turn[place]
        names = _TURN_REASONS if is_turn else _ATOM_REASONS
        for signal, weight in self.blend.weights:
            if signal not in self.signals or signal not in names:
                continue
            value = float(self.signals[signal][place])
            if is_turn and signal in _OWN_SIGNAL:
                own = max(float(self.signals[_OWN_SIGNAL[signal]][place]), 0.0)
                yield names[_OWN_SIGNAL[signal]], weight * own
                value -= own
            yield names[signal], weight * value

    def _detail(self, name: str, place: int) -> str:
        if name == "lexical":
            return matched_words(self.plan.groups, self.matches[:, place].tolist())
        if name == "exact":
            labels = [self.plan.groups[each].label for each in self.plan.identifiers if self.matches[each, place]]
            return ", ".join(labels)
        if name == "dense" and self.cosines is not None:
            return f"cosine {self.cosines[place]:.2f}"
        return ", ".join(sorted(self.plan.speaker_words)) if name == "speaker" else ""


class GraphExplanation(NamedTuple):
    """What speaks for some rows that were found through the entity graph, by place."""

    shares: dict[str, NDArray[np.float64]]
    """By reason."""
    paths: list[str]
    """From the question to each row, empty where none leads there."""
    groups: Sequence[TermGroup]
    terms: list[frozenset[int]]
    """Those that each row has."""
    cosines: Floats | None

    def reasons(self, place: int) -> Reasons:
        shares = {name: float(values[place]) for name, values in self.shares.items()}
        return ranked_reasons(shares, lambda name: self._detail(name, place))

    def _detail(self, name: str, place: int) -> str:
        if name == "graph":
            return self.paths[place]
        if name == "lexical":
            return _words_of(self.groups, self.terms[place])
        return "" if self.cosines is None else f"cosine {self.cosines[place]:.2f}"


def ranked_reasons(shares: Mapping[str, float], detail_of: Callable[[str], str]) -> Reasons:
    """The signals whose share of all that speaks for a row is a reason, the largest first."""
    total = sum(share for share in shares.values() if share > 0) or 1.0
    ranked = sorted(((share / total, name) for name, share in shares.items()), reverse=True)
    return tuple(Reason(name, round(share, 3), detail_of(name)) for share, name in ranked if share >= _MIN_SHARE)


def matched_words(groups: Sequence[TermGroup], fits: Sequence[float]) -> str:
    """The words of the question that a row has; ~ where by another word of like meaning.

    Of an identifier and its parts only the longest are shown.
    """
    found = [(group, fit) for group, fit in zip(groups, fits, strict=True) if fit > 0]
    exact = [group for group, fit in found if fit >= 1]
    return ", ".join(
        group.label if fit >= 1 else f"~{group.label}"
        for group, fit in found
        if not any(group.chunk == other.chunk and group.label in other.label != group.label for other in exact)
    )


def _words_of(groups: Sequence[TermGroup], terms: Set[int]) -> str:
    return matched_words(groups, group_fits(groups, terms))


def lexical_reason(groups: Sequence[TermGroup], terms: Set[int]) -> Reasons:
    """The words of the question that a row with these terms has."""
    return only_reason("lexical", _words_of(groups, terms))


def only_reason(name: str, detail: str) -> Reasons:
    return (Reason(name, 1.0, detail),)


def all_reasons(explanations: Sequence[Explain]) -> Reasons:
    return tuple(reason for explain in explanations for reason in explain())
