"""The tool `forget`: by words or a person it only previews; it removes by ids, or by the token of a preview. A token is
for what has the words; what is merely alike is shown apart."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, Final

from eunoe.errors import InputError, NotFoundError
from eunoe.model.atom import Item, source_name
from eunoe.model.message import Message
from eunoe.model.result import ForgetReport, Hit
from eunoe.model.scope import Scope
from eunoe.model.turn import USER_ROLES, user_named_by
from eunoe.server.mcp.memory_list import MemoryList, hit_row, take_rows
from eunoe.server.mcp.tool import Answer, ToolCall
from eunoe.text.normalize import normalize_name

_SELECTORS: Final = ("ids", "token", "words", "person")
_MAX_PREVIEW: Final = 10
_MAX_IDS: Final = 50
"""That an answer names."""
_PAGE: Final = 1000


def forget(call: ToolCall) -> Answer:
    given = [name for name in _SELECTORS if call.arguments.get(name)]
    if len(given) != 1:
        raise InputError(f"pass exactly one of {', '.join(_SELECTORS)}")
    return {"ids": _by_ids, "token": _by_token, "words": _preview_words, "person": _preview_person}[given[0]](call)


def _by_ids(call: ToolCall) -> Answer:
    return _report_answer(call, call.memory.forget(call.scope, call.arguments["ids"], exact=call.is_exact))


def _by_token(call: ToolCall) -> Answer:
    selection = call.confirmation.read(call.caller.id, call.scope, call.text("token"))
    if "ids" in selection:
        return _report_answer(call, call.memory.forget(call.scope, selection["ids"], exact=call.is_exact))
    person = selection["person"]
    if _digest(_items_of(call, person)) != selection["digest"]:
        raise InputError(f"what is known of {person} changed since the preview: preview again, nothing was removed")
    return _report_answer(call, call.memory.forget(call.scope, person=person, exact=call.is_exact))


def _preview_words(call: ToolCall) -> Answer:
    from eunoe.memory.word_matches import find_words

    found, alike = find_words(call.memory, call.scope, call.text("words"), exact=call.is_exact)
    if not found and alike:
        shown = ", ".join(hit.id for hit in alike)
        raise NotFoundError(
            f"nothing in {call.scope} has these words: nothing was removed. Merely alike: {shown}; get shows them"
        )
    return _preview(call, found, None, alike)


def _preview_person(call: ToolCall) -> Answer:
    person = call.text("person").strip()
    items = list(_items_of(call, person))
    return _preview(call, items, {"person": person, "digest": _digest(iter(items))})


def _preview(call: ToolCall, items: list[Item], selection: dict[str, Any] | None, alike: Sequence[Hit] = ()) -> Answer:
    budget = call.budget()
    rows = take_rows((hit_row(item, call.scope) for item in items[:_MAX_PREVIEW]), budget)
    if not rows:
        raise NotFoundError(f"nothing in {call.scope} matches: nothing was removed; recall shows what there is")
    selection = selection or {
        "ids": [source_name(item.scope or call.scope, item.id, call.scope) for item in items[: len(rows)]]
    }
    count = len(rows) if "ids" in selection else len(items)
    token = call.confirmation.create(call.caller.id, call.scope, selection, count)
    more = {"alike": [hit.id for hit in alike if budget.take(hit.id)]}
    answer = MemoryList(call.scope, rows).answer(removed=0, count=count, token=token, **more)
    rest = f" {len(items) - count} more have the words: preview again after these." if len(items) > count else ""
    near = f" Merely alike, and not in the token: {', '.join(more['alike'])}." if more["alike"] else ""
    ask = (
        f"Nothing was removed. Ask the user; then call forget with some of these ids, or for these {count} with "
        f'token "{token}" within 5 minutes.{rest}{near}'
    )
    return Answer(f"{answer.text}\n{ask}", answer.data)


def _items_of(call: ToolCall, person: str) -> Iterator[Item]:
    """What forgetting a person would remove: what they said, and what is noted about them."""
    wanted, after = normalize_name(person), ""
    while True:
        page = call.memory.list(call.scope, limit=_PAGE, after=after, retired=True, exact=call.is_exact)
        yield from (
            item for item in page.items if wanted in map(normalize_name, _owners(item, item.scope or call.scope))
        )
        if not (after := page.next):
            return


def _owners(item: Item, scope: Scope) -> tuple[str, ...]:
    if not isinstance(item, Message):
        return item.people
    user = scope.pairs.get("user", "") if item.role.lower() in USER_ROLES else ""
    return (item.speaker or user, user_named_by(item))


def _digest(items: Iterator[Item]) -> str:
    return hashlib.sha256("\n".join(sorted(item.id for item in items)).encode()).hexdigest()[:32]


def _report_answer(call: ToolCall, report: ForgetReport) -> Answer:
    if not report.total:
        raise NotFoundError(f"nothing was removed: {call.scope} has no such memory; recall or list gives ids")
    ids = [*report.messages, *report.atoms][:_MAX_IDS]
    removed = f"Removed {report.total} for good from {call.scope}: {', '.join(ids)}"
    held = {str(scope): list(left) for scope, left in report.held_by.items() if call.caller.scopes.may_name(scope)}
    lines = [f"{removed}, and more." if len(ids) < report.total else f"{removed}."]
    for scope, left in held.items():
        lines.append(f"{', '.join(left)} in {scope} stays and still says it: offer to forget it.")
    lines += [f"{note}." for note in report.notes]
    lines += [f"Not searched: {'; '.join(report.unsearched)}."] if report.unsearched else []
    data = {"removed": report.total, "ids": ids, "held_by": held, "unsearched": list(report.unsearched)}
    return Answer(" ".join(lines), data)
