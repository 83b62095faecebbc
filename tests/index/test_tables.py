"""The order of a table: whatever was added and taken out, a look-up finds what stands there."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eunoe.index import tables
from eunoe.index.tables import ColumnOrder, Table


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.lists(st.integers(1, 5), max_size=6), st.integers(0, 9), st.booleans()), max_size=12))
def test_any_additions_and_removals_find_what_is_there(steps: list[tuple[list[int], int, bool]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "_MAX_UNSORTED_ROWS", 3)
        table, spans = Table(term=np.int32, row=np.int32), list[slice]()
        order = ColumnOrder(table, "term")
        for number, (values, removed, is_kept) in enumerate(steps):
            spans.append(table.append(term=values, row=[10 * number + place for place in range(len(values))]))
            if removed < len(spans):
                span = spans.pop(removed)
                order.remove(span)
                table["term"][span] = table["row"][span] = 0
            if is_kept:
                state, order = order.state(), ColumnOrder(table, "term")
                order.restore(state)
            wanted = np.arange(1, 6)
            places = [(table["term"] == value).nonzero()[0] for value in wanted]
            assert [found.tolist() for found in order.find_each(wanted)] == [own.tolist() for own in places]
            rows = [table["row"][own].tolist() for own in places]
            assert [found.tolist() for found in order.values("row", wanted)] == rows


def test_what_is_kept_has_no_value_that_is_gone() -> None:
    table = Table(term=np.int32)
    table.append(term=np.arange(1, 20_001))
    order = ColumnOrder(table, "term")
    order.update()
    order.remove(slice(6, 8))
    assert not {7, 8} & set(order.state()["values"].tolist())
