"""Where states and logs of runs lie: each ticket in a folder of its own, for its owner only."""

from __future__ import annotations

from pathlib import Path

import pytest

from eunoe.errors import InputError
from eunoe.tickets import RunFolder, RunState, Ticket


def test_states_and_logs_are_for_their_owner_only(folder: RunFolder) -> None:
    with folder.lock("shop", "search-1"):
        folder.save(RunState(Ticket("search-1", "Slow search", project="shop")))
    place = Path(folder.get("shop", "search-1").log)
    assert place.stat().st_mode & 0o077 == 0
    assert place.parent.stat().st_mode & 0o077 == 0
    assert sorted(path.name for path in place.parent.iterdir()) == [".lock", "run-001.md", "state.json"]


@pytest.mark.parametrize("name", ["../../etc", "/abs", "..", ".", "a/b", "Shop", "con\u202e", "ß" * 300, "~"])
def test_no_name_leads_out_of_its_place(name: str, folder: RunFolder) -> None:
    place = folder.ticket_folder(name, name)
    assert place.resolve().parent.parent == folder.path.resolve()
    assert len(place.name) < 80


def test_names_that_differ_have_places_that_differ(folder: RunFolder) -> None:
    names = ["shop", "Shop", "SHOP", "shop/", "shop ", "sh op", "sh-op", ".shop"]
    assert len({str(folder.ticket_folder(name, "x")).lower() for name in names}) == len(names)


def test_a_state_that_is_none_is_a_typed_error(folder: RunFolder) -> None:
    place = folder.ticket_folder("shop", "x")
    place.mkdir(parents=True)
    for text in ("", "[]", '{"ticket": {}}', "null"):
        (place / "state.json").write_text(text)
        with pytest.raises(InputError, match="not the state of a ticket"):
            folder.load("shop", "x")
