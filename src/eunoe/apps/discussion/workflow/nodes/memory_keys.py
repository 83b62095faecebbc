"""The keys of memory nodes and their values: which are switches, which numbers, which text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from eunoe.apps.discussion.retrievers.keyword_search import EQUAL_WEIGHTS, FIELDS, SEARCH_MODES, check_weights
from eunoe.apps.discussion.workflow.environment import Environment
from eunoe.apps.discussion.workflow.node_call import NodeCall
from eunoe.apps.discussion.workflow.placeholders import placeholder_names
from eunoe.errors import InputError, WorkflowError
from eunoe.model.arguments import show

ACROSS: Final = "acrossDiscussions"
"""Lets a node read all discussions of the user."""
HOST_MESSAGES: Final = "host_messages"
UPDATE_FIRST: Final = "update_first"
MAX_TOKENS: Final = "maxEstimatedTokens"
"""How long what a node gives may be; 0 for no limit."""
WEIGHTS: Final = "bm25Weights"
_SWITCHES: Final = (
    ACROSS,
    HOST_MESSAGES,
    UPDATE_FIRST,
    "force",
    "whole",
    "isManualConfig",
    "includeDates",
    "useRecencyScoring",
    "useEntityExpansion",
)
_LEAST: Final = {
    "maxTurnsToPull": -1,
    "maxSummaryChunksFromFile": -1,
    "lookbackStart": 0,
    "lookbackStartTurn": 0,
    "limit": 0,
    MAX_TOKENS: 0,
    "minMemoriesPerSummary": 1,
    "loopIfMemoriesExceed": 1,
    "maxResponseSizeInTokens": 1,
}
"""The smallest number that a key may have."""
_TEXTS: Final = ("input", "keywords", "customDelimiter", "semanticQuery", "embeddingEndpointName", "ragTarget")
_CHOICES: Final = {"searchMode": SEARCH_MODES, "ragType": ("CurrentChat", "RecentMemory")}


def check_keys(fields: Mapping[str, Any], environment: Environment) -> Iterator[str]:
    """What is wrong with the values of a memory node. What placeholders stand for is known only when it runs."""
    for key, value in fields.items():
        if value is not None and (problem := _problem(key, value)):
            yield problem


def is_on(call: NodeCall, name: str) -> bool:
    """Whether a switch is on: by the node, a variable of its workflow or of one that called it, or for the run."""
    for values in (call.node, *(workflow.variables for workflow in reversed(call.run.chain))):
        if values.get(name) is not None:
            _refuse(_switch_problem(name, values[name]))
            return bool(values[name])
    return bool(getattr(call.run.environment, name))


def read_count(call: NodeCall, key: str, default: int) -> int:
    """The number of a key."""
    count = call.number(key, default)
    _refuse(_count_problem(key, count))
    return count


def read_choice(call: NodeCall, key: str) -> str:
    """The word of a key: one of its choices, the first if it has none."""
    word = call.render(key, _CHOICES[key][0])
    _refuse(_choice_problem(key, word))
    return word


def read_weights(call: NodeCall) -> list[float]:
    """The weights of the fields that are searched."""
    weights = call.node.get(WEIGHTS)
    _refuse("" if weights is None else _weights_problem(weights))
    return list(EQUAL_WEIGHTS) if weights is None else weights


def _problem(key: str, value: Any) -> str:
    if key in _SWITCHES:
        return _switch_problem(key, value)
    if key == WEIGHTS:
        return _weights_problem(value)
    if isinstance(value, str) and any(placeholder_names(value)):
        return ""
    if key in _LEAST:
        return _count_problem(key, value)
    if key in _CHOICES:
        return _choice_problem(key, value)
    return f"{key} must be text, not {show(value)}" if key in _TEXTS and isinstance(value, list | dict) else ""


def _switch_problem(key: str, value: Any) -> str:
    return "" if isinstance(value, bool) else f"{key} must be true or false, not {show(value)}"


def _count_problem(key: str, value: Any) -> str:
    try:
        number = None if isinstance(value, bool | float) else int(value)
    except (TypeError, ValueError):
        number = None
    if number is None:
        return f"{key} must be a whole number, not {show(value)}"
    return "" if number >= _LEAST[key] else f"{key} must be {_LEAST[key]} or more, not {number}"


def _choice_problem(key: str, value: Any) -> str:
    return "" if value in _CHOICES[key] else f"{key} must be one of {', '.join(_CHOICES[key])}, not {show(value)}"


def _weights_problem(value: Any) -> str:
    try:
        check_weights(value)
    except InputError:
        return f"{WEIGHTS} must be {len(FIELDS)} numbers, one each for {', '.join(FIELDS)}, not {show(value)}"
    return ""


def _refuse(problem: str) -> None:
    if problem:
        raise WorkflowError(problem)
