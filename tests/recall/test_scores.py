"""What a score means: the same among few items and among many."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from math import log

import numpy as np
import pytest
from bench.conversations import GoldConversation, load_conversations

from eunoe.embed.word_vectors import StaticEmbedder
from eunoe.index.stream import IndexEntry, StreamIndex
from eunoe.recall.query import without_names
from eunoe.recall.ranking import Candidate, find_candidates
from eunoe.recall.recipes import RECIPES, REFERENCE_ITEMS, Recipe
from eunoe.recall.request import NO_FILTER, Filter

SIZES = (4, 40, 400)
ASKED = 5
FACTS = Filter(kinds=frozenset({"fact"}))
Turns = list[IndexEntry]


def index_of(entries: Sequence[IndexEntry]) -> StreamIndex:
    index = StreamIndex()
    index.apply(entry._replace(seq=seq, id=f"{seq:04}") for seq, entry in enumerate(entries))
    return index


@pytest.fixture(scope="module")
def static() -> StaticEmbedder:
    return StaticEmbedder()


@pytest.fixture(scope="module")
def talk(static: StaticEmbedder) -> list[tuple[GoldConversation, Turns]]:
    """The conversations in the package, on which no weight was fitted."""
    return [(one, entries_of(one, static)) for one in load_conversations()]


def entries_of(one: GoldConversation, static: StaticEmbedder) -> Turns:
    vectors = static.embed([turn.text for turn in one.turns])
    return [
        IndexEntry(
            seq, turn.id, "message", turn.text, time=turn.time.timestamp() if turn.time else None, vector=vector,
            session=f"{one.id} {turn.session}", speaker=turn.speaker, role=turn.role,
        )
        for seq, (turn, vector) in enumerate(zip(one.turns, vectors, strict=True))
    ]  # fmt: skip


def drawn(talk: list[tuple[GoldConversation, Turns]], size: int) -> Iterator[tuple[StreamIndex, str, str]]:
    """Memories of a size, a question that each can answer and one about something else."""
    chance = random.Random(size)
    for place, (one, turns) in enumerate(talk):
        others = talk[place + 1 :] + talk[:place]
        *filling, (stranger, _) = others
        whole = [*turns, *(turn for _, more in filling for turn in more)]
        places = {turn.id: row for row, turn in enumerate(turns)}
        for question in chance.sample(one.questions, ASKED):
            gold = places[chance.choice(question.gold)]
            start = max(0, min(len(turns) - size, gold - chance.randrange(size)))
            yield index_of(whole[start : start + size]), question.text, chance.choice(stranger.questions).text


def best(index: StreamIndex, question: str, static: StaticEmbedder) -> float:
    vector = static.embed_query(without_names(question, [index]))
    found = find_candidates([index], question, vector, limit=1, synonyms=static, model="")
    return found[0].score if found else 0.0


def test_half_tells_own_questions_from_foreign_ones_in_memories_of_any_size(
    talk: list[tuple[GoldConversation, Turns]], static: StaticEmbedder
) -> None:
    for size in SIZES:
        pairs = [(best(index, own, static), best(index, strange, static)) for index, own, strange in drawn(talk, size)]
        own, strange = (np.array(scores) for scores in zip(*pairs, strict=True))

        def right(cut: float, own: np.ndarray = own, strange: np.ndarray = strange) -> float:
            return float((own > cut).mean() + (strange <= cut).mean()) / 2

        assert right(0.5) > max(map(right, np.arange(0.02, 1, 0.02))) - 0.06, size


def some(count: int, of: Callable[[int], str]) -> Turns:
    return [IndexEntry(seq, str(seq), "fact", of(seq)) for seq in range(count)]


KILNS = [*some(3, lambda n: f"the red kiln number {n} is hot"), *some(2, lambda n: f"a kiln for bread {n}")]
TEA = some(200, lambda n: f"tea {n} and a biscuit")
QUESTION = "which red kiln is hot?"


def odds(found: Sequence[Candidate]) -> list[float]:
    return [log(each.score / (1 - each.score)) for each in found]


def crowded(worth: float) -> Recipe:
    return Recipe(name="crowded", lexical_blend=replace(RECIPES["default"].lexical_blend, size_penalty=worth))


@pytest.mark.parametrize("worth", [0.3, 1.0, 3.0])
def test_what_a_crowd_takes_off_is_the_same_for_all_and_changes_no_order(worth: float) -> None:
    indexes = [index_of(KILNS), index_of([*TEA, *KILNS[:1]]), index_of(TEA[:3])]
    plain, less = (find_candidates(indexes, QUESTION, recipe=crowded(each), limit=50) for each in (0.0, worth))
    assert [(each.stream, each.id) for each in less] == [(each.stream, each.id) for each in plain]
    lost = [one - two for one, two in zip(odds(plain), odds(less), strict=True)]
    many = sum(index.rows for index in indexes)
    assert lost == pytest.approx([worth * log(many / REFERENCE_ITEMS)] * len(lost))
    assert all(one.score >= two.score for one, two in pairwise(less))


def test_only_what_may_be_found_is_counted() -> None:
    messages = [turn._replace(kind="message", speaker="Ben") for turn in TEA]
    among, alone = index_of([*messages, *KILNS]), index_of(KILNS)
    assert (
        odds(find_candidates([among], QUESTION, filter=NO_FILTER))[0] < odds(find_candidates([alone], QUESTION))[0] - 1
    )
    assert len(find_candidates([among], QUESTION, filter=FACTS)) == len(KILNS)
    plain, less = (find_candidates([among], QUESTION, recipe=crowded(each), filter=FACTS)[0] for each in (0.0, 1.0))
    assert odds([less])[0] - odds([plain])[0] == pytest.approx(-log(len(KILNS) / REFERENCE_ITEMS))
