"""Views on a terminal: never wider than it, what is cut marked, and stored text harmless."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import eunoe
from eunoe.cli.display import Grid, Pairs, View, hit_entries, item_entries
from eunoe.cli.display.terminal import show

ANNA = "user=anna"
LONG = "word " * 200 + "the end"
Shown = Callable[..., str]


@pytest.fixture
def memory() -> Iterator[eunoe.Memory]:
    with eunoe.open(":memory:", embedder="none") as memory:
        yield memory


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str]) -> Shown:
    """What views look like on a terminal."""

    def call(*views: View) -> str:
        show(views)
        return capsys.readouterr().out

    return call


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_never_wider_than_the_terminal(
    memory: eunoe.Memory, shown: Shown, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    memory.remember(ANNA, LONG, label="x" * 100, files=["d/" * 60 + "f"])
    items, hits = memory.list(ANNA).items, memory.recall(ANNA, "word")
    entries = [item_entries(items), item_entries(items, full=True), hit_entries(hits, why=True)]
    for view in (*entries, Pairs({"store": "s" * 300}), Grid(("stream", "facts"), [("f" * 100, "3" * 300)])):
        lines = shown(view).splitlines()
        assert lines
        assert max(map(len, lines)) <= columns


def test_text_is_cut_with_an_ellipsis_and_whole_on_demand(memory: eunoe.Memory, shown: Shown) -> None:
    memory.remember(ANNA, LONG)
    items = memory.list(ANNA).items
    cut = shown(item_entries(items))
    assert "…" in cut
    assert "the end" not in cut
    whole = shown(item_entries(items, full=True))
    assert "…" not in whole
    assert "the end" in " ".join(whole.split())


def test_a_huge_text_that_is_mostly_blank_is_still_marked_as_cut(memory: eunoe.Memory, shown: Shown) -> None:
    memory.remember(ANNA, "start" + " " * 20_000 + "end")
    assert "start …" in shown(item_entries(memory.list(ANNA).items))


def test_stored_text_cannot_drive_the_terminal(memory: eunoe.Memory, shown: Shown) -> None:
    text = "red \x1b[31malert\x1b[0m [bold]\x07 :smile:"
    memory.remember(ANNA, text)
    items = memory.list(ANNA).items
    views = (
        item_entries(items),
        item_entries(items, full=True),
        Pairs({"text": text}),
        Grid(("", "text"), [("", text)]),
    )
    for out in map(shown, views):
        assert "\x1b" not in out
        assert "\x07" not in out
        assert r"red \x1b[31malert\x1b[0m [bold]\x07 :smile:" in out


def test_a_blank_line_stands_below_a_table(shown: Shown) -> None:
    pairs = Pairs({"a": "1"})
    assert [line.strip() for line in shown("above", pairs, pairs, "below").splitlines()] == [
        "above",
        "a  1",
        "",
        "a  1",
        "below",
    ]
