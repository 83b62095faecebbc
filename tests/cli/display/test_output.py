"""What is written and said: JSON, plain text, progress."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

import eunoe
from eunoe.cli.display import JsonPage, escape_controls, progress, shorten, write_json
from eunoe.model.json import json_value
from eunoe.model.message import Message
from eunoe.model.scope import Scope


def test_lines_and_tabs_are_not_made_visible() -> None:
    assert escape_controls("a\r\n\tb\x85") == "a\n\tb\\x85"
    assert escape_controls("ok\u202etxt.exe\u2066\u2028") == r"ok\u202etxt.exe\u2066\u2028"
    assert escape_controls("می\u200cشد 👩\u200d🔧") == "می\u200cشد 👩\u200d🔧"


def test_a_shortened_text_is_one_line_and_marked() -> None:
    assert shorten("one\n two", 7) == "one two"
    assert shorten("one\n two three", 7) == "one tw…"


def test_json_has_fields_by_name_and_times_and_scopes_as_text() -> None:
    message = Message(text="Zoë", time=datetime(2024, 5, 7, tzinfo=UTC))
    value = json_value({"scope": Scope(user="anna"), "items": (message,)})
    assert value["scope"] == "user=anna"
    assert (value["items"][0]["kind"], value["items"][0]["time"]) == ("message", "2024-05-07T00:00:00+00:00")


@pytest.mark.parametrize("items", [[], ["a"], ["a", "Zoë"]])
def test_a_page_is_written_item_by_item(items: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    write_json(JsonPage(iter(items), "7"))
    out = capsys.readouterr().out
    assert json.loads(out) == {"items": items, "next": "7"}
    assert out.count("\n") == len(items) + 2


def test_ctrl_c_stops_work_in_another_thread() -> None:
    """The thread that embeds ends at its next report instead of holding up the exit."""
    reports = []
    with pytest.raises(KeyboardInterrupt), progress("embedding") as advance:
        raise KeyboardInterrupt
    with eunoe.open(":memory:", embedder="none") as memory:
        memory.observe("user=anna", ["One.", "Two.", "Three."])
        with pytest.raises(InterruptedError):
            memory.admin.reembed("static", progress=lambda done, total: (reports.append(done), advance(done, total)))
    assert reports == [3]
