"""A request for a context, checked."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from eunoe.errors import InputError
from eunoe.model.arguments import (
    CONTEXT_FORMATS,
    LOOKUP_MODES,
    ContextFormat,
    LookupMode,
    TimeLike,
    check_choice,
    check_count,
    check_names,
    parse_time,
    utc_now,
)
from eunoe.model.atom import NO_BOUNDS, Bounds
from eunoe.model.scope import Scope
from eunoe.recall.ranking_recipes import Recipe
from eunoe.recall.request import RecipeLike, find_recipe
from eunoe.text.normalize import replace_surrogates
from eunoe.text.tokens import CHARACTERS_PER_TOKEN


@dataclass(frozen=True, slots=True)
class ContextRequest:
    """A checked request for a context."""

    scope: Scope
    message: str
    users: tuple[str, ...]
    tokens: int | None
    limit: int | None
    lookup: LookupMode
    recipe: Recipe
    format: ContextFormat
    sources: bool
    now: datetime
    bounds: Bounds = NO_BOUNDS
    """What may be looked at beside the conversation's own scope."""

    @property
    def looks_up(self) -> bool:
        """Whether something is to be recalled for the message."""
        return self.lookup == "auto" and bool(self.message.strip())

    @property
    def budget(self) -> float | None:
        """How wide the text may be (`text_width`)."""
        return None if self.tokens is None else self.tokens * CHARACTERS_PER_TOKEN

    def static_budget(self, looks_up: bool) -> float | None:
        """The part of it that the static context may take: all, or two fifths, the same for every message looked up."""
        if self.budget is None or not looks_up:
            return self.budget
        return self.budget * 4 // 5 / 2


def parse_context_request(
    scope: Scope,
    message: str,
    *,
    users: Iterable[str],
    tokens: int | None,
    limit: int | None,
    lookup: str,
    recipe: RecipeLike,
    format: str,
    sources: bool,
    now: TimeLike | None,
    bounds: Bounds = NO_BOUNDS,
) -> ContextRequest:
    if not isinstance(message, str):
        raise InputError(f"the message must be text, not {type(message).__name__}")
    return ContextRequest(
        scope=scope,
        message=replace_surrogates(message),  # it is not stored, so that half a sign in it is no reason to refuse it
        users=check_names(users, "users"),
        tokens=None if tokens is None else check_count(tokens, "tokens"),
        limit=None if limit is None else check_count(limit, "limit"),
        lookup=check_choice(lookup, "recall", LOOKUP_MODES),
        recipe=find_recipe(recipe),
        format=check_choice(format, "format", CONTEXT_FORMATS),
        sources=sources,
        now=utc_now() if now is None else parse_time(now, "now"),
        bounds=bounds,
    )
