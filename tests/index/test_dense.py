"""A row is as near to a question as the nearest of its parts."""

import numpy as np

from eunoe.index.stream import DenseIndex


def vector(*numbers: float) -> np.ndarray:
    return np.array(numbers, np.float32)


def cosines(dense: DenseIndex) -> list[float]:
    found = dense.cosines(vector(1, 0))
    assert found is not None
    return [round(float(cosine), 3) for cosine in found]


def test_a_row_is_as_near_as_its_nearest_part() -> None:
    dense = DenseIndex()
    dense.reserve(3)
    dense.put(np.arange(3, dtype=np.int32), [vector(0, 1), np.stack([vector(0, 1), vector(3, 4), vector(0, 2)]), None])
    assert cosines(dense) == [0.0, 0.6, 0.0]
    assert dense.present.tolist() == [True, True, False]


def test_parts_go_with_their_row() -> None:
    dense = DenseIndex()
    dense.reserve(3)
    dense.put(np.arange(2, dtype=np.int32), [np.eye(2, dtype=np.float32)[::-1]] * 2)
    assert cosines(dense) == [1.0, 1.0, 0.0]
    dense.put(np.array([0], np.int32), [vector(0, 1)])
    assert cosines(dense) == [0.0, 1.0, 0.0]
    dense.put(np.array([1], np.int32), [None])
    dense.put(np.array([2], np.int32), [np.eye(2, dtype=np.float32)[::-1]])
    assert cosines(dense) == [0.0, 0.0, 1.0]
    assert dense.present.tolist() == [True, False, True]
