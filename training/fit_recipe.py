"""Fits the weights of the default recipe on conversations with known answers; needs scipy beside eunoe[minilm].

    python training/fit_recipe.py FOLDS.npz
    python training/fit_recipe.py               # only the size penalty, for the weights that ship

Prints the blends of `eunoe.recall.recipes`. For each question the softmax over all turns of its conversation
should put its mass on the gold turns. The conversations are those of talk's training and validation part.

- `short` and `long`, for the package's own encoder, out of vectors by encoders that had not seen the conversation
  (`make.py all`): on conversations that it was trained on an encoder looks better than it is. These are then moved a
  little to where most gold turns come among the first five and ten.
- With any other vectors: static ones (with words of like meaning) and MiniLM's (without) together, so that one set of
  weights serves both and strangers.
- Without vectors.

Then the scale: the best hits of questions asked of their own conversation against those of questions from another one.
Last the size penalty: the same in memories of 2 to 1,500 turns or facts, with all weights as they are.
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
from bench.conversations import GoldConversation, GoldQuestion, load_conversations
from scipy.optimize import minimize, minimize_scalar

from eunoe.embed import load_embedder
from eunoe.embed.encoder import Encoder
from eunoe.index.stream import IndexEntry, StreamIndex
from eunoe.recall import query
from eunoe.recall.ranking import Candidate, collect_signals, find_candidates
from eunoe.recall.recipes import RECIPES, REFERENCE_ITEMS, Blend, LengthBlend, Recipe
from eunoe.recall.request import Filter

SET_BY_HAND = {"exact": 4.0, "feedback": 4.0, "later": 6.0}
NAMES = [name for name in Blend.__dataclass_fields__ if name not in ("bias", "size_penalty", "weights", *SET_BY_HAND)]
WORDS_ONLY = [name for name in NAMES if "dense" not in name]
MAX_USER_WEIGHT = 1.4
FOREIGN_QUESTIONS = 25
CUTS = (5, 10)
SOFTNESS = 0.7
STAY_PENALTY = 3e-4
MEMORY_SIZES = (2, 4, 8, 16, 32, 64, 128, 300, 700, 1500)
QUESTIONS_PER_SIZE = 220
OWN_MODEL = Encoder.name


class VectorSource(Protocol):
    """Where vectors come from."""

    synonyms: query.Synonyms | None

    def turn_vectors(self, conversation: GoldConversation, texts: list[str]) -> Sequence: ...

    def question_vector(self, conversation: GoldConversation, text: str, query_text: str) -> np.ndarray | None: ...


class EmbedderVectors:
    def __init__(self, name: str, synonyms: str = "") -> None:
        self._embedder = load_embedder(name)
        self.synonyms = load_embedder(synonyms) if synonyms else None

    def turn_vectors(self, conversation: GoldConversation, texts: list[str]) -> Sequence:
        return self._embedder.embed(texts) if self._embedder else [None] * len(texts)

    def question_vector(self, conversation: GoldConversation, text: str, query_text: str) -> np.ndarray | None:
        return self.embed(query_text)

    def embed(self, query_text: str) -> np.ndarray | None:
        return self._embedder.embed_query(query_text) if self._embedder else None


class FoldVectors:
    """Vectors of each conversation by an encoder that had not seen it."""

    def __init__(self, path: Path, synonyms: str) -> None:
        self._kept = np.load(path)
        self.synonyms = load_embedder(synonyms)

    def turn_vectors(self, conversation: GoldConversation, texts: list[str]) -> Sequence:
        return self._kept[f"{conversation.id} turns"].astype(np.float32)

    def question_vector(self, conversation: GoldConversation, text: str, query_text: str) -> np.ndarray:
        place = [each.text for each in conversation.questions].index(text)
        return self._kept[f"{conversation.id} questions"][place].astype(np.float32)


def entries(conversation: GoldConversation, source: VectorSource) -> list[IndexEntry]:
    texts = [f"{turn.text}\n{turn.caption}" if turn.caption else turn.text for turn in conversation.turns]
    return [
        IndexEntry(
            seq=row, id=turn.id, kind="message", text=text, time=turn.time.timestamp() if turn.time else None,
            session=turn.session, speaker=turn.speaker, role=turn.role, vector=vector,
        )
        for row, (turn, text, vector) in enumerate(
            zip(conversation.turns, texts, source.turn_vectors(conversation, texts), strict=True)
        )
    ]  # fmt: skip


class ConversationEvidence:
    """One conversation under one source of vectors: its index, and the evidence for each of its questions."""

    def __init__(self, conversation: GoldConversation, source: VectorSource, names: Sequence[str]) -> None:
        self.conversation, self._source, self._names = conversation, source, names
        self._now = max((turn.time.timestamp() for turn in conversation.turns if turn.time), default=0.0)
        self.index = self._index()
        self._mask = Filter().mask(self.index, self._now)
        place = {turn.id: row for row, turn in enumerate(conversation.turns)}
        self.signals = np.stack([self.evidence(question.text) for question in conversation.questions])
        self.gold = np.zeros(self.signals.shape[:2])
        for row, question in enumerate(conversation.questions):
            self.gold[row, [place[id] for id in question.gold]] = 1 / len(question.gold)

    def _index(self) -> StreamIndex:
        index = StreamIndex()
        index.apply(entries(self.conversation, self._source))
        return index

    def evidence(self, question: str) -> np.ndarray:
        """Turns by kinds of evidence."""
        query_text = query.without_names(question, [self.index])
        vector = self._source.question_vector(self.conversation, question, query_text)
        read = query.read_question(question, self.index.lexical.languages, self._now)
        signals = collect_signals(
            self.index, query.plan_query(read, self.index, self._source.synonyms), vector, self._mask
        ).signals
        nothing = np.zeros(self.index.rows, np.float32)
        return self.by_length(np.stack([signals.get(name, nothing) for name in self._names], axis=1))

    def by_length(self, signals: np.ndarray) -> np.ndarray:
        return signals


class SplitEvidence(ConversationEvidence):
    """The same with the evidence in two columns each, for streams of short and of long items."""

    def by_length(self, signals: np.ndarray) -> np.ndarray:
        share = self.index.layout.verbosity
        return np.concatenate([signals * (1 - share), signals * share], axis=1)


def fit_weights(evidence: Sequence[ConversationEvidence], names: Sequence[str], penalty: float) -> np.ndarray:
    """No kind of evidence may count against a turn, but being a question itself."""

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        total, slope = penalty * weights @ weights, 2 * penalty * weights
        for one in evidence:
            scores = one.signals @ weights
            scores = scores - scores.max(axis=1, keepdims=True)
            odds = np.exp(scores)
            sums = odds.sum(axis=1, keepdims=True)
            total -= (one.gold * (scores - np.log(sums))).sum()
            slope = slope - np.tensordot(one.gold - odds / sums, one.signals, axes=([0, 1], [0, 1]))
        return total, slope

    start = np.zeros(len(names))
    return minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds(names), options={"maxiter": 400}).x


def bounds(names: Sequence[str]) -> list[tuple[float | None, float | None]]:
    return [(None, 0) if name == "question" else (0, MAX_USER_WEIGHT if name == "user" else None) for name in names]


def sharpen_weights(evidence: Sequence[ConversationEvidence], names: Sequence[str], start: np.ndarray) -> np.ndarray:
    """From good weights to those that bring most gold turns before the fifth and the tenth of the others."""
    count = sum(len(one.gold) for one in evidence)

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        away = weights - start
        total, slope = STAY_PENALTY * away @ away, 2 * STAY_PENALTY * away
        for one in evidence:
            scores = one.signals @ weights
            others = np.argsort(-np.where(one.gold > 0, -np.inf, scores), axis=1)
            for cut in CUTS:
                edge = others[:, min(cut, others.shape[1]) - 1][:, None]
                above = 1 / (1 + np.exp((np.take_along_axis(scores, edge, 1) - scores) / SOFTNESS))
                total -= (above * one.gold).sum() / count
                pull = above * (1 - above) / SOFTNESS * one.gold / count
                np.put_along_axis(pull, edge, np.take_along_axis(pull, edge, 1) - pull.sum(1, keepdims=True), 1)
                slope = slope - np.tensordot(pull, one.signals, axes=([0, 1], [0, 1]))
        return total, slope

    return minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds(names), options={"maxiter": 100}).x


def fit_scale(evidence: Sequence[ConversationEvidence], weights: np.ndarray) -> tuple[float, float]:
    """Slope and bias of the curve that tells questions a conversation can answer from those that it cannot."""
    chance = random.Random(0)
    best, answerable = [], []
    for one in evidence:
        others = [other for other in evidence if other.conversation.id != one.conversation.id]
        rows = chance.sample(range(len(one.signals)), min(FOREIGN_QUESTIONS, len(one.signals)))
        own = [one.signals[row] for row in rows]
        strange = [chance.choice(chance.choice(others).conversation.questions) for _ in range(FOREIGN_QUESTIONS)]
        for signals in (*own, *(one.evidence(question.text) for question in strange)):
            best.append(float((signals @ weights).max()))
        answerable += [1.0] * len(own) + [0.0] * len(strange)
    seen, wanted = np.array(best), np.array(answerable)
    pairs = (seen[wanted == 1][:, None] > seen[wanted == 0][None, :]).mean()
    print(f"  told apart: {100 * pairs:.1f} of 100 pairs", file=sys.stderr)

    def loss(line: np.ndarray) -> float:
        logits = line[0] * seen + line[1]
        return float((np.logaddexp(0, logits) - wanted * logits).mean())

    return tuple(minimize(loss, [1.0, -5.0], method="Nelder-Mead").x)


class SizedMemories:
    """Memories of some size made of conversations, with questions that they can answer and as many that they cannot."""

    def __init__(self, entries: dict[str, list[IndexEntry]], size: int, kind: str) -> None:
        self._entries, self._size, self._kind = entries, size, kind
        self._chance = random.Random(size)

    def draw(
        self, conversations: Sequence[GoldConversation]
    ) -> Iterator[tuple[StreamIndex, list[GoldQuestion], list[GoldQuestion]]]:
        for one in conversations:
            count = min(-(-QUESTIONS_PER_SIZE // len(conversations)), len(one.questions))
            own = self._chance.sample(one.questions, count)
            others = [other for other in conversations if other is not one]
            if self._size <= len(one.turns):
                for question in own:
                    yield self._index_around(one, question), [question], self._foreign_questions(others, 1)
                continue
            self._chance.shuffle(others)
            together = self._join_entries(one, others)
            if others:
                yield self._index(together), own, self._foreign_questions(others, len(own))

    def _index_around(self, one: GoldConversation, question: GoldQuestion) -> StreamIndex:
        """Turns that follow one another, a gold one among them."""
        gold = [turn.id for turn in one.turns].index(self._chance.choice(question.gold))
        start = max(0, min(len(one.turns) - self._size, gold - self._chance.randrange(self._size)))
        return self._index(self._entries[one.id][start : start + self._size])

    def _join_entries(self, one: GoldConversation, others: list[GoldConversation]) -> list[IndexEntry]:
        """A conversation with as many others as it takes; they are taken out of the list."""
        rows = list(self._entries[one.id])
        while others and len(rows) < self._size:
            other = others.pop()
            rows += (each._replace(session=f"{other.id} {each.session}") for each in self._entries[other.id])
        return rows

    def _foreign_questions(self, others: Sequence[GoldConversation], count: int) -> list[GoldQuestion]:
        return [self._chance.choice(self._chance.choice(others).questions) for _ in range(count)]

    def _index(self, rows: Sequence[IndexEntry]) -> StreamIndex:
        bare = {} if self._kind == "message" else {"kind": self._kind, "session": "", "speaker": "", "role": ""}
        index = StreamIndex()
        index.apply(row._replace(seq=seq, id=str(seq), **bare) for seq, row in enumerate(rows))
        return index


def best_candidates(
    index: StreamIndex, question: str, source: EmbedderVectors, recipe: Recipe, model: str
) -> list[Candidate]:
    now = float(np.nanmax(index.columns["time"]))
    vector = source.embed(query.without_names(question, [index]))
    return find_candidates([index], question, vector, recipe, now=now, limit=1, synonyms=source.synonyms, model=model)


def fit_size_penalty(
    conversations: Sequence[GoldConversation], sources: Sequence[EmbedderVectors], recipe: Recipe, model: str
) -> float:
    """What the best hit of any question gains as the logarithm of how many there are to choose from grows by one."""
    seen, many, wanted = [], [], []
    entries_by_source = [(source, {one.id: entries(one, source) for one in conversations}) for source in sources]
    for (source, turns), size, kind in product(entries_by_source, MEMORY_SIZES, ("message", "fact")):
        for index, own, strange in SizedMemories(turns, size, kind).draw(conversations):
            for question, answerable in (*((each, 1.0) for each in own), *((each, 0.0) for each in strange)):
                found = best_candidates(index, question.text, source, recipe, model)
                if found:
                    seen.append(log(found[0].score / (1 - found[0].score)))
                    many.append(log(index.rows / REFERENCE_ITEMS))
                    wanted.append(answerable)
    odds, sizes, own_ones = np.array(seen), np.array(many), np.array(wanted)

    def loss(worth: float) -> float:
        logits = odds - worth * sizes
        return float((np.logaddexp(0, logits) - own_ones * logits).mean())

    worth = float(minimize_scalar(loss).x)
    print(f"  size penalty {worth:.2f}: loss {loss(0):.3f} without, {loss(worth):.3f} with it", file=sys.stderr)
    return worth


def make_blend(weights: np.ndarray, names: Sequence[str], bias: float) -> Blend:
    by_hand = {name: weight for name, weight in SET_BY_HAND.items() if name != "later" or "dense" in names}
    return Blend(**dict(zip(names, weights.round(2).tolist(), strict=True)), **by_hand, bias=round(bias, 2))


def format_blend(blend: Blend, size_penalty: float) -> str:
    weights = ", ".join(f"{name}={weight:.2f}" for name, weight in blend.weights)
    return f"Blend({weights}, bias={blend.bias:.2f}, size_penalty={size_penalty:.2f})"


def fit_blend(
    conversations: Sequence[GoldConversation], sources: Sequence[VectorSource], names: Sequence[str], penalty: float
) -> Blend:
    evidence = [ConversationEvidence(one, source, names) for source in sources for one in conversations]
    weights = fit_weights(evidence, names, penalty)
    slope, bias = fit_scale(evidence, weights)
    return make_blend(weights * slope, names, bias)


def fit_length_blends(
    conversations: Sequence[GoldConversation], held: Sequence[GoldConversation], folds: Path, penalty: float
) -> LengthBlend:
    """The blends for short and for long items, on the scale of the encoder that ships, on what it has not seen."""
    evidence = [SplitEvidence(one, FoldVectors(folds, "static"), NAMES) for one in conversations]
    weights = sharpen_weights(evidence, NAMES * 2, fit_weights(evidence, NAMES * 2, penalty))
    slope, bias = fit_scale(
        [SplitEvidence(one, EmbedderVectors("eunoe", synonyms="static"), NAMES) for one in held], weights
    )
    short, long = (make_blend(part, NAMES, bias) for part in np.split(weights * slope, 2))
    return LengthBlend(short, long)


def load_part(part: str) -> list[GoldConversation]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "talk.json"
        path.write_text(talk.as_json(talk.load(part)), encoding="utf-8")
        return load_conversations(path)


def fit_recipe(folds: Path, whole: Sequence[GoldConversation], held: Sequence[GoldConversation]) -> Recipe:
    return Recipe(
        name="fitted",
        blends_by_model={OWN_MODEL: fit_length_blends(whole, held, folds, 3)},
        blend=fit_blend(whole, [EmbedderVectors("static", synonyms="static"), EmbedderVectors("minilm")], NAMES, 3),
        lexical_blend=fit_blend(whole, [EmbedderVectors("none")], WORDS_ONLY, 1),
    )


def shipped_recipe() -> Recipe:
    """What ships, without its size penalties."""
    plain = RECIPES["default"]
    tuned = LengthBlend(*(replace(each, size_penalty=0.0) for each in plain.blends_by_model[OWN_MODEL]))
    return replace(
        plain,
        blends_by_model={OWN_MODEL: tuned},
        blend=replace(plain.blend, size_penalty=0.0),
        lexical_blend=replace(plain.lexical_blend, size_penalty=0.0),
    )


def main(folds: Path | None) -> None:
    held = load_part("validation")
    whole = [*load_part("train"), *held]
    recipe = fit_recipe(folds, whole, held) if folds else shipped_recipe()
    worth = fit_size_penalty(held, [EmbedderVectors("eunoe", synonyms="static")], recipe, OWN_MODEL)
    short, long = recipe.blends_by_model[OWN_MODEL]
    print(f"short: {format_blend(short, worth)}\nlong: {format_blend(long, worth)}")
    others = [EmbedderVectors("static", synonyms="static"), EmbedderVectors("minilm")]
    print("with any vector:", format_blend(recipe.blend, fit_size_penalty(whole, others, recipe, "")))
    print(
        "without:", format_blend(recipe.lexical_blend, fit_size_penalty(whole, [EmbedderVectors("none")], recipe, ""))
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
