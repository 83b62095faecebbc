"""One discussion: its status, and the verbs that make its memory anew or delete it."""

import json
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import eunoe
from eunoe.discussion import Discussion, DiscussionSettings, discussion_ids
from eunoe.discussion.atoms import chunk_memories, keyword_memories
from eunoe.discussion.files import import_discussion
from eunoe.discussion.settings import ChunkSettings, CondensationSettings
from eunoe.errors import InputError

SMALL = DiscussionSettings(memory_kinds=("chunk_memory", "keyword_memory"), lookback=0)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[eunoe.Memory]:
    with eunoe.open(tmp_path / "store.db", embedder="none", llm="none") as opened:
        yield opened


def chat(count: int) -> list[dict[str, Any]]:
    roles = ("user", "assistant")
    return [{"role": roles[number % 2], "content": f"Anna went to town number {number}."} for number in range(count)]


def test_the_status_of_a_discussion(memory: eunoe.Memory) -> None:
    trip = Discussion(memory, "trip", "anna")
    assert trip.status().is_empty
    trip.update(chat(20), SMALL)
    trip.update([*chat(19), {"role": "assistant", "content": "No, that was another town."}], SMALL)
    status = trip.status()
    assert (status.id, status.user, status.messages, status.retracted) == ("trip", "anna", 20, 1)
    assert (status.chunk_memories, status.waiting, status.summary > 0) == (4, 0, True)
    assert status.keyword_memories > 0
    assert not status.is_empty


def test_messages_of_imported_memories_do_not_wait(memory: eunoe.Memory, tmp_path: Path) -> None:
    folder = tmp_path / "trip"
    folder.mkdir()
    blocks = [{"text_block": "Anna went to ten towns.", "hash": sha256(chat(10)[-1]["content"].encode()).hexdigest()}]
    (folder / "memories.json").write_text(json.dumps(blocks))
    import_discussion(memory, folder)
    trip = Discussion(memory, "trip")
    trip.update(chat(17), replace(SMALL, memory_kinds=("chunk_memory",)))
    assert (trip.status().chunk_memories, trip.status().waiting) == (2, 2)


def test_reading_the_status_of_what_is_not_there_makes_nothing(memory: eunoe.Memory) -> None:
    Discussion(memory, "trip").status()
    assert memory.scopes() == []


def test_a_rebuild_cuts_anew_and_keeps_the_history(memory: eunoe.Memory) -> None:
    trip = Discussion(memory, "trip")
    condensing = replace(SMALL, condensation=CondensationSettings(is_on=True, memories=2))
    trip.update(chat(30), condensing)
    assert any(each.condenses for each in chunk_memories(memory, trip.scope))
    old = keyword_memories(memory, trip.scope)[0]
    sizes = ChunkSettings(tokens=100_000, messages=10)
    trip.rebuild(replace(SMALL, chunk_memory=sizes, keyword_memory=sizes))
    memories = chunk_memories(memory, trip.scope)
    assert [len(each.source) for each in memories] == [10, 10, 10]
    assert not any(each.condenses for each in memories)
    assert any(atom.text == old.summary for atom in memory.history(trip.scope, old.id))
    assert memory.summaries.revisions(trip.scope)[-1].current


def test_a_deleted_discussion_leaves_the_others_alone(memory: eunoe.Memory) -> None:
    for id, user in (("trip", "anna"), ("trip", "ben"), ("work", "anna")):
        Discussion(memory, id, user).update(chat(12), SMALL)
    report = Discussion(memory, "trip", "anna").delete()
    assert len(report.messages) == 12
    assert (discussion_ids(memory, "anna"), discussion_ids(memory, "ben")) == (["work"], ["trip"])
    assert Discussion(memory, "trip", "anna").status().is_empty


def test_a_name_that_is_no_id_is_refused(memory: eunoe.Memory) -> None:
    for id in ("", ".", "..", "a/b", "x" * 129):
        with pytest.raises(InputError, match="discussion"):
            Discussion(memory, id)
