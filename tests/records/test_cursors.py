"""Cursors: they lead on, and tell nothing."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

import eunoe
from eunoe.errors import InputError
from eunoe.memory import Memory
from eunoe.records.reading import open_number, seal_number


@given(st.integers(0, 2**63 - 1))
def test_a_number_comes_back(seq: int) -> None:
    store = _Store("00112233445566778899aabbccddeeff")
    assert open_number(store, seal_number(store, seq)) == seq  # type: ignore[arg-type]


class _Store:
    def __init__(self, secret: str) -> None:
        self._secret = secret

    def get_value(self, name: str) -> str:
        return self._secret


def test_neighbours_look_nothing_alike() -> None:
    store = _Store("00112233445566778899aabbccddeeff")
    sealed = [seal_number(store, seq) for seq in range(100)]  # type: ignore[arg-type]
    assert len({text[:4] for text in sealed}) > 90
    assert sealed != sorted(sealed)


def test_a_page_does_not_tell_how_much_others_write(memory: Memory) -> None:
    ours = memory.restricted(tenant="acme")
    ours.remember_many("user=anna", ["One.", "Two.", "Three."])
    first = [ours.list("user=anna", limit=1).next, ours.recent(limit=1).next]
    memory.remember_many("tenant=other/user=ben", [f"Fact {number}." for number in range(50)])
    ours.remember("user=anna", "Four.")
    assert ours.list("user=anna", limit=1).next == first[0]


def test_each_store_seals_with_a_secret_of_its_own() -> None:
    cursors = set()
    for _ in range(3):
        with eunoe.open(":memory:", embedder="none", llm="none") as memory:
            memory.remember_many("user=anna", ["One.", "Two."])
            cursors.add(memory.list("user=anna", limit=1).next)
    assert len(cursors) == 3


def test_the_whole_is_read_page_by_page_by_two_processes_alike(tmp_path: object) -> None:
    path = f"{tmp_path}/memory.db"
    texts = [f"Fact {number}." for number in range(7)]
    with eunoe.open(path, embedder="none", llm="none") as one, eunoe.open(path, embedder="none", llm="none") as two:
        one.remember_many("user=anna", texts)
        read, after = [], ""
        for memory in (one, two, one, two):
            page = memory.list("user=anna", limit=2, after=after)
            read += [item.text for item in page.items]
            after = page.next
    assert read == texts


@given(st.integers(0, 2**64 - 1))
def test_a_cursor_that_somebody_made_up_is_refused_or_leads_somewhere(number: int) -> None:
    store = _Store("00112233445566778899aabbccddeeff")
    with suppress(InputError):
        assert 0 <= open_number(store, f"{number:016x}") < 2**63  # type: ignore[arg-type]


@pytest.mark.parametrize("after", ["1", "x" * 16, "0123456789ABCDEF", "1:1"])
def test_what_is_no_cursor_is_refused(memory: Memory, after: str) -> None:
    memory.remember("user=anna", "One.")
    with pytest.raises(InputError, match="pass the `next`"):
        memory.list("user=anna", after=after)
