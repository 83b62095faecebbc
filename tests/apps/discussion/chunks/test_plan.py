"""Which chunks are to be made: derived from the log, what was made and what failed."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta

import pytest

from eunoe.apps.discussion.chunks import ChunkPlan, ChunkRecord, Cutting, Records, plan_chunks
from eunoe.apps.discussion.model import Chunk, LogMessage
from eunoe.apps.discussion.settings import ChunkSettings
from eunoe.model.atom import Atom
from eunoe.model.result import LeaseStatus

KIND = "chunk_memory"
START = datetime(2024, 5, 1, tzinfo=UTC)
NO_RECORDS = Records([], {}, [])


def log(*names: str) -> list[LogMessage]:
    """Messages by their names: `(a)` is retracted, `a:` has no words."""
    return [
        LogMessage(
            id=name.strip("():"),
            role="system" if name.startswith("s") else "user",
            text="" if name.endswith(":") else f"words of {name.strip('()')}",
            is_retracted=name.startswith("("),
        )
        for name in names
    ]


def cutting(messages: int = 3, lookback: int = 0, force: bool = False) -> Cutting:
    return Cutting(ChunkSettings(tokens=10_000, messages=messages), lookback=lookback, force=force)


def plan(
    sequence: list[LogMessage],
    records: Records = NO_RECORDS,
    how: Cutting | None = None,
    leases: list[LeaseStatus] | None = None,
    imported: Chunk | None = None,
) -> ChunkPlan:
    return plan_chunks(KIND, sequence, records, leases or [], how or cutting(), imported)


def names(plan: ChunkPlan) -> list[str]:
    return ["".join(message.id for message in work.messages) for work in plan.work]


def made(plan: ChunkPlan, before: Records = NO_RECORDS) -> Records:
    """The records after all work of a plan was done."""
    redone = {work.record.chunk.first for work in plan.work if work.record}
    kept = [record for record in before.made if record.chunk.first not in redone and record not in plan.empty]
    moment = START + timedelta(seconds=len(before.made))
    new = [
        ChunkRecord(work.chunk, (Atom(text="x", source=tuple(each.id for each in work.messages), recorded=moment),))
        for work in plan.work
    ]
    return Records([*kept, *new], {}, [])


def test_nothing_is_made_below_the_sizes_unless_it_is_forced() -> None:
    assert names(plan(log(*"abcd"), how=cutting(5))) == []
    assert plan(log(*"abcd"), how=cutting(5)).waiting == 4
    assert names(plan(log(*"abcd"), how=cutting(5, force=True))) == ["abcd"]


def test_a_discussion_of_two_messages_is_left_alone() -> None:
    assert names(plan(log(*"ab"), how=cutting(1))) == []
    assert names(plan(log(*"abc"), how=cutting(1))) == ["a", "b", "c"]


@pytest.mark.parametrize(("lookback", "expected"), [(0, ["abc", "def"]), (1, ["abc"]), (3, ["abc"]), (4, []), (99, [])])
def test_the_last_messages_are_left_out(lookback: int, expected: list[str]) -> None:
    assert names(plan(log(*"abcdef"), how=cutting(lookback=lookback))) == expected


def test_other_settings_and_new_messages_move_no_bounds() -> None:
    records = made(plan(log(*"abcdefg")))
    for how in (cutting(2), cutting(7), cutting(3, lookback=5), cutting(1)):
        later = plan(log(*"abcdefghij"), records, how)
        assert not {*"abcdef"} & {*"".join(names(later))}
    assert names(plan(log(*"abcdefghij"), records, cutting(2))) == ["gh", "ij"]


@pytest.mark.parametrize(
    ("sequence", "expected"),
    [
        ([*"ab", "(c)", "C", *"def"], ["abC"]),
        (["(a)", "A", *"bcdef"], ["Abc"]),
        ([*"abcde", "(f)", "F"], ["deF"]),
        ([*"abcde", "(f)"], ["de"]),
        ([*"abcd", "(e)", "(f)", *"EF"], ["dEF"]),
    ],
)
def test_an_edit_at_a_bound_stays_in_its_chunk(sequence: list[str], expected: list[str]) -> None:
    records = made(plan(log(*"abcdef")))
    later = plan(log(*sequence), records)
    assert names(later) == expected
    assert names(plan(log(*sequence), made(later, records))) == []


def test_messages_before_the_first_chunk_are_made_and_stand_before_it() -> None:
    records = made(plan(log(*"def")))
    later = plan(log(*"abcdef"), records)
    assert names(later) == ["abc"]
    assert later.work[0].chunk.place < records.made[0].chunk.place


def test_a_gap_is_made_although_it_is_small_and_stands_between_its_neighbours() -> None:
    records = made(plan(log(*"abcdef")))
    later = plan(log(*"abc", "x", *"def"), records)
    places = {record.chunk.first: record.chunk.place for record in records.made}
    assert names(later) == ["x"]
    assert places["a"] < later.work[0].chunk.place < places["d"]


def test_a_bound_that_was_forgotten_is_found_by_what_is_left() -> None:
    records = made(plan(log(*"abcdef")))
    survivor = records.made[1]
    partly = replace(survivor, atoms=(replace(survivor.atoms[0], source=("e",)),))
    later = plan(log(*"abcef"), Records([records.made[0], partly], {}, []))
    assert names(later) == ["ef"]
    assert later.work[0].chunk.first == "e"


def test_a_lease_of_messages_that_are_gone_is_dropped_unless_it_is_held() -> None:
    chunk = Chunk(KIND, 1.0, "gone", "a")
    leases = [LeaseStatus(f"{KIND}:{each}", asdict(chunk), is_held=each == "held") for each in ("held", "free")]
    assert plan(log(*"abc"), leases=leases).orphan_leases == [f"{KIND}:free"]


def test_of_chunks_that_share_messages_the_newer_one_stands() -> None:
    old = Atom(text="x", recorded=START)
    new = Atom(text="x", recorded=START + timedelta(1))
    records = Records(
        [ChunkRecord(Chunk(KIND, 1.0, "a", "c", "-"), (old,)), ChunkRecord(Chunk(KIND, 2.0, "b", "d", "-"), (new,))],
        {},
        [],
    )
    later = plan(log(*"abcd"), records)
    assert [(former.record.chunk.first, former.uncovered) for former in later.former] == [("a", {"a"})]
    assert names(later) == ["a", "bcd"]


def test_a_rebuild_cuts_all_anew_and_what_was_in_a_memory_is_so_again() -> None:
    records = made(plan(log(*"abcdefgh")))
    how = replace(cutting(4, lookback=5), edition=1, least_edition=1)
    later = plan(log(*"abcdefgh"), records, how)
    assert names(later) == ["abcd", "ef"]
    assert [former.uncovered for former in later.former] == [{*"abc"}, {*"def"}]
    places = [work.chunk.place for work in later.work]
    assert places == sorted(places)
    assert places[0] < records.made[1].chunk.place < places[1]


def test_a_rebuild_that_stopped_leaves_each_message_in_a_chunk() -> None:
    records = made(plan(log(*"abcdefghi")))
    begun = plan(log(*"abcdefghi"), records, replace(cutting(4), edition=1, least_edition=1))
    partly = Records([*records.made, *made(replace(begun, work=begun.work[:1])).made], {}, [])
    later = plan(log(*"abcdefghi"), partly, replace(cutting(), edition=1))
    assert names(later) == ["ef"]
    assert [former.uncovered for former in later.former] == [set(), {*"ef"}]


def test_chunks_begin_after_what_was_imported() -> None:
    imported = Chunk(KIND, 7.0, "", "d")
    later = plan(log(*"abcdefgh"), imported=imported)
    assert names(later) == ["efg"]
    assert later.work[0].chunk.place > 7.0
    assert names(plan(log(*"abc"), imported=replace(imported, last=""))) == ["abc"]
    assert names(plan(log(*"abc"), imported=replace(imported, last="forgotten"))) == []


def test_a_kind_that_is_off_is_only_kept_up_to_date() -> None:
    records = made(plan(log(*"abc")))
    off = replace(cutting(), is_on=False)
    assert names(plan(log(*"abcdef"), records, off)) == []
    assert names(plan(log("a", "(b)", "B", *"cdef"), records, off)) == ["aBc"]
