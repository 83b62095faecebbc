"""What changed between two revisions of a summary."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Annotated, Any, Final, Literal

from fastapi import Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from eunoe.errors import NotFoundError
from eunoe.model.stream import Revision
from eunoe.server.common import CallerParam, ScopeQuery, reply
from eunoe.server.requests import json_router
from eunoe.server.schemas import answers, model_of

REVISION: Any = model_of(Revision)
_WORDS: Final = re.compile(r"\s+|\w+|[^\w\s]")
_MAX_PARTS: Final = 4000
"""Matching takes time with the square of the parts: beyond this a change is told as a whole."""


class Change(BaseModel):
    """A part of the text: the same in both, only in the old one, only in the new one, or put in other words."""

    kind: Literal["same", "removed", "added", "changed"]
    old: str = Field(description="The lines of the old revision.")
    new: str = Field(description="The lines of the new revision.")
    words: list[list[str]] = Field(
        description='Of changed lines: pairs of a kind ("same", "removed" or "added") and a text.'
    )


class Comparison(BaseModel):
    """Two revisions, and the way from one to the other."""

    old: REVISION | None = Field(description="Null for number 0: before the first.")
    new: REVISION
    changes: list[Change]


class CompareQuery(ScopeQuery):
    old: int = Field(ge=0, description="The number of a revision; 0 is before the first.")
    new: int = Field(ge=1)


router = json_router("summaries")


@router.get("/revisions/compare", summary="What changed between two revisions", responses=answers(Comparison, 404))
async def compare_revisions(query: Annotated[CompareQuery, Query()], caller: CallerParam) -> Response:
    """Line by line, and within changed lines word by word; with the memories that each revision absorbed."""
    return reply(compare(await caller.async_memory.summaries.revisions(query.scope), query.old, query.new))


def compare(revisions: Sequence[Revision], old: int, new: int) -> dict[str, Any]:
    """Compare two revisions by their numbers; 0 is the empty text before the first."""
    by_number = {revision.number: revision for revision in revisions}
    if missing := [number for number in (old, new) if number and number not in by_number]:
        raise NotFoundError(f"there is no revision {missing[0]} of this summary")
    before, after = by_number.get(old), by_number[new]
    return {"old": before, "new": after, "changes": list(_changes(before.text if before else "", after.text))}


def _changes(old: str, new: str) -> Iterator[dict[str, Any]]:
    for kind, left, right in _differences(old.splitlines(keepends=True), new.splitlines(keepends=True)):
        words: list[tuple[str, str]] = []
        for part, before, after in _differences(_WORDS.findall(left), _WORDS.findall(right)):
            pairs = [("same", before)] if part == "same" else [("removed", before), ("added", after)]
            words += [pair for pair in pairs if pair[1]]
        yield {"kind": kind, "old": left, "new": right, "words": words if kind == "changed" else []}


def _differences(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    kinds = {"equal": "same", "delete": "removed", "insert": "added", "replace": "changed"}
    if len(old) + len(new) > _MAX_PARTS:
        yield "changed", "".join(old), "".join(new)
        return
    for kind, start, end, new_start, new_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        yield kinds[kind], "".join(old[start:end]), "".join(new[new_start:new_end])
