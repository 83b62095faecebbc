"""The files of one discussion as they are written: only what changed, each at once, and nothing of others lost."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from eunoe.apps.discussion.files.database import Database, read_database
from eunoe.apps.discussion.files.database_output import write_database
from eunoe.apps.discussion.files.encryption import FileKey
from eunoe.apps.discussion.files.known import all_atoms
from eunoe.apps.discussion.files.layout import Layout, Part, files_of_user
from eunoe.apps.discussion.files.record import ImportRecord
from eunoe.apps.discussion.files.text_files import (
    TextBlock,
    append_content,
    content_digest,
    decode,
    format_array,
    format_lines,
    is_encrypted_file,
    parse_blocks,
    parse_json,
    read_content,
)
from eunoe.apps.discussion.model import CHUNK_MEMORY, KEYWORD_MEMORY
from eunoe.errors import ConflictError, InputError
from eunoe.files import write_file
from eunoe.memory import Memory
from eunoe.model.scope import Scope

_LABELS: Final[Mapping[Part, str]] = {"memories": CHUNK_MEMORY, "summary": "", "database": KEYWORD_MEMORY}
"""Files of memories, and the label of these; that of the summary has none."""
_USER: Final = "user"
"""The key under which the small file beside the others names whose they are."""


class Output:
    """Writes the files of one discussion.

    Beside them stands a small file with a digest of each, by which a file that somebody else changed is noticed, and
    with the name of their user. Files of another user are refused.
    """

    def __init__(
        self,
        memory: Memory,
        scope: Scope,
        paths: Mapping[Part, Path],
        layout: Layout,
        key: FileKey | None,
        record: ImportRecord,
    ) -> None:
        self.paths = paths
        self.written = _read_written(paths["written"])
        self._memory, self._scope = memory, scope
        self._layout, self._key, self._record = layout, key, record
        self._changed: list[Path] = []
        self._check_user()
        self._check_key()

    def is_known(self, part: Part, written: bytes = b"") -> bool:
        """Whether a file is missing, as it was last read or written here, or the beginning of what is to be written."""
        if not self.paths[part].exists():
            return True
        known = (self.written.get(part), self._record.read.get(part))
        if part == "database":
            return self._read_database().digest in known
        content = self._read(part) or b""
        return content_digest(content) in known or written.startswith(content)

    def foreign_parts(self, blocks: Mapping[Part, Sequence[TextBlock]]) -> dict[Part, Path]:
        """The files of memories that somebody else wrote since they were last read or written here.

        `blocks` are the memories as they are known: a file that was written here only in part is no foreign one.
        """
        known = {part: self._format(entries) for part, entries in blocks.items()}
        return {part: self.paths[part] for part in _LABELS if not self.is_known(part, known.get(part, b""))}

    def check_foreign(self, blocks: Mapping[Part, Sequence[TextBlock]]) -> None:
        """Raise ConflictError if a file holds memories that are not known here, such as those of another program."""
        for part, path in self.foreign_parts(blocks).items():
            if count := self._count_unknown(self._texts(part), _LABELS[part]):
                raise ConflictError(
                    f"{path} holds {count} memories that are not known here, and was left as it is: import them first "
                    "(an update that keeps these files current does so by itself), or name another folder"
                )

    def write_blocks(self, part: Part, blocks: Sequence[TextBlock]) -> None:
        if blocks or self.paths[part].exists():
            self._put(part, self._format(blocks), may_append=self._layout == "flat")

    def write_text(self, part: Part, text: str) -> None:
        """Write a text; an empty one removes a file that was written here."""
        if text:
            self._put(part, text.encode())
        elif self.is_known(part):
            self._remove(part)

    def write_state_document(self, text: str, before: str) -> None:
        """Write the document. What stood in its file stands in the backup from then on."""
        old, is_known = self._read("state_document"), self.is_known("state_document")
        if old == (text.encode() or None) or not (text or is_known):  # a file of somebody else's stays as it is
            return
        backup = before if is_known or old is None else decode(old, self.paths["state_document"])
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
        self.written["database"] = self._read_database().digest

    def finish(self) -> list[Path]:
        """Note what was written; return the files that changed."""
        named = {**self.written, _USER: self._scope["user"]}
        content = json.dumps(named, indent=4, sort_keys=True).encode()
        if self.written and self._file_bytes(self.paths["written"]) != content:
            self.paths["written"].parent.mkdir(parents=True, exist_ok=True)
            write_file(self.paths["written"], content)
        return self._changed

    def _put(self, part: Part, content: bytes, may_append: bool = False) -> None:
        path, old = self.paths[part], self._read(part)
        if old != content:
            if may_append and not self._key and old and content.startswith(old):
                append_content(path, content[len(old) :])
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_file(path, self._key.encrypt(content) if self._key else content)
            self._changed.append(path)
        self.written[part] = content_digest(content)

    def _remove(self, part: Part) -> None:
        with suppress(FileNotFoundError):
            self.paths[part].unlink()
            self._changed.append(self.paths[part])
        self.written.pop(part, None)

    def _read(self, part: Part) -> bytes | None:
        return read_content(self.paths[part], self._key) if self.paths[part].exists() else None

    def _format(self, blocks: Sequence[TextBlock]) -> bytes:
        return (format_array if self._layout == "folders" else format_lines)(blocks, self._record.is_ascii)

    def _texts(self, part: Part) -> list[str]:
        if part == "database":
            return [row.text for row in self._read_database().rows]
        return [block.text for block in parse_blocks(self._read(part) or b"", self.paths[part])[0]]

    def _count_unknown(self, texts: Sequence[str], label: str) -> int:
        if label:
            known = {atom.text for atom in all_atoms(self._memory, self._scope, label, retired=True)}
        else:
            known = {revision.text for revision in self._memory.summaries.revisions(self._scope)}
        return sum(bool(text.strip()) and text not in known for text in texts)

    def _read_database(self) -> Database:
        return read_database(self.paths["database"], self._scope["discussion"])

    def _check_user(self) -> None:
        user = self._scope["user"]
        if (owner := self.written.get(_USER, user)) != user:
            raise ConflictError(
                f"{self.paths['written'].parent} holds files of the user {owner}, not of {user}: name another folder"
            )

    def _check_key(self) -> None:
        """Nothing is written in plain text beside what is encrypted."""
        if self._key is None:
            for part in self.paths.keys() - {"database", "written"}:
                self._read(part)
            for path in files_of_user(self.paths["memories"], self._layout):
                if is_encrypted_file(path):
                    raise InputError(
                        f"the files of the user {self._scope['user']} are encrypted, such as {path}: give the API key "
                        "of the user with the salt, or the Fernet key"
                    )

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
