"""What the encoder learns from and is measured on, as plain texts with the places of what answers them."""

import hashlib
import json
import random
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import talk

CUTS = (2, 5, 10)
BEFORE = 24
"""How many words of the turn before the reranker is shown."""

_WORD = re.compile(r"\w+")
_OWNER = re.compile(r"['\u2019]s$")


@dataclass
class Asked:
    """A question or fact, and the places of the texts that hold the answer."""

    text: str
    gold: list[int]
    category: str = ""


@dataclass
class Stream:
    """The turns of one conversation, who speaks each, and what is asked about them."""

    id: str
    kind: str
    turns: list[str]
    speakers: list[str]
    sessions: list[str]
    questions: list[Asked]
    facts: list[Asked]

    @cached_property
    def shown(self) -> list[str]:
        """The turns as the reranker reads them: who speaks, and the end of what was said just before."""
        return [self._shown(row) for row in range(len(self.turns))]

    def _shown(self, row: int) -> str:
        own = f"{self.speakers[row]}: {self.turns[row]}"
        if not row or self.sessions[row - 1] != self.sessions[row]:
            return own
        return f"{self.speakers[row - 1]}: {' '.join(self.turns[row - 1].split()[-BEFORE:])}\n{own}"

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(word for speaker in self.speakers for word in _WORD.findall(speaker.lower()))

    def asked(self, text: str) -> str:
        """A question as recall embeds it: without the names of those who speak."""
        return without(text, self.names)


@dataclass
class Documents:
    """Passages of a corpus, and questions whose answer needs some of them."""

    name: str
    passages: list[str]
    questions: list[Asked]


def without(text: str, names: frozenset[str]) -> str:
    kept = [chunk for chunk in text.split() if not _names_only(chunk, names)]
    return " ".join(kept) if any(_WORD.search(chunk) for chunk in kept) else text


def _names_only(chunk: str, names: frozenset[str]) -> bool:
    words = _WORD.findall(_OWNER.sub("", chunk.lower().rstrip("?!.,;:")))
    return bool(words) and names.issuperset(words)


def streams(conversations: Sequence[talk.Conversation]) -> list[Stream]:
    return [_stream(one) for one in conversations]


def _stream(one: talk.Conversation) -> Stream:
    place = {turn.id: row for row, turn in enumerate(one.turns)}
    questions, facts = (
        [Asked(each.text, [place[id] for id in each.gold], each.category) for each in group]
        for group in (one.questions, one.facts)
    )
    texts, speakers, sessions = zip(*((turn.text, turn.speaker, turn.session) for turn in one.turns), strict=True)
    return Stream(one.id, one.kind, [*texts], [*speakers], [*sessions], questions, facts)


def bench(path: Path) -> list[Stream]:
    """Conversations in the plain format of the bench: for measuring alone."""
    return [_measured(one) for one in json.loads(path.read_text(encoding="utf-8"))["conversations"]]


def _measured(one: dict) -> Stream:
    place = {turn["id"]: row for row, turn in enumerate(one["turns"])}
    asked = [
        Asked(each["question"], [place[id] for id in each["gold"] if id in place], str(each.get("category", "")))
        for each in one["questions"]
    ]
    turns = [f"{turn['text']}\n{turn['caption']}" if turn.get("caption") else turn["text"] for turn in one["turns"]]
    speakers, sessions = ([str(turn[name]) for turn in one["turns"]] for name in ("speaker", "session"))
    return Stream(one["id"], "bench", turns, speakers, sessions, [each for each in asked if each.gold], [])


def settings() -> dict:
    """What `make.py` trains with."""
    return tomllib.loads(Path(__file__).with_name("settings.toml").read_text(encoding="utf-8"))


def documents(path: Path) -> Documents:
    data = json.loads(path.read_text(encoding="utf-8"))
    passages = [f"{each['title']}\n\n{each['text']}" for each in data["passages"]]
    return Documents(data["name"], passages, [Asked(each["question"], each["gold"]) for each in data["questions"]])


def halves(corpus: Documents, share: float) -> tuple[Documents, Documents]:
    """Questions to train on and others to measure on, by a hash of their words: neither seeds nor order count.

    What needs a passage that a question kept back needs too is not trained on.
    """
    kept = [each for each in corpus.questions if _fraction(each.text) >= share]
    needed = {row for each in kept for row in each.gold}
    train = [each for each in corpus.questions if _fraction(each.text) < share and not needed.intersection(each.gold)]
    return Documents(corpus.name, corpus.passages, train), Documents(corpus.name, corpus.passages, kept)


def begun(corpus: Documents, count: int, others: int = 40) -> Documents:
    """The first questions, what answers them, and some passages more."""
    chosen = corpus.questions[:count]
    rows = list(dict.fromkeys([row for each in chosen for row in each.gold] + list(range(others))))
    place = {row: number for number, row in enumerate(rows)}
    asked = [Asked(each.text, [place[row] for row in each.gold], each.category) for each in chosen]
    return Documents(corpus.name, [corpus.passages[row] for row in rows], asked)


def _fraction(text: str) -> float:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) / 2**32


def shares(asked: Sequence[Asked], best: Sequence[Sequence[int]]) -> list[dict[int, float]]:
    """For each question, of what answers it, how much is among the first few that were found."""
    return [
        {cut: len(set(each.gold).intersection(rows[:cut])) / len(set(each.gold)) for cut in CUTS}
        for each, rows in zip(asked, best, strict=True)
    ]


def means(found: Sequence[dict[int, float]]) -> dict[str, float]:
    """Recall in percent."""
    return {f"R@{cut}": round(100 * sum(each[cut] for each in found) / max(len(found), 1), 2) for cut in CUTS}


def rounds(items: Sequence, size: int, chance: random.Random):
    """Groups of a size for ever; every item is met once before any is met again."""
    pool: list = []
    while True:
        while len(pool) < size:
            pool += chance.sample(items, len(items))
        yield pool[:size]
        pool = pool[size:]
