"""Corrections by hand on the command line."""

from __future__ import annotations

from tests.cli.conftest import Cli

TALK = "agent=cook/session=s1/user=anna"
ANNA = "agent=cook/user=anna"


def test_a_correction_is_made_shown_and_removed(cli: Cli) -> None:
    said = cli("observe", TALK, "I had pasta for lunch.", "--json").json["receipts"][0]["id"]
    cli("form", TALK)
    made = cli("correct", TALK, said, "keep", "--json").json
    assert (made["verdict"], made["scope"], made["sentences"]) == ("keep", ANNA, ["I had pasta for lunch."])
    assert "I had pasta for lunch." in cli("corrections", ANNA).out
    dry_run = " ".join(
        cli("form", "agent=cook/session=s2/user=anna", "I had pasta for lunch today.", "--dry-run").out.split()
    )
    assert "by your correction of 'I had pasta for lunch.'" in dry_run
    why = " ".join(cli("recall", ANNA, "pasta", "--why").out.split())
    assert "kept as fact, 100% sure" in why
    assert cli("corrections", ANNA, "--remove", made["id"]).out == f"{made['id']} counts no more\n"
    assert cli("corrections", ANNA, "--json").json == {"corrections": []}


def test_a_verdict_that_is_none_and_a_message_that_is_not_there(cli: Cli) -> None:
    cli("observe", TALK, "I had pasta for lunch.")
    refused = cli("correct", TALK, "nothing", "burn")
    assert refused.code == 1
    assert "choose one of keep, drop, instruction" in refused.err
    assert cli("correct", TALK, "nothing", "drop").code == 1
