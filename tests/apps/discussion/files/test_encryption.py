import base64
from hashlib import pbkdf2_hmac
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from eunoe.apps.discussion.files.layout import FileKey, is_encrypted_file
from eunoe.errors import InputError

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
