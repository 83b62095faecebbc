"""Which paths are meant by a path, a folder or a glob."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

_GLOB: Final = re.compile(r"[*?]|\[[^\]]+\]")
_TOKEN: Final = re.compile(r"\*\*/|\*\*|\*|\?|\[!?[^\]]+\]|.", re.DOTALL)
_ESCAPES: Final = str.maketrans({"\\": r"\\", "^": r"\^", "[": r"\["})
"""Signs that mean something in a set of characters."""
_TRANSLATIONS: Final = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def matches_any(path: str, wanted: Iterable[str]) -> bool:
    """Say whether a path is one of these, lies in one of these folders, is a folder that holds one of them, or is meant
    by one of these globs. A glob without a slash is about names, wherever the file lies.

    >>> [matches_any("src/web/app.py", [wanted]) for wanted in ("src/web/app.py", "src", "src/**/*.py", "*.py", "*.md")]
    [True, True, True, True, False]
    """
    return any(_matches(path, each) for each in wanted)


def _matches(path: str, wanted: str) -> bool:
    if path == wanted or wanted == ".":
        return True
    if path.startswith(f"{wanted}/") or wanted.startswith(f"{path}/"):
        return True
    return bool(_GLOB.search(wanted)) and bool(_glob_pattern(wanted).fullmatch(path))


@lru_cache(maxsize=256)
def _glob_pattern(glob: str) -> re.Pattern[str]:
    anywhere = "" if "/" in glob else "(?:.*/)?"
    return re.compile(anywhere + "".join(map(_translate, _TOKEN.findall(glob))), re.DOTALL)


def _translate(token: str) -> str:
    if token.startswith("[") and len(token) > 1:
        negated, members = ("^", token[2:-1]) if token[1] == "!" else ("", token[1:-1])
        return f"[{negated}{members.translate(_ESCAPES)}]"
    return _TRANSLATIONS.get(token) or re.escape(token)
