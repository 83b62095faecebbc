"""A model and the one that has replaced it, as the package would have them. As a program: a process of the new package.

The new one is slow, so that it works behind the replies. Only its own vectors are near its questions.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tests.support.letters import Letters

import eunoe
from eunoe.embed import pending_vectors
from eunoe.embed.replaced_models import REPLACED

OLD, NEW = "letters", "vowels"


class Vowels(Letters):
    is_slow = True

    def __init__(self) -> None:
        super().__init__(NEW, "jihgfedcba")  # as long as those of the old one: nothing but the name tells them apart


class Talking(Vowels):
    """Says what it makes and waits to be told to go on."""

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        print("\n".join(texts), flush=True)
        sys.stdin.readline()
        return super().embed(texts)


def make_old(path: Path, scope: str, texts: Sequence[str]) -> None:
    """Keep memories as the old package did."""
    with eunoe.open(path, embedder=Letters(OLD), form=False) as memory:
        memory.remember_many(scope, texts)
        memory.flush()


if __name__ == "__main__":
    pending_vectors.BATCH_SIZE = 1  # type: ignore[misc]
    model = Talking() if sys.argv[2] == "talk" else Vowels()
    REPLACED[OLD] = model  # type: ignore[index, assignment]
    with eunoe.open(sys.argv[1], embedder=model, form=False) as memory:
        print(memory.admin.reembed(), flush=True)
