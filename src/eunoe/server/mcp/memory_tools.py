"""The tools of the profiles `default` and `read`, as clients are told of them. Every word here costs tokens."""

from typing import Any, Final

from eunoe.model.arguments import KINDS
from eunoe.server.mcp import forgetting, reading, writing
from eunoe.server.mcp.budget import DEFAULT_TOKENS, MAX_TOKENS, MIN_TOKENS
from eunoe.server.mcp.tool import EXACT, SCOPE, Tool

_MAX_IDS: Final = 50

_STRING: Final = {"type": "string"}
_DATE: Final = {"type": "string", "format": "date-time"}
_IDS: Final = {"type": "array", "items": _STRING, "maxItems": _MAX_IDS}
_TOKENS: Final = {"type": "integer", "default": DEFAULT_TOKENS, "minimum": MIN_TOKENS, "maximum": MAX_TOKENS}
_EXACT: Final = {"type": "boolean", "description": "the scope alone"}
_PAGING: Final = {SCOPE: _STRING, EXACT: _EXACT, "max_tokens": _TOKENS, "cursor": _STRING}


def _limit(default: int) -> dict[str, Any]:
    return {"type": "integer", "default": default, "minimum": 1, "maximum": reading.MAX_PAGE}


def _result(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


_MEMORIES: Final = _result("memories", memories={"type": "array", "items": {"type": "object"}}, cursor=_STRING)
_RECEIPT: Final = _result("id", "outcome", id=_STRING, outcome=_STRING)

REMEMBER: Final = Tool(
    name="remember",
    title="Remember",
    description="Store one fact that will matter in later conversations, in words that stand alone.",
    run=writing.remember,
    right="write",
    arguments={
        "text": _STRING,
        "label": {"type": "string", "description": "such as preference"},
        "people": {"type": "array", "items": _STRING},
        "time": _DATE,
        "again": {"type": "boolean", "description": "keep though once forgotten"},
        SCOPE: _STRING,
    },
    required=("text",),
    result=_RECEIPT,
)
RECALL: Final = Tool(
    name="recall",
    title="Recall",
    description="Search memory: ids, scores and short texts, best first.",
    run=reading.recall,
    right="read",
    arguments={
        "query": _STRING,
        "limit": _limit(reading.DEFAULT_HITS),
        "since": _DATE,
        "until": _DATE,
        **_PAGING,
    },
    required=("query",),
    result=_MEMORIES,
)
CONTEXT: Final = Tool(
    name="context",
    title="Context",
    description="What to know before you reply: summary, latest facts, what bears on the message.",
    run=reading.context,
    right="read",
    arguments={"message": _STRING, SCOPE: _STRING, "max_tokens": _TOKENS},
    result=_result("text", text=_STRING, tokens={"type": "integer"}),
)
GET: Final = Tool(
    name="get",
    title="Get",
    description="Full texts of memories by id.",
    run=reading.get,
    right="read",
    arguments={"ids": _IDS, **_PAGING},
    required=("ids",),
    result=_MEMORIES,
)
LIST: Final = Tool(
    name="list",
    title="List",
    description="All memories of a scope, oldest first.",
    run=reading.list_,
    right="read",
    arguments={"kind": {"type": "string", "enum": list(KINDS)}, "limit": _limit(reading.DEFAULT_PAGE), **_PAGING},
    result=_MEMORIES,
)
UPDATE: Final = Tool(
    name="update",
    title="Update",
    description="Correct a fact. The old version stays in its history.",
    run=writing.update,
    right="write",
    arguments={"id": _STRING, "text": _STRING, SCOPE: _STRING},
    required=("id", "text"),
    result=_RECEIPT,
    is_idempotent=False,
)
FORGET: Final = Tool(
    name="forget",
    title="Forget",
    description="Delete for good by ids or token. words or person only preview and give a token for all they show; "
    "ask the user before you use it.",
    run=forgetting.forget,
    right="forget",
    arguments={"ids": _IDS, "token": _STRING, "words": _STRING, "person": _STRING, SCOPE: _STRING, EXACT: _EXACT},
    result=_result("removed", removed={"type": "integer"}, token=_STRING),
    is_destructive=True,
)

READ_TOOLS: Final = (RECALL, CONTEXT, GET, LIST)
DEFAULT_TOOLS: Final = (REMEMBER, *READ_TOOLS, UPDATE, FORGET)
