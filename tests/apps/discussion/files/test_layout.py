"""Where the files of discussions stand, whose they are, and how they are read and locked."""

import base64
import json
from hashlib import pbkdf2_hmac
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from eunoe.apps.discussion.files.layout import (
    FileKey,
    TextBlock,
    files_at,
    find_discussions,
    format_blocks,
    is_encrypted_file,
    parse_blocks,
    user_folder,
)
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


SALT = b"0123456789abcdef"


def test_the_key_is_derived_as_the_other_program_does_it() -> None:
    derived = base64.urlsafe_b64encode(pbkdf2_hmac("sha256", b"secret", SALT, 100_000, 32))
    token = Fernet(derived).encrypt(b"[]")
    assert FileKey.from_api_key("secret", SALT).decrypt(token, "memories.json") == b"[]"
    assert FileKey(derived).decrypt(token, "memories.json") == b"[]"


def test_the_salt_may_stand_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "salt").write_bytes(SALT)
    token = FileKey.from_api_key("secret", tmp_path / "salt").encrypt(b"[]")
    assert FileKey.from_api_key("secret", SALT).decrypt(token, "memories.json") == b"[]"


def test_another_key_is_refused_with_the_name_of_the_file() -> None:
    token = FileKey.from_api_key("secret", SALT).encrypt(b"[]")
    with pytest.raises(InputError, match=r"trip/memories\.json cannot be decrypted"):
        FileKey.from_api_key("other", SALT).decrypt(token, "trip/memories.json")


def test_what_is_no_key_is_refused() -> None:
    with pytest.raises(InputError, match="no Fernet key"):
        FileKey("secret")
    with pytest.raises(InputError, match="empty"):
        FileKey.from_api_key("secret", b"")


def test_a_key_does_not_show_itself() -> None:
    assert repr(FileKey(Fernet.generate_key())) == "FileKey(...)"


@pytest.mark.parametrize("content", [b"[]", b"", b'{"text_block": "gAAAA"}', "[\u00e4]".encode()])
def test_plain_files_are_not_taken_for_encrypted_ones(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(content)
    assert not is_encrypted_file(tmp_path / "x")
    (tmp_path / "x").write_bytes(FileKey.from_api_key("secret", SALT).encrypt(content))
    assert is_encrypted_file(tmp_path / "x")


BLOCKS = [TextBlock("Anna moved.\u2028She is happy.", "aa"), TextBlock("日本 \x1c\x85 line", "bb")]


def test_both_forms_come_back() -> None:
    assert parse_blocks(format_blocks(BLOCKS, "folders"), Path("memories.json")) == (BLOCKS, [])
    assert parse_blocks(format_blocks(BLOCKS, "flat"), Path("x_memories.jsonl")) == (BLOCKS, [])


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "half-written"),
        (b'[{"text_block": "One.", "hash"', "half-written"),
        (b'{"text_block": "One.", "hash": "aa"}', "no list"),
        (b'[{"hash": "aa"}]', "entry 1, is damaged: it has no text_block"),
        (b'[{"text_block": "One.", "hash": "aa"}, {"text_block": 5, "hash": "aa"}]', "entry 2"),
        (b'[{"text_block": "One.", "hash": 5}]', "its hash is no text"),
        (b'[{"text_block": "One.", "hash": NaN}]', "NaN"),
        (b'[{"text_block": "\xff", "hash": "aa"}]', "no UTF-8"),
        (b"[" * 100_000, "half-written"),
    ],
)
def test_a_damaged_array_is_refused_by_name(content: bytes, fault: str) -> None:
    with pytest.raises(InputError, match=rf"trip/memories\.json.*{fault}"):
        parse_blocks(content, Path("trip/memories.json"))


def test_a_half_written_line_is_refused_by_its_number() -> None:
    content = b'{"text_block": "One.", "hash": "aa"}\n\n{"text_block": "Tw'
    with pytest.raises(InputError, match=r"x_memories\.jsonl, line 3"):
        parse_blocks(content, Path("x_memories.jsonl"))


def test_entries_with_more_than_is_kept_are_noticed() -> None:
    entries = [{"text_block": "One.", "hash": "aa", "at": 5}, {"text_block": "Two."}, {"text_block": " ", "hash": ""}]
    blocks, notes = parse_blocks(json.dumps(entries).encode(), Path("m.json"))
    assert blocks == [TextBlock("One.", "aa"), TextBlock("Two.", ""), TextBlock(" ", "")]
    assert sorted(notes) == [
        "m.json has entries with more than text_block and hash: the rest is left out",
        "m.json has entries without a hash",
        "m.json has entries without words: they are left out",
    ]
