"""`eunoe review`: what waits is listed, kept and put back."""

from __future__ import annotations

import pytest
from tests.cli.conftest import Cli

ANNA = "user=anna"


@pytest.fixture
def waiting_cli(cli: Cli) -> Cli:
    """A command line on a store with two memories that wait."""
    assert cli("streams", "set", ANNA, "review=all").code == 0
    assert cli("observe", ANNA, "-", stdin="I am allergic to peanuts.\nMy dog is called Rex.").code == 0
    assert "2 in review" in cli("form", ANNA).out
    return cli


def test_what_waits_is_listed_by_scope(waiting_cli: Cli) -> None:
    result = waiting_cli("review")
    assert result.code == 0
    assert "user=anna:" in result.out
    assert "peanuts" in result.out
    assert "in review" in result.out
    assert "nothing waits" in waiting_cli("review", "list", "user=ben").err
    assert "2 to be looked at" in waiting_cli("status").out


def test_pages_go_on(waiting_cli: Cli) -> None:
    first = waiting_cli("review", "--limit", "1", "--json").json
    rest = waiting_cli("review", "--after", first["next"], "--json").json
    assert [len(first["items"]), len(rest["items"]), rest["next"]] == [1, 1, ""]


def test_what_is_kept_waits_no_more_until_it_is_undone(waiting_cli: Cli) -> None:
    ids = [item["id"] for item in waiting_cli("review", "--json").json["items"]]
    assert "2 memories kept" in waiting_cli("review", "keep", ANNA, *ids).out
    assert waiting_cli("review", "--json").json["items"] == []
    assert "0 memories kept" in waiting_cli("review", "keep", ANNA, ids[0]).out
    assert "1 memory in review again" in waiting_cli("review", "keep", ANNA, ids[0], "--undo").out
    assert len(waiting_cli("review", "--json").json["items"]) == 1


def test_what_is_not_there_is_one_line(waiting_cli: Cli) -> None:
    result = waiting_cli("review", "keep", ANNA, "nothing")
    assert result.code == 1
    assert "no memory 'nothing'" in result.err
    assert "Traceback" not in result.err
