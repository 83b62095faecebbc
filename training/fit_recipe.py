"""Fits the weights of the default recipe on conversations with known answers; needs scipy beside eunoe[minilm].

    python training/fit_recipe.py CONVERSATIONS.json

Prints the two blends of `eunoe.recall.recipes`. For each question the softmax over all turns of its conversation
should put its mass on the gold turns. Static vectors (with words of like meaning) and MiniLM (without) are fitted
together, so that one set of weights serves both and strangers; the blend without vectors is fitted by itself. Then
the scale: the best hits of questions asked of their own conversation against those of questions from another one.
"""

import random
import sys
from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize

from eunoe.bench.conversations import Conversation, load
from eunoe.embed import load as load_embedder
from eunoe.index.stream import Entry, StreamIndex
from eunoe.recall import query
from eunoe.recall.evidence import gather
from eunoe.recall.filters import Filter
from eunoe.recall.recipes import Blend

SET_BY_HAND = {"exact": 4.0}
NAMES = [name for name in Blend.__dataclass_fields__ if name not in ("bias", "weights", *SET_BY_HAND)]
WORDS_ONLY = [name for name in NAMES if "dense" not in name]
MOST_FOR_THE_USER = 1.4
FOREIGN = 25


class Asked:
    """One conversation under one embedder: its index, and the evidence for each of its questions."""

    def __init__(self, conversation: Conversation, embedder, near: bool, names: Sequence[str]) -> None:
        self.conversation, self.embedder, self.names = conversation, embedder, names
        self.synonyms = embedder if near else None
        self.now = max((turn.time.timestamp() for turn in conversation.turns if turn.time), default=0.0)
        self.index = self._index()
        self.mask = Filter().mask(self.index, self.now)
        place = {turn.id: row for row, turn in enumerate(conversation.turns)}
        self.legs = np.stack([self.evidence(question.text) for question in conversation.questions])
        self.gold = np.zeros(self.legs.shape[:2])
        for row, question in enumerate(conversation.questions):
            self.gold[row, [place[id] for id in question.gold]] = 1 / len(question.gold)

    def _index(self) -> StreamIndex:
        texts = [f"{turn.text}\n{turn.caption}" if turn.caption else turn.text for turn in self.conversation.turns]
        vectors = self.embedder.embed(texts) if self.embedder else [None] * len(texts)
        index = StreamIndex()
        index.apply(
            Entry(
                seq=row, id=turn.id, kind="message", text=text, time=turn.time.timestamp() if turn.time else None,
                session=turn.session, speaker=turn.speaker, role=turn.role, vector=vector,
            )
            for row, (turn, text, vector) in enumerate(zip(self.conversation.turns, texts, vectors, strict=True))
        )  # fmt: skip
        return index

    def evidence(self, question: str) -> np.ndarray:
        """Turns by kinds of evidence."""
        vector = self.embedder.embed_query(query.without_names(question, [self.index])) if self.embedder else None
        read = query.read(question, self.index.lexical.languages, self.now)
        legs = gather(self.index, query.plan(read, self.index, self.synonyms), vector, self.mask).legs
        nothing = np.zeros(self.index.rows, np.float32)
        return np.stack([legs.get(name, nothing) for name in self.names], axis=1)


def fit(asked: Sequence[Asked], names: Sequence[str], penalty: float) -> np.ndarray:
    """No kind of evidence may count against a turn, but being a question itself."""

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        total, slope = penalty * weights @ weights, 2 * penalty * weights
        for one in asked:
            scores = one.legs @ weights
            scores = scores - scores.max(axis=1, keepdims=True)
            odds = np.exp(scores)
            sums = odds.sum(axis=1, keepdims=True)
            total -= (one.gold * (scores - np.log(sums))).sum()
            slope = slope - np.einsum("qn,qnk->k", one.gold - odds / sums, one.legs)
        return total, slope

    bounds = [(None, 0) if name == "question" else (0, MOST_FOR_THE_USER if name == "user" else None) for name in names]
    start = np.zeros(len(names))
    return minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 400}).x


def scale(asked: Sequence[Asked], weights: np.ndarray) -> tuple[float, float]:
    """Slope and bias of the curve that tells questions a conversation can answer from those that it cannot."""
    chance = random.Random(0)
    best, answerable = [], []
    for one in asked:
        others = [other for other in asked if other.conversation.id != one.conversation.id]
        own = [one.legs[row] for row in chance.sample(range(len(one.legs)), min(FOREIGN, len(one.legs)))]
        strange = [chance.choice(chance.choice(others).conversation.questions) for _ in range(FOREIGN)]
        for legs in (*own, *(one.evidence(question.text) for question in strange)):
            best.append(float((legs @ weights).max()))
        answerable += [1.0] * len(own) + [0.0] * len(strange)
    seen, wanted = np.array(best), np.array(answerable)

    def loss(line: np.ndarray) -> float:
        logits = line[0] * seen + line[1]
        return float((np.logaddexp(0, logits) - wanted * logits).mean())

    return tuple(minimize(loss, [1.0, -5.0], method="Nelder-Mead").x)


def blend(
    conversations: Sequence[Conversation], embedders: Sequence[tuple], names: Sequence[str], penalty: float
) -> str:
    asked = [Asked(one, embedder, near, names) for embedder, near in embedders for one in conversations]
    weights = fit(asked, names, penalty)
    slope, bias = scale(asked, weights)
    fitted = {name: weight for name, weight in zip(names, (weights * slope).round(2), strict=True) if weight}
    told = ", ".join(f"{name}={weight:.2f}" for name, weight in (SET_BY_HAND | fitted).items())
    return f"Blend({told}, bias={bias:.2f})"


def main(path: str) -> None:
    conversations = load(path)
    print(
        "with a vector:",
        blend(conversations, [(load_embedder("static"), True), (load_embedder("minilm"), False)], NAMES, 3),
    )
    print("without:", blend(conversations, [(None, False)], WORDS_ONLY, 1))


if __name__ == "__main__":
    main(sys.argv[1])
