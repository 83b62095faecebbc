"""A discussion of another program is imported, and goes on here with the chat."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.discussion_files import (
    DATE,
    ROME,
    TEA,
    block,
    message_hash,
    search,
    snapshot,
    write_database,
    write_folder,
)

import eunoe
from eunoe.apps.discussion.documents import StateDocument, current_summary, new_since_summary
from eunoe.apps.discussion.files import FileKey, Layout, import_discussion, import_folder
from eunoe.apps.discussion.files.database import LoggedHash
from eunoe.apps.discussion.files.importing import ImportRecord, settle_import
from eunoe.apps.discussion.files.layout import part_paths
from eunoe.apps.discussion.model import (
    Chunk,
    ChunkMemory,
    KeywordMemory,
    LogMessage,
    chunk_memories,
    discussion_ids,
    discussion_scope,
    keyword_memories,
    memory_item,
)
from eunoe.apps.discussion.settings import ChunkSettings, DiscussionSettings, StateDocumentSettings, SummarySettings
from eunoe.apps.discussion.update import update_discussion
from eunoe.errors import ConflictError, InputError
from eunoe.memory import Memory

SCOPE = discussion_scope("trip")


HASH = "0123456789abcdef"


@pytest.fixture
def memory() -> Iterator[Memory]:
    with eunoe.open(":memory:", llm="none") as memory:
        yield memory


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A discussion with everything that it can have."""
    folder = write_folder(
        tmp_path / "discussions" / "trip",
        [block("Anna moved.", "m1"), block("Anna met Ben.", "m2"), block("They went to Rome.", "m3")],
        chat_summary=[block("Anna moved and met Ben.", "m2")],
    )
    write_database(folder / "vector_memory.db", "trip", [TEA, ROME], [message_hash("m3")])
    (folder / "state_document.md").write_text("# Now\nAnna lives in Rome.\n")
    return folder


def texts(memory: Memory) -> list[str]:
    return [each.text for each in chunk_memories(memory, SCOPE)]


def held(memory: Memory) -> list[str]:
    """The whole store as its export has it."""
    lines: list[str] = []

    class Target:
        def write(self, text: str) -> None:
            lines.append(text)

    memory.admin.export(memory.scopes(), Target())  # type: ignore[arg-type]
    return [line for line in lines if '"version"' not in line[:40]]


def test_everything_is_taken_in(memory: Memory, folder: Path) -> None:
    report = import_discussion(memory, folder)
    assert (report.id, report.user, report.stored, report.notes) == ("trip", "default", 5, ())
    assert texts(memory) == ["Anna moved.", "Anna met Ben.", "They went to Rome."]
    assert [each.hash for each in chunk_memories(memory, SCOPE)] == [message_hash(f"m{n}") for n in (1, 2, 3)]
    assert [each.summary for each in keyword_memories(memory, SCOPE)] == [TEA["summary"], ROME["summary"]]
    assert current_summary(memory, SCOPE) == "Anna moved and met Ben."
    assert [each.text for each in new_since_summary(memory, SCOPE)] == ["They went to Rome."]
    assert StateDocument(memory, SCOPE).read() == "# Now\nAnna lives in Rome.\n"


def test_twice_changes_nothing(memory: Memory, folder: Path) -> None:
    import_discussion(memory, folder)
    before = held(memory)
    report = import_discussion(memory, folder)
    assert (report.stored, report.ended, report.unchanged) == (0, 0, 5)
    assert (report.summary, report.state_document) == (False, False)
    assert held(memory) == before


def test_the_files_are_not_touched(memory: Memory, folder: Path) -> None:
    before = snapshot(folder.parent)
    import_discussion(memory, folder)
    import_folder(memory, folder.parent)
    assert snapshot(folder.parent) == before


def test_a_file_that_has_grown_adds_what_is_new(memory: Memory, folder: Path) -> None:
    import_discussion(memory, folder)
    blocks = json.loads((folder / "memories.json").read_text())
    write_folder(folder, [*blocks, block("Ben left.", "m4")], chat_summary=[block("All of it.", "m3")])
    write_database(folder / "vector_memory.db", "trip", [{**TEA, "summary": "Ben left."}], [message_hash("m4")])
    report = import_discussion(memory, folder)
    assert (report.stored, report.ended, report.summary) == (2, 0, True)
    assert texts(memory)[-1] == "Ben left."
    assert [each.text for each in new_since_summary(memory, SCOPE)] == ["Ben left."]


def test_what_changed_in_a_file_takes_the_place_of_what_it_said(memory: Memory, folder: Path) -> None:
    import_discussion(memory, folder)
    write_folder(folder, [block("Anna moved to Rome.", "m1"), block("They went to Rome.", "m3")])
    with closing(sqlite3.connect(folder / "vector_memory.db")) as connection, connection:
        connection.execute("UPDATE memories SET memory_text = 'Anna likes coffee.' WHERE id = 1")
    report = import_discussion(memory, folder)
    assert (report.stored, report.ended) == (2, 3)
    assert texts(memory) == ["Anna moved to Rome.", "They went to Rome."]
    assert [each.summary for each in keyword_memories(memory, SCOPE)] == ["Anna likes coffee.", ROME["summary"]]
    assert current_summary(memory, SCOPE) == "Anna moved and met Ben."


def test_a_change_that_is_taken_back_counts_again(memory: Memory, folder: Path) -> None:
    original = json.loads((folder / "memories.json").read_text())
    for blocks in (original, [block("Other words.", "m1"), original[2]], original):
        write_folder(folder, blocks)
        import_discussion(memory, folder)
        assert texts(memory) == [each["text_block"] for each in blocks]
    for text in ("# Now\nAnna lives in Oslo.\n", "# Now\nAnna lives in Rome.\n"):
        (folder / "state_document.md").write_text(text)
        import_discussion(memory, folder)
        assert StateDocument(memory, SCOPE).read() == text


def test_what_was_made_here_since_stays(memory: Memory, folder: Path) -> None:
    import_discussion(memory, folder)
    chunk = Chunk("chunk_memory", 4.0, "m4", "m5", "digest")
    own = ChunkMemory(text="Ben left.", hash=message_hash("m5"), id="chunk_memory:m4", chunk=chunk, place=4.0)
    memory.remember_many(SCOPE, [memory_item(own)])
    memory.summaries.write(SCOPE, "A newer summary.", author="model")
    import_discussion(memory, folder)
    assert texts(memory)[-1] == "Ben left."
    assert current_summary(memory, SCOPE) == "A newer summary."


def test_what_was_forgotten_stays_forgotten_until_asked_for(memory: Memory, folder: Path) -> None:
    import_discussion(memory, folder)
    memory.forget(SCOPE, [chunk_memories(memory, SCOPE)[0].id])
    report = import_discussion(memory, folder)
    assert texts(memory) == ["Anna met Ben.", "They went to Rome."]
    assert any("forgotten here before" in note for note in report.notes)
    import_discussion(memory, folder, again=True)
    assert texts(memory) == ["Anna moved.", "Anna met Ben.", "They went to Rome."]


def test_a_forgotten_state_document_does_not_come_back_from_its_file(memory: Memory, folder: Path) -> None:
    path = folder / "state_document.md"
    path.write_text("The secret is 4711.")
    import_discussion(memory, folder)
    memory.forget(SCOPE, everything=True)
    import_discussion(memory, folder)
    assert StateDocument(memory, SCOPE).read() == ""
    path.write_text("Anna lives in Rome.")
    import_discussion(memory, folder)
    assert StateDocument(memory, SCOPE).read() == "Anna lives in Rome."


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("memories.json", b'[{"text_block": "Anna mo'),
        ("memories.json", b""),
        ("chat_summary.json", b"{}"),
        ("vector_memory.db", b"SQLite format 3\x00 and nothing else"),
        ("state_document.md", b"\xff\xfe"),
        ("memories.json", b'[{"text_block": "\\ud800", "hash": "aa"}]'),
        pytest.param("chat_summary.json", FileKey.from_api_key("secret", b"salt").encrypt(b"[]"), id="encrypted"),
    ],
)
def test_with_a_damaged_file_nothing_is_taken_in(memory: Memory, folder: Path, name: str, content: bytes) -> None:
    (folder / name).write_bytes(content)
    with pytest.raises(InputError, match="trip"):
        import_discussion(memory, folder)
    assert memory.scopes() == []


def test_one_refused_discussion_does_not_hold_up_the_others(memory: Memory, folder: Path) -> None:
    root = folder.parent
    (write_folder(root / "bad", [block("One.")]) / "chat_summary.json").write_bytes(b"[")
    write_folder(root / "my:chat", [block("One.")])
    report = import_folder(memory, root)
    assert [each.id for each in report.discussions] == ["trip"]
    assert [each.name for each in report.refused] == ["bad", "my:chat"]
    assert "chat_summary.json is damaged" in report.refused[0].reason
    assert "no id of a discussion" in report.refused[1].reason
    assert discussion_ids(memory) == ["trip"]
    assert import_discussion(memory, root / "my:chat", id="my-chat").stored == 1


def test_folders_by_hashed_key_are_users(memory: Memory, folder: Path) -> None:
    root = folder.parent
    write_folder(root / HASH / "trip", [block("Of another user.")])
    write_folder(root / ("f" * 16) / "trip", [block("Of a third one.")])
    report = import_folder(memory, root, users={"f" * 16: "carla"})
    assert [(each.user, each.id) for each in report.discussions] == [
        ("default", "trip"),
        (HASH, "trip"),
        ("carla", "trip"),
    ]
    assert [each.text for each in chunk_memories(memory, discussion_scope("trip", HASH))] == ["Of another user."]
    assert [each.text for each in chunk_memories(memory, discussion_scope("trip", "carla"))] == ["Of a third one."]
    assert len(texts(memory)) == 3


def test_encrypted_discussions_need_their_key_or_are_refused_by_name(memory: Memory, tmp_path: Path) -> None:
    keys = {HASH: FileKey.from_api_key("secret", b"salt"), "f" * 16: FileKey.from_api_key("other", b"pepper")}
    for user, key in keys.items():
        folder = tmp_path / user / "trip"
        folder.mkdir(parents=True)
        (folder / "memories.json").write_bytes(key.encrypt(json.dumps([block(f"Of {user}.")]).encode()))
    refused = import_folder(memory, tmp_path).refused
    assert [each.name for each in refused] == [f"{HASH}/trip", f"{'f' * 16}/trip"]
    assert all("is encrypted: give the API key" in each.reason for each in refused)
    assert memory.scopes() == []
    report = import_folder(memory, tmp_path, keys=keys[HASH])
    assert [each.name for each in report.refused] == [f"{'f' * 16}/trip"]
    assert import_folder(memory, tmp_path, keys=keys).refused == ()
    assert [each.text for each in chunk_memories(memory, discussion_scope("trip", HASH))] == [f"Of {HASH}."]


def test_rows_of_other_discussions_are_not_mixed_in(memory: Memory, tmp_path: Path) -> None:
    path = write_database(tmp_path / "trip_vector_memory.db", "trip", [TEA])
    write_database(path, "secret", [ROME])
    report = import_discussion(memory, path)
    assert [each.summary for each in keyword_memories(memory, SCOPE)] == [TEA["summary"]]
    assert report.notes == (f"{path} holds 1 memories of other discussions: they are left out",)


def test_a_summary_without_its_memory_counts_for_all(memory: Memory, folder: Path) -> None:
    write_folder(folder, chat_summary=[block("So far.", "unknown")])
    report = import_discussion(memory, folder)
    assert any("ends on a memory that is not there" in note for note in report.notes)
    assert new_since_summary(memory, SCOPE) == []


def test_two_imports_at_once_do_not_meet(memory: Memory, folder: Path) -> None:
    lease = memory.leases.acquire(SCOPE, "import")
    assert lease
    with pytest.raises(ConflictError, match="being imported by another process"):
        import_discussion(memory, folder)
    memory.leases.release(SCOPE, lease)
    assert import_discussion(memory, folder).stored == 5


def test_an_imported_document_holds_the_imported_memories(memory: Memory, folder: Path) -> None:
    import_discussion(memory, folder)
    document, settings = StateDocument(memory, SCOPE), StateDocumentSettings(is_on=True)
    assert document.update(settings, None) == "unchanged"
    made = KeywordMemory(title="Cup", summary="Anna bought a cup.", id="k1", place=9.0)
    memory.remember_many(SCOPE, [memory_item(made)])
    assert document.update(settings, None) == "written"
    assert document.read() == "# Now\nAnna lives in Rome.\n- Anna bought a cup."


def test_what_was_put_right_here_stays_so(memory: Memory, folder: Path) -> None:
    import_discussion(memory, folder)
    first = chunk_memories(memory, SCOPE)[0]
    memory.update(SCOPE, first.id, "Anna moved to Oslo.")
    report = import_discussion(memory, folder)
    assert (report.stored, report.ended, texts(memory)[0]) == (0, 0, "Anna moved to Oslo.")


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


SETTINGS = DiscussionSettings(
    memory_kinds=("chunk_memory", "keyword_memory"),
    lookback=0,
    chunk_memory=ChunkSettings(messages=4),
    keyword_memory=ChunkSettings(messages=4),
    summary=SummarySettings(least_memories=100),
)


def talk(*texts: str) -> list[dict[str, str]]:
    return [{"role": ("user", "assistant")[number % 2], "content": text} for number, text in enumerate(texts)]


def said(count: int) -> list[str]:
    return [f"Anna tells story number {number}." for number in range(1, count + 1)]


@pytest.fixture
def half_told(tmp_path: Path) -> Path:
    """The first eight messages were made into memories by another program."""
    stories = said(8)
    blocks = [block("Four stories.", stories[3]), block("Four more.", stories[7])]
    half_told = write_folder(tmp_path / "trip", blocks, chat_summary=[block("Eight stories.", stories[7])])
    write_database(half_told / "vector_memory.db", "trip", [TEA], [message_hash(stories[3]), message_hash(stories[7])])
    return half_told


def test_it_goes_on_behind_what_was_imported(memory: Memory, half_told: Path) -> None:
    import_discussion(memory, half_told)
    report = update_discussion(memory, SCOPE, SETTINGS, messages=talk(*said(12)))
    assert report.made == 2
    first, second, third = chunk_memories(memory, SCOPE)
    assert (first.text, second.text, third.hash) == ("Four stories.", "Four more.", message_hash(said(12)[-1]))
    assert "number 9" in third.text
    assert "number 8" not in third.text
    keywords = keyword_memories(memory, SCOPE)
    assert keywords[0].summary == TEA["summary"]
    assert not any("number 8" in each.summary for each in keywords)
    assert current_summary(memory, SCOPE) == "Eight stories."
    assert update_discussion(memory, SCOPE, SETTINGS, messages=talk(*said(12))).made == 0


@pytest.mark.parametrize("change", ["absent", "ambiguous"])
def test_it_asks_and_makes_nothing_until_it_is_told(memory: Memory, half_told: Path, change: str) -> None:
    import_discussion(memory, half_told)
    stories = said(12)
    stories[7 if change == "absent" else 9] = "Something else." if change == "absent" else stories[7]
    for _ in range(2):
        with pytest.raises(ConflictError, match="continue_at"):
            update_discussion(memory, SCOPE, SETTINGS, messages=talk(*stories))
        assert len(chunk_memories(memory, SCOPE)) == 2
    assert update_discussion(memory, SCOPE, SETTINGS, continue_at=9).made == 2
    assert "number 7" not in chunk_memories(memory, SCOPE)[-1].text
    assert update_discussion(memory, SCOPE, SETTINGS, messages=talk(*stories)).made == 0


@pytest.mark.parametrize("layout", ["folders", "flat"])
def test_files_are_kept_current_once_a_run(memory: Memory, half_told: Path, tmp_path: Path, layout: Layout) -> None:
    import_discussion(memory, half_told)
    root = tmp_path / "files"
    for count in (12, 16):
        update_discussion(memory, SCOPE, SETTINGS, messages=talk(*said(count)), files_dir=root, layout=layout)
    paths = part_paths(root, "trip", "", layout)
    text = paths["memories"].read_text()
    blocks = json.loads(text) if layout == "folders" else [json.loads(line) for line in text.splitlines()]
    assert [each["hash"] for each in blocks] == [message_hash(said(16)[place]) for place in (3, 7, 11, 15)]
    assert search(paths["database"], "green tea", "trip") == [TEA["summary"]]
    assert search(paths["database"], "number 14", "trip", limit=50)
    before = snapshot(root)
    update_discussion(memory, SCOPE, SETTINGS, messages=talk(*said(16)), files_dir=root, layout=layout)
    assert snapshot(root) == before


def test_what_the_files_hold_goes_on_elsewhere(memory: Memory, half_told: Path, tmp_path: Path) -> None:
    """From the files of a run another store goes on where the run ended."""
    import_discussion(memory, half_told)
    update_discussion(memory, SCOPE, SETTINGS, messages=talk(*said(12)), files_dir=tmp_path / "files")
    with eunoe.open(":memory:", llm="none") as other:
        import_discussion(other, tmp_path / "files" / "trip")
        assert update_discussion(other, SCOPE, SETTINGS, messages=talk(*said(12))).made == 0
        assert update_discussion(other, SCOPE, SETTINGS, messages=talk(*said(16))).made == 2


def test_what_another_program_wrote_is_left_alone_with_a_note(memory: Memory, half_told: Path, tmp_path: Path) -> None:
    import_discussion(memory, half_told)
    update_discussion(memory, SCOPE, SETTINGS, messages=talk(*said(12)), files_dir=tmp_path)
    path = half_told / "memories.json"
    path.write_text(json.dumps([*json.loads(path.read_text()), block("Theirs.", said(15)[-1])], indent=4))
    before = snapshot(half_told)
    report = update_discussion(memory, SCOPE, SETTINGS, messages=talk(*said(20)), files_dir=tmp_path)
    assert "memories.json is not as it was" in "".join(report.notes)
    assert snapshot(half_told) == before


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_files_do_not_go_where_a_file_stands(memory: Memory, tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("x")
    StateDocument(memory, SCOPE).write("Now.")
    report = update_discussion(memory, SCOPE, SETTINGS, files_dir=tmp_path / place)
    assert "is a file" in "".join(report.notes)
