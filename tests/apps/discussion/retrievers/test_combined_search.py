"""The log and keyword memories in one ranking."""

from __future__ import annotations

from tests.support.discussion_writer import DiscussionWriter

from eunoe.apps.discussion.log.discussion_log import DiscussionLog
from eunoe.apps.discussion.retrievers.combined_search import search_discussions
from eunoe.apps.discussion.scope import discussion_scope

SCOPE = discussion_scope("trip")
CHAT = [
    "We flew to Lisbon in May.",
    "The hotel was near the river.",
    "Tom the cat stayed at home.",
    "It rained on the last day in Lisbon.",
    "We talked about the weather.",
]


def take_in(write: DiscussionWriter) -> list[str]:
    return list(DiscussionLog(write.memory, SCOPE).take_in([{"role": "user", "content": text} for text in CHAT]).ids)


def test_turns_are_found_with_who_said_them(write: DiscussionWriter) -> None:
    ids = take_in(write)
    hits = search_discussions(write.memory, [SCOPE], "Where did the cat stay?", 1)
    assert [(hit.text, hit.turns, hit.memory) for hit in hits] == [(f"user: {CHAT[2]}", (ids[2],), None)]


def test_a_memory_speaks_for_the_turns_it_cites(write: DiscussionWriter) -> None:
    ids = take_in(write)
    question = "the trip to Portugal, on the weather"
    before = [hit.turns for hit in search_discussions(write.memory, [SCOPE], question)]
    write.keyword("A trip to Portugal.", source=(ids[3],))
    after = [hit.turns for hit in search_discussions(write.memory, [SCOPE], question)]
    assert after.index((ids[3],)) <= before.index((ids[3],))


def test_a_memory_takes_the_place_of_the_turns_it_sums_up(write: DiscussionWriter) -> None:
    ids = take_in(write)
    memory = write.keyword("A rainy trip to Lisbon.", source=(ids[0], ids[3]))
    hits = search_discussions(write.memory, [SCOPE], "Lisbon", 5)
    (summed,) = [hit for hit in hits if hit.memory]
    assert (summed.text, summed.turns) == (memory.summary, (ids[0], ids[3]))
    assert (ids[0],) not in [hit.turns for hit in hits]


def test_the_limit_counts_turns(write: DiscussionWriter) -> None:
    ids = take_in(write)
    write.keyword("A rainy trip to Lisbon.", source=(ids[0], ids[3]))
    for limit in (1, 2, 3, 10):
        hits = search_discussions(write.memory, [SCOPE], "Lisbon in the rain", limit)
        assert sum(max(1, len(hit.turns)) for hit in hits) <= limit


def test_a_memory_that_came_without_messages_is_found(write: DiscussionWriter) -> None:
    write.keyword("A trip to Porto.")
    (hit,) = search_discussions(write.memory, [SCOPE], "What about Porto?")
    assert (hit.text, hit.turns) == ("A trip to Porto.", ())
    take_in(write)
    assert "A trip to Porto." in [hit.text for hit in search_discussions(write.memory, [SCOPE], "What about Porto?", 3)]


def test_two_discussions_that_begin_alike_are_told_apart(write: DiscussionWriter) -> None:
    take_in(write)
    other = discussion_scope("copy")
    DiscussionLog(write.memory, other).take_in([{"role": "user", "content": CHAT[0]}])
    hits = search_discussions(write.memory, [SCOPE, other], "flew to Lisbon in May")
    assert [hit.text for hit in hits].count(f"user: {CHAT[0]}") == 2


def test_a_restricted_memory_has_the_same_ranking(write: DiscussionWriter) -> None:
    acme = DiscussionWriter(write.memory.restricted(tenant="acme"))
    ids = take_in(acme)
    acme.keyword("A rainy trip to Lisbon.", source=(ids[0], ids[3]))
    assert [hit.memory.summary for hit in search_discussions(acme.memory, [SCOPE], "Lisbon", 5) if hit.memory]
