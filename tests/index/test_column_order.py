"""The order of a column: whatever was added and taken out, a look-up finds what stands there."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eunoe.index import column_order
from eunoe.index.column_order import ColumnOrder


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.lists(st.integers(1, 5), max_size=6), st.integers(0, 9), st.booleans()), max_size=12))
def test_any_additions_and_removals_find_what_is_there(steps: list[tuple[list[int], int, bool]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_order, "_MAX_UNSORTED_ROWS", 3)
        order, column, spans = ColumnOrder(), np.zeros(0, np.int32), list[slice]()
        for values, removed, is_kept in steps:
            spans.append(slice(len(column), len(column) + len(values)))
            column = np.append(column, np.array(values, np.int32))
            order.update(column)
            if removed < len(spans):
                span = spans.pop(removed)
                order.remove(column, span)
                column[span] = 0
            if is_kept:
                order = ColumnOrder.of(order.state())
            found = order.find_each(column, np.arange(1, 6))
            assert [places.tolist() for places in found] == [(column == n).nonzero()[0].tolist() for n in range(1, 6)]


def test_what_is_kept_has_no_value_that_is_gone() -> None:
    order, column = ColumnOrder(), np.arange(1, 20_001)
    order.update(column)
    order.remove(column, slice(6, 8))
    assert not {7, 8} & set(order.state()["values"].tolist())
