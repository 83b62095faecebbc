"""Word lists in text files. A list is read once, by the module that defines a constant from it."""

from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).parent / "words"


def word_set(words: str) -> frozenset[str]:
    """Return the words of a text, which are separated by blanks."""
    return frozenset(words.split())


def load_words(name: str, folder: Path = _FOLDER) -> frozenset[str]:
    """Return the words of `name.txt`, separated by blanks or lines. A line that starts with `#` is a comment.

    >>> "the" in load_words("stop_words/english")
    True
    """
    return word_set(" ".join(_lines(name, folder)))


def load_table(name: str, folder: Path = _FOLDER) -> dict[str, str]:
    """Return the value of each entry of `name.txt`, whose lines are `value: entry, entry`.

    >>> load_table("months")["janvier"]
    '1'
    """
    rows = (line.split(": ", 1) for line in _lines(name, folder))
    return {entry: value for value, entries in rows for entry in entries.split(", ")}


def load_groups(name: str, folder: Path = _FOLDER) -> dict[str, frozenset[str]]:
    """Return the words of each group of `name.txt`, whose lines are `group: word word`.

    >>> sorted(load_groups("letters")["danish"])
    ['å', 'æ', 'ø']
    """
    return {group: word_set(words) for group, words in (line.split(": ", 1) for line in _lines(name, folder))}


def _lines(name: str, folder: Path) -> list[str]:
    lines = (folder / f"{name}.txt").read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]
