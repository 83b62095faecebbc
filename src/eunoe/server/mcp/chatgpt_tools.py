"""The profile `chatgpt`: `search` and `fetch` in the shapes that its connectors want."""

from __future__ import annotations

import json
from typing import Any, Final
from urllib.parse import quote

from eunoe.model.record import Item
from eunoe.server.mcp.budget import longest_part
from eunoe.server.mcp.memory_list import NOTICE, full_row
from eunoe.server.mcp.tool import Answer, Tool, ToolCall
from eunoe.text.markup import neutralize

_MAX_RESULTS: Final = 10
_TITLE_CHARACTERS: Final = 80
_STRING: Final = {"type": "string"}
_FOUND: Final = {"id": _STRING, "title": _STRING, "url": _STRING}


def search(call: ToolCall) -> Answer:
    hits = call.memory.recall(call.scope, call.text("query"), limit=_MAX_RESULTS)
    return _answer({"results": [_found(hit.item, call) for hit in hits]})


def fetch(call: ToolCall) -> Answer:
    item = call.memory.get(call.scope, call.text("id"))
    row = full_row(item)
    metadata = {name: value for name, value in row.items() if name not in ("id", "text")} | {"note": NOTICE}
    document = {**_found(item, call), "text": "", "metadata": metadata}
    budget = call.budget()
    text = longest_part(row["text"], lambda part: budget.fits(document | {"text": part}, json.dumps(part)))
    if text != row["text"]:
        document["metadata"] = metadata | {"cut": True}
    return _answer(document | {"text": text})


def _found(item: Item, call: ToolCall) -> dict[str, Any]:
    title = " ".join(neutralize(item.text[: 2 * _TITLE_CHARACTERS]).split())[:_TITLE_CHARACTERS]
    return {"id": item.id, "title": title, "url": memory_uri(call.scope.text, item.id)}


def memory_uri(scope: str, id: str) -> str:
    """What names one memory wherever it is cited."""
    return f"eunoe://memories/{quote(scope, safe='')}/{quote(id, safe='')}"


def _answer(document: dict[str, Any]) -> Answer:
    return Answer(json.dumps(document, ensure_ascii=False), document)


CHATGPT_TOOLS: Final = (
    Tool(
        name="search",
        title="Search",
        description="Search the user's memory. Returns ids and titles for fetch.",
        run=search,
        right="read",
        arguments={"query": _STRING},
        required=("query",),
        result={
            "type": "object",
            "properties": {
                "results": {
                    "type": "array",
                    "items": {"type": "object", "properties": _FOUND, "required": list(_FOUND)},
                }
            },
            "required": ["results"],
        },
    ),
    Tool(
        name="fetch",
        title="Fetch",
        description="Full text of a memory by its id.",
        run=fetch,
        right="read",
        arguments={"id": _STRING},
        required=("id",),
        result={
            "type": "object",
            "properties": {**_FOUND, "text": _STRING, "metadata": {"type": "object"}},
            "required": [*_FOUND, "text"],
        },
    ),
)
