"""Buckets of tokens, on a clock of the test's own."""

from __future__ import annotations

from eunoe.server import access
from eunoe.server.access import RateLimit


def test_a_bucket_fills_up_again() -> None:
    now = [0.0]
    limit = RateLimit(60, burst=2, clock=lambda: now[0])
    assert [bool(limit.take("a").wait) for _ in range(3)] == [False, False, True]
    assert limit.take("a").wait == 1.0
    now[0] = 1.0
    assert [bool(limit.take("a").wait) for _ in range(2)] == [False, True]
    now[0] = 1000.0
    assert [bool(limit.take("a").wait) for _ in range(3)] == [False, False, True]


def test_each_name_has_its_own() -> None:
    limit = RateLimit(60, burst=1)
    assert [limit.take("a").wait > 0, limit.take("b").wait > 0, limit.take("a").wait > 0] == [False, False, True]


def test_looking_uses_nothing_up() -> None:
    limit = RateLimit(60, burst=1)
    assert [limit.look("a").wait for _ in range(3)] == [0, 0, 0]


def test_the_table_is_bounded() -> None:
    limit = RateLimit(60)
    for number in range(access._MAX_BUCKETS + 10):
        limit.take(str(number))
    assert len(limit._buckets) == access._MAX_BUCKETS
