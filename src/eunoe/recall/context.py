"""The context: what always stands before the agent, and what is recalled for this message."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from eunoe.form.kit import Kit
from eunoe.model.context import Context
from eunoe.model.scope import Scope
from eunoe.model.time import TimeLike


@dataclass(frozen=True, slots=True)
class Wanted:
    """A checked wish for a context."""

    scope: Scope
    message: str
    users: tuple[str, ...]
    tokens: int | None
    limit: int | None
    recall: str
    format: str
    sources: bool
    now: datetime


def wanted_of(
    scope: Scope,
    message: str,
    *,
    users: Iterable[str],
    tokens: int | None,
    limit: int | None,
    recall: str,
    format: str,
    sources: bool,
    now: TimeLike | None,
) -> Wanted:
    raise NotImplementedError


def assemble(kit: Kit, wanted: Wanted) -> Context:
    """Never raises for what memory itself gets wrong: the context is smaller then, and says why."""
    raise NotImplementedError
