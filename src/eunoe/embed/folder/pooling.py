"""Pooling: from the states of a text's tokens to one vector."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from eunoe.embed.contract import Vectors


def pool(states: Vectors, modes: Sequence[str], skip: int = 0) -> Vectors:
    """Make one vector for each text, several modes side by side; `skip` tokens at the start are left out.

    The states have the shape (texts, tokens, dimensions). All texts are equally long.

    >>> pool(np.array([[[1, 4], [3, 0]]], np.float32), ["mean", "max"]).tolist()
    [[2.0, 2.0, 3.0, 4.0]]
    """
    places = np.arange(skip + 1, states.shape[1] + 1, dtype=np.float32)
    return np.concatenate([POOLINGS[mode](states[:, skip:], places) for mode in modes], axis=1)


def _weighted_mean(states: Vectors, places: Vectors) -> Vectors:
    mean: Vectors = (states * places[:, None]).sum(axis=1) / places.sum()
    return mean


POOLINGS: Final[Mapping[str, Callable[[Vectors, Vectors], Vectors]]] = {
    "cls": lambda states, places: states[:, 0],
    "max": lambda states, places: states.max(axis=1),
    "mean": lambda states, places: states.mean(axis=1),
    "mean_sqrt_len_tokens": lambda states, places: states.sum(axis=1) / np.sqrt(np.float32(len(places))),
    "weightedmean": _weighted_mean,
    "lasttoken": lambda states, places: states[:, -1],
}
"""Modes by the names that sentence-transformers has for them, in the order in which it puts them side by side."""
