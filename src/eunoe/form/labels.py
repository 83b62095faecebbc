"""Which label a statement gets: that of the first form that it has. The forms are in `patterns/labels.toml`."""

from __future__ import annotations

from typing import Final

from eunoe.form.data_files import PatternFile

_PATTERNS: Final = PatternFile("labels")


def label_of(sentence: str) -> tuple[str, float]:
    """Return the label of a sentence in lower case, and what such a sentence is worth; "" and 0 if it has no form."""
    for row in _PATTERNS.tables["labels"]:
        if row.pattern.search(sentence):
            return row.name, row.weight
    return "", 0.0
