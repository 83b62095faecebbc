"""Long texts in parts: one vector says little about what stands in the middle of a page."""

from __future__ import annotations

from typing import Final

from eunoe.index import sentences

LONG: Final = 150
"""So many words still have one vector: shorter texts are about one thing, and in parts they are found less well."""
PART: Final = 60
"""About how many words a part has."""
MOST: Final = 64
"""A text of more parts than this has longer ones."""


def parts(text: str) -> list[str]:
    """A text as it is embedded: whole, or cut between lines and sentences into parts of about the same length.

    >>> parts("Anna moved to Rome.")
    ['Anna moved to Rome.']
    >>> [len(part.split()) for part in parts("Anna moved to Rome. " * 50)]
    [68, 68, 64]
    """
    if len(text) < 2 * LONG or (total := sentences.words(text)) <= LONG:
        return [text]
    return list(sentences.parts(text, total / min(round(total / PART), MOST)))
