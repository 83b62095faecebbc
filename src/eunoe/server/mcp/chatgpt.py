"""The profile `chatgpt`: `search` and `fetch` in the shapes that its connectors want."""

from __future__ import annotations

import json
from typing import Any, Final
from urllib.parse import quote

from eunoe.errors import NotFoundError
from eunoe.model.atom import Item
from eunoe.server.mcp.memory import NOTICE, full_row
from eunoe.server.mcp.tool import Answer, Tool, ToolCall, longest_part, parse_cursor
from eunoe.text.normalize import neutralize

_MAX_RESULTS: Final = 10
_TITLE_CHARACTERS: Final = 80
_PART: Final = "#"
"""Between an id and the place in its text where a part begins."""
_STRING: Final = {"type": "string"}
_FOUND: Final = {"id": _STRING, "title": _STRING, "url": _STRING}


def search(call: ToolCall) -> Answer:
    hits = call.memory.recall(call.scope, call.text("query"), limit=_MAX_RESULTS)
    return _answer({"results": [_found(hit.item, call) for hit in hits]})


def fetch(call: ToolCall) -> Answer:
    item, start = _find(call, call.text("id"))
    row = full_row(item)
    metadata = {name: value for name, value in row.items() if name not in ("id", "text")} | {"note": NOTICE}
    document = {**_found(item, call), "text": "", "metadata": metadata}
    budget, rest = call.budget(), row["text"][start:]

    def fits(part: str) -> bool:
        said = document | {"text": part}
        return budget.fits(said, _json(said))

    text = longest_part(rest, fits) if rest else ""
    if len(text) < len(rest):
        document["metadata"] = metadata | {"next": f"{item.id}{_PART}{start + len(text)}"}
    return _answer(document | {"text": text})


def _find(call: ToolCall, id: str) -> tuple[Item, int]:
    """The memory with an id, and where to read on in it: its shape leaves no other place for a cursor."""
    try:
        return call.memory.get(call.scope, id), 0
    except NotFoundError:
        whole, _, start = id.rpartition(_PART)
        if not whole:
            raise
        return call.memory.get(call.scope, whole), parse_cursor(start, parts=1)[0]


def _found(item: Item, call: ToolCall) -> dict[str, Any]:
    title = " ".join(neutralize(item.text[: 2 * _TITLE_CHARACTERS]).split())[:_TITLE_CHARACTERS]
    return {"id": item.id, "title": title, "url": memory_uri(call.scope.text, item.id)}


def memory_uri(scope: str, id: str) -> str:
    """What names one memory wherever it is cited."""
    return f"eunoe://memories/{quote(scope, safe='')}/{quote(id, safe='')}"


def _answer(document: dict[str, Any]) -> Answer:
    return Answer(_json(document), document)


def _json(document: dict[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False)


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
        description="Text of a memory by its id; metadata.next is the id of the part that follows.",
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
