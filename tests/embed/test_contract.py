"""Vectors of unit length, whatever is given."""

import math
from typing import Any

import pytest

from eunoe.embed.contract import to_unit_vectors
from eunoe.errors import EmbedderError
from eunoe.text.normalize import replace_surrogates


class TestClean:
    def test_ordinary_text_is_untouched(self) -> None:
        assert replace_surrogates("héllo \0 👩‍🚀") == "héllo \0 👩‍🚀"

    def test_lone_surrogates_are_replaced_and_pairs_joined(self) -> None:
        assert replace_surrogates("a\ud800b\udc00") == "a\ufffdb\ufffd"
        assert replace_surrogates("\ud83d\ude00") == "😀"


class TestUnit:
    def test_rows_get_unit_length_and_zero_rows_stay(self) -> None:
        assert to_unit_vectors([[3, 4], [0, 0]], "it").tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0, 0]]

    @pytest.mark.parametrize("size", [1e300, 1e-300])
    def test_extreme_sizes_are_no_trouble(self, size: float) -> None:
        assert to_unit_vectors([[size, size]], "it").tolist() == [[pytest.approx(math.sqrt(0.5))] * 2]

    @pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
    def test_non_finite_numbers_are_refused(self, bad: float) -> None:
        with pytest.raises(EmbedderError, match="it gave a vector with NaN or infinity"):
            to_unit_vectors([[1, 0], [0, bad]], "it")

    @pytest.mark.parametrize("bad", [[1, 2], [[1], [1, 2]], [["x"]], None, [[10**400]], "text"])
    def test_what_is_not_a_matrix_is_refused(self, bad: Any) -> None:
        with pytest.raises(EmbedderError, match="it gave"):
            to_unit_vectors(bad, "it")
