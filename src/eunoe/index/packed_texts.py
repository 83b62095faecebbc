"""Texts as arrays, which are written and read in one go."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from eunoe.index.dense import Arrays


def pack_texts(texts: Sequence[str]) -> Arrays:
    """The letters of all texts together, and where each ends.

    >>> unpack_texts(pack_texts(["né", "", "東京"]))
    ['né', '', '東京']
    """
    data = np.frombuffer("".join(texts).encode("utf-8", "surrogatepass"), np.uint8)
    return {"data": data, "ends": np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))}


def unpack_texts(state: Arrays) -> list[str]:
    letters = state["data"].tobytes().decode("utf-8", "surrogatepass")
    return [letters[start:end] for start, end in pairwise((0, *state["ends"].tolist()))]
