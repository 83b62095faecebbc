"""Recall as a tool: an agent asks its long-term memory itself."""

import asyncio
import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from eunoe.errors import ClosedError, EunoeError, InputError
from eunoe.hosts.common import blocking
from eunoe.memory import AsyncMemory, Memory
from eunoe.model.arguments import RecipeName, check_count, show, utc_now
from eunoe.model.result import Hit
from eunoe.model.scope import Scope, ScopeLike, check_users
from eunoe.model.turn import RECALL_TOOL, read_turns
from eunoe.recall.recipes import Recipe
from eunoe.recall.rendering import escape_markdown
from eunoe.recall.request import find_recipe
from eunoe.text.dates import describe_age
from eunoe.text.normalize import replace_surrogates

_DEFINITION: Final = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
_ARGUMENTS: Final = _DEFINITION["schema"]["properties"]
_MAX_QUERIES: Final = _ARGUMENTS["query"]["anyOf"][1]["maxItems"]
_MAX_HITS: Final = _ARGUMENTS["match_count"]["maximum"]
_DEFAULT_HITS: Final = _ARGUMENTS["match_count"]["default"]
NOTHING_TEXT: Final = "No relevant memories found."
_log = logging.getLogger("eunoe")


@dataclass(frozen=True, slots=True)
class Tool:
    """`search_long_term_memory` for one conversation. Whatever an agent passes to it, the answer is a text."""

    memory: Memory | AsyncMemory
    scope: Scope
    users: tuple[str, ...] = ()
    recipe: RecipeName | Recipe | int = "default"

    name: ClassVar[str] = RECALL_TOOL
    description: ClassVar[str] = _DEFINITION["description"]
    schema: ClassVar[Mapping[str, Any]] = _DEFINITION["schema"]

    def openai(self) -> dict[str, Any]:
        function = {"name": self.name, "description": self.description, "parameters": dict(self.schema)}
        return {"type": "function", "function": function}

    def anthropic(self) -> dict[str, Any]:
        return {"name": self.name, "description": self.description, "input_schema": dict(self.schema)}

    def call(self, arguments: Mapping[str, Any]) -> str:
        """Search. The memory may be a blocking or an async one."""
        try:
            return self.search(arguments)
        except Exception as error:
            return _describe_error(error)

    def search(self, arguments: Mapping[str, Any]) -> str:
        """`call` for hosts that have a way of their own to tell an agent of errors: they are raised."""
        hits = blocking(self.memory).look_up(
            self.scope, **parse_arguments(arguments), users=self.users, recipe=self.recipe
        )
        lines = [line for hit in hits if (line := _hit_line(hit))]
        return "\n".join(["Retrieved memories:", "", *lines]) if lines else NOTHING_TEXT

    async def acall(self, arguments: Mapping[str, Any]) -> str:
        """`call` without blocking the event loop."""
        return await asyncio.to_thread(self.call, arguments)


def tool(
    memory: Memory | AsyncMemory,
    scope: ScopeLike,
    users: Iterable[str] = (),
    *,
    recipe: RecipeName | Recipe | int = "default",
) -> Tool:
    """A memory's recall as a tool for the agent of one conversation. How it ranks is for the host to say.

    >>> with eunoe.open(":memory:") as memory:
    ...     _ = memory.remember("agent=cook/user=anna", "Anna is allergic to peanuts.")
    ...     search = tool(memory, "agent=cook/session=s1/user=anna")
    ...     print(search.call({"query": "What must Anna not eat?"}))
    Retrieved memories:
    <BLANKLINE>
    - Anna is allergic to peanuts. (just now)
    """
    if isinstance(users, str):
        raise InputError(f"users must be a list of names; did you mean [{show(users)}]?")
    find_recipe(recipe)
    return Tool(memory, Scope.of(scope), check_users(users), recipe)


def parse_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What an agent passed, as `memory.look_up` takes it. Errors say to the agent what to pass instead."""
    if not isinstance(arguments, Mapping):
        raise InputError(f"the arguments must be an object with a `query`, not {type(arguments).__name__}")
    if unknown := sorted(map(str, arguments.keys() - _ARGUMENTS.keys())):
        raise InputError(f"there is no argument {', '.join(unknown)}: pass query, memory_types or match_count")
    given = {name: value for name, value in arguments.items() if value is not None}
    query = given.get("query")
    queries = [query] if isinstance(query, str) else query
    if not isinstance(queries, list | tuple) or not 1 <= len(queries) <= _MAX_QUERIES:
        raise InputError(f"query must be a text or a list of 1 to {_MAX_QUERIES} texts")
    if any(not isinstance(text, str) or not text.strip() for text in queries):
        raise InputError("query holds something that is not a text, or an empty one: say what to look for")
    return {
        "query": list(map(replace_surrogates, queries)),
        "memory_types": given.get("memory_types", ()),
        "limit": check_count(given.get("match_count", _DEFAULT_HITS), "match_count", most=_MAX_HITS),
    }


def _hit_line(hit: Hit) -> str:
    record = hit.record
    when = describe_age(record.happened, utc_now())
    if record.kind != "message":
        return f"- {escape_markdown(record.text)} ({when})"
    turns = read_turns([record._replace(text=record.content)], hit.scope)
    return f"- {escape_markdown(turns[0].name)}: {escape_markdown(turns[0].text)} ({when})" if turns else ""


def _describe_error(error: Exception) -> str:
    """An agent reads this: it says what to change, or that memory is out of reach, and never what memory holds."""
    if isinstance(error, InputError):
        return f"The memory could not be searched: {error}"
    if not isinstance(error, ClosedError):
        _log.warning("%s failed: %s: %s", RECALL_TOOL, type(error).__name__, error)
    cause = type(error).__name__ if isinstance(error, EunoeError) else "an unexpected fault"
    return f"The memory cannot be searched at the moment ({cause}). Answer without it."
