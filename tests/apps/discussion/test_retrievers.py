"""What a discussion's memory gives: in order, escaped, fresh, without a write, also under the names of others."""

from __future__ import annotations

import inspect
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.support.discussion_writer import DiscussionWriter

import eunoe
from eunoe.apps.discussion.documents import StateDocument
from eunoe.apps.discussion.keywords import KeywordQuery
from eunoe.apps.discussion.log import DiscussionLog
from eunoe.apps.discussion.model import discussion_scope
from eunoe.apps.discussion.retrievers import DiscussionReader, MemoryService
from eunoe.apps.discussion.texts import Retrieval
from eunoe.errors import InputError, StoreError
from eunoe.memory import Memory

SCOPE = discussion_scope("trip")


RETRIEVERS: dict[str, Callable[[DiscussionReader], Retrieval]] = {
    "recent": lambda reader: reader.recent(),
    "first": lambda reader: reader.first(),
    "all": lambda reader: reader.all(),
    "new": lambda reader: reader.new(),
    "summary": lambda reader: reader.summary(),
    "full_summary": lambda reader: reader.full_summary(),
    "state_document": lambda reader: reader.state_document(),
    "search_keywords": lambda reader: reader.search_keywords(KeywordQuery(keywords="lisbon")),
    "search_conversation": lambda reader: reader.search_conversation("lisbon"),
    "search_chunk_memories": lambda reader: reader.search_chunk_memories("lisbon"),
}


WRITE_ELSEWHERE = """
import sys, eunoe
from eunoe.apps.discussion.model import memory_item
from eunoe.apps.discussion.model import ChunkMemory, KeywordMemory
with eunoe.open(sys.argv[1], embedder="none", llm="none", form=False) as memory:
    items = [memory_item(KeywordMemory(title="Porto", summary="Porto by train.", id="far"))]
    items += [memory_item(ChunkMemory(text="They took the train to Porto.", id="far chunk", place=99.0))]
    memory.remember_many("discussion=trip/user=default", items)
"""


@pytest.fixture
def reader(memory: Memory) -> DiscussionReader:
    return DiscussionReader.of(memory, "trip")


def fill(write: DiscussionWriter) -> None:
    DiscussionLog(write.memory, SCOPE).take_in(
        [{"role": "user", "content": "We flew to Lisbon."}, {"role": "assistant", "content": "How was Lisbon?"}]
    )
    write.chunks("They flew to Lisbon.")
    write.keyword("They flew to Lisbon.")
    write.summary("A trip to Lisbon.")
    StateDocument(write.memory, SCOPE).write("They are in Lisbon.")


def dump(path: Path) -> list[str]:
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        lines = list(database.iterdump())
    database.close()
    return lines


@pytest.mark.parametrize("name", RETRIEVERS)
def test_there_is_something_to_read(write: DiscussionWriter, reader: DiscussionReader, name: str) -> None:
    fill(write)
    retrieval = RETRIEVERS[name](reader)
    assert "Lisbon" in retrieval.text
    assert retrieval.message == ""


@pytest.mark.parametrize("name", RETRIEVERS)
def test_nothing_is_an_empty_text_and_a_message_apart(reader: DiscussionReader, name: str) -> None:
    retrieval = RETRIEVERS[name](reader)
    assert (retrieval.texts, retrieval.text) == ((), "")
    assert retrieval.message.endswith(".")


def test_reading_changes_nothing_in_the_store(write: DiscussionWriter, path: Path, reader: DiscussionReader) -> None:
    fill(write)
    before, files = dump(path), sorted(path.parent.iterdir())
    for retrieve in RETRIEVERS.values():
        retrieve(reader)
        retrieve(DiscussionReader.of(write.memory, "never-seen"))
        retrieve(DiscussionReader.of(write.memory, "trip", "nobody", across_discussions=True))
    assert dump(path) == before
    assert sorted(path.parent.iterdir()) == files
    assert write.memory.scopes() == [SCOPE]


def test_a_read_waits_for_no_writer(write: DiscussionWriter, path: Path, reader: DiscussionReader) -> None:
    """A creator holds the store and all leases, and never lets go."""
    fill(write)
    for name in ("summary", "condensation", "state_document", "chunk_memory:x"):
        assert write.memory.leases.acquire(SCOPE, name)
    creator = sqlite3.connect(path, isolation_level=None)
    creator.execute("BEGIN IMMEDIATE")
    try:
        assert all(retrieve(reader).text for retrieve in RETRIEVERS.values())
    finally:
        creator.execute("ROLLBACK")
        creator.close()


def test_what_another_process_wrote_is_there_at_the_next_read(
    write: DiscussionWriter, path: Path, reader: DiscussionReader
) -> None:
    fill(write)
    query = KeywordQuery(keywords="porto")
    assert reader.search_keywords(query).text == ""
    assert "Porto" not in reader.recent().text
    subprocess.run([sys.executable, "-c", WRITE_ELSEWHERE, str(path)], check=True)
    assert reader.search_keywords(query).text == "Porto by train."
    assert reader.recent(1).text == "They took the train to Porto."


def test_memories_come_in_the_order_of_the_discussion(write: DiscussionWriter, reader: DiscussionReader) -> None:
    write.chunks(*"abcdefg")
    assert reader.recent().texts == ("e", "f", "g")
    assert reader.recent(2).text == "f--ChunkBreak--g"
    assert reader.recent(99).texts == tuple("abcdefg")
    assert reader.first().texts == tuple("abcde")
    assert reader.all().texts == tuple("abcdefg")
    assert reader.all().joined(" | ") == "a | b | c | d | e | f | g"


@pytest.mark.parametrize("count", [-2, "3", None, 1.5])
def test_a_wrong_number_is_refused(reader: DiscussionReader, count: object) -> None:
    with pytest.raises(InputError, match="count"):
        reader.recent(count)  # type: ignore[arg-type]


def test_the_full_summary_holds_what_came_after_the_summary(write: DiscussionWriter, reader: DiscussionReader) -> None:
    write.summary("They flew.")
    write.chunks("They landed.")
    assert reader.summary().text == "They flew."
    assert reader.full_summary().text == "They flew.\n\nThey landed."
    assert reader.new().text == "They landed."


def test_the_conversation_is_searched_without_its_end(write: DiscussionWriter, reader: DiscussionReader) -> None:
    chat = [
        ("user", "My cat is Tom."),
        ("assistant", "A fine name for a cat."),
        ("system", "cat"),
        ("user", "Is it, cat?"),
    ]
    DiscussionLog(write.memory, SCOPE).take_in([{"role": role, "content": text} for role, text in chat])
    assert reader.search_conversation("tom; dog").text == "user: My cat is Tom."
    assert len(reader.search_conversation("cat").texts) == 3
    assert "user: Is it, cat?" not in reader.search_conversation("cat", lookback=1).texts
    assert len(reader.search_conversation("cat", 1, lookback=2).texts) == 1


def test_a_retracted_message_is_not_found(write: DiscussionWriter, reader: DiscussionReader) -> None:
    log = DiscussionLog(write.memory, SCOPE)
    log.take_in([{"role": "user", "content": "Hello there"}, {"role": "user", "content": "My cat is Tom."}])
    log.take_in([{"role": "user", "content": "Hello there"}, {"role": "user", "content": "My dog is Rex."}])
    assert reader.search_conversation("tom").text == ""
    assert "Rex" in reader.search_conversation("rex").text


def test_discussions_of_one_user_are_read_together_if_asked_for(write: DiscussionWriter) -> None:
    write.keyword("Lisbon in May.", discussion="trip", user="anna")
    write.keyword("Lisbon at work.", discussion="work", user="anna")
    write.keyword("Lisbon is Ben's.", discussion="trip", user="ben")
    write.chunks("first", discussion="work", user="anna")
    write.chunks("second", discussion="trip", user="anna")
    write.memory.remember("user=anna", "Lisbon elsewhere.")
    query = KeywordQuery(keywords="lisbon")
    own = DiscussionReader.of(write.memory, "trip", "anna")
    both = DiscussionReader.of(write.memory, "trip", "anna", across_discussions=True)
    assert own.search_keywords(query).texts == ("Lisbon in May.",)
    assert set(both.search_keywords(query).texts) == {"Lisbon in May.", "Lisbon at work."}
    assert own.all().texts == ("second",)
    assert both.all().texts == ("first", "second")


@pytest.mark.parametrize("id", ["", "..", "a/b", "a\\b", "a:b", " a", "a\nb", "x" * 201, "ä" * 101])
def test_a_wrong_id_raises(memory: Memory, id: str) -> None:
    with pytest.raises(InputError, match="discussion"):
        DiscussionReader.of(memory, id)


def test_a_restricted_memory_reads_its_own_tenant(path: Path) -> None:
    with eunoe.open(path, embedder="static", llm="none", form=False) as memory:
        acme, other = memory.restricted(tenant="acme"), memory.restricted(tenant="other")
        write = DiscussionWriter(acme)
        write.keyword("The physician lives in Lisbon.")
        write.keyword("Lisbon at work.", discussion="work")
        memory.flush()
        words, meaning = KeywordQuery(keywords="lisbon"), KeywordQuery(keywords="doctor", mode="semantic", limit=1)
        own = DiscussionReader.of(acme, "trip", across_discussions=True)
        assert len(own.search_keywords(words).texts) == 2
        assert own.search_keywords(meaning).texts == ("The physician lives in Lisbon.",)
        for reader in (DiscussionReader.of(each, "trip", across_discussions=True) for each in (other, memory)):
            assert reader.search_keywords(words).text == reader.search_keywords(meaning).text == ""


def test_a_scope_that_is_no_discussion_of_ours_stands_in_nobodys_way(write: DiscussionWriter) -> None:
    write.chunks("ours")
    write.memory.remember({"user": "default", "discussion": "not / ours"}, "Something else.")
    assert DiscussionReader.of(write.memory, "trip", across_discussions=True).all().texts == ("ours",)


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
