"""Numbers that callers pass: whole ones of any kind, and nothing that only looks like one."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from eunoe.errors import InputError
from eunoe.model.arguments import check_count


@pytest.mark.parametrize("value", [3, np.int64(3), np.int8(3), np.uint32(3)])
def test_a_whole_number_of_numpy_becomes_one_of_python(value: Any) -> None:
    count = check_count(value, "limit")
    assert (type(count), json.dumps(count)) == (int, "3")


@pytest.mark.parametrize("value", [0, 3.0, True, "3", None, np.float64(3), np.bool_(True), np.int64(0), np.array([3])])
def test_anything_else_is_no_count(value: Any) -> None:
    with pytest.raises(InputError, match=r"limit is .*: it must be a whole number of at least 1"):
        check_count(value, "limit")
