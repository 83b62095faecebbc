"""What callers give, checked as mem0 checks it, in today's spelling and in older ones; and the errors with its names.

Where a program has loaded `mem0.exceptions`, an error is also one of that module, so that its own `except` still holds.
"""

import sys
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final, TypeVar
from uuid import UUID

from eunoe.errors import EunoeError, InputError, LlmError, NotFoundError
from eunoe.model.scope import Scope

OWNERS: Final[Mapping[str, str]] = {"user_id": "user", "agent_id": "agent", "run_id": "session"}
"""How mem0 calls the keys of scopes."""
ANY: Final = "*"
"""In filters: whatever there is."""
DEFAULT_TOP_K: Final = 20
DEFAULT_THRESHOLD: Final = 0.1
PROCEDURAL: Final = "procedural_memory"
UNSET: Final[Any] = object()
"""An argument that was not given, where None means something."""

_WITHOUT_MEANING: Final = frozenset({"version", "api_version", "output_format", "async_mode", "enable_graph"})
"""Arguments of older releases and of the hosted service that change nothing here."""
_MAX_NAME: Final = 60


class MemoryError(EunoeError):
    """Base of the errors that carry a code, as in mem0."""

    def __init__(
        self,
        message: str,
        error_code: str,
        details: dict[str, Any] | None = None,
        suggestion: str | None = None,
        debug_info: dict[str, Any] | None = None,
    ) -> None:
        Exception.__init__(self, message)
        self.message = message
        self.error_code = error_code
        self.details = details or {}
        self.suggestion = suggestion
        self.debug_info = debug_info or {}


class ValidationError(MemoryError, ValueError):
    """A call names nobody, or gives something that is no message. Nothing was written."""


class LLMError(MemoryError, LlmError):
    """The language model failed, and nothing was learned. The messages are kept: to add them again is fine."""


class MemoryNotFoundError(NotFoundError, ValueError):
    """There is no memory with this id."""

    def __init__(self, id: object) -> None:
        super().__init__(f"Memory with id {str(id)[:200]} not found")


class OwnerMissingError(InputError):
    """Filters leave open whose memory is meant. Nothing was read."""


class HostedClientError(EunoeError, ImportError):
    """The client of mem0's hosted service was asked for."""


E = TypeVar("E", bound=MemoryError)


def llm_error(reason: object) -> LLMError:
    return _also_of_mem0(LLMError)(f"LLM extraction failed: {reason}", "LLM_001")


def _validation_error(code: str, message: str, suggestion: str, **details: Any) -> ValidationError:
    return _also_of_mem0(ValidationError)(message, f"VALIDATION_{code}", details, suggestion)


def _also_of_mem0(kind: type[E]) -> type[E]:
    theirs = getattr(sys.modules.get("mem0.exceptions"), kind.__name__, None)
    return type(kind.__name__, (kind, theirs), {}) if theirs else kind


def check_older_names(given: Mapping[str, Any], method: str, *known: str) -> None:
    """Refuse an argument that neither this release nor an older one has: left aside it might have narrowed a search."""
    if unknown := sorted(given.keys() - _WITHOUT_MEANING - set(known)):
        raise TypeError(f"{method}() got an unexpected keyword argument {unknown[0][:_MAX_NAME]!r}")


def parse_owner_id(value: object, name: str) -> str | None:
    """An id as text, without blanks at its ends."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int | UUID):
        raise InputError(f"Invalid {name}: must be a text or a number, not {type(value).__name__}.")
    text = str(value).strip()
    if not text:
        raise InputError(f"Invalid {name}: cannot be empty or whitespace-only. Provide a valid identifier.")
    if any(character.isspace() for character in text):
        raise InputError(f"Invalid {name}: cannot contain whitespace. Provide a valid identifier without spaces.")
    return text


def parse_owner(ids: Mapping[str, object]) -> Scope | None:
    """The scope that ids name; None if they name nobody."""
    keys: dict[str, str] = {}
    for name, key in OWNERS.items():
        if (value := parse_owner_id(ids.get(name), name)) == ANY:
            raise InputError(f"Invalid {name}: {ANY} means everybody in filters, and cannot be an identifier.")
        if value:
            keys[key] = value
    return Scope(**keys) if keys else None


def require_owner(ids: Mapping[str, object], memory_type: object) -> Scope:
    """The scope that ids name, for a memory of this type."""
    owner = parse_owner(ids)
    if owner is None:
        wanted = "At least one of 'user_id', 'agent_id', or 'run_id' must be provided."
        raise _validation_error("001", wanted, "Name whose memory it is.", provided_ids=dict(ids))
    if memory_type not in (None, PROCEDURAL):
        wanted, advice = f"Invalid 'memory_type'. Please pass {PROCEDURAL}, or nothing.", "With it name an agent_id."
        raise _validation_error("002", wanted, advice, provided_type=memory_type, valid_type=PROCEDURAL)
    return owner


def check_top_k(value: object) -> int:
    if value is None:
        return DEFAULT_TOP_K
    if not isinstance(value, int) or isinstance(value, bool):
        raise InputError("top_k must be a valid integer")
    if value < 0:
        raise InputError(f"Invalid top_k: {value}. Must be a non-negative integer.")
    return value


def check_threshold(value: object) -> float:
    if value is None:
        return DEFAULT_THRESHOLD
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise InputError("threshold must be a valid number")
    if not 0 <= value <= 1:
        raise InputError(f"Invalid threshold: {value}. Must be between 0 and 1 (inclusive).")
    return value


def parse_expiration(value: object) -> str | None:
    """The last day on which a memory holds, as YYYY-MM-DD."""
    if isinstance(value, date):  # a datetime is one, too
        return value.isoformat()[:10]
    if value is None:
        return None
    try:
        return date.fromisoformat(str(value)).isoformat()
    except ValueError:
        raise InputError("expiration_date must be a valid date in YYYY-MM-DD format.") from None


def end_of_day(day: str | None) -> datetime | None:
    """The moment at which a memory that expires on that day no longer holds; None for the last day that there is.

    Days are those of UTC.
    """
    if not day or (last := date.fromisoformat(day)) == date.max:
        return None
    return datetime.combine(last + timedelta(days=1), time(), UTC)


def parse_messages(messages: object) -> list[dict[str, Any]]:
    """Those messages that say something, with their words as text: of a text, a dict or a list of dicts, with words or
    with parts. Pictures are left aside: they have no words.

    >>> parse_messages("I like tea.")
    [{'role': 'user', 'content': 'I like tea.'}]
    """
    given = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
    given = [given] if isinstance(given, Mapping) else given
    read = []
    for message in given if isinstance(given, list) else [None]:
        if not isinstance(message, Mapping):
            wrong = message if isinstance(given, list) else messages
            raise _validation_error(
                "003",
                f"messages must be str, dict, or list[dict], not {type(wrong).__name__}",
                "Give a text, a dict with 'role' and 'content', or a list of such dicts.",
                provided_type=type(wrong).__name__,
                valid_types=["str", "dict", "list[dict]"],
            )
        content = message.get("content")
        parts = content if isinstance(content, list) else [content]
        texts = (part.get("text") if isinstance(part, Mapping) else part for part in parts)
        words = " ".join(text for text in texts if isinstance(text, str))
        if message.get("role") and words.strip():
            read.append({**message, "content": words})
    return read
