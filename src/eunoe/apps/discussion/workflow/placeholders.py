"""Placeholders in the texts of a node: `{name}`, and some in brackets.

A text is read once, from left to right: what is put in is never read again, so that braces in it do nothing. A brace
that does not stand around a name is a brace. `{{name}}` is `{name}` and no placeholder; `{{{name}}}` is one, in braces.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

BRACKETED: Final = (
    "TextChunk",
    "Memory_file",
    "Full_Memory_file",
    "Chat_Summary",
    "CHAT_SUMMARY",
    "LATEST_MEMORIES",
    "MemoriesToCondense",
    "Memories_Before_Memories_to_Condense",
)
"""The names that may stand in brackets. Other words in brackets are left as they are."""
NAME: Final = re.compile(r"[^\W\d]\w*")
_BRACKETED: Final = re.compile(rf"\[(?P<bracketed>{'|'.join(BRACKETED)})\]")
_PLACEHOLDER: Final = re.compile(
    rf"(?<!\{{)\{{\{{(?P<literal>{NAME.pattern})\}}\}}|\{{(?P<name>{NAME.pattern})\}}|{_BRACKETED.pattern}"
)
_AGENT: Final = re.compile(r"agent([1-9][0-9]{0,3})(Input|Output)")


class AgentName(NamedTuple):
    """What `agent2Output` means: the output of node 2."""

    number: int
    is_output: bool


def parse_agent_name(name: str) -> AgentName | None:
    """Read `agentNInput` or `agentNOutput`; None for another name.

    >>> parse_agent_name("agent2Output")
    AgentName(number=2, is_output=True)
    """
    match = _AGENT.fullmatch(name)
    return AgentName(int(match[1]), match[2] == "Output") if match else None


def substitute(text: str, value_of: Callable[[str], str], bracket_value_of: Callable[[str], str]) -> str:
    """Put values in place of placeholders.

    >>> substitute('{"a": {b}, "c": {{d}}}', lambda name: f"<{name} {{x}}>", str.upper)
    '{"a": <b {x}>, "c": {d}}'
    """

    def put(match: re.Match[str]) -> str:
        if match["literal"]:
            return f"{{{match['literal']}}}"
        return value_of(match["name"]) if match["name"] else bracket_value_of(match["bracketed"])

    return _PLACEHOLDER.sub(put, text)


def substitute_brackets(text: str, value_of: Callable[[str], str]) -> str:
    """Put values in place of the names in brackets alone."""
    return _BRACKETED.sub(lambda match: value_of(match["bracketed"]), text)


def placeholder_names(text: str) -> Iterator[str]:
    """The names in braces, in their order, without those in double braces."""
    return (match["name"] for match in _PLACEHOLDER.finditer(text) if match["name"])


def bracketed_names(text: str) -> Iterator[str]:
    """The names in brackets, in their order."""
    return (match["bracketed"] for match in _PLACEHOLDER.finditer(text) if match["bracketed"])
