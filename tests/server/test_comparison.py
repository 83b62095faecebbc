"""Two revisions of a summary, side by side."""

from __future__ import annotations

from typing import Any

import pytest

from eunoe.errors import NotFoundError
from eunoe.model.stream import Revision
from eunoe.server.administration import compare

_OLD = "Anna lives in Rome.\nShe has a dog.\nShe likes tea.\n"
_NEW = "Anna lives in Turin.\nShe likes tea.\nShe sings.\n"


def test_changes_are_told_by_lines_and_words() -> None:
    compared = _compare(_OLD, _NEW)
    told = [(change["kind"], change["old"], change["new"]) for change in compared["changes"]]
    assert told == [
        ("changed", "Anna lives in Rome.\nShe has a dog.\n", "Anna lives in Turin.\n"),
        ("same", "She likes tea.\n", "She likes tea.\n"),
        ("added", "", "She sings.\n"),
    ]
    words = compared["changes"][0]["words"]
    assert ("removed", "Rome") in words
    assert ("added", "Turin") in words


def test_both_texts_can_be_put_together_again() -> None:
    for old, new in ((_OLD, _NEW), ("", _NEW), (_OLD, ""), ("a b c", "a c"), ("x\n" * 5000, "y\n" * 5000)):
        changes = _compare(old, new)["changes"]
        assert "".join(change["old"] for change in changes) == old
        assert "".join(change["new"] for change in changes) == new
        for change in changes:
            if change["kind"] == "changed":
                assert "".join(text for kind, text in change["words"] if kind != "added") == change["old"]
                assert "".join(text for kind, text in change["words"] if kind != "removed") == change["new"]


def test_what_each_absorbed_is_told() -> None:
    compared = _compare(_OLD, _NEW)
    assert (compared["old"].absorbed, compared["new"].absorbed) == (("a",), ("b", "c"))


def test_zero_is_before_the_first() -> None:
    revisions = [Revision(1, _NEW)]
    compared = compare(revisions, 0, 1)
    assert compared["old"] is None
    assert [change["kind"] for change in compared["changes"]] == ["added"]
    with pytest.raises(NotFoundError):
        compare(revisions, 1, 2)


def _compare(old: str, new: str) -> dict[str, Any]:
    return compare([Revision(1, old, absorbed=("a",)), Revision(2, new, absorbed=("b", "c"))], 1, 2)
