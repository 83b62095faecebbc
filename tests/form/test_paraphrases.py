"""Pairs of statements that say the same in other words, and pairs that do not, by words and the package's vectors."""

from pathlib import Path

import numpy as np

from eunoe.embed import load_embedder
from eunoe.form.likeness import is_duplicate

PAIRS = [
    tuple(part.strip() for part in line.split("|"))
    for line in (Path(__file__).parent / "data" / "paraphrases.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
]


def test_paraphrases_are_one_and_others_are_two() -> None:
    embedder = load_embedder()
    assert embedder is not None
    vectors = np.asarray(embedder.embed([f"Anna: {text}" for _, *texts in PAIRS for text in texts]), np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = (vectors[::2] * vectors[1::2]).sum(axis=1).tolist()
    merged = [
        mark
        for (mark, one, other), cosine in zip(PAIRS, cosines, strict=True)
        if is_duplicate(f"Anna: {one}", f"Anna: {other}", cosine)
    ]
    same = [mark for mark, *_ in PAIRS].count("=")
    assert merged.count("/") == 0
    assert merged.count("=") >= 0.8 * same
