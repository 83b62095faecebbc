"""The tools `remember` and `update`."""

from __future__ import annotations

from typing import Final

from eunoe.errors import InputError
from eunoe.model.result import Receipt
from eunoe.server.mcp.tool import Answer, ToolCall

_MAX_TEXT_CHARACTERS: Final = 100_000
"""Of one memory that a model writes; what is longer is a document."""
_OPTIONS: Final = ("label", "people", "time", "again")
_OUTCOMES: Final = {
    "stored": "Stored as {id}.",
    "duplicate": "It was there already, as {id}.",
    "superseded": "Stored as {id}; it took the place of {closed}, which stays in the history.",
    "forgotten": "Not stored: the user had this forgotten. Pass again=true only if the user wants it back.",
    "conflict": "Not stored: the id stands for other words.",
    "ignored": "Not stored: this session is incognito.",
}


def remember(call: ToolCall) -> Answer:
    options = {name: call.arguments[name] for name in _OPTIONS if name in call.arguments}
    return _receipt_answer(call.memory.remember(call.scope, _new_text(call), **options))


def update(call: ToolCall) -> Answer:
    return _receipt_answer(call.memory.update(call.scope, call.text("id"), _new_text(call)))


def _new_text(call: ToolCall) -> str:
    text = call.text("text")
    if len(text) > _MAX_TEXT_CHARACTERS:
        raise InputError(f"text has {len(text):,} characters; at most {_MAX_TEXT_CHARACTERS:,} fit: split it")
    return text


def _receipt_answer(receipt: Receipt) -> Answer:
    text = _OUTCOMES[receipt.outcome].format(id=receipt.id, closed=receipt.closed)
    return Answer(text, {"id": receipt.id, "outcome": receipt.outcome}, is_error=not receipt)
