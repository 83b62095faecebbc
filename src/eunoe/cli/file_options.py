"""Options of the commands that read or write files of discussions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from eunoe.apps.discussion.files import FileKey, Layout
from eunoe.cli import inputs
from eunoe.cli.command import MisuseError
from eunoe.cli.options import choice_option

_API_KEY_HELP: Final = "Encrypted files: a file with the API key; with --salt."
_KEY_HELP: Final = "Encrypted files: a file with their Fernet key."
_LAYOUT_HELP: Final = "folders (ID/memories.json) or flat (ID_memories.jsonl)."

LayoutOption = Annotated[Layout, choice_option("--layout", _LAYOUT_HELP)]


@dataclass(frozen=True, slots=True)
class KeyOptions:
    """What opens and locks encrypted files. Keys are read from files, since others may see a command line."""

    key_file: Annotated[str | None, typer.Option("--key-file", metavar="FILE", help=_KEY_HELP)] = None
    api_key_file: Annotated[str | None, typer.Option("--api-key-file", metavar="FILE", help=_API_KEY_HELP)] = None
    salt: Annotated[Path | None, typer.Option("--salt", metavar="FILE", help="The file with the user's salt.")] = None

    def key(self) -> FileKey | None:
        if bool(self.api_key_file) != bool(self.salt) or (self.api_key_file and self.key_file):
            raise MisuseError("name --api-key-file and --salt, or --key-file")
        if self.key_file:
            return FileKey(_read_secret(self.key_file))
        if self.api_key_file and self.salt:
            return FileKey.from_api_key(_read_secret(self.api_key_file), self.salt)
        return None


def _read_secret(name: str) -> str:
    with inputs.open_text(name) as file:
        return file.read().strip()
