"""The profile `discussion`: the retrievers of a discussion, and its update, for workflows of other programs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from eunoe.errors import InputError, ScopeError
from eunoe.model.scope import Scope
from eunoe.server.mcp.budget import MAX_TOKENS, MIN_TOKENS, Budget, longest_part
from eunoe.server.mcp.cursors import parse_cursor
from eunoe.server.mcp.tool import SCOPE, Answer, Tool, ToolCall

SETTINGS_VARIABLE: Final = "EUNOE_DISCUSSION_SETTINGS"
"""Names the settings file of updates: a path that a model names is none to read."""
_TOKENS: Final = 20_000
"""An answer goes into a prompt as it is, so it is longer than one that an assistant reads."""
_STRING: Final = {"type": "string"}
_KEYS: Final = {"user", "discussion"}
_COMMON: Final = {"discussion_id": _STRING, SCOPE: _STRING}
_READING: Final = {
    **_COMMON,
    "max_tokens": {"type": "integer", "default": _TOKENS, "minimum": MIN_TOKENS, "maximum": MAX_TOKENS},
    "cursor": _STRING,
}
_LIMIT: Final = {"type": "integer", "minimum": -1, "maximum": 1000}
_ACROSS: Final = {"type": "boolean", "description": "all discussions of the user"}
_KEYWORDS: Final = {"type": "string", "description": "separated by ;"}
_TEXT: Final = {
    "type": "object",
    "properties": {"text": _STRING, "message": _STRING, "cursor": _STRING},
    "required": ["text"],
}


def update_discussion(call: ToolCall) -> Answer:
    """Take messages in, and make what is due. It is done when the answer comes: a client may leave after it."""
    from eunoe.discussion import Discussion
    from eunoe.discussion.tools import read_turns, tell_update

    turns = read_turns(*(call.text(name) for name in ("messages", "user_message", "assistant_message")))
    scope = _discussion_scope(call)
    discussion = Discussion(call.memory, scope.pairs["discussion"], scope.pairs["user"])
    report = discussion.update(turns, _settings(), force=bool(call.arguments.get("force")))
    text = tell_update(report)
    return Answer(text, {"text": text, "made": report.made, "redone": report.redone, "failed": len(report.failed)})


def _retriever(name: str) -> Callable[[ToolCall], Answer]:
    """What runs one of the retrievers."""

    def retrieve(call: ToolCall) -> Answer:
        from eunoe.discussion.retrievers.reader import DiscussionReader
        from eunoe.discussion.tools import RETRIEVERS

        scope, is_across = _discussion_scope(call), bool(call.arguments.get("across_discussions"))
        user, id = scope.pairs["user"], scope.pairs["discussion"]
        if is_across:
            call.caller.scopes.parse(Scope(user=user).text)
        reader = DiscussionReader.of(call.memory, id, user, across_discussions=is_across)
        found = RETRIEVERS[name](reader, call.text("keywords"), call.arguments.get("limit"))
        return _part(call, found.text, found.message)

    return retrieve


def _discussion_scope(call: ToolCall) -> Scope:
    """The discussion that is meant, within what the caller may use."""
    from eunoe.discussion.scope import discussion_scope

    named = call.scope.pairs
    if "user" not in named or named.keys() - _KEYS:
        raise ScopeError(f"discussions belong to users: name a scope such as user=anna, not {call.scope}")
    id = call.text("discussion_id").strip() or named.get("discussion", "")
    if not id:
        raise InputError("discussion_id is missing: pass the id of the discussion")
    if named.get("discussion", id) != id:
        raise InputError("discussion_id and scope name two discussions: leave one of them out")
    return call.caller.scopes.parse(discussion_scope(id, named["user"]).text)


def _part(call: ToolCall, text: str, message: str) -> Answer:
    """As much of a text as fits, and where to read on. The message for people is no part of the text."""
    (start,) = parse_cursor(call.text("cursor"), parts=1)
    budget, rest = Budget(call.arguments.get("max_tokens", _TOKENS)), text[start:]
    part = longest_part(rest, lambda each: budget.fits(each, each)) if rest else ""
    data: dict[str, Any] = {"text": part}
    data |= {"message": message} if message else {}
    data |= {"cursor": str(start + len(part))} if len(part) < len(rest) else {}
    return Answer(part, data)


def _settings() -> Any:
    from eunoe.discussion.settings import DEFAULT_SETTINGS
    from eunoe.discussion.settings_file import read_settings

    path = os.environ.get(SETTINGS_VARIABLE)
    return read_settings(Path(path)) if path else DEFAULT_SETTINGS


def _reading_tool(name: str, title: str, description: str, retriever: str, **arguments: Any) -> Tool:
    return Tool(
        name=name,
        title=title,
        description=description,
        run=_retriever(retriever),
        right="read",
        arguments={**arguments, **_READING},
        required=("keywords",) if "keywords" in arguments else (),
        result=_TEXT,
    )


DISCUSSION_TOOLS: Final = (
    _reading_tool(
        "search_memories",
        "Search memories",
        "Memories of a discussion that have any of the keywords, best first.",
        "search",
        keywords=_KEYWORDS,
        limit=_LIMIT,
        across_discussions=_ACROSS,
    ),
    _reading_tool(
        "search_conversation",
        "Search conversation",
        "Messages of a discussion that have any of the keywords, best first.",
        "conversation",
        keywords=_KEYWORDS,
        limit=_LIMIT,
        across_discussions=_ACROSS,
    ),
    _reading_tool(
        "recent_memories",
        "Recent memories",
        "The latest chunk memories of a discussion; limit -1 for all.",
        "recent",
        limit=_LIMIT,
    ),
    _reading_tool("chat_summary", "Chat summary", "The rolling summary of a discussion.", "summary"),
    _reading_tool("state_document", "State document", "What is true now in a discussion.", "state_document"),
    Tool(
        name="update_discussion",
        title="Update discussion",
        description="Take in messages and make the memories that are due. May take minutes.",
        run=update_discussion,
        right="write",
        arguments={
            "messages": {"type": "string", "description": "JSON list of messages with role and content"},
            "user_message": _STRING,
            "assistant_message": _STRING,
            "force": {"type": "boolean"},
            **_COMMON,
        },
        result={"type": "object", "properties": {"text": _STRING}, "required": ["text"]},
    ),
)
