"""The tools `recall`, `context`, `get` and `list`."""

from __future__ import annotations

from typing import Final

from eunoe.errors import InputError
from eunoe.model.arguments import KINDS
from eunoe.server.mcp.cursors import parse_cursor, parse_page_cursor
from eunoe.server.mcp.memory_list import MemoryList, Row, full_row, hit_row, named_scope, take_part, take_rows
from eunoe.server.mcp.tool import Answer, ToolCall

DEFAULT_HITS: Final = 10
DEFAULT_PAGE: Final = 20
MAX_PAGE: Final = 50
_MAX_RANK: Final = 500
"""How far a cursor leads down a ranking: what follows bears on no question."""
_NEAR_SCOPE: Final = " holds nothing, but "
"""In a note that names other scopes."""
_CONTEXT_SHARE: Final = 0.4
"""Of the budget: an answer says its text twice, and escapes signs in it."""
_MIN_TOKENS_WITH_NOTES: Final = 500
"""A smaller budget is for memories alone."""
_MIN_CONTEXT_SHARE: Final = 0.1


def recall(call: ToolCall) -> Answer:
    (start,) = parse_cursor(call.text("cursor"), parts=1)
    end = start + call.arguments.get("limit", DEFAULT_HITS)
    if end > _MAX_RANK:
        raise InputError("nothing so far down bears on the question: ask another one")
    filters = {name: call.arguments[name] for name in ("since", "until") if name in call.arguments}
    hits = call.memory.recall(call.scope, call.text("query"), limit=end + 1, exact=call.is_exact, **filters)
    # Only where nothing was found do notes name near scopes.
    notes = hits.notes if hits else call.notes(hits.notes)
    budget = call.budget()
    if hits and not (call.max_tokens >= _MIN_TOKENS_WITH_NOTES and budget.take(*notes, *notes)):
        notes = ()
    taken = take_rows((hit_row(hit, call.scope) for hit in hits[start:end]), budget)
    read = start + len(taken)
    return MemoryList(call.scope, taken, str(read) if read < len(hits) else "", notes).answer()


def context(call: ToolCall) -> Answer:
    share = _CONTEXT_SHARE
    while True:
        found = call.memory.context(call.scope, call.text("message"), tokens=max(1, int(call.max_tokens * share)))
        told = call.notes(found.notes) or [note for note in found.notes if _NEAR_SCOPE not in note]
        text = found.text or "\n".join([f"Nothing to show in {call.scope}.", *told])
        data = {"text": text, "tokens": found.tokens}
        if share < _MIN_CONTEXT_SHARE or call.budget().fits(data, text):
            return Answer(text, data)
        share *= 0.75


def get(call: ToolCall) -> Answer:
    place, offset = parse_cursor(call.text("cursor"), parts=2)
    ids = call.arguments["ids"][place:]
    if not ids:
        raise InputError("ids names no memory: pass those that recall or list gave")
    budget = call.budget()
    rows: list[Row] = []
    for number, id in enumerate(ids, place):
        item = call.memory.get(call.scope, id, exact=call.is_exact)
        row = full_row(item) | named_scope(item.scope, call.scope)
        row["text"] = row["text"][offset:]
        part = take_part(row, budget, must_fit=not rows)
        rows += [part] if part else []
        if part is not row:
            read = offset + len(part["text"]) if part else 0
            return MemoryList(call.scope, rows, f"{number}:{read}").answer()
        offset = 0
    return MemoryList(call.scope, rows).answer()


def list_(call: ToolCall) -> Answer:
    after, skipped = parse_page_cursor(call.text("cursor"))
    kinds = [call.arguments["kind"]] if "kind" in call.arguments else KINDS
    limit = call.arguments.get("limit", DEFAULT_PAGE)
    page = call.memory.list(call.scope, kinds=kinds, limit=limit, after=after, exact=call.is_exact)
    items = page.items[skipped:]
    taken = take_rows((hit_row(item, call.scope) for item in items), call.budget())
    cursor = f"{page.next}:0" if page.next else ""
    if len(taken) < len(items):
        cursor = f"{after}:{skipped + len(taken)}"
    return MemoryList(call.scope, taken, cursor, call.notes(page.notes)).answer()
