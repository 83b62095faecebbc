"""Which paths are meant by a path, a folder or a glob."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Final

_ANY_FOLDERS: Final = "**"


def matches_any(path: str, wanted: Iterable[str]) -> bool:
    """Say whether a path is one of these, lies in one of these folders, is a folder that holds one of them, or is meant
    by one of these globs. A glob without a slash is about names, wherever the file lies.

    >>> [matches_any("src/web/app.py", [wanted]) for wanted in ("src/web/app.py", "src", "src/**/*.py", "*.py", "*.md")]
    [True, True, True, True, False]
    """
    return any(_matches(path, each) for each in wanted)


def _matches(path: str, wanted: str) -> bool:
    if wanted in (path, ".", "/") or path.startswith(f"{wanted}/") or wanted.startswith(f"{path}/"):
        return True
    globs = wanted.split("/") if "/" in wanted else [_ANY_FOLDERS, wanted]
    return _matches_glob(path.split("/"), globs)


def _matches_glob(names: Sequence[str], globs: Sequence[str]) -> bool:
    """Whether all names are matched by all globs. Tried for all places at once, so that no glob takes long."""
    places = {0}
    for glob in globs:
        if not places:
            return False
        if glob == _ANY_FOLDERS:
            places = set(range(min(places), len(names) + 1))
        else:
            places = {place + 1 for place in places if place < len(names) and fnmatchcase(names[place], glob)}
    return len(names) in places
