"""The folder of a wiki. Only what was written here is ever replaced or removed; a killed run can be continued."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Self

from eunoe.apps.wiki.structure import WikiStructure
from eunoe.errors import ConflictError, InputError
from eunoe.files import locked, remove_dead_parts, write_file
from eunoe.model.arguments import utc_now
from eunoe.text.normalize import replace_surrogates

STATE_FILE: Final = ".eunoe-wiki.json"
INDEX_FILE: Final = "index.md"
_FORMAT: Final = 1
_FILE_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,99}\.md")
_FILE_MODE: Final = 0o644


@dataclass(slots=True)
class WikiState:
    """How far the wiki in a folder has come."""

    repository_id: str
    is_complete: bool = False
    forced_since: str = ""
    """When the forced run began that this is; empty if it is none."""
    structure: WikiStructure | None = None
    pages: dict[str, str] = field(default_factory=dict)
    """By the id of a page, the digest of what this run wrote for it, noted before it is written."""
    files: dict[str, list[str]] = field(default_factory=dict)
    """By the name of a file, the digests of all that it may hold if nobody else has changed it."""

    @classmethod
    def from_json(cls, text: str) -> Self:
        values: dict[str, Any] = json.loads(text)
        if values.pop("format") != _FORMAT:
            raise ValueError("another format")
        structure = values.pop("structure")
        state = cls(**values, structure=WikiStructure.model_validate(structure) if structure else None)
        names = [*state.files, *(page_file(id) for id in state.pages)]
        if not all(map(_FILE_NAME.fullmatch, names)) or not isinstance(state.repository_id, str):
            raise ValueError("names that no wiki has")
        if state.forced_since:
            datetime.fromisoformat(state.forced_since)
        return state

    def to_json(self) -> str:
        values = {
            name: getattr(self, name) for name in ("repository_id", "is_complete", "forced_since", "pages", "files")
        }
        structure = self.structure.model_dump() if self.structure else None
        return json.dumps({"format": _FORMAT, **values, "structure": structure}, indent=1)


class OutputFolder:
    """The folder into which one wiki is written."""

    def __init__(self, path: str | os.PathLike[str], repository_id: str) -> None:
        self.path = Path(path).expanduser().resolve()
        self._lock = threading.Lock()
        self.state = WikiState(repository_id)

    @contextmanager
    def opened(self) -> Iterator[Self]:
        """Hold the folder, so that no other process writes into it meanwhile. The end of this process releases it."""
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"{self.path} is a file: name a folder for the wiki")
        is_new = not self.path.exists()
        self.path.mkdir(parents=True, exist_ok=True)
        with locked(self.path):
            self._load()
            remove_dead_parts(self.path)
            try:
                yield self
            finally:
                if is_new and not any(self.path.iterdir()):
                    self.path.rmdir()

    def begin(self, *, force: bool) -> WikiStructure | None:
        """Take up the run that did not come to its end, or begin a new one and return the structure before it.

        A forced run takes up only a forced one, and knows nothing of the one before.
        """
        state, before = self.state, None
        if state.is_complete or (force and not state.forced_since):
            before = None if force else state.structure
            self.state = WikiState(state.repository_id, files=state.files)
        if not force:
            self.state.forced_since = ""
        elif not self.state.forced_since:
            self.state.forced_since = utc_now().isoformat()
        self.check([INDEX_FILE])
        return before

    def plan(self, structure: WikiStructure) -> None:
        """Keep the structure of this run. Raise ConflictError if a page of it may not be written."""
        self.state.structure = structure
        self.save()
        self.check(page_file(page.id) for page in structure.pages())

    def check(self, names: Iterable[str]) -> None:
        """Raise ConflictError if a file with such a name is not as it was written here."""
        foreign = [name for name in names if not self._is_own(name)]
        if foreign:
            raise ConflictError(
                f"{', '.join(foreign)} in {self.path} was not written by Eunoe, or was changed since: "
                "move it away, or choose another folder"
            )

    def has_page(self, id: str) -> bool:
        """Return whether this run has written a page."""
        return self.state.pages.get(id, "") == self._digest(page_file(id))

    def write_page(self, id: str, text: str) -> None:
        """Write a page, whole or not at all."""
        self._write(page_file(id), text, id)

    def write_index(self, text: str) -> None:
        """Write the table of contents."""
        self._write(INDEX_FILE, text)

    def finish(self) -> list[str]:
        """Mark the wiki as complete, remove pages that it no longer has, and return those that had to stay."""
        structure = self.state.structure
        assert structure is not None
        current = {INDEX_FILE, *(page_file(page.id) for page in structure.pages())}
        kept = []
        for name in [name for name in self.state.files if name not in current]:
            if self._is_own(name):
                (self.path / name).unlink(missing_ok=True)
            else:
                kept.append(name)
            del self.state.files[name]
        self.state.is_complete, self.state.forced_since = True, ""
        self.save()
        return kept

    def save(self) -> None:
        """Write the state, whole or not at all."""
        write_file(self.path / STATE_FILE, self.state.to_json().encode(), mode=_FILE_MODE)

    def _write(self, name: str, text: str, page: str = "") -> None:
        content = replace_surrogates(text).encode()
        digest = sha256(content).hexdigest()
        with self._lock:
            self.check([name])
            # The digest is kept first: after a kill the file is known as ours, and a page that is whole as made.
            self.state.files[name] = [known for known in [self._digest(name), digest] if known]
            if page:
                self.state.pages[page] = digest
            self.save()
            write_file(self.path / name, content, mode=_FILE_MODE)

    def _load(self) -> None:
        path = self.path / STATE_FILE
        if not path.exists():
            return
        try:
            state = WikiState.from_json(path.read_text(encoding="utf-8"))
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            raise InputError(f"{path} is not the state of a wiki ({type(error).__name__}): move it away") from None
        if state.repository_id != self.state.repository_id:
            raise InputError(
                f"{self.path} holds the wiki of repository {state.repository_id}, not of "
                f"{self.state.repository_id}: choose another folder, or give that id"
            )
        self.state = state

    def _is_own(self, name: str) -> bool:
        path = self.path / name
        return not os.path.lexists(path) or self._digest(name) in self.state.files.get(name, ())

    def _digest(self, name: str) -> str | None:
        """The digest of a file; None if there is none. A link or a folder is no file that was written here."""
        path = self.path / name
        if path.is_symlink() or not path.is_file():
            return None
        return sha256(path.read_bytes()).hexdigest()


def page_file(id: str) -> str:
    """Return the name of a page's file."""
    return f"{id}.md"
