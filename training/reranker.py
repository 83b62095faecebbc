"""The second stage: reads a question together with a turn and says how well the turn answers the question."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import measure
import torch
from corpus import DocumentSet, GoldQuery, TalkStream, endless_batches
from encoder import Encoder
from torch import Tensor, nn
from torch.nn import functional
from train import make_optimiser, near_passages

Rows = dict[str, list[list[int]]]
"""By conversation, for each of its questions and facts: the turns that are read with it."""


Opinions = dict[str, list[tuple[list[int], list[float]]]]
"""The same, with what a reranker says of each turn; nothing where none has read them."""


class Candidates(NamedTuple):
    """A question and texts for it, the first of which answers it; and what a teacher says of them, if there is one."""

    question: str
    texts: list[str]
    scores: list[float] | None = None


@dataclass
class RerankerSettings:
    """Those of `settings.toml`."""

    seed: int
    steps: int
    rate: float
    warmup: float
    decay: float
    dropout: float
    layers: list[int]
    """Those of the encoder that it starts from."""
    shared: int
    """So many of them stay as they are."""
    questions: int
    near: int
    depth: int
    """How many turns the finder proposes for a question."""
    random: int
    passages_every: int
    teach: float
    """What a teacher's scores count beside the labels."""
    translated: float


class Reranker(Encoder):
    """Its words and first layers stay those of the encoder that it starts from: both ship with one copy of them."""

    def __init__(self, weights: dict[str, Tensor], tokenizer: Path, dropout: float = 0.1, shared: int = 0) -> None:
        super().__init__(weights, tokenizer, dropout)
        self.freeze(shared)
        self.head = nn.Linear(weights["embeddings.LayerNorm.weight"].shape[0], 1)

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Tensor:
        states = self.pooled([self.tokens(question, text) for question, text in pairs])
        return self.head(states).float().squeeze(-1)


@torch.no_grad()
def candidate_rows(finders: Sequence[Encoder], settings: RerankerSettings, talk: Sequence[TalkStream]) -> Rows:
    """For each question the turns that the finders propose, those that answer it, their neighbours, and some others."""
    chance = random.Random(settings.seed)
    rows: Rows = {}
    for stream in talk:
        queries = stream.questions + stream.facts
        texts = [stream.query_text(each.text) for each in queries]
        similar = sum(measure.vectors(each, texts) @ measure.vectors(each, stream.turns).T for each in finders)
        near = similar.topk(min(settings.depth, len(stream.turns))).indices.tolist()
        rows[stream.id] = [
            _rows(each, best, len(stream.turns), settings.random, chance)
            for each, best in zip(queries, near, strict=True)
        ]
    return rows


def _rows(each: GoldQuery, near: list[int], count: int, others: int, chance: random.Random) -> list[int]:
    beside = [row + step for row in each.gold for step in (-1, 1) if 0 <= row + step < count]
    return list(dict.fromkeys([*each.gold, *near, *beside, *chance.sample(range(count), min(others, count))]))


@torch.no_grad()
def read_opinions(model: Reranker, rows: Rows, talk: Sequence[TalkStream]) -> Opinions:
    """What a reranker says of conversations that it was not trained on."""
    opinions: Opinions = {}
    for stream in talk:
        queries = stream.questions + stream.facts
        own = rows[stream.id]
        pairs = [
            (each.text, stream.reranker_texts[row]) for each, chosen in zip(queries, own, strict=True) for row in chosen
        ]
        scores = measure.reranker_scores(model, pairs).split([len(chosen) for chosen in own])
        opinions[stream.id] = [(chosen, said.tolist()) for chosen, said in zip(own, scores, strict=True)]
    return opinions


def train_reranker(
    model: Reranker,
    finder: Encoder,
    settings: RerankerSettings,
    talk: Sequence[TalkStream],
    corpora: Sequence[DocumentSet],
    opinions: Opinions,
    log: Callable[[int, Tensor], None],
) -> None:
    """`finder` proposes the texts that look right and are not, where there are no opinions to learn from."""
    torch.manual_seed(settings.seed)
    device = next(model.parameters()).device
    chance = random.Random(settings.seed)
    talks = _from_talk(opinions or _without_scores(candidate_rows([finder], settings, talk)), settings, talk, chance)
    passages = _from_passages(finder, settings, corpora, chance)
    optimiser, schedule = make_optimiser(model, settings)
    model.train()
    for step in range(settings.steps):
        is_passage = settings.passages_every and step % settings.passages_every == settings.passages_every - 1
        batch = next(passages if is_passage else talks)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            scores = model.scores([(each.question, text) for each in batch for text in each.texts])
        loss = _loss(scores, batch, settings.teach)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        log(step, loss)


def _without_scores(rows: Rows) -> Opinions:
    return {id: [(chosen, []) for chosen in each] for id, each in rows.items()}


def _loss(scores: Tensor, batch: Sequence[Candidates], teach: float) -> Tensor:
    losses = []
    for own, each in zip(scores.split([len(each.texts) for each in batch]), batch, strict=True):
        logs = torch.log_softmax(own, 0)
        losses.append(-logs[0])
        if each.scores:
            wanted = torch.log_softmax(torch.tensor(each.scores, device=own.device), 0)
            losses[-1] = losses[-1] + teach * functional.kl_div(logs, wanted, reduction="sum", log_target=True)
    return torch.stack(losses).mean()


def _from_talk(
    opinions: Opinions, settings: RerankerSettings, talk: Sequence[TalkStream], chance: random.Random
) -> Iterator[list[Candidates]]:
    pool = [
        (stream, each, *opinion)
        for stream in talk
        for each, opinion in zip(stream.questions + stream.facts, opinions[stream.id], strict=True)
    ]
    for chosen in endless_batches(pool, settings.questions, chance):
        yield [_talk_candidates(*each, settings, chance) for each in chosen]


def _talk_candidates(
    stream: TalkStream,
    each: GoldQuery,
    rows: list[int],
    scores: list[float],
    settings: RerankerSettings,
    chance: random.Random,
) -> Candidates:
    gold = chance.choice(each.gold)
    wrong = [row for row in rows if row not in each.gold]
    beside = [row for row in (gold - 1, gold + 1) if row in wrong]
    others = chance.sample(wrong, min(settings.near + settings.random, len(wrong)))
    chosen = list(dict.fromkeys([gold, *beside, *others]))
    said = dict(zip(rows, scores, strict=True)) if scores else {}
    translate = each.translations and chance.random() < settings.translated
    question = chance.choice(each.translations) if translate else each.text
    texts = [stream.reranker_texts[row] for row in chosen]
    return Candidates(question, texts, [said[row] for row in chosen] if said else None)


def _from_passages(
    finder: Encoder, settings: RerankerSettings, corpora: Sequence[DocumentSet], chance: random.Random
) -> Iterator[list[Candidates]]:
    pool = [(corpus, each, near) for corpus in corpora for each, near in near_passages(finder, corpus)]
    for chosen in endless_batches(pool, max(1, settings.questions // 2), chance):
        yield [
            Candidates(
                each.text,
                [
                    corpus.passages[row]
                    for row in (chance.choice(each.gold), *chance.sample(near, min(settings.near, len(near))))
                ],
            )
            for corpus, each, near in chosen
        ]
