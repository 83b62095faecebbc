"""Layers: sums and maxima by owner, however many entries each has."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunoe.index.graph import RowLayers


@given(st.lists(st.one_of(st.integers(0, 5), st.integers(60, 70)), min_size=1, max_size=12), st.integers(0, 3))
def test_layers_come_to_the_same_as_entry_by_entry(counts: list[int], gap: int) -> None:
    starts = np.cumsum([0, *(count + gap for count in counts)])[:-1]
    ends = starts + np.array(counts, np.int64)
    values = np.random.default_rng(len(counts)).random(int(ends.max(initial=0)) + gap)
    layers = RowLayers(starts, ends)
    own = [values[start:end] for start, end in zip(starts, ends, strict=True)]
    by_layer = values.take(layers.places)
    sums = np.bincount(np.repeat(np.arange(len(own)), counts), np.concatenate((values[:0], *own)), len(own))
    assert layers.reduce(np.add, by_layer).tolist() == pytest.approx(sums.tolist(), rel=1e-14)  # in another order
    assert layers.reduce(np.maximum, by_layer).tolist() == [max(each.tolist(), default=0.0) for each in own]
