"""The files of a discussion as other programs read them; what is imported is exported again without loss."""

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
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
from eunoe.apps.discussion.documents import StateDocument
from eunoe.apps.discussion.files import (
    FileKey,
    Layout,
    export_discussion,
    exporting,
    import_discussion,
    import_folder,
    write_files,
)
from eunoe.apps.discussion.files.database import read_database
from eunoe.apps.discussion.files.layout import part_paths, user_folder
from eunoe.apps.discussion.log import DiscussionLog
from eunoe.apps.discussion.model import (
    STATE_DOCUMENT,
    Chunk,
    ChunkMemory,
    KeywordMemory,
    chunk_memories,
    discussion_scope,
    keyword_memories,
    memory_item,
)
from eunoe.errors import ConflictError, InputError, NotFoundError
from eunoe.memory import Memory

SCOPE = discussion_scope("trip")


@pytest.fixture
def memory() -> Iterator[Memory]:
    with eunoe.open(":memory:", llm="none") as memory:
        yield memory


def keep(memory: Memory, *texts: str) -> None:
    """Chunk memories as a creator makes them; a text that is there already changes nothing."""
    memories = [
        ChunkMemory(text=text, hash=message_hash(f"m{place}"), id=f"chunk_memory:m{place}", place=float(place))
        for place, text in enumerate(texts, 1)
    ]
    memory.remember_many(SCOPE, map(memory_item, memories), replace=True, again=True)


def blocks(*texts: str) -> list[dict[str, str]]:
    return [block(text, f"m{place}") for place, text in enumerate(texts, 1)]


def lines(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_everything_is_written(memory: Memory, tmp_path: Path) -> None:
    keep(memory, "One.", "Two.")
    first = chunk_memories(memory, SCOPE)[0]
    memory.summaries.write(SCOPE, "So far.", author="model", absorbed=[first.id])
    report = DiscussionLog(memory, SCOPE).take_in([{"role": "user", "content": "Hello"}])
    chunk = Chunk("keyword_memory", 1.0, report.ids[0], report.ids[0])
    keyword = KeywordMemory(title="Tea", summary="Anna likes tea.", entities=("Anna",), id="k1", chunk=chunk, place=1.0)
    memory.remember_many(SCOPE, [memory_item(keyword)])
    document = StateDocument(memory, SCOPE)
    document.write("# Now\nParis.\n")
    document.write("# Now\nRome.\n")
    paths = export_discussion(memory, "trip", tmp_path)
    folder = tmp_path / "trip"
    assert {path.name for path in paths} == {
        "memories.json",
        "chat_summary.json",
        "vector_memory.db",
        "state_document.md",
    }
    assert (folder / "memories.json").read_text() == json.dumps(blocks("One.", "Two."), indent=4)
    assert json.loads((folder / "chat_summary.json").read_text()) == [block("So far.", "m1")]
    assert (folder / "state_document.md").read_text() == "# Now\nRome.\n"
    assert search(folder / "vector_memory.db", "tea", "trip") == ["Anna likes tea."]
    assert query(folder / "vector_memory.db", "SELECT message_hash FROM vector_memory_hash_log") == [
        (message_hash("Hello"),)
    ]
    ((date,),) = query(folder / "vector_memory.db", "SELECT date_added FROM memories")
    assert date.endswith("+00:00")


def test_nothing_to_export_creates_nothing(memory: Memory, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="discussion trip of default holds no memories"):
        export_discussion(memory, "trip", tmp_path)
    assert write_files(memory, SCOPE, tmp_path) == []
    assert list(tmp_path.iterdir()) == []
    assert memory.scopes() == []


@pytest.mark.parametrize("layout", ["folders", "flat"])
def test_files_that_are_current_are_not_touched(memory: Memory, tmp_path: Path, layout: Layout) -> None:
    keep(memory, "One.", "Two.")
    StateDocument(memory, SCOPE).write("# Now\n")
    memory.remember_many(SCOPE, [memory_item(KeywordMemory(title="Tea", summary="Tea.", id="k1"))])
    assert write_files(memory, SCOPE, tmp_path, layout)
    before = snapshot(tmp_path)
    assert write_files(memory, SCOPE, tmp_path, layout) == []
    assert snapshot(tmp_path) == before


def test_the_flat_layout_has_its_own_names(memory: Memory, tmp_path: Path) -> None:
    keep(memory, "One.")
    memory.summaries.write(SCOPE, "So far.", absorbed=[chunk_memories(memory, SCOPE)[0].id])
    memory.remember_many(SCOPE, [memory_item(KeywordMemory(title="Tea", summary="Tea.", id="k1"))])
    names = {path.name for path in export_discussion(memory, "trip", tmp_path, layout="flat")}
    assert names == {"trip_memories.jsonl", "trip_summary.jsonl", "trip_vector_memory.db"}
    assert lines(tmp_path / "trip_summary.jsonl") == [block("So far.", "m1")]


def test_users_do_not_meet(memory: Memory, tmp_path: Path) -> None:
    for user in ("default", "anna", "f" * 16):
        memory.remember_many(
            discussion_scope("trip", user), [memory_item(ChunkMemory(text=f"Of {user}.", id="c", place=1.0))]
        )
        export_discussion(memory, "trip", tmp_path, user=user)
    found = {
        path.parent.parent.name: json.loads(path.read_text())[0]["text_block"]
        for path in tmp_path.rglob("memories.json")
    }
    assert sorted(found.values()) == ["Of anna.", "Of default.", f"Of {'f' * 16}."]
    assert found["f" * 16] == f"Of {'f' * 16}."


def test_an_imported_user_keeps_the_folder(memory: Memory, tmp_path: Path) -> None:
    hash = "0123456789abcdef"
    folder = write_folder(tmp_path / "Theirs" / hash / "trip", blocks("One."))
    import_folder(memory, tmp_path / "Theirs", users={hash: "anna"})
    import_discussion(memory, write_folder(tmp_path / "x" / "plain", blocks("Two.")), user="ben")
    new = ChunkMemory(text="Made here.", id="c", place=1.0)
    memory.remember_many(discussion_scope("new", "anna"), [memory_item(new)])
    root = tmp_path / "Ours"
    for id, user in (("trip", "anna"), ("new", "anna"), ("plain", "ben")):
        export_discussion(memory, id, root, user=user)
    found = {str(path.parent.relative_to(root)) for path in root.rglob("memories.json")}
    assert found == {f"{hash}/trip", f"{hash}/new", "plain"}
    assert (root / hash / "trip" / "memories.json").read_bytes() == (folder / "memories.json").read_bytes()


@pytest.mark.parametrize("layout", ["folders", "flat"])
def test_files_of_another_user_are_refused(memory: Memory, tmp_path: Path, layout: Layout) -> None:
    users = ("anna", user_folder("anna"))
    for user in users:
        one = ChunkMemory(text=f"Of {user}.", id="c", place=1.0)
        memory.remember_many(discussion_scope("trip", user), [memory_item(one)])
    export_discussion(memory, "trip", tmp_path, user="anna", layout=layout)
    before = snapshot(tmp_path)
    with pytest.raises(ConflictError, match=f"holds files of the user anna, not of {users[1]}"):
        write_files(memory, discussion_scope("trip", users[1]), tmp_path, layout)
    assert snapshot(tmp_path) == before


def test_memories_of_another_program_are_not_overwritten(memory: Memory, tmp_path: Path) -> None:
    keep(memory, "One.")
    folder = write_folder(tmp_path / "trip", [block("Not known here.")])
    with pytest.raises(ConflictError, match=r"memories\.json is not as it was last read or written here"):
        write_files(memory, SCOPE, tmp_path)
    assert json.loads((folder / "memories.json").read_text()) == [block("Not known here.")]
    import_discussion(memory, folder)
    write_files(memory, SCOPE, tmp_path)
    assert len(json.loads((folder / "memories.json").read_text())) == 2


def test_an_imported_memory_that_is_forgotten_leaves_the_files(memory: Memory, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "trip", blocks("One.", "The PIN is 4711."))
    write_database(folder / "vector_memory.db", "trip", [TEA, ROME])
    (folder / "state_document.md").write_text("PIN: 4711.")
    import_discussion(memory, folder)
    memory.forget(SCOPE, [chunk_memories(memory, SCOPE)[1].id, keyword_memories(memory, SCOPE)[0].id])
    memory.forget(SCOPE, STATE_DOCUMENT)
    export_discussion(memory, "trip", tmp_path)
    assert json.loads((folder / "memories.json").read_text()) == blocks("One.")
    assert query(folder / "vector_memory.db", "SELECT memory_text FROM memories") == [(ROME["summary"],)]
    assert not (folder / "state_document.md").exists()


@pytest.mark.parametrize("name", ["chat_summary.json", "vector_memory.db"])
def test_summaries_and_rows_of_another_program_are_not_overwritten(memory: Memory, tmp_path: Path, name: str) -> None:
    folder = write_folder(tmp_path / "trip", [block("One.", "m1")], chat_summary=[block("So far.", "m1")])
    write_database(folder / "vector_memory.db", "trip", [TEA])
    import_discussion(memory, folder)
    write_files(memory, SCOPE, tmp_path)
    write_folder(folder, chat_summary=[block("Not known.", "m1")]) if name == "chat_summary.json" else write_database(
        folder / name, "trip", [ROME]
    )
    before = snapshot(tmp_path)
    with pytest.raises(ConflictError, match=name):
        write_files(memory, SCOPE, tmp_path)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("layout", ["folders", "flat"])
def test_what_is_forgotten_leaves_the_files(memory: Memory, tmp_path: Path, layout: Layout) -> None:
    keep(memory, "The PIN is zweiundvierzig.", "Two.")
    StateDocument(memory, SCOPE).write("PIN: zweiundvierzig.")
    memory.summaries.write(SCOPE, "zweiundvierzig", absorbed=["chunk_memory:m1"])
    keyword = KeywordMemory(title="PIN", summary="It is zweiundvierzig.", id="k1", place=1.0)
    memory.remember_many(SCOPE, [memory_item(keyword)])
    write_files(memory, SCOPE, tmp_path, layout)
    StateDocument(memory, SCOPE).write("PIN: none.")
    write_files(memory, SCOPE, tmp_path, layout)
    assert any(b"zweiundvierzig" in content for content, _ in snapshot(tmp_path).values())
    memory.forget(SCOPE, everything=True)
    write_files(memory, SCOPE, tmp_path, layout)
    assert [name for name, (content, _) in snapshot(tmp_path).items() if b"zweiundvierzig" in content] == []


def test_encrypted_files_stay_encrypted(memory: Memory, tmp_path: Path) -> None:
    key = FileKey.from_api_key("secret", b"salt")
    keep(memory, "One.")
    export_discussion(memory, "trip", tmp_path, key=key)
    path = tmp_path / "trip" / "memories.json"
    assert json.loads(key.decrypt(path.read_bytes(), "x")) == blocks("One.")
    before = snapshot(tmp_path)
    assert export_discussion(memory, "trip", tmp_path, key=key) == []
    with pytest.raises(InputError, match=r"are encrypted, such as .*memories\.json"):
        export_discussion(memory, "trip", tmp_path)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("layout", ["folders", "flat"])
def test_nothing_is_written_in_plain_text_beside_encrypted_files(
    memory: Memory, tmp_path: Path, layout: Layout
) -> None:
    key, user = FileKey.from_api_key("secret", b"salt"), "f" * 16
    for id in ("one", "two"):
        item = memory_item(ChunkMemory(text="One.", id="c", place=1.0))
        memory.remember_many(discussion_scope(id, user), [item])
    export_discussion(memory, "one", tmp_path, user=user, layout=layout, key=key)
    before = snapshot(tmp_path)
    with pytest.raises(InputError, match=f"the files of the user {user} are encrypted"):
        export_discussion(memory, "two", tmp_path, user=user, layout=layout)
    assert snapshot(tmp_path) == before


def test_what_came_encrypted_is_kept_current_only_with_the_key(memory: Memory, tmp_path: Path) -> None:
    key = FileKey.from_api_key("secret", b"salt")
    folder = write_folder(tmp_path / "a" / "trip")
    (folder / "memories.json").write_bytes(key.encrypt(json.dumps(blocks("One.")).encode()))
    import_discussion(memory, folder, key=key)
    with pytest.raises(InputError, match="discussion trip of default was imported from encrypted files"):
        write_files(memory, SCOPE, tmp_path / "b")
    assert not (tmp_path / "b").exists()
    write_files(memory, SCOPE, tmp_path / "b", key=key)
    assert json.loads(key.decrypt((tmp_path / "b" / "trip" / "memories.json").read_bytes(), "x")) == blocks("One.")


def test_an_unknown_layout_is_refused(memory: Memory, tmp_path: Path) -> None:
    keep(memory, "One.")
    with pytest.raises(InputError, match="layout is 'host': choose one of folders, flat"):
        export_discussion(memory, "trip", tmp_path, layout="host")  # type: ignore[arg-type]


def test_a_document_that_somebody_else_changed_is_not_overwritten(memory: Memory, tmp_path: Path) -> None:
    StateDocument(memory, SCOPE).write("# Now\nParis.\n")
    write_files(memory, SCOPE, tmp_path)
    path = tmp_path / "trip" / "state_document.md"
    path.write_text("By somebody else.\n")
    with pytest.raises(ConflictError, match=r"state_document\.md is not as it was"):
        write_files(memory, SCOPE, tmp_path)
    import_discussion(memory, path.parent)
    assert StateDocument(memory, SCOPE).read() == "By somebody else.\n"
    write_files(memory, SCOPE, tmp_path)
    assert path.read_text() == "By somebody else.\n"


def test_an_export_that_was_killed_goes_on(memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(memory, "One.")
    memory.remember_many(SCOPE, [memory_item(KeywordMemory(title="Tea", summary="Tea.", id="k1"))])
    monkeypatch.setattr(exporting, "write_database", killed)
    with pytest.raises(KeyboardInterrupt):
        write_files(memory, SCOPE, tmp_path)
    monkeypatch.undo()
    keep(memory, "One.", "Two.")
    write_files(memory, SCOPE, tmp_path)
    assert json.loads((tmp_path / "trip" / "memories.json").read_text()) == blocks("One.", "Two.")


def killed(*_: object) -> None:
    raise KeyboardInterrupt


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
