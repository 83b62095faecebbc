"""How well an encoder alone finds what answers a question."""

from collections.abc import Sequence

import torch
from corpus import CUTS, Asked, Documents, Stream, means, shares
from encoder import Encoder
from reranker import Reranker


@torch.no_grad()
def talks(model: Encoder, streams: Sequence[Stream]) -> dict[str, float]:
    """Recall of turns, in percent, over all questions of all conversations."""
    found = [score for one in streams for score in _talk(model, one)]
    return means(found)


def _talk(model: Encoder, one: Stream) -> list[dict[int, float]]:
    asked = [one.asked(each.text) for each in one.questions]
    return _scores(vectors(model, asked) @ vectors(model, one.turns).T, one.questions)


@torch.no_grad()
def reranked(model: Reranker, finder: Encoder, streams: Sequence[Stream], depth: int = 50) -> dict[str, dict]:
    """Recall by the finder, and with what the reranker says of its best added for some weights."""
    weights = (0.0, 0.05, 0.1, 0.2)
    found: dict[float, list] = {weight: [] for weight in weights}
    for one in streams:
        similar = vectors(finder, [one.asked(each.text) for each in one.questions]) @ vectors(finder, one.turns).T
        best = similar.topk(min(depth, len(one.turns)))
        pairs = [
            (each.text, one.shown[row])
            for each, rows in zip(one.questions, best.indices.tolist(), strict=True)
            for row in rows
        ]
        said = _said(model, pairs).view(best.indices.shape)
        for weight in weights:
            total = torch.full_like(similar, -9).scatter(1, best.indices, best.values + weight * said)
            found[weight] += _scores(total, one.questions)
    return {str(weight): means(scores) for weight, scores in found.items()}


def _said(model: Reranker, pairs: Sequence[tuple[str, str]], size: int = 2000) -> torch.Tensor:
    model.eval()
    with torch.autocast("cuda", torch.bfloat16, enabled=torch.cuda.is_available()):
        return torch.cat([model.scores(pairs[start : start + size]) for start in range(0, len(pairs), size)])


@torch.no_grad()
def documents(model: Encoder, corpus: Documents) -> dict[str, float]:
    questions = [each.text for each in corpus.questions]
    return means(_scores(vectors(model, questions) @ vectors(model, corpus.passages).T, corpus.questions))


@torch.no_grad()
def vectors(model: Encoder, texts: Sequence[str]) -> torch.Tensor:
    was = model.training
    model.eval()
    with torch.autocast("cuda", torch.bfloat16, enabled=torch.cuda.is_available()):
        made = model(texts, budget=131072)
    model.train(was)
    return made


def _scores(similar: torch.Tensor, asked: Sequence[Asked]) -> list[dict[int, float]]:
    return shares(asked, similar.topk(min(max(CUTS), similar.shape[1])).indices.tolist())
