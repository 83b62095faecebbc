"""Durations as people write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from eunoe.errors import InputError
from eunoe.model.arguments import utc_now
from eunoe.server.keys import parse_duration, parse_end


@pytest.mark.parametrize(
    ("text", "seconds"), [("30s", 30), ("45m", 45 * 60), ("12h", 12 * 3600), ("30d", 30 * 86400), ("2w", 14 * 86400)]
)
def test_every_unit_is_known(text: str, seconds: int) -> None:
    assert parse_duration(text, "overlap") == timedelta(seconds=seconds)


def test_an_end_is_a_duration_or_a_time() -> None:
    before = utc_now()
    assert before + timedelta(seconds=5) <= parse_end("5s", "expires") <= utc_now() + timedelta(seconds=5)
    assert parse_end("2030-12-31", "expires") == datetime(2030, 12, 31, tzinfo=UTC)


@pytest.mark.parametrize("text", ["5y", "-1d", "soon", ""])
def test_a_refusal_says_which_forms_there_are(text: str) -> None:
    with pytest.raises(InputError, match="30d, 12h, 45m, 30s, or a time"):
        parse_end(text, "--expires")
