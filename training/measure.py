"""How well an encoder alone finds what answers a question."""

from collections.abc import Sequence
from typing import Any

import torch
from corpus import CUTS, DocumentSet, GoldQuery, TalkStream, recall_percent, recall_shares
from encoder import Encoder


@torch.no_grad()
def talk_recall(model: Encoder, streams: Sequence[TalkStream]) -> dict[str, float]:
    """Recall of turns, in percent, over all questions of all conversations."""
    return recall_percent([shares for stream in streams for shares in _stream_shares(model, stream)])


def _stream_shares(model: Encoder, stream: TalkStream) -> list[dict[int, float]]:
    queries = [stream.query_text(each.text) for each in stream.questions]
    return _shares(vectors(model, queries) @ vectors(model, stream.turns).T, stream.questions)


@torch.no_grad()
def reranked_recall(model: Any, finder: Encoder, streams: Sequence[TalkStream], depth: int = 50) -> dict[str, dict]:
    """Recall by the finder, and with what the reranker, `model`, says of its best added for some weights."""
    weights = (0.0, 0.05, 0.1, 0.2)
    shares: dict[float, list] = {weight: [] for weight in weights}
    for stream in streams:
        queries = [stream.query_text(each.text) for each in stream.questions]
        similar = vectors(finder, queries) @ vectors(finder, stream.turns).T
        best = similar.topk(min(depth, len(stream.turns)))
        pairs = [
            (each.text, stream.reranker_texts[row])
            for each, rows in zip(stream.questions, best.indices.tolist(), strict=True)
            for row in rows
        ]
        answers = reranker_scores(model, pairs).view(best.indices.shape)
        for weight in weights:
            total = torch.full_like(similar, -9).scatter(1, best.indices, best.values + weight * answers)
            shares[weight] += _shares(total, stream.questions)
    return {str(weight): recall_percent(each) for weight, each in shares.items()}


def reranker_scores(model: Any, pairs: Sequence[tuple[str, str]], size: int = 2000) -> torch.Tensor:
    model.eval()
    with torch.autocast("cuda", torch.bfloat16, enabled=torch.cuda.is_available()):
        return torch.cat([model.scores(pairs[start : start + size]) for start in range(0, len(pairs), size)])


@torch.no_grad()
def foreign_recall(model: Encoder, streams: Sequence[TalkStream], pairs: dict[str, list[tuple[str, str]]]) -> dict:
    """Recall of English turns by questions in other languages, and by the same questions in English.

    `pairs` has, by conversation, the English questions and their translations.
    """
    own, english = [], []
    for stream in streams:
        questions = {each.text: each for each in stream.questions}
        asked = [(questions[text], translation) for text, translation in pairs.get(stream.id, ()) if text in questions]
        if asked:
            turns, queries = vectors(model, stream.turns).T, [each for each, _ in asked]
            own += _shares(vectors(model, [stream.query_text(text) for _, text in asked]) @ turns, queries)
            english += _shares(vectors(model, [stream.query_text(each.text) for each in queries]) @ turns, queries)
    return recall_percent(own) | {"English R@10": recall_percent(english)["R@10"]}


@torch.no_grad()
def document_recall(model: Encoder, documents: DocumentSet) -> dict[str, float]:
    questions = [each.text for each in documents.questions]
    similar = vectors(model, questions) @ vectors(model, documents.passages).T
    return recall_percent(_shares(similar, documents.questions))


@torch.no_grad()
def vectors(model: Encoder, texts: Sequence[str]) -> torch.Tensor:
    was_training = model.training
    model.eval()
    with torch.autocast("cuda", torch.bfloat16, enabled=torch.cuda.is_available()):
        matrix = model(texts, 131072)
    model.train(was_training)
    return matrix


def _shares(similar: torch.Tensor, queries: Sequence[GoldQuery]) -> list[dict[int, float]]:
    return recall_shares(queries, similar.topk(min(max(CUTS), similar.shape[1])).indices.tolist())
