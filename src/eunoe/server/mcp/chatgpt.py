"""The profile `chatgpt`: `search` and `fetch` in the shapes that its connectors want."""

from __future__ import annotations

import json
from typing import Any, Final
from urllib.parse import quote

from eunoe.errors import NotFoundError
from eunoe.model.atom import Item
from eunoe.server.mcp.memory import NOTICE, full_row
from eunoe.server.mcp.tool import STRING, Answer, Budget, Tool, ToolCall, longest_part, object_schema, parse_cursor
from eunoe.text.normalize import neutralize

_MAX_RESULTS: Final = 10
_TITLE_CHARACTERS: Final = 80
_PART: Final = "#"
"""Between an id and the place in its text where a part begins."""
_FOUND: Final = {"id": STRING, "title": STRING, "url": STRING}


def _search(call: ToolCall) -> Answer:
    hits = call.memory.recall(call.scope, call.text("query"), limit=_MAX_RESULTS)
    document = {"results": [_found(hit.item, call) for hit in hits]}
    return Answer(json.dumps(document, ensure_ascii=False), document)


def _fetch(call: ToolCall) -> Answer:
    item, start = _find(call, call.text("id"))
    row = full_row(item, call.scope)
    metadata = {name: value for name, value in row.items() if name not in ("id", "text", "scope")} | {"note": NOTICE}
    document = {**_found(item, call), "text": "", "metadata": metadata}
    budget, rest = Budget(call.max_tokens), row["text"][start:]

    def fits(part: str) -> bool:
        said = document | {"text": part}
        return budget.fits(said, json.dumps(said, ensure_ascii=False))

    text = longest_part(rest, fits) if rest else ""
    if len(text) < len(rest):
        document["metadata"] = metadata | {"next": f"{item.id}{_PART}{start + len(text)}"}
    document |= {"text": text}
    return Answer(json.dumps(document, ensure_ascii=False), document)


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
    url = f"eunoe://memories/{quote(call.scope.text, safe='')}/{quote(item.id, safe='')}"
    return {"id": item.id, "title": title, "url": url}


CHATGPT_TOOLS: Final = (
    Tool(
        name="search",
        title="Search",
        description="Search the user's memory. Returns ids and titles for fetch.",
        run=_search,
        right="read",
        arguments={"query": STRING},
        required=("query",),
        result=object_schema("results", results={"type": "array", "items": object_schema(*_FOUND, **_FOUND)}),
    ),
    Tool(
        name="fetch",
        title="Fetch",
        description="Text of a memory by its id; metadata.next is the id of the part that follows.",
        run=_fetch,
        right="read",
        arguments={"id": STRING},
        required=("id",),
        result=object_schema(*_FOUND, "text", **_FOUND, text=STRING, metadata={"type": "object"}),
    ),
)
