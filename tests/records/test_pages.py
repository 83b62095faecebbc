"""Pages: of one scope in either direction and as of a moment, and of all scopes with the latest first."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

import pytest

import eunoe
from eunoe.errors import AccessError, InputError, ScopeError
from eunoe.memory import Memory
from eunoe.model.arguments import parse_time, utc_now

ANNA, BEN = "agent=cook/user=anna", "user=ben"


def texts(page: eunoe.Page) -> list[str]:
    return [item.text for item in page.items]


def all_pages(read: Callable[..., eunoe.Page], **filters: object) -> list[str]:
    found, after = [], ""
    while True:
        page = read(after=after, **filters)
        found += texts(page)
        after = page.next
        if not after:
            return found


def import_atoms(memory: Memory, count: int, scopes: int) -> None:
    """Atoms of many moments, in an order that is not that of time."""
    start = parse_time("2024-01-01")
    memory.admin.import_(
        json.dumps(
            {
                "scope": f"tenant=t{number % scopes % 2}/user=u{number % scopes}",
                "kind": "fact",
                "id": f"f{number}",
                "text": f"fact {number}",
                "recorded": (start + timedelta(minutes=number * 7919 % count)).isoformat(),
            }
        )
        for number in range(count)
    )


class TestRecent:
    def test_the_latest_of_all_scopes_comes_first(self, memory: Memory) -> None:
        memory.observe(ANNA, "I like tea.")
        for scope, text in ((ANNA, "one"), (BEN, "two"), (ANNA, "three")):
            memory.remember(scope, text)
        page = memory.recent()
        assert texts(page) == ["three", "two", "one"]
        assert [str(item.scope) for item in page.items] == [ANNA, BEN, ANNA]
        assert texts(memory.recent(user="anna")) == ["three", "one"]
        assert texts(memory.recent(user_id="anna", agent="cook")) == ["three", "one"]
        assert texts(memory.recent(user="ann")) == texts(memory.recent(agent="cook", user="ben")) == []
        assert texts(memory.recent(agent="cook")) == texts(memory.recent(user="anna", exact=True)) == []
        assert texts(memory.recent(within="agent=cook/*")) == ["three", "one"]

    def test_time_counts_not_the_order_of_arrival(self, memory: Memory) -> None:
        import_atoms(memory, 50, 3)
        times = [item.recorded for item in memory.recent(limit=50).items]
        assert times == sorted(times, reverse=True)
        since, until = times[20], times[10]
        assert [item.recorded for item in memory.recent(since=since, until=until).items] == times[11:21]

    @pytest.mark.parametrize("keys", [{}, {"within": "tenant=t0/*"}, {"user": "u1", "tenant": "t1"}])
    def test_pages_have_everything_once(self, memory: Memory, keys: dict[str, str]) -> None:
        import_atoms(memory, 60, 4)
        whole = texts(memory.recent(limit=100, **keys))
        assert whole
        for limit in (1, 7, 60):
            assert all_pages(memory.recent, limit=limit, **keys) == whole

    def test_what_came_at_one_moment_is_not_lost_between_pages(self, memory: Memory) -> None:
        memory.remember_many(ANNA, [f"fact {number}" for number in range(10)])
        assert all_pages(memory.recent, limit=3) == [f"fact {number}" for number in range(9, -1, -1)]

    def test_a_page_stays_where_it_was_when_something_new_comes(self, memory: Memory) -> None:
        memory.remember_many(ANNA, ["one", "two", "three"])
        first = memory.recent(limit=1)
        memory.remember(ANNA, "four")
        assert texts(memory.recent(after=first.next)) == ["two", "one"]

    def test_what_was_superseded_is_there_where_it_is_asked_for(self, memory: Memory) -> None:
        old = memory.remember(ANNA, "Anna lives in Paris.")
        memory.update(ANNA, old.id, "Anna lives in Rome.")
        memory.remember(ANNA, "Anna seems tired.", kind="observation")
        assert texts(memory.recent(kinds=["fact"])) == ["Anna lives in Rome."]
        assert texts(memory.recent(retired=True))[1:] == ["Anna lives in Rome.", "Anna lives in Paris."]

    def test_what_makes_no_sense_is_refused(self, memory: Memory) -> None:
        for after in ("x", "1", "1:", ":1", "1:2:3", "9" * 19 + ":1", "9" * 18 + ":1", "-", None, 7):
            with pytest.raises(InputError, match="cannot read on after"):
                memory.recent(after=after or "-")  # type: ignore[arg-type]
        for arguments in (
            {"kinds": ["message"]},
            {"limit": 0},
            {"since": "soon"},
            {"in_review": "yes"},
            {"retired": 1},
        ):
            with pytest.raises(InputError):
                memory.recent(**arguments)  # type: ignore[arg-type]
        with pytest.raises(ScopeError):
            memory.recent(user="")

    @pytest.mark.parametrize("scopes", [1, 200])
    @pytest.mark.parametrize("keys", [{}, {"within": "tenant=t0/*"}, {"user": "u0", "tenant": "t0"}])
    def test_it_reads_few_rows_of_many(self, scopes: int, keys: dict[str, str]) -> None:
        """What a page costs does not depend on how much there is: only its own rows are decoded."""
        with eunoe.open(":memory:", embedder="none", llm="none") as memory:
            import_atoms(memory, 1000, scopes)
            plans = _plans_of_recent(memory, keys)
            assert any(("items_recorded" in plan) is not bool(keys) for plan in plans)
            assert not any("TEMP B-TREE" in plan for plan in plans)

    def test_a_page_of_many_streams_is_that_of_one(self) -> None:
        with eunoe.open(":memory:", embedder="none", llm="none") as memory:
            import_atoms(memory, 1000, 200)
            expected = [item for item in memory.recent(limit=1000).items if str(item.scope).startswith("tenant=t1/")]
            acme = memory.restricted(tenant="t1")
            assert texts(acme.recent(limit=1000)) == [item.text for item in expected]
            assert all_pages(acme.recent, limit=37) == [item.text for item in expected]

    def test_what_others_hold_costs_nothing(self) -> None:
        with eunoe.open(":memory:", embedder="none", llm="none") as memory:
            acme = memory.restricted(tenant="acme")
            for number in range(5):
                acme.remember_many(f"user=u{number}", [f"fact {number} {each}" for each in range(20)])
            alone = _steps_of_recent(memory, acme)
            import_atoms(memory, 2000, 500)
            assert _steps_of_recent(memory, acme) == pytest.approx(alone, abs=10)


def _steps_of_recent(memory: Memory, acme: Memory) -> int:
    """How many steps the database takes for the first page."""
    connection, steps = memory._engine.store._connection(), list[int]()
    connection.set_progress_handler(lambda: steps.append(1), 1)
    assert len(acme.recent().items) == 50
    connection.set_progress_handler(None, 0)
    return len(steps)


def _plans_of_recent(memory: Memory, keys: dict[str, str]) -> list[str]:
    """How the database finds the records of a page."""
    connection, found = memory._engine.store._connection(), list[str]()
    connection.set_trace_callback(lambda sql: found.append(sql))
    memory.recent(in_review=False, **keys)
    connection.set_trace_callback(None)
    selections = [sql for sql in found if "recorded DESC, i.seq DESC" in sql]
    return [str(connection.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall()) for sql in selections]


class TestList:
    def test_newest_first(self, memory: Memory) -> None:
        memory.observe(ANNA, ["hello"])
        memory.remember_many(ANNA, [{"text": f"fact {number}", "label": "ab"[number % 2]} for number in range(9)])
        expected = texts(memory.list(ANNA))[::-1]
        assert texts(memory.list(ANNA, newest=True)) == expected
        assert all_pages(lambda **more: memory.list(ANNA, newest=True, limit=4, **more)) == expected
        labelled = all_pages(lambda **more: memory.list(ANNA, newest=True, limit=2, labels=["a"], **more))
        assert labelled == [f"fact {number}" for number in (8, 6, 4, 2, 0)]

    def test_as_the_store_knew_it(self, memory: Memory) -> None:
        old = memory.remember(ANNA, "Anna lives in Paris.")
        before = utc_now()
        memory.update(ANNA, old.id, "Anna lives in Rome.")
        assert texts(memory.list(ANNA, known_at=before)) == ["Anna lives in Paris."]
        assert texts(memory.list(ANNA, known_at=utc_now())) == ["Anna lives in Rome."]
        assert texts(memory.list(ANNA, known_at=before, retired=True)) == ["Anna lives in Paris."]
        assert texts(memory.list(ANNA, known_at="2020-01-01")) == []
        with pytest.raises(InputError, match="known_at"):
            memory.list(ANNA, known_at="soon")
        with pytest.raises(InputError, match="newest"):
            memory.list(ANNA, newest="yes")  # type: ignore[arg-type]

    @pytest.mark.parametrize("after", ["x", "-1", "1.5", "9" * 19, 7])
    def test_a_cursor_that_is_none_is_refused(self, memory: Memory, after: str) -> None:
        with pytest.raises(InputError, match="cannot read on after"):
            memory.list(ANNA, after=after)


class TestRestricted:
    def test_only_what_is_within_reach_is_recent(self, memory: Memory) -> None:
        for scope in ("tenant=acme/user=anna", "tenant=acme/user=ben", "tenant=other/user=anna", "user=anna"):
            memory.remember(scope, scope)
        acme = memory.restricted(tenant="acme")
        assert texts(acme.recent()) == ["tenant=acme/user=ben", "tenant=acme/user=anna"]
        assert texts(acme.recent(user="anna")) == ["tenant=acme/user=anna"]
        some = memory.restricted(tenant="acme", scopes=["user=anna"])
        assert texts(some.recent()) == texts(some.recent(user="anna")) == ["tenant=acme/user=anna"]
        with pytest.raises(AccessError):
            some.recent(user="ben")
        both = memory.restricted(scopes=["tenant=acme/user=anna", "tenant=other"])
        assert texts(both.recent()) == ["tenant=other/user=anna", "tenant=acme/user=anna"]

    def test_it_needs_the_right_to_read(self, memory: Memory) -> None:
        with pytest.raises(AccessError, match="read"):
            memory.restricted(rights=["write"]).recent()
        with pytest.raises(AccessError, match="out of reach"):
            memory.restricted(tenant="acme").recent(tenant="other")
