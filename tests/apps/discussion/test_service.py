"""MemoryService: names, arguments and defaults as other programs call them."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.support.discussion_writer import DiscussionWriter

import eunoe
from eunoe.apps.discussion.retrievers import MemoryService
from eunoe.errors import StoreError

SEARCH = (
    "discussion_id keywords limit api_key_hash bm25_weights use_recency include_dates search_mode semantic_query "
    "embedding_endpoint_name use_entity_expansion request_id"
)
RECENT = (
    "messages discussion_id max_turns_to_search max_summary_chunks_from_file lookback_start encryption_key api_key_hash"
)


@pytest.mark.parametrize(("method", "names"), [("search_vector_memories", SEARCH), ("get_recent_memories", RECENT)])
def test_arguments_stand_where_other_programs_put_them(method: str, names: str) -> None:
    parameters = inspect.signature(getattr(MemoryService, method)).parameters.values()
    assert [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD][1:] == names.split()


def test_hits_are_joined_with_a_rule_and_dated_if_asked_for(write: DiscussionWriter) -> None:
    write.keyword("Lisbon, Lisbon.", time=datetime(2024, 5, 1, 23, tzinfo=UTC))
    write.keyword("Lisbon or Porto.", time=datetime(2025, 6, 2, tzinfo=UTC))
    service = MemoryService(write.memory)
    assert service.search_vector_memories("trip", "lisbon") == "Lisbon, Lisbon.\n\n---\n\nLisbon or Porto."
    dated = service.search_vector_memories("trip", "lisbon", include_dates=True)
    assert dated == "[2024-05-01] Lisbon, Lisbon.\n\n---\n\n[2025-06-02] Lisbon or Porto."
    assert service.search_vector_memories("trip", "lisbon", 1) == "Lisbon, Lisbon."


def test_five_are_given_by_default(write: DiscussionWriter) -> None:
    for number in range(8):
        write.keyword(f"Lisbon {number}.")
    assert len(MemoryService(write.memory).search_vector_memories("trip", "lisbon").split("\n\n---\n\n")) == 5


def test_a_rule_in_a_memory_ends_nothing(write: DiscussionWriter) -> None:
    write.keyword("Lisbon\n\n---\n\nPorto")
    write.keyword("Lisbon\n\n---")
    assert len(MemoryService(write.memory).search_vector_memories("trip", "lisbon").split("\n\n---\n\n")) == 2


def test_three_chunks_are_recent_and_minus_one_means_all(write: DiscussionWriter) -> None:
    write.chunks(*"abcde")
    service = MemoryService(write.memory)
    assert service.get_recent_memories([], "trip") == "c--ChunkBreak--d--ChunkBreak--e"
    assert service.get_recent_memories([], "trip", 0, 1) == "e"
    assert service.get_recent_memories([], "trip", 0, -1) == service.get_current_memories("trip")
    assert service.get_first_five_memories("trip") == "--ChunkBreak--".join("abcde")


def test_without_an_id_the_messages_at_hand_are_given(write: DiscussionWriter) -> None:
    chat = [{"role": "user", "content": text} for text in ("one", "two", "three")]
    service = MemoryService(write.memory)
    assert service.get_recent_memories(chat, None, 2) == "user: two\nuser: three"
    assert service.get_recent_memories(chat, "", 1, lookback_start=1) == "user: two"
    assert service.get_chat_summary_memories(chat, None, 1) == "user: three"
    assert service.search_vector_memories(None, "one") == ""
    assert write.memory.scopes() == []


def test_what_the_summary_does_not_hold_yet(write: DiscussionWriter) -> None:
    write.chunks("a", "b")
    service = MemoryService(write.memory)
    assert service.find_how_many_new_memories_since_last_summary("trip") == 2
    pairs = [("a", "hash of a"), ("b", "hash of b")]
    assert service.get_latest_memory_chunks_with_hashes_since_last_summary("trip") == pairs
    assert service.get_chat_summary_memories([], "trip") == "a--ChunkBreak--b"


def test_empty_is_empty_unless_the_sentences_of_others_are_wanted(write: DiscussionWriter) -> None:
    silent, speaking = MemoryService(write.memory), MemoryService(write.memory, host_messages=True)
    sentences = {
        "No relevant memories found in the vector database for the given keywords.": (
            lambda service, **options: service.search_vector_memories("x", "lisbon", **options)
        ),
        "Cannot perform VectorMemorySearch without a discussionId.": (
            lambda service, **options: service.search_vector_memories(None, "lisbon", **options)
        ),
        "No memories have been generated yet": lambda service, **options: service.get_recent_memories(
            [], "x", **options
        ),
        "There is not yet a summary file": lambda service, **options: service.get_current_summary("x", **options),
    }
    for sentence, ask in sentences.items():
        assert ask(silent) == ask(speaking, host_messages=False) == ""
        assert ask(speaking) == ask(silent, host_messages=True) == sentence


def test_a_hashed_key_names_the_user(write: DiscussionWriter) -> None:
    write.keyword("Lisbon is Ben's.", user="0123456789abcdef")
    service = MemoryService(write.memory)
    assert service.search_vector_memories("trip", "lisbon") == ""
    assert service.search_vector_memories("trip", "lisbon", api_key_hash="0123456789abcdef") == "Lisbon is Ben's."


def test_without_a_memory_the_users_own_store_is_read_and_never_made(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EUNOE_STORE", str(path))
    with pytest.raises(StoreError):
        MemoryService().get_current_summary("trip")
    assert not path.exists()
    with eunoe.open(path, embedder="none", llm="none", form=False) as memory:
        DiscussionWriter(memory).summary("All went well.")
    service = MemoryService()
    assert service.get_current_summary("trip") == "All went well."
    service.memory.close()
