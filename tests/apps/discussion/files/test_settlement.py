from collections.abc import Iterator, Sequence

import pytest
from tests.support.discussion_files import DATE, message_hash

import eunoe
from eunoe.apps.discussion.files.database import LoggedHash
from eunoe.apps.discussion.files.importing import ImportRecord, settle_import
from eunoe.apps.discussion.model import Chunk, ChunkMemory, KeywordMemory, LogMessage, discussion_scope, memory_item
from eunoe.errors import ConflictError, InputError
from eunoe.memory import Memory

SCOPE = discussion_scope("trip")


@pytest.fixture
def memory() -> Iterator[Memory]:
    with eunoe.open(":memory:", llm="none") as memory:
        yield memory


def chat(*texts: str) -> list[LogMessage]:
    return [
        LogMessage(f"m{number}-{text}", "user", text, hash=message_hash(text)) for number, text in enumerate(texts, 1)
    ]


def keep_chunk_memories(memory: Memory, *ends: str) -> None:
    memories = [
        ChunkMemory(
            text=f"Memory {place}.", hash=message_hash(end), id=f"import:chunk_memory:{place}", place=float(place)
        )
        for place, end in enumerate(ends, 1)
    ]
    memory.remember_many(SCOPE, map(memory_item, memories), replace=True)


def keep_hashes(memory: Memory, *ends: str) -> None:
    ImportRecord(hashes=tuple(LoggedHash(message_hash(end), DATE) for end in ends)).keep(memory, SCOPE)


def settle(memory: Memory, messages: Sequence[LogMessage], continue_at: int | str | None = None) -> Chunk | None:
    return settle_import(memory, SCOPE, messages, "chunk_memory", continue_at=continue_at)


def test_nothing_imported_means_nothing_to_settle(memory: Memory) -> None:
    assert settle(memory, chat("a", "b")) is None
    assert settle_import(memory, SCOPE, chat("a"), "keyword_memory") is None


def test_the_chat_goes_on_behind_the_message_that_was_found(memory: Memory) -> None:
    keep_chunk_memories(memory, "a", "c")
    assert settle(memory, chat("a", "b", "c", "d")) == Chunk("chunk_memory", 2.0, "", "m3-c")


def test_the_beginning_may_be_cut(memory: Memory) -> None:
    keep_chunk_memories(memory, "a", "c")
    assert settle(memory, chat("c", "d")) == Chunk("chunk_memory", 2.0, "", "m1-c")


def test_without_a_chat_nothing_is_asked(memory: Memory) -> None:
    keep_chunk_memories(memory, "a")
    assert settle(memory, []) == Chunk("chunk_memory", 1.0, "", "")


def test_an_absent_message_is_asked_for(memory: Memory) -> None:
    keep_chunk_memories(memory, "a", "c")
    with pytest.raises(
        ConflictError, match=r"not in the chat; an earlier one of them ends on message 1\. .*continue_at"
    ):
        settle(memory, chat("a", "b", "edited", "d"))


def test_a_repeated_message_is_asked_for(memory: Memory) -> None:
    keep_chunk_memories(memory, "ok")
    with pytest.raises(ConflictError, match=r"is there 2 times \(messages 1, 3\)"):
        settle(memory, chat("ok", "b", "ok"))


def test_an_earlier_end_tells_repeated_messages_apart(memory: Memory) -> None:
    keep_chunk_memories(memory, "b", "ok")
    assert settle(memory, chat("ok", "b", "ok", "d")) == Chunk("chunk_memory", 2.0, "", "m3-ok")


def test_a_memory_without_a_hash_is_asked_for(memory: Memory) -> None:
    memory.remember_many(SCOPE, [memory_item(ChunkMemory(text="One.", id="import:chunk_memory:1", place=1.0))])
    with pytest.raises(ConflictError, match="not in the chat"):
        settle(memory, [LogMessage("m1", "user", "", hash="")])


@pytest.mark.parametrize(
    ("continue_at", "last"), [(1, ""), ("start", ""), (3, "m2-b"), ("3", "m2-b"), (4, "m3-ok"), ("end", "m3-ok")]
)
def test_an_answer_counts_and_is_kept(memory: Memory, continue_at: int | str, last: str) -> None:
    keep_chunk_memories(memory, "ok")
    chunk = settle(memory, chat("ok", "b", "ok"), continue_at)
    assert chunk == Chunk("chunk_memory", 1.0, "", last)
    assert settle(memory, chat("ok", "b", "ok", "d", "ok")) == chunk


def test_an_answer_may_be_corrected(memory: Memory) -> None:
    keep_chunk_memories(memory, "ok")
    messages = chat("ok", "b", "ok")
    settle(memory, messages, "end")
    assert settle(memory, [*messages, *chat("c")], "end") == Chunk("chunk_memory", 1.0, "", "m3-ok")
    for continue_at, last in ((2, "m1-ok"), ("start", ""), (3, "m2-b")):
        chunk = Chunk("chunk_memory", 1.0, "", last)
        assert settle(memory, messages, continue_at) == settle(memory, messages) == chunk


@pytest.mark.parametrize("continue_at", [0, 5, -1, "middle", "", True, 1.5])
def test_what_is_no_answer_is_refused(memory: Memory, continue_at: int | str) -> None:
    keep_chunk_memories(memory, "ok")
    with pytest.raises(InputError, match=r"continue_at is .* from 1 to 4"):
        settle(memory, chat("ok", "b", "ok"), continue_at)
    with pytest.raises(ConflictError):
        settle(memory, chat("ok", "b", "ok"))


def test_a_later_edit_of_the_message_does_not_start_anew(memory: Memory) -> None:
    keep_chunk_memories(memory, "a", "c")
    settle(memory, chat("a", "b", "c", "d"))
    kept = [each for each in chat("a", "b", "c", "d") if each.text != "c"]
    assert settle(memory, kept) == Chunk("chunk_memory", 2.0, "", "m2-b")
    with pytest.raises(ConflictError):
        settle(memory, chat("x", "y"))


def test_more_that_is_imported_moves_the_place(memory: Memory) -> None:
    keep_chunk_memories(memory, "a")
    settle(memory, chat("a", "b", "c"))
    keep_chunk_memories(memory, "a", "b")
    assert settle(memory, chat("a", "b", "c")) == Chunk("chunk_memory", 2.0, "", "m2-b")


def test_keyword_memories_go_on_behind_the_newest_hash(memory: Memory) -> None:
    keep_hashes(memory, "a", "b", "ok")
    chunk = settle_import(memory, SCOPE, chat("ok", "a", "b", "ok", "d"), "keyword_memory")
    assert chunk == Chunk("keyword_memory", 0.0, "", "m4-ok")


def test_keyword_memories_without_a_hash_are_asked_for(memory: Memory) -> None:
    item = memory_item(KeywordMemory(title="", summary="Tea.", id="import:keyword_memory:1", place=1.0))
    memory.remember_many(SCOPE, [item])
    with pytest.raises(ConflictError, match="keyword_memory"):
        settle_import(memory, SCOPE, chat("a"), "keyword_memory")


def test_the_record_is_not_recalled(memory: Memory) -> None:
    keep_hashes(memory, "a")
    assert not memory.recall(SCOPE, "how far imported memories go")
