"""From problem details to the errors that a memory raises."""

from __future__ import annotations

import json
from typing import Any

from eunoe import errors
from eunoe.client.address import Address
from eunoe.errors import AccessError, EunoeError, RemoteError


def error_of(status: int, content: bytes, address: Address) -> EunoeError:
    """The error that an answer tells of: the same that the memory raised there."""
    problem = _read(content)
    detail, hint = str(problem.get("detail", "")), str(problem.get("hint", ""))
    if kind := _error_class(str(problem.get("code", ""))):
        return kind(detail)
    said = " ".join(filter(None, (f"{detail}." if detail else "", hint)))
    if status == 401:
        return AccessError(f"{address.url} refuses the key: {said}")
    if 300 <= status < 400:
        return RemoteError(f"{address.url} sends elsewhere, and a key is not sent on: give the address itself")
    return RemoteError(f"{address.url} answers {status}: {said or 'check that it is a Eunoe server'}")


def _read(content: bytes) -> dict[str, Any]:
    try:
        problem = json.loads(content)
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) else {}


def _error_class(code: str) -> type[EunoeError] | None:
    """
    >>> _error_class("not_found")
    <class 'eunoe.errors.NotFoundError'>
    """
    name = code.removeprefix("no_").title().replace("_", "")  # to have no model is an error of that model too
    found = getattr(errors, f"{name}Error", None)
    return found if isinstance(found, type) and issubclass(found, EunoeError) else None
