"""What is imported is exported again without loss, and what is exported is imported again."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.discussion_files import block, message_hash, write_database, write_folder

import eunoe
from eunoe.apps.discussion.files import FileKey, Layout, export_discussion, import_discussion, import_folder
from eunoe.apps.discussion.files.database import read_database
from eunoe.apps.discussion.files.layout import part_paths

WORDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=30).filter(str.strip)
BLOCKS = st.lists(st.builds(block, WORDS, WORDS), max_size=6)
OBJECTS = st.lists(
    st.fixed_dictionaries(
        {"title": WORDS, "summary": WORDS, "entities": st.lists(WORDS), "key_phrases": st.lists(WORDS)},
        optional={"topics": st.lists(WORDS), "sentiment": st.text(max_size=5), "importance": st.integers(0, 9)},
    ),
    max_size=4,
)
KEY = FileKey.from_api_key("secret", b"salt")


def write_flat(root: Path, blocks: list[dict[str, str]]) -> None:
    text = "".join(f"{json.dumps(each)}\n" for each in blocks)
    (root / "trip_memories.jsonl").write_bytes(text.encode())
    (root / "trip_summary.jsonl").write_bytes(text[: text.find("\n") + 1].encode())


def write_folders(root: Path, blocks: list[dict[str, str]]) -> None:
    folder = write_folder(root / "trip")
    for name, value in (("memories", blocks), ("chat_summary", blocks[:1])):
        (folder / f"{name}.json").write_bytes(json.dumps(value, indent=4).encode())


@pytest.mark.parametrize("layout", ["folders", "flat"])
@settings(max_examples=6)
@given(blocks=BLOCKS.filter(bool), objects=OBJECTS, document=st.just("") | WORDS)
def test_import_and_export_give_the_same_files(
    layout: Layout, blocks: list[dict[str, str]], objects: list[dict[str, Any]], document: str
) -> None:
    with TemporaryDirectory() as folder, eunoe.open(":memory:", llm="none") as memory:
        source, target = Path(folder) / "source", Path(folder) / "target"
        source.mkdir()
        (write_folders if layout == "folders" else write_flat)(source, blocks)
        paths = part_paths(source, "trip", "", layout)
        if document:
            paths["state_document"].write_bytes(document.encode())
        write_database(paths["database"], "trip", objects, [message_hash(each) for each in "abc"])
        import_folder(memory, source)
        export_discussion(memory, "trip", target, layout=layout)
        written = part_paths(target, "trip", "", layout)
        for part in ("memories", "summary", *(["state_document"] if document else [])):
            assert written[part].read_bytes() == paths[part].read_bytes()
        before, after = (read_database(each["database"], "trip") for each in (paths, written))
        assert after.rows == before.rows
        kept = before.hashes if layout == "folders" else before.hashes[-1:]
        assert after.hashes == kept


@pytest.mark.parametrize("layout", ["folders", "flat"])
@settings(max_examples=4)
@given(blocks=BLOCKS.filter(bool), objects=OBJECTS)
def test_an_export_read_here_again_changes_nothing_and_elsewhere_gives_the_same(
    layout: Layout, blocks: list[dict[str, str]], objects: list[dict[str, Any]]
) -> None:
    with TemporaryDirectory() as folder, eunoe.open(":memory:", llm="none") as memory:
        root, other = Path(folder), Path(folder) / "other"
        write_folders(root, blocks)
        write_database(root / "trip" / "vector_memory.db", "trip", objects)
        import_folder(memory, root)
        export_discussion(memory, "trip", other, layout=layout, key=KEY)
        (report,) = import_folder(memory, other, keys=KEY).discussions
        assert (report.stored, report.ended, report.summary) == (0, 0, False)
        with eunoe.open(":memory:", llm="none") as second:
            import_folder(second, other, keys=KEY)
            export_discussion(second, "trip", root / "third")
            for name in ("memories.json", "chat_summary.json"):
                assert (root / "third" / "trip" / name).read_bytes() == (root / "trip" / name).read_bytes()


@settings(max_examples=6)
@given(states=st.lists(BLOCKS, min_size=2, max_size=4))
def test_whatever_the_file_becomes_the_memories_follow(states: list[list[dict[str, str]]]) -> None:
    with TemporaryDirectory() as folder, eunoe.open(":memory:", llm="none") as memory:
        for blocks in states:
            write_folders(Path(folder), blocks)
            import_discussion(memory, Path(folder) / "trip")
        target = Path(folder) / "target"
        if states[-1]:
            export_discussion(memory, "trip", target)
            assert sorted(json.loads((target / "trip" / "memories.json").read_text()), key=str) == sorted(
                states[-1], key=str
            )
