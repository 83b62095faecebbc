"""Imported memories whose messages are known follow them, and memories made here give way to imported ones."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.discussion_files import block, message_hash, write_folder

import eunoe
from eunoe.apps.discussion.atoms import chunk_memories
from eunoe.apps.discussion.files import import_discussion
from eunoe.apps.discussion.report import UpdateReport
from eunoe.apps.discussion.scope import discussion_scope
from eunoe.apps.discussion.settings import ChunkSettings, DiscussionSettings, SummarySettings
from eunoe.apps.discussion.update import update_discussion
from eunoe.memory import Memory

SCOPE = discussion_scope("trip")
SETTINGS = DiscussionSettings(
    lookback=0, chunk_memory=ChunkSettings(messages=5), summary=SummarySettings(least_memories=100)
)
STORIES = [f"Anna tells story number {number}." for number in range(1, 31)]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """With three imported memories, which end on messages 4, 8 and 12."""
    blocks = [block(f"Theirs {place}.", STORIES[place - 1]) for place in (4, 8, 12)]
    with eunoe.open(":memory:", llm="none") as memory:
        import_discussion(memory, write_folder(tmp_path / "trip", blocks))
        yield memory


def update(memory: Memory, texts: list[str]) -> UpdateReport:
    messages = [{"role": ("user", "assistant")[place % 2], "content": text} for place, text in enumerate(texts)]
    return update_discussion(memory, SCOPE, SETTINGS, messages=messages)


def ends(memory: Memory, texts: list[str]) -> list[int]:
    places = {message_hash(text): place for place, text in enumerate(texts, 1)}
    return [places[each.hash] for each in chunk_memories(memory, SCOPE)]


@pytest.mark.parametrize(("edited", "last"), [(5, 8), (6, 8), (8, 8), (12, 12)])
def test_an_edit_within_known_bounds_redoes_that_memory(memory: Memory, tmp_path: Path, edited: int, last: int) -> None:
    update(memory, STORIES[:22])
    texts = STORIES[:22]
    texts[edited - 1] = "Carla moved to Oslo."
    report = update(memory, texts)
    assert (report.made + report.redone, report.notes) == (1, ())
    assert ends(memory, texts) == [4, 8, 12, 17, 22]
    redone = chunk_memories(memory, SCOPE)[(4, 8, 12).index(last)]
    assert "Oslo" in redone.text
    assert len(redone.source) == 4
    import_discussion(memory, tmp_path / "trip")
    again = update(memory, texts)
    assert (again.made, again.redone, ends(memory, texts)) == (0, 0, [4, 8, 12, 17, 22])


def test_deleted_messages_leave_their_memory(memory: Memory) -> None:
    update(memory, STORIES[:22])
    texts = STORIES[:4] + STORIES[8:22]
    update(memory, texts)
    assert ends(memory, texts) == [4, 8, 13, 18]
    texts = STORIES[:4] + STORIES[10:22]
    update(memory, texts)
    assert ends(memory, texts) == [4, 6, 11, 16]
    assert "number 11" in chunk_memories(memory, SCOPE)[1].text


def test_an_edit_where_bounds_are_not_known_is_said_once(memory: Memory) -> None:
    update(memory, STORIES[:22])
    texts = ["Carla moved to Oslo.", *STORIES[1:22]]
    texts[11] = "So did Ben."
    (note,) = update(memory, texts).notes
    assert "1 messages were edited or deleted of which memories had been imported" in note
    assert update(memory, texts).notes == ()
    texts[3] = "They met there."
    assert len(update(memory, texts).notes) == 1
    assert chunk_memories(memory, SCOPE)[0].text == "Theirs 4."


@pytest.mark.parametrize(("end", "expected"), [(20, [4, 8, 12, 20, 22, 27]), (17, [4, 8, 12, 17, 22, 27])])
def test_an_imported_memory_supersedes_those_made_of_its_messages(
    memory: Memory, tmp_path: Path, end: int, expected: list[int]
) -> None:
    update(memory, STORIES)
    assert ends(memory, STORIES) == [4, 8, 12, 17, 22, 27]
    path = tmp_path / "trip" / "memories.json"
    added = {"text_block": f"Theirs {end}.", "hash": message_hash(STORIES[end - 1])}
    path.write_text(json.dumps([*json.loads(path.read_text()), added]))
    import_discussion(memory, path.parent)
    update(memory, STORIES)
    assert ends(memory, STORIES) == expected
    assert chunk_memories(memory, SCOPE)[3].text == f"Theirs {end}."
    sources = [id for each in chunk_memories(memory, SCOPE) for id in each.source]
    assert len(sources) == len(set(sources))
    assert end == 17 or len(sources) == 7
