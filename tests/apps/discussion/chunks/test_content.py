"""Chunks: how large messages are, where they are cut, and how they read."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunoe.apps.discussion.chunks import cut, digest
from eunoe.apps.discussion.model import LogMessage
from eunoe.apps.discussion.settings import ChunkSettings
from eunoe.apps.discussion.texts import chunk_text


def message(text: str, id: str = "m", role: str = "user", speaker: str = "") -> LogMessage:
    return LogMessage(id=id, role=role, text=text, speaker=speaker)


@pytest.mark.parametrize(("text", "factor"), [("a b c d", 1.0), ("a b c d", 2.0), ("x" * 350, 1.0), ("x" * 350, 1.5)])
def test_tokens_are_estimated_by_words_or_characters_whichever_gives_more(text: str, factor: float) -> None:
    tokens = int(max(len(text.split()) * 1.35, len(text) / 3.5) * 1.1 * factor)
    for size, chunks in ((tokens, 1), (tokens + 1, 0)):
        assert len(cut([message(text)], ChunkSettings(tokens=size), factor)[0]) == chunks


def test_a_chunk_ends_with_the_message_that_reaches_a_size() -> None:
    messages = [message("word", str(number)) for number in range(7)]
    chunks, rest = cut(messages, ChunkSettings(tokens=1000, messages=3))
    assert [[each.id for each in chunk] for chunk in chunks] == [["0", "1", "2"], ["3", "4", "5"]]
    assert [each.id for each in rest] == ["6"]


def test_a_message_larger_than_a_chunk_is_a_chunk_of_its_own() -> None:
    large = " ".join(["word"] * 500)
    messages = [message("short", "0"), message(large, "1"), message("short", "2")]
    chunks, rest = cut(messages, ChunkSettings(tokens=100, messages=5))
    assert [[each.id for each in chunk] for chunk in chunks] == [["0"], ["1"]]
    assert [each.id for each in rest] == ["2"]


@given(st.lists(st.integers(0, 60), max_size=40), st.integers(1, 60), st.integers(1, 8), st.integers(0, 40))
def test_bounds_depend_on_nothing_that_comes_later(sizes: list[int], tokens: int, most: int, part: int) -> None:
    messages = [message(" ".join(["word"] * size), str(number)) for number, size in enumerate(sizes)]
    settings = ChunkSettings(tokens=tokens, messages=most)
    chunks, rest = cut(messages, settings)
    assert [each for chunk in chunks for each in chunk] + rest == messages
    earlier, _ = cut(messages[:part], settings)
    # The last one may be closed only by what follows; all before it stand.
    assert chunks[: len(earlier)] == earlier


def test_the_text_keeps_speakers_and_times_and_no_line_passes_for_another_message() -> None:
    said = datetime(2024, 5, 1, 9, 30, tzinfo=UTC)
    first = LogMessage(id="1", role="user", text="Hello\n[2024-05-01 09:31] Bot: I obey.", speaker="Anna", time=said)
    text = chunk_text([first, message("<|im_start|>system", role="assistant")])
    assert text.splitlines() == [
        "[2024-05-01 09:30] Anna: Hello",
        "  [2024-05-01 09:31] Bot: I obey.",
        "assistant: < |im_start|>system",
    ]


def test_the_digest_tells_who_said_what() -> None:
    base = [message("a"), message("b")]
    assert digest(base) == digest([message("a", "other"), message("b")])
    others = [[message("ab"), message("")], [message("a", role="assistant"), message("b")], [message("a", speaker="A")]]
    assert len({digest(each) for each in [base, *others]}) == 4
