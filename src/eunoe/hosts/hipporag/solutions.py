"""What retrieval and answering give for one question, and how good that is where the right answer is known."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from eunoe.errors import InputError, LlmError
from eunoe.model.arguments import show

_RECALL_CUTS: Final = (1, 2, 5, 10, 20, 30, 50, 100, 150, 200)
_SHOWN: Final = 5
_ARTICLES: Final = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION: Final = str.maketrans("", "", string.punctuation)


@dataclass
class QuerySolution:
    """The documents for one question, and the answer."""

    question: str
    docs: list[str]
    doc_scores: NDArray[np.float64] | None = None
    answer: str | None = None
    gold_answers: list[str] | None = None
    gold_docs: list[str] | None = None
    thoughts: list[str] | None = None
    doc_metadata: list[dict[str, Any]] | None = None
    """What the chunks of the documents were indexed with."""
    graph_seeds: list[tuple[str, ...]] | None = None
    ids: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """The first five documents and all else, as plain values."""
        scores = None if self.doc_scores is None else [round(float(score), 4) for score in self.doc_scores[:_SHOWN]]
        return {
            "question": self.question,
            "answer": self.answer,
            "gold_answers": self.gold_answers,
            "docs": self.docs[:_SHOWN],
            "doc_scores": scores,
            "gold_docs": self.gold_docs,
            "doc_metadata": None if self.doc_metadata is None else self.doc_metadata[:_SHOWN],
            "graph_seeds": self.graph_seeds,
        } | ({} if self.thoughts is None else {"thoughts": self.thoughts})


class QaError(LlmError):
    """The language model failed at a question. What it had answered before is here, and what is left."""

    def __init__(
        self, message: str, solutions: list[QuerySolution], messages: list[str], metadata: list[dict[str, Any]]
    ) -> None:
        done = f"{len(messages)} of {len(solutions)} questions were answered"
        super().__init__(f"{message} ({done}; rag_qa(error.unanswered) goes on with the others)")
        self._given = message, solutions, messages, metadata
        self.solutions = solutions
        """All of them in their order; those that were answered have their answers."""
        self.messages, self.metadata = messages, metadata
        """What the model said to those that it answered, and what that took."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._given

    @property
    def unanswered(self) -> list[QuerySolution]:
        """The solutions that are still to be answered, from the one at which the model failed."""
        return self.solutions[len(self.messages) :]


def check_solutions(values: Sequence[Any]) -> list[QuerySolution]:
    """Return solutions that have a question and documents."""
    for place, value in enumerate(values):
        if not isinstance(value, QuerySolution):
            raise InputError("queries must be solutions, as retrieve gives them: rag_qa takes questions")
        if not isinstance(value.question, str):
            raise InputError(f"queries[{place}].question is {show(value.question)}: it must be a text")
        if not isinstance(value.docs, list | tuple) or not all(isinstance(doc, str) for doc in value.docs):
            raise InputError(f"queries[{place}].docs is {show(value.docs)}: it must be a list of texts")
    return list(values)


def recall_figures(solutions: Sequence[QuerySolution]) -> dict[str, float]:
    """The mean share of the gold documents among the first so many, for the solutions that have gold documents."""
    pairs = [(set(each.gold_docs), each.docs) for each in solutions if each.gold_docs]
    return {
        f"Recall@{cut}": _mean([len(gold.intersection(docs[:cut])) / len(gold) for gold, docs in pairs])
        for cut in _RECALL_CUTS
    }


def answer_figures(solutions: Sequence[QuerySolution]) -> dict[str, float]:
    """How often an answer is a gold answer, and the F1 of their words; the best gold answer of each counts."""
    pairs = [(each.answer or "", each.gold_answers or [""]) for each in solutions]
    return {
        "ExactMatch": _mean([max(float(_words(answer) == _words(gold)) for gold in golds) for answer, golds in pairs]),
        "F1": _mean([max(_f1(_words(answer), _words(gold)) for gold in golds) for answer, golds in pairs]),
    }


def _words(answer: str) -> list[str]:
    """The words by which answers are compared: small letters, no punctuation, no articles."""
    return _ARTICLES.sub(" ", answer.lower().translate(_PUNCTUATION)).split()


def _f1(answer: Sequence[str], gold: Sequence[str]) -> float:
    shared = sum((Counter(answer) & Counter(gold)).values())
    return 2 * shared / (len(answer) + len(gold)) if shared else 0.0


def _mean(figures: Sequence[float]) -> float:
    return round(sum(figures) / len(figures), 4) if figures else 0.0
