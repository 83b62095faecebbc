"""What settings files were before Eunoe was installed, so that they can be put back byte for byte."""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from eunoe.files import write_file
from eunoe.memory import default_path


@dataclass(frozen=True, slots=True)
class Original:
    """One file as it was, and the fingerprint of what was written in its place."""

    path: str
    written: str
    before: bytes | None
    """None if there was no file."""
    folder: str = ""
    """The uppermost folder that was made for it."""

    @property
    def is_unchanged(self) -> bool:
        """Whether the file is still as it was written."""
        try:
            return fingerprint(Path(self.path).read_bytes()) == self.written
        except OSError:
            return False


def fingerprint(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Originals:
    """The files of one assistant as they were, in the user's data folder. Only the user may read them."""

    def __init__(self, assistant: str) -> None:
        self.path = default_path().parent / "assistants" / f"{assistant}.json"

    def load(self) -> dict[str, Original]:
        """By path. What cannot be read counts as not there: an uninstall then takes out our entries alone."""
        try:
            rows = json.loads(self.path.read_bytes())
            return {row["path"]: _from_row(row) for row in rows}
        except (OSError, ValueError, TypeError, KeyError):
            return {}

    def save(self, originals: Mapping[str, Original]) -> None:
        if not originals:
            self.path.unlink(missing_ok=True)
            return
        rows = [_to_row(each) for each in originals.values()]
        write_file(self.path, json.dumps(rows, indent=1).encode())
        os.chmod(self.path, 0o600)


def _to_row(original: Original) -> dict[str, Any]:
    # Any byte has a letter in Latin-1, and so it comes back.
    return {**asdict(original), "before": None if original.before is None else original.before.decode("latin-1")}


def _from_row(row: dict[str, Any]) -> Original:
    before = row["before"]
    return Original(**{**row, "before": None if before is None else before.encode("latin-1")})
