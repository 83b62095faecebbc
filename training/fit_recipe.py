"""Fits the weights of the default recipe on conversations with known answers; needs scipy beside eunoe[minilm].

    python training/fit_recipe.py FOLDS.npz

Prints the blends of `eunoe.recall.recipes`. For each question the softmax over all turns of its conversation should put
its mass on the gold turns. The conversations are those of talk's training and validation part.

- `short` and `long`, for the package's own encoder, out of vectors by encoders that had not seen the conversation
  (`make.py folds`): on conversations that it was trained on an encoder looks better than it is. These are then moved a
  little to where most gold turns come among the first five and ten.
- With any other vectors: static ones (with words of like meaning) and MiniLM's (without) together, so that one set of
  weights serves both and strangers.
- Without vectors.

Then the scale: the best hits of questions asked of their own conversation against those of questions from another one.
"""

import random
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

import numpy as np
import talk
from scipy.optimize import minimize

from eunoe.bench.conversations import Conversation, load
from eunoe.embed import load as load_embedder
from eunoe.index.stream import Entry, StreamIndex
from eunoe.recall import query
from eunoe.recall.evidence import gather
from eunoe.recall.filters import Filter
from eunoe.recall.recipes import Blend

SET_BY_HAND = {"exact": 4.0, "echo": 4.0}
NAMES = [name for name in Blend.__dataclass_fields__ if name not in ("bias", "weights", *SET_BY_HAND)]
WORDS_ONLY = [name for name in NAMES if "dense" not in name]
MOST_FOR_THE_USER = 1.4
FOREIGN = 25
CUTS = (5, 10)
SOFTNESS = 0.7
STAY = 3e-4


class Source(Protocol):
    """Where vectors come from."""

    near: query.Synonyms | None

    def turns(self, conversation: Conversation, texts: list[str]) -> Sequence: ...

    def question(self, conversation: Conversation, text: str, asked: str) -> np.ndarray | None: ...


class Embedded:
    def __init__(self, name: str, near: str = "") -> None:
        self._embedder = load_embedder(name)
        self.near = load_embedder(near) if near else None

    def turns(self, conversation: Conversation, texts: list[str]) -> Sequence:
        return self._embedder.embed(texts) if self._embedder else [None] * len(texts)

    def question(self, conversation: Conversation, text: str, asked: str) -> np.ndarray | None:
        return self._embedder.embed_query(asked) if self._embedder else None


class Folded:
    """Vectors of each conversation by an encoder that had not seen it."""

    def __init__(self, path: Path, near: str) -> None:
        self._kept = np.load(path)
        self.near = load_embedder(near)

    def turns(self, conversation: Conversation, texts: list[str]) -> Sequence:
        return self._kept[f"{conversation.id} turns"].astype(np.float32)

    def question(self, conversation: Conversation, text: str, asked: str) -> np.ndarray:
        place = [each.text for each in conversation.questions].index(text)
        return self._kept[f"{conversation.id} questions"][place].astype(np.float32)


class Asked:
    """One conversation under one source of vectors: its index, and the evidence for each of its questions."""

    def __init__(self, conversation: Conversation, source: Source, names: Sequence[str]) -> None:
        self.conversation, self._source, self._names = conversation, source, names
        self._now = max((turn.time.timestamp() for turn in conversation.turns if turn.time), default=0.0)
        self.index = self._index()
        self._mask = Filter().mask(self.index, self._now)
        place = {turn.id: row for row, turn in enumerate(conversation.turns)}
        self.legs = np.stack([self.evidence(question.text) for question in conversation.questions])
        self.gold = np.zeros(self.legs.shape[:2])
        for row, question in enumerate(conversation.questions):
            self.gold[row, [place[id] for id in question.gold]] = 1 / len(question.gold)

    def _index(self) -> StreamIndex:
        texts = [f"{turn.text}\n{turn.caption}" if turn.caption else turn.text for turn in self.conversation.turns]
        vectors = self._source.turns(self.conversation, texts)
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
        asked = query.without_names(question, [self.index])
        vector = self._source.question(self.conversation, question, asked)
        read = query.read(question, self.index.lexical.languages, self._now)
        legs = gather(self.index, query.plan(read, self.index, self._source.near), vector, self._mask).legs
        nothing = np.zeros(self.index.rows, np.float32)
        return self.apart(np.stack([legs.get(name, nothing) for name in self._names], axis=1))

    def apart(self, legs: np.ndarray) -> np.ndarray:
        return legs


class Spread(Asked):
    """The same with the evidence in two columns each, for streams of short and of long items."""

    def apart(self, legs: np.ndarray) -> np.ndarray:
        share = self.index.layout.wordy
        return np.concatenate([legs * (1 - share), legs * share], axis=1)


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
            slope = slope - np.tensordot(one.gold - odds / sums, one.legs, axes=([0, 1], [0, 1]))
        return total, slope

    start = np.zeros(len(names))
    return minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds(names), options={"maxiter": 400}).x


def bounds(names: Sequence[str]) -> list[tuple[float | None, float | None]]:
    return [(None, 0) if name == "question" else (0, MOST_FOR_THE_USER if name == "user" else None) for name in names]


def sharpen(asked: Sequence[Asked], names: Sequence[str], start: np.ndarray) -> np.ndarray:
    """From good weights to those that bring most gold turns before the fifth and the tenth of the others."""
    count = sum(len(one.gold) for one in asked)

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        away = weights - start
        total, slope = STAY * away @ away, 2 * STAY * away
        for one in asked:
            scores = one.legs @ weights
            others = np.argsort(-np.where(one.gold > 0, -np.inf, scores), axis=1)
            for cut in CUTS:
                edge = others[:, min(cut, others.shape[1]) - 1][:, None]
                above = 1 / (1 + np.exp((np.take_along_axis(scores, edge, 1) - scores) / SOFTNESS))
                total -= (above * one.gold).sum() / count
                pull = above * (1 - above) / SOFTNESS * one.gold / count
                np.put_along_axis(pull, edge, np.take_along_axis(pull, edge, 1) - pull.sum(1, keepdims=True), 1)
                slope = slope - np.tensordot(pull, one.legs, axes=([0, 1], [0, 1]))
        return total, slope

    return minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds(names), options={"maxiter": 100}).x


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
    pairs = (seen[wanted == 1][:, None] > seen[wanted == 0][None, :]).mean()
    print(f"  told apart: {100 * pairs:.1f} of 100 pairs", file=sys.stderr)

    def loss(line: np.ndarray) -> float:
        logits = line[0] * seen + line[1]
        return float((np.logaddexp(0, logits) - wanted * logits).mean())

    return tuple(minimize(loss, [1.0, -5.0], method="Nelder-Mead").x)


def written(weights: np.ndarray, names: Sequence[str], bias: float) -> str:
    fitted = {name: weight for name, weight in zip(names, weights.round(2), strict=True) if weight}
    told = ", ".join(f"{name}={weight:.2f}" for name, weight in (fitted | SET_BY_HAND).items())
    return f"Blend({told}, bias={bias:.2f})"


def blend(
    conversations: Sequence[Conversation], sources: Sequence[Source], names: Sequence[str], penalty: float
) -> str:
    asked = [Asked(one, source, names) for source in sources for one in conversations]
    weights = fit(asked, names, penalty)
    slope, bias = scale(asked, weights)
    return written(weights * slope, names, bias)


def own(conversations: Sequence[Conversation], held: Sequence[Conversation], folds: Path, penalty: float) -> list[str]:
    """The blends for short and for long items, on the scale of the encoder that ships, on what it has not seen."""
    asked = [Spread(one, Folded(folds, "static"), NAMES) for one in conversations]
    weights = sharpen(asked, NAMES * 2, fit(asked, NAMES * 2, penalty))
    shipped = Embedded("eunoe", near="static")
    slope, bias = scale([Spread(one, shipped, NAMES) for one in held], weights)
    return [written(part, NAMES, bias) for part in np.split(weights * slope, 2)]


def conversations_of(part: str) -> list[Conversation]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "talk.json"
        path.write_text(talk.as_json(talk.load(part)), encoding="utf-8")
        return load(path)


def main(folds: Path) -> None:
    held = conversations_of("validation")
    whole = [*conversations_of("train"), *held]
    short, long = own(whole, held, folds, 3)
    print(f"short: {short}\nlong: {long}")
    print("with any vector:", blend(whole, [Embedded("static", near="static"), Embedded("minilm")], NAMES, 3))
    print("without:", blend(whole, [Embedded("none")], WORDS_ONLY, 1))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
