"""Real git repositories to look at."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

_IDENTITY = ("-c", "user.name=Anna", "-c", "user.email=anna@example.org", "-c", "commit.gpgsign=false")


def git(folder: Path, *arguments: str, **variables: str) -> str:
    command, environment = ["git", *_IDENTITY, *arguments], os.environ | variables
    result = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, env=environment)
    return result.stdout.strip()


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")


def make_checkout(folder: Path, files: Mapping[str, str]) -> Path:
    """A repository with these files, in one commit on the branch main."""
    folder.mkdir(parents=True, exist_ok=True)
    write_files(folder, files)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "First")
    return folder
