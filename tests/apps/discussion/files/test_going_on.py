"""A discussion of another program is imported, and goes on here with the chat."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.discussion_files import (
    ROME,
    TEA,
    block,
    message_hash,
    query,
    search,
    snapshot,
    write_database,
    write_folder,
)

import eunoe
from eunoe.apps.discussion.atoms import chunk_memories, keyword_memories
from eunoe.apps.discussion.documents.state_document import StateDocument
from eunoe.apps.discussion.documents.summary import current_summary
from eunoe.apps.discussion.files import Layout, import_discussion
from eunoe.apps.discussion.files.layout import part_paths
from eunoe.apps.discussion.log.discussion_log import DiscussionLog
from eunoe.apps.discussion.scope import discussion_scope
from eunoe.apps.discussion.settings import ChunkSettings, DiscussionSettings, SummarySettings
from eunoe.apps.discussion.update import update_discussion
from eunoe.errors import ConflictError, InputError
from eunoe.memory import Memory

SCOPE = discussion_scope("trip")
SETTINGS = DiscussionSettings(
    memory_kinds=("chunk_memory", "keyword_memory"),
    lookback=0,
    chunk_memory=ChunkSettings(messages=4),
    keyword_memory=ChunkSettings(messages=4),
    summary=SummarySettings(least_memories=100),
)


@pytest.fixture
def memory() -> Iterator[Memory]:
    with eunoe.open(":memory:", llm="none") as memory:
        yield memory


def chat(*texts: str) -> list[dict[str, str]]:
    return [{"role": ("user", "assistant")[number % 2], "content": text} for number, text in enumerate(texts)]


def said(count: int) -> list[str]:
    return [f"Anna tells story number {number}." for number in range(1, count + 1)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The first eight messages were made into memories by another program."""
    stories = said(8)
    blocks = [block("Four stories.", stories[3]), block("Four more.", stories[7])]
    folder = write_folder(tmp_path / "trip", blocks, chat_summary=[block("Eight stories.", stories[7])])
    write_database(folder / "vector_memory.db", "trip", [TEA], [message_hash(stories[3]), message_hash(stories[7])])
    return folder


def test_it_goes_on_behind_what_was_imported(memory: Memory, folder: Path) -> None:
    import_discussion(memory, folder)
    report = update_discussion(memory, SCOPE, SETTINGS, messages=chat(*said(12)))
    assert report.made == 2
    first, second, third = chunk_memories(memory, SCOPE)
    assert (first.text, second.text, third.hash) == ("Four stories.", "Four more.", message_hash(said(12)[-1]))
    assert "number 9" in third.text
    assert "number 8" not in third.text
    keywords = keyword_memories(memory, SCOPE)
    assert keywords[0].summary == TEA["summary"]
    assert not any("number 8" in each.summary for each in keywords)
    assert current_summary(memory, SCOPE) == "Eight stories."
    assert update_discussion(memory, SCOPE, SETTINGS, messages=chat(*said(12))).made == 0


@pytest.mark.parametrize("change", ["absent", "ambiguous"])
def test_it_asks_and_makes_nothing_until_it_is_told(memory: Memory, folder: Path, change: str) -> None:
    import_discussion(memory, folder)
    stories = said(12)
    stories[7 if change == "absent" else 9] = "Something else." if change == "absent" else stories[7]
    for _ in range(2):
        with pytest.raises(ConflictError, match="continue_at"):
            update_discussion(memory, SCOPE, SETTINGS, messages=chat(*stories))
        assert len(chunk_memories(memory, SCOPE)) == 2
    assert update_discussion(memory, SCOPE, SETTINGS, continue_at=9).made == 2
    assert "number 7" not in chunk_memories(memory, SCOPE)[-1].text
    assert update_discussion(memory, SCOPE, SETTINGS, messages=chat(*stories)).made == 0


@pytest.mark.parametrize("layout", ["folders", "flat"])
def test_files_are_kept_current_once_a_run(memory: Memory, folder: Path, tmp_path: Path, layout: Layout) -> None:
    import_discussion(memory, folder)
    root = tmp_path / "files"
    for count in (12, 16):
        update_discussion(memory, SCOPE, SETTINGS, messages=chat(*said(count)), files_dir=root, layout=layout)
    paths = part_paths(root, "trip", "", layout)
    text = paths["memories"].read_text()
    blocks = json.loads(text) if layout == "folders" else [json.loads(line) for line in text.splitlines()]
    assert [each["hash"] for each in blocks] == [message_hash(said(16)[place]) for place in (3, 7, 11, 15)]
    assert search(paths["database"], "green tea", "trip") == [TEA["summary"]]
    assert search(paths["database"], "number 14", "trip", limit=50)
    before = snapshot(root)
    update_discussion(memory, SCOPE, SETTINGS, messages=chat(*said(16)), files_dir=root, layout=layout)
    assert snapshot(root) == before


def test_what_the_files_hold_goes_on_elsewhere(memory: Memory, folder: Path, tmp_path: Path) -> None:
    """From the files of a run another store goes on where the run ended."""
    import_discussion(memory, folder)
    update_discussion(memory, SCOPE, SETTINGS, messages=chat(*said(12)), files_dir=tmp_path / "files")
    with eunoe.open(":memory:", llm="none") as other:
        import_discussion(other, tmp_path / "files" / "trip")
        assert update_discussion(other, SCOPE, SETTINGS, messages=chat(*said(12))).made == 0
        assert update_discussion(other, SCOPE, SETTINGS, messages=chat(*said(16))).made == 2


def test_hand_edits_are_taken_in_by_a_run(memory: Memory, tmp_path: Path) -> None:
    StateDocument(memory, SCOPE).write("Anna lives in Paris.")
    update_discussion(memory, SCOPE, SETTINGS, messages=chat(*said(4)), files_dir=tmp_path)
    path = tmp_path / "trip" / "state_document.md"
    path.write_text("Anna lives in Rome.")
    update_discussion(memory, SCOPE, SETTINGS, files_dir=tmp_path)
    assert StateDocument(memory, SCOPE).read() == path.read_text() == "Anna lives in Rome."


def test_what_another_program_adds_meanwhile_is_taken_in_before_anything_is_made(
    memory: Memory, folder: Path, tmp_path: Path
) -> None:
    import_discussion(memory, folder)
    update_discussion(memory, SCOPE, SETTINGS, messages=chat(*said(12)), files_dir=tmp_path)
    path = folder / "memories.json"
    path.write_text(json.dumps([*json.loads(path.read_text()), block("Theirs.", said(15)[-1])], indent=4))
    write_database(folder / "vector_memory.db", "trip", [ROME], [message_hash(said(15)[-1])])
    report = update_discussion(memory, SCOPE, SETTINGS, messages=chat(*said(20)), files_dir=tmp_path)
    assert any("what another program wrote was imported: 2 new" in note for note in report.notes)
    ends = [message_hash(said(20)[place - 1]) for place in (4, 8, 12, 15, 19)]
    assert [each["hash"] for each in json.loads(path.read_text())] == ends
    keywords = keyword_memories(memory, SCOPE)
    assert not any(f"number {number}." in each.summary for each in keywords for number in (13, 14, 15))
    hashes = query(folder / "vector_memory.db", "SELECT message_hash FROM vector_memory_hash_log ORDER BY id")
    assert [hash for (hash,) in hashes] == ends
    again = update_discussion(memory, SCOPE, SETTINGS, messages=chat(*said(20)), files_dir=tmp_path)
    assert (again.made, again.notes) == (0, ())


def test_memories_in_the_folder_whose_end_is_not_found_are_told_before_anything_is_made(
    memory: Memory, tmp_path: Path
) -> None:
    folder = write_folder(tmp_path / "trip", [block("Not known here.")])
    with pytest.raises(ConflictError, match="continue_at"):
        update_discussion(memory, SCOPE, SETTINGS, messages=chat(*said(4)), files_dir=tmp_path)
    assert [each.text for each in chunk_memories(memory, SCOPE)] == ["Not known here."]
    assert len(DiscussionLog(memory, SCOPE).messages()) == 4
    update_discussion(memory, SCOPE, SETTINGS, files_dir=tmp_path, continue_at="start")
    assert len(json.loads((folder / "memories.json").read_text())) == 2


def test_files_that_cannot_be_read_are_told_before_anything_is_made(memory: Memory, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "trip", [block("Not known here.")])
    (folder / "memories.json").write_text("[{")
    with pytest.raises(InputError, match=r"memories\.json is damaged or half-written"):
        update_discussion(memory, SCOPE, SETTINGS, messages=chat(*said(4)), files_dir=tmp_path)
    with pytest.raises(InputError, match="layout is 'x'"):
        update_discussion(memory, SCOPE, SETTINGS, files_dir=tmp_path, layout="x")  # type: ignore[arg-type]
    assert chunk_memories(memory, SCOPE) == []
    assert len(DiscussionLog(memory, SCOPE).messages()) == 4


def test_an_older_version_in_a_file_does_not_come_back(memory: Memory, tmp_path: Path) -> None:
    """The file was not written since a chunk was made anew, and another program adds to it."""
    stories = said(8)
    update_discussion(memory, SCOPE, SETTINGS, messages=chat(*stories), files_dir=tmp_path)
    stories[1] = "Ben tells something else."
    update_discussion(memory, SCOPE, SETTINGS, messages=chat(*stories))
    path = tmp_path / "trip" / "memories.json"
    path.write_text(json.dumps([*json.loads(path.read_text()), block("Theirs.", said(12)[-1])], indent=4))
    write_database(tmp_path / "trip" / "vector_memory.db", "trip", [ROME], [message_hash(said(12)[-1])])
    before = [each.summary for each in keyword_memories(memory, SCOPE)]
    stories += said(12)[8:]
    update_discussion(memory, SCOPE, SETTINGS, messages=chat(*stories), files_dir=tmp_path)
    first, _, third = chunk_memories(memory, SCOPE)
    assert ("Ben tells" in first.text, third.text) == (True, "Theirs.")
    assert [each.summary for each in keyword_memories(memory, SCOPE)] == [*before, ROME["summary"]]
