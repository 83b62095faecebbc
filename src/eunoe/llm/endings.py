"""How an answer ended, and what a server's refusal means: cut off, declined, or a prompt that is too long."""

import json
import re
from typing import Any, Final

from eunoe.errors import LlmError
from eunoe.llm.contract import AnswerError, CutAnswerError, DeclinedError, PromptTooLongError, Reply

_CUT: Final = frozenset({"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"})
_DECLINED: Final = frozenset(
    {"content_filter", "content_filtered", "refusal", "safety", "recitation", "prohibited_content", "blocklist", "spii"}
    | {"guardrail_intervened"}
)
"""The words of all providers for the two ways in which an answer ends too soon."""
_TOO_LONG_STATUS: Final = 413
_TOO_LONG: Final = re.compile(
    r"context[ _](?:length|window|size|limit)|(?:prompt|input|request) (?:is )?too (?:long|large)"
    r"|too many (?:input |prompt )?tokens|token count[^.]{0,40} exceeds|reduce (?:the|your) (?:length|prompt)"
    r"|tokens \+ .?max_new_tokens|exceed_context",
    re.IGNORECASE,
)
_FILTERED: Final = re.compile(r"content[ _](?:filter|management|policy)|usage policy|flagged", re.IGNORECASE)
_ANSWER_LIMIT: Final = re.compile(r"max_?(?:completion_|output_|new_)?tokens|output tokens|completion", re.IGNORECASE)


def whole_reply(name: str, reply: Reply, ending: object) -> Reply:
    """Return an answer that is whole; raise for one that was cut or declined, or is empty, with what it took."""
    word = str(ending or "").lower().rpartition(".")[2]
    if word in _CUT:
        raise CutAnswerError(f"{name} used up its tokens before its answer was complete", reply)
    if word in _DECLINED:
        raise DeclinedError(f"{name} declined to answer", reply)
    if not reply.text.strip():
        raise AnswerError(f"{name} gave an empty answer", reply)
    return reply


def refusal_error(message: str, words: str, status: int = 0) -> LlmError:
    """Return the error for what a server says in place of an answer."""
    if status == _TOO_LONG_STATUS or _TOO_LONG.search(words):
        return PromptTooLongError(message)
    return DeclinedError(message) if _FILTERED.search(words) else LlmError(message)


def names_answer_limit(words: str) -> bool:
    """Return whether a refusal may go away if the answer is given less room."""
    return bool(_ANSWER_LIMIT.search(words))


def names_context(words: str) -> bool:
    """Return whether a refusal is about all that the model can hold at once."""
    return bool(_TOO_LONG.search(words))


def find_reason(refusal: str) -> str:
    """Return why a server refused, in its own words; the rest may repeat the words of the prompt."""
    return _read_reason(refusal)[0]


def reason_words(refusal: str) -> str:
    """Return why a server refused, with its codes."""
    return " ".join(_read_reason(refusal))


def _read_reason(refusal: str) -> list[str]:
    try:
        reason = json.loads(refusal)
    except (ValueError, RecursionError):
        return [refusal]
    codes: list[Any] = []
    for name in ("error", "message", "detail"):
        if isinstance(reason, dict):
            codes += [reason.get("code"), reason.get("type")]
            reason = reason.get(name, reason)
    shown = reason if isinstance(reason, str) else "no reason that can be shown"
    return [shown, *(code for code in codes if isinstance(code, str))]
