"""From conversations and passages to the weights of the encoder."""

import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from corpus import DocumentSet, GoldQuery, TalkStream, endless_batches
from encoder import Encoder
from torch.nn import functional

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")

Log = Callable[[int, dict], None]


@dataclass
class Settings:
    """Those of `settings.toml`."""

    seed: int
    steps: int
    rate: float
    warmup: float
    decay: float
    dropout: float
    conversations: int
    queries: int
    temperature: float
    passages_every: int
    passage_questions: int
    hard: int
    keep: float
    """What it costs to order passages otherwise than the start does."""
    keep_temperature: float
    """The one that the start was trained at: at a higher one its order is flat."""


def train(
    model: Encoder, settings: Settings, talk: Sequence[TalkStream], corpora: Sequence[DocumentSet], log: Log
) -> None:
    torch.manual_seed(settings.seed)
    device = next(model.parameters()).device
    talks, passages = _talk_steps(model, settings, talk), _passage_steps(model, settings, corpora)
    model.train()
    optimiser, schedule = make_optimiser(model, settings)
    for step in range(settings.steps):
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            is_passage = settings.passages_every and step % settings.passages_every == settings.passages_every - 1
            loss = next(passages if is_passage else talks)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        log(step, {"passages" if is_passage else "talk": loss})


def make_optimiser(
    model: torch.nn.Module, settings: Any
) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LambdaLR]:
    """AdamW without decay of biases and scales; the rate rises, then falls in a straight line."""
    groups = [
        {"params": [each for each in model.parameters() if each.ndim > 1], "weight_decay": settings.decay},
        {"params": [each for each in model.parameters() if each.ndim < 2], "weight_decay": 0.0},
    ]
    optimiser = torch.optim.AdamW(groups, lr=settings.rate)
    return optimiser, torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: _rate_factor(step, settings))


def _rate_factor(step: int, settings: Any) -> float:
    rise = max(1, int(settings.warmup * settings.steps))
    return min((step + 1) / rise, max(0.0, (settings.steps - step) / max(1, settings.steps - rise)))


def _talk_steps(model: Encoder, settings: Settings, talk: Sequence[TalkStream]) -> Iterator[torch.Tensor]:
    chance = random.Random(settings.seed)
    for chosen in endless_batches(talk, settings.conversations, chance):
        turns: list[str] = []
        queries: list[str] = []
        gold: list[list[int]] = []
        for stream in chosen:
            places = len(turns)
            turns += stream.turns
            pool = stream.questions + stream.facts
            for each in chance.sample(pool, min(settings.queries, len(pool))):
                queries.append(stream.query_text(each.text))
                gold.append([places + row for row in each.gold])
        vectors = model([*turns, *queries])
        yield label_loss(vectors[len(turns) :] @ vectors[: len(turns)].T, gold, settings.temperature)


def _passage_steps(model: Encoder, settings: Settings, corpora: Sequence[DocumentSet]) -> Iterator[torch.Tensor]:
    chance = random.Random(settings.seed + 1)
    pool = [(corpus, each, near) for corpus in corpora for each, near in near_passages(model, corpus)]
    teacher = deepcopy(model).eval() if settings.keep else None
    for chosen in endless_batches(pool, settings.passage_questions, chance):
        texts: dict[str, int] = {}
        gold = []
        for corpus, each, near in chosen:
            gold.append([texts.setdefault(corpus.passages[row], len(texts)) for row in each.gold])
            for row in chance.sample(near, min(settings.hard, len(near))):
                texts.setdefault(corpus.passages[row], len(texts))
        questions = [each.text for _, each, _ in chosen]
        sentences = [_random_sentence(text, chance) for text in texts] if teacher else []
        queries = [*questions, *sentences]
        similar = _similarities(model, texts, queries)
        loss = label_loss(similar[: len(questions)], gold, settings.temperature)
        if teacher:
            loss = loss + settings.keep * _drift(similar, teacher, texts, queries, settings)
        yield loss


def _similarities(model: Encoder, texts: Iterable[str], queries: Sequence[str]) -> torch.Tensor:
    vectors = model([*texts, *queries])
    split = len(vectors) - len(queries)
    return vectors[split:] @ vectors[:split].T


def _random_sentence(text: str, chance: random.Random) -> str:
    """Some sentence of a passage, to be asked for it."""
    return chance.choice([each for each in _SENTENCE_END.split(text) if each.strip()])


def _drift(
    similar: torch.Tensor, teacher: Encoder, texts: Iterable[str], queries: Sequence[str], settings: Settings
) -> torch.Tensor:
    """How far the softmax over passages has moved from the start's."""
    with torch.no_grad():
        before = torch.log_softmax(_similarities(teacher, texts, queries).float() / settings.keep_temperature, -1)
    after = torch.log_softmax(similar.float() / settings.temperature, -1)
    return functional.kl_div(after, before, reduction="batchmean", log_target=True)


@torch.no_grad()
def near_passages(model: Encoder, corpus: DocumentSet) -> list[tuple[GoldQuery, list[int]]]:
    """For each question the passages that are near to it and do not answer it."""
    was_training = model.training
    model.eval()
    passages, questions = model(corpus.passages), model([each.text for each in corpus.questions])
    near = (questions @ passages.T).topk(min(30, len(corpus.passages))).indices.tolist()
    model.train(was_training)
    return [
        (each, [row for row in rows if row not in each.gold]) for each, rows in zip(corpus.questions, near, strict=True)
    ]


def label_loss(similar: torch.Tensor, gold: Sequence[Sequence[int]], temperature: float) -> torch.Tensor:
    """The softmax of each question over all texts, mean over what answers it."""
    logits = similar.float() / temperature
    rows = torch.tensor([row for row, each in enumerate(gold) for _ in each], device=logits.device)
    places = torch.tensor([place for each in gold for place in each], device=logits.device)
    share = torch.tensor([1 / len(each) for each in gold for _ in each], device=logits.device)
    return -(torch.log_softmax(logits, -1)[rows, places] * share).sum() / len(gold)
