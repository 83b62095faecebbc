"""The profile `discussion`: the retrievers of a discussion, and its update, for the workflows of WilmerAI."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final

from eunoe.errors import InputError, ScopeError
from eunoe.model.scope import Scope
from eunoe.server.mcp.tool import (
    MAX_TOKENS,
    MIN_TOKENS,
    SCOPE,
    STRING,
    Answer,
    Budget,
    Tool,
    ToolCall,
    longest_part,
    object_schema,
    parse_cursor,
)

_VARIABLES: Final = {
    "settings": "EUNOE_DISCUSSION_SETTINGS",
    "models": "EUNOE_DISCUSSION_MODELS",
    "workflows": "EUNOE_DISCUSSION_WORKFLOWS",
    "files_dir": "EUNOE_DISCUSSION_FILES_DIR",
}
"""Where updates find files, by what they are for: a path that a model names is none to read or write."""
_NO_ID: Final = "Without a discussion id nothing is kept, and so there is nothing to give."
_TOKENS: Final = 20_000
"""An answer goes into a prompt as it is, so it is longer than one that an assistant reads."""
_BOOLEAN: Final = {"type": "boolean"}
_KEYS: Final = {"user", "discussion"}
_COMMON: Final = {"discussion_id": STRING, SCOPE: STRING}
_READING: Final = {
    "across_discussions": {"type": "boolean", "description": "all discussions of the user"},
    "host_messages": {"type": "boolean", "description": "where nothing is found, WilmerAI's own sentence"},
    **_COMMON,
    "max_tokens": {"type": "integer", "default": _TOKENS, "minimum": MIN_TOKENS, "maximum": MAX_TOKENS},
    "cursor": STRING,
}
_LIMIT: Final = {"type": "integer", "minimum": 0, "maximum": 1000}
_LIMIT_OR_ALL: Final = {**_LIMIT, "minimum": -1}
_KEYWORDS: Final = {"type": "string", "description": "separated by ;"}
_PLACE: Final = {"type": "string", "description": "after an import: the number of the first new message, start or end"}
_TEXT: Final = object_schema("text", text=STRING, message=STRING, cursor=STRING)


def update_discussion(call: ToolCall) -> Answer:
    """Take messages in, and make what is due. It is done when the answer comes: a client may leave after it."""
    from eunoe.apps.discussion import Discussion
    from eunoe.apps.discussion.plugin import CreatorSetup, UpdateRequest, run_update, tell_update

    names = ("messages", "user_message", "assistant_message", "continue_at")
    request = UpdateRequest.of({name: call.text(name) for name in names}, force=bool(call.arguments.get("force")))
    scope = _discussion_scope(call)
    if scope is None:
        return _nothing()
    setup = CreatorSetup.read(_paths(call))
    report = run_update(Discussion(call.memory, scope.pairs["discussion"], scope.pairs["user"]), request, setup)
    text = tell_update(report)
    counts = {"made": report.made, "redone": report.redone, "failed": len(report.failed)}
    return Answer(text, {"text": text, **counts, "notes": list(report.notes)})


def _retriever(name: str) -> Callable[[ToolCall], Answer]:
    """What runs one of the retrievers."""

    def retrieve(call: ToolCall) -> Answer:
        from eunoe.apps.discussion.retrievers import HOST_SENTENCES, RETRIEVERS, DiscussionReader

        scope, is_across = _discussion_scope(call), bool(call.arguments.get("across_discussions"))
        if scope is None:
            return _nothing()
        user, id = scope.pairs["user"], scope.pairs["discussion"]
        if is_across:
            call.caller.scopes.parse(Scope(user=user).text)
        reader = DiscussionReader.of(call.memory, id, user, across_discussions=is_across)
        found = RETRIEVERS[name](reader, call.text("keywords"), call.arguments.get("limit"))
        empty = HOST_SENTENCES.get(name, "") if call.arguments.get("host_messages") else ""
        return _part(call, found.text or empty, found.message)

    return retrieve


def _discussion_scope(call: ToolCall) -> Scope | None:
    """The discussion that is meant, within what the caller may use; None if none is named."""
    from eunoe.apps.discussion.model import discussion_scope

    named = call.scope.pairs
    if "user" not in named or named.keys() - _KEYS:
        raise ScopeError(f"discussions belong to users: name a scope such as user=anna, not {call.scope}")
    id = call.text("discussion_id").strip() or named.get("discussion", "")
    if not id:
        return None
    if named.get("discussion", id) != id:
        raise InputError("discussion_id and scope name two discussions: leave one of them out")
    return call.caller.scopes.parse(discussion_scope(id, named["user"]).text)


def _paths(call: ToolCall) -> dict[str, str]:
    """The files of updates. Those of a discussion are not kept for tenants, whose users may have the same names."""
    paths = {name: os.environ.get(variable, "") for name, variable in _VARIABLES.items()}
    return {**paths, "files_dir": ""} if call.caller.tenant else paths


def _nothing() -> Answer:
    return Answer("", {"text": "", "message": _NO_ID})


def _part(call: ToolCall, text: str, message: str) -> Answer:
    """As much of a text as fits, and where to read on. The message for people is no part of the text."""
    (start,) = parse_cursor(call.text("cursor"), parts=1)
    budget, rest = Budget(call.arguments.get("max_tokens", _TOKENS)), text[start:]
    part = longest_part(rest, lambda each: budget.fits(each, each)) if rest else ""
    data: dict[str, Any] = {"text": part}
    data |= {"message": message} if message else {}
    data |= {"cursor": str(start + len(part))} if len(part) < len(rest) else {}
    return Answer(part, data)


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
        "Keyword memories of a discussion that have any of the keywords, best first.",
        "search",
        keywords=_KEYWORDS,
        limit=_LIMIT,
    ),
    _reading_tool(
        "search_conversation",
        "Search conversation",
        "Messages of a discussion that have any of the keywords, best first.",
        "conversation",
        keywords=_KEYWORDS,
        limit=_LIMIT,
    ),
    _reading_tool(
        "recent_memories",
        "Recent memories",
        "The latest chunk memories of a discussion; limit -1 for all.",
        "recent",
        limit=_LIMIT_OR_ALL,
    ),
    _reading_tool(
        "first_memories", "First memories", "The first chunk memories of a discussion.", "first", limit=_LIMIT
    ),
    _reading_tool("all_memories", "All memories", "All chunk memories of a discussion.", "all"),
    _reading_tool("chat_summary", "Chat summary", "The rolling summary of a discussion.", "summary"),
    _reading_tool(
        "full_chat_summary",
        "Full chat summary",
        "The rolling summary of a discussion, and the chunk memories that came after it.",
        "full_summary",
    ),
    _reading_tool("state_document", "State document", "What is true now in a discussion.", "state_document"),
    Tool(
        name="update_discussion",
        title="Update discussion",
        description="Take in messages and make the memories that are due. May take minutes.",
        run=update_discussion,
        right="write",
        arguments={
            "messages": {"type": "string", "description": "JSON list of messages with role and content"},
            "user_message": STRING,
            "assistant_message": STRING,
            "continue_at": _PLACE,
            "force": _BOOLEAN,
            **_COMMON,
        },
        result=object_schema("text", text=STRING, notes={"type": "array", "items": STRING}),
    ),
)
