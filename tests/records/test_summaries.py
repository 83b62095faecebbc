"""Summaries that somebody else writes: they absorb what they say, and can begin anew from an earlier revision."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import eunoe
from eunoe.errors import ConflictError, InputError, NotFoundError
from eunoe.memory import Memory

ANNA = "user=anna"


@pytest.fixture
def memory(path: Path) -> Iterator[Memory]:
    with eunoe.open(path, embedder="none", llm="none", form=False) as memory:
        memory.streams.configure(ANNA, consolidation_prompt="")
        yield memory


def note(memory: Memory, *ids: str) -> None:
    memory.remember_many(ANNA, [{"text": f"The words of {id}.", "id": id, "kind": "observation"} for id in ids])


def waiting(memory: Memory) -> int:
    return memory.streams.list(user="anna")[0].observations


def current(memory: Memory) -> int:
    return memory.streams.list(user="anna")[0].revision


def test_it_absorbs_what_it_names(memory: Memory) -> None:
    note(memory, "a", "b", "c")
    first = memory.summaries.write(ANNA, "A and B.", author="model", absorbed=["a", "b"])
    assert (first.parent, first.absorbed, first.author) == (0, ("a", "b"), "model")
    assert waiting(memory) == 1
    second = memory.summaries.write(ANNA, "A, B and C.", parent=1, absorbed=["a", "c"])
    assert (second.parent, second.absorbed, waiting(memory)) == (1, ("c",), 0)


def test_a_stream_names_what_waits_for_its_summary_and_says_when_it_was_updated(memory: Memory) -> None:
    def state() -> tuple[object, object]:
        stream = memory.streams.list(user="anna")[0]
        return stream.unabsorbed, stream.updated

    memory.observe(ANNA, "Hello.")
    assert state() == ((), None)
    note(memory, "a", "b")
    last = memory.get(ANNA, "b")
    assert last is not None
    assert state() == (("a", "b"), last.recorded)
    revision = memory.summaries.write(ANNA, "A.", absorbed=["a"])
    assert state() == (("b",), revision.recorded)


@pytest.mark.parametrize("wrong", ["nothing", "m1", "closed", "elsewhere"])
def test_it_absorbs_open_memories_only(memory: Memory, wrong: str) -> None:
    note(memory, "a", "closed")
    memory.observe(ANNA, {"content": "Hello.", "id": "m1"})
    memory.update(ANNA, "closed", "Other words.")
    memory.remember("user=ben", "Ben likes tea.", id="elsewhere", kind="observation")
    with pytest.raises(ConflictError, match=wrong):
        memory.summaries.write(ANNA, "A.", absorbed=["a", wrong])
    assert memory.summaries.revisions(ANNA) == []
    assert waiting(memory) == 2


def test_the_same_again_changes_nothing(memory: Memory) -> None:
    note(memory, "a", "b")
    first = memory.summaries.write(ANNA, "A.", parent=0, absorbed=["a"])
    assert memory.summaries.write(ANNA, "A.", parent=0, absorbed=["a"]) == first
    assert memory.summaries.write(ANNA, "A.") == first
    assert memory.summaries.write(ANNA, "A.", base=0, absorbed=["a"]) == first
    second = memory.summaries.write(ANNA, "A.", absorbed=["a", "b"])
    assert (second.number, second.absorbed) == (2, ("b",))
    third = memory.summaries.write(ANNA, "A.", base=0, absorbed=["a"])
    assert (third.number, third.parent, third.absorbed, waiting(memory)) == (3, 0, ("a",), 1)


def test_it_is_written_anew_from_an_earlier_revision(memory: Memory) -> None:
    note(memory, "a", "b", "c")
    memory.summaries.write(ANNA, "A.", absorbed=["a"])
    memory.summaries.write(ANNA, "A and B.", absorbed=["b"])
    again = memory.summaries.write(ANNA, "A and C.", parent=2, base=1, absorbed=["c"])
    assert (again.number, again.parent, again.absorbed, again.current) == (3, 1, ("c",), True)
    assert waiting(memory) == 1
    nothing = memory.summaries.write(ANNA, "A new beginning.", base=0)
    assert (nothing.parent, waiting(memory)) == (0, 3)
    assert memory.summaries.restore(ANNA, 2).parent == 2
    assert waiting(memory) == 1


def test_who_absorbs_without_a_model_may_say_so(memory: Memory) -> None:
    note(memory, "a")
    with pytest.raises(InputError, match="extractive"):
        memory.summaries.write(ANNA, "A.", author="extractive")
    memory.expire(ANNA, "a", "2024-01-01")
    assert memory.summaries.write(ANNA, "A.", author="extractive", absorbed=["a"]).author == "extractive"


def test_a_base_and_a_parent_are_checked(memory: Memory) -> None:
    note(memory, "a")
    memory.summaries.write(ANNA, "A.", absorbed=["a"])
    with pytest.raises(NotFoundError, match="revision 9"):
        memory.summaries.write(ANNA, "B.", base=9)
    with pytest.raises(ConflictError):
        memory.summaries.write(ANNA, "B.", parent=0, base=1)
    with pytest.raises(InputError):
        memory.summaries.write(ANNA, " ", base=0)
    with pytest.raises(InputError, match="base"):
        memory.summaries.write(ANNA, "B.", base=-1)
    assert (current(memory), waiting(memory)) == (1, 0)


def test_what_is_redone_under_its_id_waits_again(memory: Memory) -> None:
    note(memory, "a", "b")
    memory.summaries.write(ANNA, "A and B.", absorbed=["a", "b"])
    memory.remember(ANNA, "Other words of a.", id="a", kind="observation", replace=True, again=True)
    assert waiting(memory) == 1
    past = next(id for id in memory.summaries.revisions(ANNA)[0].absorbed if id != "b")
    item = memory.get(ANNA, past)
    assert isinstance(item, eunoe.Atom)
    assert item.superseded_by == "a"
    anew = memory.summaries.write(ANNA, "The new A, and B.", base=0, absorbed=["a", "b"])
    assert (anew.absorbed, waiting(memory)) == (("a", "b"), 0)


def test_a_lease_that_was_lost_writes_no_summary(memory: Memory) -> None:
    note(memory, "a")
    lease = memory.leases.acquire(ANNA, "summary")
    assert lease
    with pytest.raises(NotFoundError):
        memory.summaries.write(ANNA, "A.", base=7, lease=lease)
    assert memory.summaries.write(ANNA, "A.", absorbed=["a"], lease=lease).number == 1
    with pytest.raises(ConflictError, match="lease"):
        memory.summaries.write(ANNA, "A.", absorbed=["a"], lease=lease)


def test_forgetting_takes_every_revision_that_absorbed_it(memory: Memory) -> None:
    note(memory, "a")
    memory.summaries.write(ANNA, "A.", absorbed=["a"])
    note(memory, "observation-b", "c")  # who wrote the first one cannot have read them
    memory.summaries.write(ANNA, "A. The words of observation-b.", absorbed=["observation-b"])
    memory.summaries.write(ANNA, "A. The words of observation-b. C.", absorbed=["c"])
    report = memory.forget(ANNA, "observation-b", verify=True)
    assert report.verified, report.traces
    assert (current(memory), waiting(memory)) == (1, 1)
    assert memory.summaries.write(ANNA, "A and C.", absorbed=["c"]).parent == 1


@given(st.lists(st.tuples(st.sets(st.sampled_from("abcd")), st.integers(0, 6)), max_size=8))
def test_what_waits_is_what_the_lineage_does_not_hold(steps: list[tuple[set[str], int]]) -> None:
    with eunoe.open(":memory:", embedder="none", llm="none", form=False) as memory:
        note(memory, *"abcd")
        for number, (ids, base) in enumerate(steps):
            chosen = base if base <= len(memory.summaries.revisions(ANNA)) else None
            memory.summaries.write(ANNA, f"Text {number}.", absorbed=sorted(ids), base=chosen)
            revisions = {each.number: each for each in memory.summaries.revisions(ANNA)}
            latest = next(each for each in revisions.values() if each.current)
            lineage = list(latest.absorbed)
            while latest.parent:
                latest = revisions[latest.parent]
                lineage += latest.absorbed
            assert len(set(lineage)) == len(lineage)
            assert set(lineage) >= ids
            assert waiting(memory) == 4 - len(lineage)
