"""Errors with mem0's names and fields.

Where a program has loaded `mem0.exceptions`, an error is also one of that module, so that its own `except` still holds.
"""

import sys
from typing import Any, TypeVar

from eunoe.errors import EunoeError, InputError, LlmError, NotFoundError


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


class OwnerMissingError(InputError):
    """Filters leave open whose memory is meant. Nothing was read."""


class HostedClientError(EunoeError, ImportError):
    """The client of mem0's hosted service was asked for."""


E = TypeVar("E", bound=MemoryError)


def validation_error(code: str, message: str, suggestion: str, **details: Any) -> ValidationError:
    return _also_of_mem0(ValidationError)(message, f"VALIDATION_{code}", details, suggestion)


def llm_error(reason: object) -> LLMError:
    return _also_of_mem0(LLMError)(f"LLM extraction failed: {reason}", "LLM_001")


def not_found(id: object) -> MemoryNotFoundError:
    return MemoryNotFoundError(f"Memory with id {str(id)[:200]} not found")


def _also_of_mem0(kind: type[E]) -> type[E]:
    theirs = getattr(sys.modules.get("mem0.exceptions"), kind.__name__, None)
    return type(kind.__name__, (kind, theirs), {}) if theirs else kind
