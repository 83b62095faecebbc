"""The files of one discussion as they are written: only what changed, each at once, and nothing of others lost."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from eunoe.discussion.files.database import Database, read_database
from eunoe.discussion.files.database_output import write_database
from eunoe.discussion.files.encryption import FileKey
from eunoe.discussion.files.known import all_atoms
from eunoe.discussion.files.layout import Layout, Part
from eunoe.discussion.files.text_files import (
    TextBlock,
    append_content,
    content_digest,
    decode,
    format_array,
    format_lines,
    parse_blocks,
    parse_json,
    read_content,
    write_content,
)
from eunoe.discussion.model import CHUNK_MEMORY, KEYWORD_MEMORY
from eunoe.errors import ConflictError, InputError
from eunoe.memory import Memory
from eunoe.model.scope import Scope

_LABELS: Final[Mapping[Part, str]] = {"memories": CHUNK_MEMORY, "summary": ""}


class Output:
    """Writes the files of one discussion.

    Beside them stands a small file with a digest of each, by which a file that somebody else changed is noticed.
    """

    def __init__(
        self,
        memory: Memory,
        scope: Scope,
        paths: Mapping[Part, Path],
        layout: Layout,
        key: FileKey | None,
        is_ascii: bool,
    ) -> None:
        self.paths = paths
        self.written = _read_written(paths["written"])
        self._memory, self._scope = memory, scope
        self._layout, self._key, self._is_ascii = layout, key, is_ascii
        self._changed: list[Path] = []

    def check_foreign(self, blocks: Mapping[Part, Sequence[TextBlock]]) -> None:
        """Raise ConflictError if a file holds memories that are not known here, such as those of another program."""
        for part, count in self._foreign_counts(blocks):
            if count:
                raise ConflictError(
                    f"{self.paths[part]} holds {count} memories that are not known here, and was left as it is: "
                    "import them first, or name another folder"
                )

    def write_blocks(self, part: Part, blocks: Sequence[TextBlock]) -> None:
        if blocks or self.paths[part].exists():
            self._put(part, self._format(blocks), may_append=self._layout == "flat")

    def write_text(self, part: Part, text: str) -> None:
        """Write a text; an empty one removes a file that was written here."""
        if text:
            self._put(part, text.encode())
        elif self._is_own(part):
            self._remove(part)

    def write_state_document(self, text: str, before: str) -> None:
        """Write the document. What stood in its file stands in the backup from then on."""
        old = self._read("state_document")
        if old == (text.encode() or None):
            return
        backup = before if old is None or self._is_own("state_document") else decode(old, self.paths["state_document"])
        self.write_text("backup", backup)
        self.write_text("state_document", text)

    def write_database(self, database: Database) -> None:
        path = self.paths["database"]
        if not path.exists() and not database.rows and not database.hashes:
            return
        before = self._file_bytes(path)
        write_database(path, self._scope["discussion"], database, self._layout)
        if self._file_bytes(path) != before:
            self._changed.append(path)
        self.written["database"] = self._database_digest()

    def finish(self) -> list[Path]:
        """Note what was written; return the files that changed."""
        content = json.dumps(self.written, indent=4, sort_keys=True).encode()
        if self.written and self._file_bytes(self.paths["written"]) != content:
            write_content(self.paths["written"], content)
        return self._changed

    def _put(self, part: Part, content: bytes, may_append: bool = False) -> None:
        path, old = self.paths[part], self._read(part)
        if old != content:
            if may_append and not self._key and old and content.startswith(old):
                append_content(path, content[len(old) :])
            else:
                write_content(path, self._key.encrypt(content) if self._key else content)
            self._changed.append(path)
        self.written[part] = content_digest(content)

    def _remove(self, part: Part) -> None:
        with suppress(FileNotFoundError):
            self.paths[part].unlink()
            self._changed.append(self.paths[part])
        self.written.pop(part, None)

    def _read(self, part: Part) -> bytes | None:
        return read_content(self.paths[part], self._key) if self.paths[part].exists() else None

    def _is_own(self, part: Part) -> bool:
        content = self._read(part)
        return content is not None and content_digest(content) == self.written.get(part)

    def _format(self, blocks: Sequence[TextBlock]) -> bytes:
        return (format_array if self._layout == "folders" else format_lines)(blocks, self._is_ascii)

    def _foreign_counts(self, blocks: Mapping[Part, Sequence[TextBlock]]) -> Iterator[tuple[Part, int]]:
        """For each file that somebody else wrote, how many memories in it are not known here, in any version."""
        for part, label in _LABELS.items():
            old = self._read(part)
            if old is None or self._is_own(part) or self._format(blocks[part]).startswith(old):
                continue
            found, _ = parse_blocks(old, self.paths[part])
            yield part, self._count_unknown([block.text for block in found], label)
        path = self.paths["database"]
        if path.exists() and self._database_digest() != self.written.get("database"):
            rows = read_database(path, self._scope["discussion"]).rows
            yield "database", self._count_unknown([row.text for row in rows], KEYWORD_MEMORY)

    def _count_unknown(self, texts: Sequence[str], label: str) -> int:
        if label:
            known = {atom.text for atom in all_atoms(self._memory, self._scope, label, retired=True)}
        else:
            known = {revision.text for revision in self._memory.summaries.revisions(self._scope)}
        return sum(bool(text.strip()) and text not in known for text in texts)

    def _database_digest(self) -> str:
        rows = read_database(self.paths["database"], self._scope["discussion"]).rows
        return content_digest(repr(rows).encode())

    @staticmethod
    def _file_bytes(path: Path) -> bytes | None:
        return path.read_bytes() if path.exists() else None


def _read_written(path: Path) -> dict[str, str]:
    """Without it every file counts as somebody else's."""
    try:
        value = parse_json(decode(path.read_bytes(), path), str(path)) if path.exists() else {}
    except InputError:
        return {}
    return value if isinstance(value, dict) else {}
