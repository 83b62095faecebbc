"""Where states and logs of runs lie: each ticket in a folder of its own, for its owner only."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from eunoe.apps.tickets import DamagedRun, RunFolder, RunState, Ticket
from eunoe.apps.tickets.state import Step
from eunoe.apps.tickets.work import Snapshot, Work
from eunoe.errors import InputError


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


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("memories",), None),
        (("outcome",), 7),
        (("steps", 0, "summary"), None),
        (("steps", 0, "answer"), [1]),
        (("steps", 0, "usage", "calls"), "1"),
        (("steps", 0, "recalled"), [7]),
        (("run",), True),
        (("run",), 0),
        (("ticket", "id"), "y"),
        (("work", "first", "files"), {"a": 1}),
        (("work", "before"), []),
    ],
)
def test_a_value_of_another_type_is_damage(folder: RunFolder, place: tuple[str | int, ...], value: object) -> None:
    state = RunState(Ticket("x", "Title", project="shop"), steps=[Step(answer="ok")], work=Work(Snapshot("/x")))
    folder.save(state)
    path = folder.ticket_folder("shop", "x") / "state.json"
    fields = part = json.loads(path.read_text())
    assert folder.get("shop", "x") == state
    for name in place[:-1]:
        part = part[name]
    part[place[-1]] = value
    path.write_text(json.dumps(fields))
    with pytest.raises(InputError, match="not the state of a ticket"):
        folder.load("shop", "x")
    assert isinstance(next(folder.all()), DamagedRun)


SAVING = """
import sys
from eunoe.apps.tickets import RunFolder, RunState, Ticket
folder, ticket = RunFolder(sys.argv[1]), Ticket("x", "Title", "word " * 200_000, "shop")
with folder.lock("shop", "x"):
    folder.save(RunState(ticket))
    print("saving", flush=True)
    while True:
        folder.save(RunState(ticket))
"""


def test_a_killed_process_leaves_no_stray_files(folder: RunFolder) -> None:
    """Killed while it saves, again and again: drafts do not pile up, the next one that works on the ticket removes the
    last, and the state is whole.
    """
    place = folder.ticket_folder("shop", "x")
    drafts = 0
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", SAVING, str(folder.path)], stdout=subprocess.PIPE)
        assert process.stdout
        assert process.stdout.readline() == b"saving\n"
        while not list(place.glob(".*.part")):
            assert process.poll() is None
        process.kill()
        process.communicate()
        left = [path.name for path in place.iterdir() if path.name.endswith(".part")]
        assert len(left) <= 1
        drafts += len(left)
    assert drafts
    with folder.lock("shop", "x"):
        pass
    assert {path.name for path in place.iterdir()} <= {".lock", "run-001.md", "state.json"}
    assert folder.get("shop", "x").ticket.title == "Title"
