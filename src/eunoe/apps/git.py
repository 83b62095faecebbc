"""What git says of a folder, for whoever only looks."""

import os
import subprocess
from typing import Final

from eunoe.errors import InputError

OTHER_REPOSITORY: Final = frozenset(
    ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY"]
)
"""What a git hook sets, and what would have git look at another repository than the one that was named."""
_GIT: Final = (
    "git", "--no-optional-locks", "--literal-pathspecs", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false",
)  # fmt: skip
"""A repository's own settings may name a program to run; this asks for none of them."""


class NoRepositoryError(InputError):
    """There is no git, or the folder is in no repository."""


def ask_git(folder: str | os.PathLike[str], *arguments: str, seconds: float = 60.0, index: str = "") -> str:
    """Return what git says, with an index of its own if one is named.

    Raise InputError if it fails; a disk that hangs must not hang us.
    """
    environment = {name: value for name, value in os.environ.items() if name not in OTHER_REPOSITORY}
    environment |= {"LC_ALL": "C"} | ({"GIT_INDEX_FILE": index} if index else {})
    try:
        done = subprocess.run(
            [*_GIT, *arguments], cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
            check=False, timeout=seconds,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise InputError(f"git {arguments[0]} gave no answer within {seconds:g} seconds in {folder}") from None
    except (OSError, ValueError) as error:
        raise NoRepositoryError(f"git cannot be run in {folder}: {error}") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        kind = NoRepositoryError if "not a git repository" in said else InputError
        raise kind(f"git {arguments[0]} ended with exit code {done.returncode} in {folder}: {said}")
    return done.stdout.decode(errors="surrogateescape")
