"""Fits the weights of the default recipe on conversations with known answers; needs scipy beside eunoe[minilm].

    python training/fit_recipe.py FOLDS.npz
    python training/fit_recipe.py               # only what a crowd is worth, for the weights that ship

Prints the blends of `eunoe.recall.recipes`. For each question the softmax over all turns of its conversation should put
its mass on the gold turns. The conversations are those of talk's training and validation part.

- `short` and `long`, for the package's own encoder, out of vectors by encoders that had not seen the conversation
  (`make.py folds`): on conversations that it was trained on an encoder looks better than it is. These are then moved a
  little to where most gold turns come among the first five and ten.
- With any other vectors: static ones (with words of like meaning) and MiniLM's (without) together, so that one set of
  weights serves both and strangers.
- Without vectors.

Then the scale: the best hits of questions asked of their own conversation against those of questions from another one.
Last the crowd: the same in memories of 2 to 1,500 turns or facts, with all weights as they are.
"""

import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import log
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

import numpy as np
import talk
from scipy.optimize import minimize, minimize_scalar

from eunoe.bench.conversations import Conversation, Question, load
from eunoe.embed import load as load_embedder
from eunoe.index.stream import Entry, StreamIndex
from eunoe.recall import query
from eunoe.recall.evidence import gather
from eunoe.recall.filters import Filter
from eunoe.recall.ranking import Found, search
from eunoe.recall.recipes import RECIPES, USUAL, Blend, Recipe, Tuned

SET_BY_HAND = {"exact": 4.0, "echo": 4.0}
NAMES = [name for name in Blend.__dataclass_fields__ if name not in ("bias", "crowd", "weights", *SET_BY_HAND)]
WORDS_ONLY = [name for name in NAMES if "dense" not in name]
MOST_FOR_THE_USER = 1.4
FOREIGN = 25
CUTS = (5, 10)
SOFTNESS = 0.7
STAY = 3e-4
SIZES = (2, 4, 8, 16, 32, 64, 128, 300, 700, 1500)
ASKED = 220
OWN = "eunoe-1"


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
        return self.asked(asked)

    def asked(self, question: str) -> np.ndarray | None:
        return self._embedder.embed_query(question) if self._embedder else None


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


def entries(conversation: Conversation, source: Source) -> list[Entry]:
    texts = [f"{turn.text}\n{turn.caption}" if turn.caption else turn.text for turn in conversation.turns]
    return [
        Entry(
            seq=row, id=turn.id, kind="message", text=text, time=turn.time.timestamp() if turn.time else None,
            session=turn.session, speaker=turn.speaker, role=turn.role, vector=vector,
        )
        for row, (turn, text, vector) in enumerate(
            zip(conversation.turns, texts, source.turns(conversation, texts), strict=True)
        )
    ]  # fmt: skip


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
        index = StreamIndex()
        index.apply(entries(self.conversation, self._source))
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


class Sized:
    """Memories of some size made of conversations, with questions that they can answer and as many that they cannot."""

    def __init__(self, told: dict[str, list[Entry]], size: int, kind: str) -> None:
        self._told, self._size, self._kind = told, size, kind
        self._chance = random.Random(size)

    def drawn(
        self, conversations: Sequence[Conversation]
    ) -> Iterator[tuple[StreamIndex, list[Question], list[Question]]]:
        for one in conversations:
            own = self._chance.sample(one.questions, min(-(-ASKED // len(conversations)), len(one.questions)))
            others = [other for other in conversations if other is not one]
            if self._size <= len(one.turns):
                yield from ((self._around(one, question), [question], self._foreign(others, 1)) for question in own)
                continue
            self._chance.shuffle(others)
            together = self._joined(one, others)
            if others:
                yield self._index(together), own, self._foreign(others, len(own))

    def _around(self, one: Conversation, question: Question) -> StreamIndex:
        """Turns that follow one another, a gold one among them."""
        gold = [turn.id for turn in one.turns].index(self._chance.choice(question.gold))
        start = max(0, min(len(one.turns) - self._size, gold - self._chance.randrange(self._size)))
        return self._index(self._told[one.id][start : start + self._size])

    def _joined(self, one: Conversation, others: list[Conversation]) -> list[Entry]:
        """A conversation with as many others as it takes; they are taken out of the list."""
        rows = list(self._told[one.id])
        while others and len(rows) < self._size:
            other = others.pop()
            rows += (each._replace(session=f"{other.id} {each.session}") for each in self._told[other.id])
        return rows

    def _foreign(self, others: Sequence[Conversation], count: int) -> list[Question]:
        return [self._chance.choice(self._chance.choice(others).questions) for _ in range(count)]

    def _index(self, rows: Sequence[Entry]) -> StreamIndex:
        bare = {} if self._kind == "message" else {"kind": self._kind, "session": "", "speaker": "", "role": ""}
        index = StreamIndex()
        index.apply(row._replace(seq=seq, id=str(seq), **bare) for seq, row in enumerate(rows))
        return index


def best(index: StreamIndex, question: str, source: Embedded, recipe: Recipe, model: str) -> list[Found]:
    now = float(np.nanmax(index.moment("time")))
    vector = source.asked(query.without_names(question, [index]))
    return search([index], question, vector, recipe, now=now, limit=1, synonyms=source.near, model=model)


def crowd(conversations: Sequence[Conversation], sources: Sequence[Embedded], recipe: Recipe, model: str) -> float:
    """What the best hit of any question gains as the logarithm of how many there are to choose from grows by one."""
    seen, many, wanted = [], [], []
    told = [(source, {one.id: entries(one, source) for one in conversations}) for source in sources]
    for (source, turns), size, kind in product(told, SIZES, ("message", "fact")):
        for index, own, strange in Sized(turns, size, kind).drawn(conversations):
            for question, answerable in (*((each, 1.0) for each in own), *((each, 0.0) for each in strange)):
                found = best(index, question.text, source, recipe, model)
                if found:
                    seen.append(log(found[0].score / (1 - found[0].score)))
                    many.append(log(index.rows / USUAL))
                    wanted.append(answerable)
    odds, sizes, own_ones = np.array(seen), np.array(many), np.array(wanted)

    def loss(worth: float) -> float:
        logits = odds - worth * sizes
        return float((np.logaddexp(0, logits) - own_ones * logits).mean())

    worth = float(minimize_scalar(loss).x)
    print(f"  crowd {worth:.2f}: loss {loss(0):.3f} without, {loss(worth):.3f} with it", file=sys.stderr)
    return worth


def made(weights: np.ndarray, names: Sequence[str], bias: float) -> Blend:
    return Blend(**dict(zip(names, weights.round(2).tolist(), strict=True)), **SET_BY_HAND, bias=round(bias, 2))


def written(blend: Blend, worth: float) -> str:
    told = ", ".join(f"{name}={weight:.2f}" for name, weight in blend.weights)
    return f"Blend({told}, bias={blend.bias:.2f}, crowd={worth:.2f})"


def blend(
    conversations: Sequence[Conversation], sources: Sequence[Source], names: Sequence[str], penalty: float
) -> Blend:
    asked = [Asked(one, source, names) for source in sources for one in conversations]
    weights = fit(asked, names, penalty)
    slope, bias = scale(asked, weights)
    return made(weights * slope, names, bias)


def own(conversations: Sequence[Conversation], held: Sequence[Conversation], folds: Path, penalty: float) -> Tuned:
    """The blends for short and for long items, on the scale of the encoder that ships, on what it has not seen."""
    asked = [Spread(one, Folded(folds, "static"), NAMES) for one in conversations]
    weights = sharpen(asked, NAMES * 2, fit(asked, NAMES * 2, penalty))
    slope, bias = scale([Spread(one, Embedded("eunoe", near="static"), NAMES) for one in held], weights)
    short, long = (made(part, NAMES, bias) for part in np.split(weights * slope, 2))
    return Tuned(short, long)


def conversations_of(part: str) -> list[Conversation]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "talk.json"
        path.write_text(talk.as_json(talk.load(part)), encoding="utf-8")
        return load(path)


def fitted(folds: Path, whole: Sequence[Conversation], held: Sequence[Conversation]) -> Recipe:
    return Recipe(
        name="fitted",
        tuned={OWN: own(whole, held, folds, 3)},
        blend=blend(whole, [Embedded("static", near="static"), Embedded("minilm")], NAMES, 3),
        bare=blend(whole, [Embedded("none")], WORDS_ONLY, 1),
    )


def shipped() -> Recipe:
    """What ships, without what a crowd is worth there."""
    plain = RECIPES["default"]
    tuned = Tuned(*(replace(each, crowd=0.0) for each in plain.tuned[OWN]))
    return replace(
        plain, tuned={OWN: tuned}, blend=replace(plain.blend, crowd=0.0), bare=replace(plain.bare, crowd=0.0)
    )


def main(folds: Path | None) -> None:
    held = conversations_of("validation")
    whole = [*conversations_of("train"), *held]
    recipe = fitted(folds, whole, held) if folds else shipped()
    worth = crowd(held, [Embedded("eunoe", near="static")], recipe, OWN)
    print(f"short: {written(recipe.tuned[OWN].short, worth)}\nlong: {written(recipe.tuned[OWN].long, worth)}")
    others = [Embedded("static", near="static"), Embedded("minilm")]
    print("with any vector:", written(recipe.blend, crowd(whole, others, recipe, "")))
    print("without:", written(recipe.bare, crowd(whole, [Embedded("none")], recipe, "")))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
