"""What the encoder learns from and is measured on, as plain texts with the places of what answers them."""

import hashlib
import json
import random
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import talk

TRAINED = ("2wiki_dev.json", "musique_dev.json")
"""The sets of documents of which some questions are trained on."""
CUTS = (2, 5, 10)
WORDS_BEFORE = 12
"""How many words of the turn before the reranker is shown."""

_WORD = re.compile(r"\w+")
_OWNER = re.compile(r"['\u2019]s$")


@dataclass
class GoldQuery:
    """A question or fact, and the places of the texts that hold the answer."""

    text: str
    gold: list[int]
    category: str = ""
    translations: list[str] = field(default_factory=list)


@dataclass
class TalkStream:
    """The turns of one conversation, who speaks each, and what is asked about them."""

    id: str
    kind: str
    turns: list[str]
    speakers: list[str]
    sessions: list[str]
    questions: list[GoldQuery]
    facts: list[GoldQuery]

    @cached_property
    def reranker_texts(self) -> list[str]:
        """The turns as the reranker reads them: who speaks, and the end of what was said just before."""
        return [self._reranker_text(row) for row in range(len(self.turns))]

    def _reranker_text(self, row: int) -> str:
        spoken = f"{self.speakers[row]}: {self.turns[row]}"
        if not row or self.sessions[row - 1] != self.sessions[row]:
            return spoken
        return f"{self.speakers[row - 1]}: {' '.join(self.turns[row - 1].split()[-WORDS_BEFORE:])}\n{spoken}"

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(word for speaker in self.speakers for word in _WORD.findall(speaker.lower()))

    def query_text(self, text: str) -> str:
        """A question as recall embeds it: without the names of those who speak."""
        return without_names(text, self.names)


@dataclass
class DocumentSet:
    """Passages of a corpus, and questions whose answer needs some of them."""

    name: str
    passages: list[str]
    questions: list[GoldQuery]


def without_names(text: str, names: frozenset[str]) -> str:
    kept = [chunk for chunk in text.split() if not _names_only(chunk, names)]
    return " ".join(kept) if any(_WORD.search(chunk) for chunk in kept) else text


def _names_only(chunk: str, names: frozenset[str]) -> bool:
    words = _WORD.findall(_OWNER.sub("", chunk.lower().rstrip("?!.,;:")))
    return bool(words) and names.issuperset(words)


def talk_streams(conversations: Sequence[talk.Conversation]) -> list[TalkStream]:
    return [_talk_stream(conversation) for conversation in conversations]


def _talk_stream(conversation: talk.Conversation) -> TalkStream:
    place = {turn.id: row for row, turn in enumerate(conversation.turns)}
    questions, facts = (
        [GoldQuery(each.text, [place[id] for id in each.gold], each.category) for each in group]
        for group in (conversation.questions, conversation.facts)
    )
    texts, speakers, sessions = zip(
        *((turn.text, turn.speaker, turn.session) for turn in conversation.turns), strict=True
    )
    return TalkStream(conversation.id, conversation.kind, [*texts], [*speakers], [*sessions], questions, facts)


def bench_streams(path: Path) -> list[TalkStream]:
    """Conversations in the plain format of the bench: for measuring alone."""
    return list(map(_bench_stream, json.loads(path.read_text(encoding="utf-8"))["conversations"]))


def _bench_stream(conversation: dict) -> TalkStream:
    place = {turn["id"]: row for row, turn in enumerate(conversation["turns"])}
    questions = [
        GoldQuery(each["question"], [place[id] for id in each["gold"] if id in place], str(each.get("category", "")))
        for each in conversation["questions"]
    ]
    turns = [
        f"{turn['text']}\n{turn['caption']}" if turn.get("caption") else turn["text"] for turn in conversation["turns"]
    ]
    speakers, sessions = ([str(turn[name]) for turn in conversation["turns"]] for name in ("speaker", "session"))
    return TalkStream(
        conversation["id"], "bench", turns, speakers, sessions, [each for each in questions if each.gold], []
    )


def load_settings() -> dict:
    """What `make.py` trains with."""
    return tomllib.loads(Path(__file__).with_name("settings.toml").read_text(encoding="utf-8"))


def load_documents(path: Path) -> DocumentSet:
    data = json.loads(path.read_text(encoding="utf-8"))
    passages = [f"{each['title']}\n\n{each['text']}" for each in data["passages"]]
    questions = [GoldQuery(each["question"], each["gold"]) for each in data["questions"]]
    return DocumentSet(data["name"], passages, questions)


def split_questions(documents: DocumentSet, share: float) -> tuple[DocumentSet, DocumentSet]:
    """Questions to train on and others to measure on, by a hash of their words: neither seeds nor order count.

    What needs a passage that a question kept back needs too is not trained on.
    """
    kept = [each for each in documents.questions if _fraction(each.text) >= share]
    needed = {row for each in kept for row in each.gold}
    others = [each for each in documents.questions if _fraction(each.text) < share]
    trained = [each for each in others if not needed.intersection(each.gold)]
    return replace(documents, questions=trained), replace(documents, questions=kept)


def join_documents(name: str, parts: Sequence[DocumentSet]) -> DocumentSet:
    """Several sets as one: each question has the passages of all others to be told from."""
    joined = DocumentSet(name, [], [])
    for part in parts:
        first = len(joined.passages)
        joined.passages += part.passages
        joined.questions += (replace(each, gold=[first + row for row in each.gold]) for each in part.questions)
    return joined


def first_questions(documents: DocumentSet, count: int, others: int = 40) -> DocumentSet:
    """The first questions, what answers them, and some passages more."""
    chosen = documents.questions[:count]
    rows = list(dict.fromkeys([row for each in chosen for row in each.gold] + list(range(others))))
    place = {row: number for number, row in enumerate(rows)}
    questions = [GoldQuery(each.text, [place[row] for row in each.gold], each.category) for each in chosen]
    return DocumentSet(documents.name, [documents.passages[row] for row in rows], questions)


def _fraction(text: str) -> float:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) / 2**32


def recall_shares(queries: Sequence[GoldQuery], best: Sequence[Sequence[int]]) -> list[dict[int, float]]:
    """For each question, of what answers it, how much is among the first few that were found."""
    return [
        {cut: len(set(each.gold).intersection(rows[:cut])) / len(set(each.gold)) for cut in CUTS}
        for each, rows in zip(queries, best, strict=True)
    ]


def recall_percent(shares: Sequence[dict[int, float]]) -> dict[str, float]:
    """Recall in percent."""
    return {f"R@{cut}": round(100 * sum(each[cut] for each in shares) / max(len(shares), 1), 2) for cut in CUTS}


def endless_batches(items: Sequence, size: int, chance: random.Random):
    """Groups of a size for ever; every item is met once before any is met again."""
    pool: list = []
    while True:
        while len(pool) < size:
            pool += chance.sample(items, len(items))
        yield pool[:size]
        pool = pool[size:]
