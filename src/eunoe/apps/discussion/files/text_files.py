"""Text files of discussions: read whole or refused by name, put in place at once."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from eunoe.apps.discussion.files.encryption import FileKey, is_encrypted
from eunoe.errors import InputError
from eunoe.model.arguments import check_text


class TextBlock(NamedTuple):
    """One entry of a file of memories or of a summary."""

    text: str
    hash: str
    """SHA-256 of the message that it ends on."""


def read_content(path: Path, key: FileKey | None = None) -> bytes:
    """The content of a file, decrypted if it is encrypted."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    if not is_encrypted(content):
        return content
    if key is None:
        raise InputError(f"{path} is encrypted: give the API key of its user with the salt, or the Fernet key")
    return key.decrypt(content, str(path))


def is_encrypted_file(path: Path) -> bool:
    """Whether there is a file whose content is encrypted."""
    return path.is_file() and is_encrypted(path.read_bytes())


def decode(content: bytes, path: Path) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is damaged: it is no UTF-8 text ({error.reason} at byte {error.start})") from None


def parse_json(text: str, place: str) -> Any:
    """Read JSON as it stands in a file; `place` names it in errors."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place} is damaged or half-written: {error}") from None


def parse_blocks(content: bytes, path: Path) -> tuple[list[TextBlock], list[str]]:
    """Read the entries of a JSON array, or of a file with one entry a line; and notes on what is odd about them."""
    text = decode(content, path)
    if path.suffix == ".jsonl":
        lines = enumerate(text.split("\n"), 1)
        values = [(f"line {n}", parse_json(line, f"{path}, line {n},")) for n, line in lines if line.strip()]
    else:
        array = parse_json(text, str(path))
        if not isinstance(array, list):
            raise InputError(f"{path} is damaged: it holds no list of memories")
        values = [(f"entry {number}", value) for number, value in enumerate(array, 1)]
    blocks = [_parse_block(value, f"{path}, {place},") for place, value in values]
    return blocks, [f"{path} has entries {fault}" for fault in _faults([value for _, value in values], blocks)]


def format_array(blocks: Iterable[TextBlock], is_ascii: bool) -> bytes:
    """A JSON array as the application writes it."""
    return json.dumps(list(map(_as_json, blocks)), indent=4, ensure_ascii=is_ascii).encode()


def format_lines(blocks: Iterable[TextBlock], is_ascii: bool) -> bytes:
    """One entry a line."""
    return "".join(f"{json.dumps(_as_json(block), ensure_ascii=is_ascii)}\n" for block in blocks).encode()


def content_digest(content: bytes) -> str:
    """By which a file is recognised as it was written."""
    return sha256(content).hexdigest()


def append_content(path: Path, more: bytes) -> None:
    with path.open("ab") as file:
        file.write(more)
        file.flush()
        os.fsync(file.fileno())


def _parse_block(value: Any, place: str) -> TextBlock:
    if not isinstance(value, dict) or not isinstance(value.get("text_block"), str):
        raise InputError(f"{place} is damaged: it has no text_block")
    if not isinstance(hash := value.get("hash", ""), str):
        raise InputError(f"{place} is damaged: its hash is no text")
    return TextBlock(check_text(value["text_block"], f"{place} text_block"), check_text(hash, f"{place} hash"))


def _faults(values: Sequence[Mapping[str, Any]], blocks: Sequence[TextBlock]) -> Iterator[str]:
    if any("hash" not in value for value in values):
        yield "without a hash"
    if any(value.keys() - {"text_block", "hash"} for value in values):
        yield "with more than text_block and hash: the rest is left out"
    if any(not block.text.strip() for block in blocks):
        yield "without words: they are left out"


def _as_json(block: TextBlock) -> dict[str, str]:
    return {"text_block": block.text, "hash": block.hash}


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
