"""What a client is told whose line is no message: without an answer it would wait for ever."""

from __future__ import annotations

import json
from typing import Any, Final

from mcp_types import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError

_MESSAGES: Final = {
    PARSE_ERROR: "this line is no JSON: send one message in a line, and no half of a surrogate pair",
    INVALID_REQUEST: "this is no request: it has jsonrpc, id and method",
    INVALID_PARAMS: "params must be an object",
}


def refuse(error: ValidationError) -> JSONRPCError | None:
    """The answer to a line that could not be read as a message; none where nobody waits for one."""
    errors = error.errors(include_url=False, include_context=False)
    is_json = errors[0]["type"] != "json_invalid"
    # What lacks a field is given as a whole, and so is what is no object.
    sent = next((each["input"] for each in errors if each["type"] in ("missing", "model_type")), None)
    sent = sent if is_json else _read(errors[0]["input"])
    if not _waits(sent):
        return None
    code = _code(sent) if is_json else PARSE_ERROR
    return JSONRPCError(jsonrpc="2.0", id=_id(sent), error=ErrorData(code=code, message=_MESSAGES[code]))


def _read(line: str) -> Any:
    """What a line means to a more patient reader; as it is where it means nothing."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return line


def _waits(sent: Any) -> bool:
    """Blank lines, notifications and answers expect nothing."""
    if isinstance(sent, dict):
        return not sent.keys() & ({"result", "error"} if "id" in sent else {"method"})
    return not isinstance(sent, str) or bool(sent.strip())


def _code(sent: Any) -> int:
    is_request = isinstance(sent, dict) and sent.get("jsonrpc") == "2.0" and isinstance(sent.get("method"), str)
    return INVALID_PARAMS if is_request and _id(sent) is not None else INVALID_REQUEST


def _id(sent: Any) -> int | str | None:
    """The id of a request, if it can be sent back."""
    id = sent.get("id") if isinstance(sent, dict) else None
    if isinstance(id, str):
        return id if id == id.encode(errors="ignore").decode() else None
    return id if isinstance(id, int) and not isinstance(id, bool) else None
