"""Memories made of the words of the chat."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from eunoe.apps.discussion.extracts import find_key_phrases, fold_in, make_keyword_memories, write_digest
from eunoe.apps.discussion.model import LogMessage
from eunoe.text.sentences import word_count

SAID = datetime(2024, 5, 1, 9, 30, tzinfo=UTC)


def message(id: str, text: str, speaker: str = "Anna") -> LogMessage:
    return LogMessage(id=id, role="user", text=text, speaker=speaker, time=SAID)


def test_a_digest_has_the_facts_with_speaker_and_date_and_no_greetings() -> None:
    chat = [message("1", "Hi there! How are you?"), message("2", "I moved to Rome in May. Nice day!", "Ben")]
    assert write_digest(chat) == "[2024-05-01] Ben: I moved to Rome in May."


def test_a_digest_of_small_talk_is_not_empty() -> None:
    assert write_digest([message("1", "Hello!"), message("2", "ok")])
    assert write_digest([message("1", "```\nprint()\n```")])


def test_a_digest_is_bounded_however_long_the_chunk_is() -> None:
    chat = [message(str(n), f"I moved {n} boxes to Rome on day {n}, and paid {n} euros. " * 50) for n in range(20)]
    assert word_count(write_digest(chat)) < 260


def test_keyword_memories_cite_the_messages_whose_words_they_have() -> None:
    chat = [
        message("1", "Hi!"),
        message("2", "My sister Ada works at Siemens in Vienna since March 2021.", "Ben"),
        message("3", "Cool!"),
    ]
    [memory] = make_keyword_memories(chat)
    assert (memory.source, memory.time) == (("2",), SAID)
    assert memory.summary == "Ben: My sister Ada works at Siemens in Vienna since March 2021."
    assert {"Ben", "Ada", "Siemens", "Vienna"} <= {*memory.entities}
    assert memory.key_phrases


def test_small_talk_becomes_one_memory_so_that_its_chunk_counts_as_made() -> None:
    [memory] = make_keyword_memories([message("1", "Hi!"), message("2", "ok")])
    assert memory.title
    assert memory.summary


def test_scripts_without_spaces_work() -> None:
    [memory] = make_keyword_memories([message("1", "我去年五月搬到了上海。现在住在浦东。")])
    assert "上海" in memory.summary
    assert memory.key_phrases


def test_phrases_end_at_stop_words_and_marks() -> None:
    assert find_key_phrases("The night train, and the sleeping car to Vienna") == (
        "night train",
        "sleeping car",
        "Vienna",
    )


@pytest.mark.parametrize("data", ["A" * 100_000, "data:" + "QUJD" * 20_000, "https://a.example/" + "x/" * 9999])
def test_pasted_data_is_cut_and_the_words_beside_it_stay(data: str) -> None:
    chat = [message("1", data), message("2", f"I moved to Rome in May. {data}", "Ben"), message("3", f"Look: {data}")]
    digest = write_digest(chat)
    assert "I moved to Rome in May." in digest
    assert len(digest) < 2500
    assert 100 < len(write_digest(chat[:1])) < 2500
    assert write_digest(chat[:1]).endswith("…")
    assert "Rome" in fold_in("", [digest], 400)
    assert len(fold_in("", [f"{n} {data}" for n in range(50)], 400)) < 6000
    for memory in make_keyword_memories(chat):
        assert memory.title
        assert len(memory.title) + len(memory.summary) < 1300
        assert sum(map(len, (*memory.entities, *memory.key_phrases))) < 3000
