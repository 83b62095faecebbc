"""The second stage: reads a question together with a turn and says how well the turn answers the question."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from corpus import DocumentSet, GoldQuery, TalkStream, endless_batches
from encoder import Encoder
from torch import Tensor, nn
from train import make_optimiser, near_passages

Candidates = tuple[str, list[str]]
"""A question and texts for it, the first of which answers it."""


@dataclass
class RerankerSettings:
    """Those of `settings.toml`."""

    seed: int
    steps: int
    rate: float
    warmup: float
    decay: float
    dropout: float
    layers: int
    questions: int
    near: int
    random: int
    passages_every: int


class Reranker(Encoder):
    def __init__(self, weights: dict[str, Tensor], tokenizer: Path, dropout: float = 0.1, layers: int = 6) -> None:
        super().__init__(_first_layers(weights, layers), tokenizer, dropout)
        self.head = nn.Linear(weights["embeddings.LayerNorm.weight"].shape[0], 1)

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Tensor:
        states = self.pooled([self.tokens(question, text) for question, text in pairs])
        return self.head(states).float().squeeze(-1)


def _first_layers(weights: dict[str, Tensor], layers: int) -> dict[str, Tensor]:
    return {
        name: value
        for name, value in weights.items()
        if not name.startswith("encoder.layer.") or int(name.split(".")[2]) < layers
    }


def train_reranker(
    model: Reranker,
    finder: Encoder,
    settings: RerankerSettings,
    talk: Sequence[TalkStream],
    corpora: Sequence[DocumentSet],
    log: Callable[[int, Tensor], None],
) -> None:
    """`finder` proposes the texts that look right and are not."""
    torch.manual_seed(settings.seed)
    device = next(model.parameters()).device
    chance = random.Random(settings.seed)
    talks, passages = _from_talk(finder, settings, talk, chance), _from_passages(finder, settings, corpora, chance)
    optimiser, schedule = make_optimiser(model, settings)
    model.train()
    for step in range(settings.steps):
        is_passage = settings.passages_every and step % settings.passages_every == settings.passages_every - 1
        batch = next(passages if is_passage else talks)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            scores = model.scores([(question, text) for question, texts in batch for text in texts])
        loss = _loss(scores, [len(texts) for _, texts in batch])
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        log(step, loss)


def _loss(scores: Tensor, sizes: list[int]) -> Tensor:
    return torch.stack([-torch.log_softmax(part, 0)[0] for part in scores.split(sizes)]).mean()


def _from_talk(
    finder: Encoder, settings: RerankerSettings, talk: Sequence[TalkStream], chance: random.Random
) -> Iterator[list[Candidates]]:
    pool = [(stream, each, near) for stream in talk for each, near in _near_turns(finder, stream)]
    for chosen in endless_batches(pool, settings.questions, chance):
        batch = []
        for stream, each, near in chosen:
            wrong = [row for row in range(len(stream.turns)) if row not in each.gold]
            gold = chance.choice(each.gold)
            beside = [row for row in (gold - 1, gold + 1) if row in wrong]
            looks_right = chance.sample(near, min(settings.near, len(near)))
            rows = dict.fromkeys([gold, *looks_right, *chance.sample(wrong, settings.random), *beside])
            batch.append((each.text, [stream.reranker_texts[row] for row in rows]))
        yield batch


@torch.no_grad()
def _near_turns(finder: Encoder, stream: TalkStream, depth: int = 40) -> list[tuple[GoldQuery, list[int]]]:
    finder.eval()
    queries = stream.questions + stream.facts
    similar = finder([stream.query_text(each.text) for each in queries]) @ finder(stream.turns).T
    best = similar.topk(min(depth, len(stream.turns))).indices.tolist()
    return [(each, [row for row in rows if row not in each.gold]) for each, rows in zip(queries, best, strict=True)]


def _from_passages(
    finder: Encoder, settings: RerankerSettings, corpora: Sequence[DocumentSet], chance: random.Random
) -> Iterator[list[Candidates]]:
    pool = [(corpus, each, near) for corpus in corpora for each, near in near_passages(finder, corpus)]
    for chosen in endless_batches(pool, max(1, settings.questions // 2), chance):
        yield [
            (
                each.text,
                [corpus.passages[row] for row in (chance.choice(each.gold), *chance.sample(near, settings.near))],
            )
            for corpus, each, near in chosen
        ]
