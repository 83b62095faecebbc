"""A discussion of another program is imported, and goes on here with the chat."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.discussion_files import (
    TEA,
    block,
    message_hash,
    search,
    snapshot,
    write_database,
    write_folder,
)

import eunoe
from eunoe.apps.discussion.documents import StateDocument, current_summary
from eunoe.apps.discussion.files import Layout, import_discussion
from eunoe.apps.discussion.files.layout import part_paths
from eunoe.apps.discussion.model import chunk_memories, discussion_scope, keyword_memories
from eunoe.apps.discussion.settings import ChunkSettings, DiscussionSettings, SummarySettings
from eunoe.apps.discussion.update import update_discussion
from eunoe.errors import ConflictError
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


def test_what_another_program_wrote_is_left_alone_with_a_note(memory: Memory, folder: Path, tmp_path: Path) -> None:
    import_discussion(memory, folder)
    update_discussion(memory, SCOPE, SETTINGS, messages=chat(*said(12)), files_dir=tmp_path)
    path = folder / "memories.json"
    path.write_text(json.dumps([*json.loads(path.read_text()), block("Theirs.", said(15)[-1])], indent=4))
    before = snapshot(folder)
    report = update_discussion(memory, SCOPE, SETTINGS, messages=chat(*said(20)), files_dir=tmp_path)
    assert "memories.json is not as it was" in "".join(report.notes)
    assert snapshot(folder) == before


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_files_do_not_go_where_a_file_stands(memory: Memory, tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("x")
    StateDocument(memory, SCOPE).write("Now.")
    report = update_discussion(memory, SCOPE, SETTINGS, files_dir=tmp_path / place)
    assert "is a file" in "".join(report.notes)
