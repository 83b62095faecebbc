from pathlib import Path

import pytest

from eunoe.apps.discussion.files.layout import files_at, find_discussions, user_folder
from eunoe.errors import InputError

HASH = "0123456789abcdef"


def touch(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("[]")


def found(root: Path) -> dict[str, list[str]]:
    return {each.name: sorted(each.parts) for each in find_discussions(root)}


def test_discussions_of_all_users_and_layouts_are_found(tmp_path: Path) -> None:
    touch(tmp_path, "trip/memories.json", "trip/chat_summary.json", f"{HASH}/trip/memories.json")
    touch(tmp_path, "old_memories.json", "seed_memories.jsonl", "seed_summary.jsonl", f"{HASH}/flat_vector_memory.db")
    assert found(tmp_path) == {
        "trip": ["memories", "summary"],
        "old": ["memories"],
        "seed": ["memories", "summary"],
        f"{HASH}/trip": ["memories"],
        f"{HASH}/flat": ["database"],
    }


def test_the_folder_of_one_user_holds_discussions_of_that_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path / HASH, "trip/memories.json", "flat_memories.jsonl")
    names = {f"{HASH}/trip": ["memories"], f"{HASH}/flat": ["memories"]}
    assert found(tmp_path / HASH) == names
    monkeypatch.chdir(tmp_path / HASH)
    assert found(Path()) == names


def test_a_discussion_may_be_named_like_the_folder_of_a_user(tmp_path: Path) -> None:
    touch(tmp_path, f"{HASH}/memories.json", f"{HASH}/trip/memories.json")
    assert found(tmp_path) == {HASH: ["memories"], f"{HASH}/trip": ["memories"]}


def test_an_older_file_beside_a_newer_one_is_named(tmp_path: Path) -> None:
    touch(tmp_path, "trip/memories.json", "trip_memories.json", "trip_chat_summary.json")
    (files,) = find_discussions(tmp_path)
    assert files.parts["memories"] == tmp_path / "trip" / "memories.json"
    assert files.parts["summary"] == tmp_path / "trip_chat_summary.json"
    assert files.others == (tmp_path / "trip_memories.json",)


def test_files_of_other_kinds_are_named(tmp_path: Path) -> None:
    touch(tmp_path, "trip/memories.json", "trip/notes.txt", "trip/vector_memory.db", "trip/vector_memory.db-wal")
    assert find_discussions(tmp_path)[0].others == (tmp_path / "trip" / "notes.txt",)


@pytest.mark.parametrize("name", ["trip", "trip/memories.json", "trip_chat_summary.json"])
def test_one_discussion_is_named_by_its_folder_or_a_file(name: str, tmp_path: Path) -> None:
    touch(tmp_path / HASH, "trip/memories.json", "trip_chat_summary.json", "other/memories.json")
    files = files_at(tmp_path / HASH / name)
    assert (files.id, files.user, sorted(files.parts)) == ("trip", HASH, ["memories", "summary"])


def test_a_folder_without_discussions_is_refused(tmp_path: Path) -> None:
    touch(tmp_path, "trip/notes.txt", "notes.txt")
    for path in (tmp_path / "trip", tmp_path / "notes.txt", tmp_path / "missing"):
        with pytest.raises(InputError, match="no discussion"):
            files_at(path)
    with pytest.raises(InputError, match="holds no discussions"):
        find_discussions(tmp_path)
    with pytest.raises(InputError, match="is no folder"):
        find_discussions(tmp_path / "missing")


def test_users_never_share_a_folder() -> None:
    folders = [user_folder(user) for user in ("default", "anna", "ben", HASH, "../anna")]
    assert folders[0] == ""
    assert folders[3] == HASH
    assert len(set(folders)) == 5
    assert all(set(folder) <= set("0123456789abcdef") for folder in folders)
