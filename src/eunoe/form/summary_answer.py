"""The answer of an LLM that rewrites a summary, without what is put around it."""

import json
import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from eunoe.form.data_files import PatternFile
from eunoe.text.languages import LANGUAGES
from eunoe.text.normalize import replace_surrogates

PATTERNS: Final = PatternFile("summaries", languages="|".join(LANGUAGES))
_THOUGHT: Final = re.compile(r"<think>.*?</think>", re.DOTALL)
_FENCE: Final = re.compile(r"```\w*\n(.*)\n```", re.DOTALL)
_OBJECT_START: Final = re.compile(r'\{\s*"[^"]*"\s*:')
_NUMBER: Final = re.compile(r"\d{1,6}")
_WORD: Final = re.compile(r"\w+")
_MAX_LAYERS: Final = 3
"""How often something is taken off: a polite start, a code fence, a heading."""


class Answer(NamedTuple):
    """The text of a summary, and the numbers of the observations that it names as dropped."""

    text: str
    dropped: frozenset[int] = frozenset()


def read_answer(answer: str, sources: Sequence[str]) -> Answer:
    """Take off thoughts, a code fence, a JSON object, a polite start or end and a heading, unless they were said."""
    thoughts, end, rest = answer.rpartition("</think>")  # every thought that begins there has an end
    text = (_THOUGHT.sub("", thoughts + end) + rest).strip()
    for _ in range(_MAX_LAYERS):
        text = _unwrap(text, sources)
    given = read_object(text) or {}
    texts = [value for name, value in given.items() if isinstance(value, str) and name != "dropped"]
    if len(texts) == 1:
        named = frozenset(map(int, _NUMBER.findall(json.dumps(given.get("dropped", "")))))
        return Answer(_unwrap(replace_surrogates(texts[0]).strip(), sources), named)
    before, _, last = text.rpartition("\n")
    dropped = _read_dropped(last)
    return Answer(text) if dropped is None else Answer(before.strip(), dropped)


def read_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object that a text is, if it is one."""
    if not is_object(text):
        return None
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def is_object(text: str) -> bool:
    """Whether a text begins as a JSON object."""
    return bool(_OBJECT_START.match(text))


def _unwrap(text: str, sources: Sequence[str]) -> str:
    fenced = _FENCE.fullmatch(text)
    text = (fenced[1] if fenced else text).strip()
    start = PATTERNS.preamble.match(text)
    if start and start.end() < len(text) and not _is_said(start[0], sources):
        text = text[start.end() :]
    before, line_end, last = text.rpartition("\n")
    if before.strip() and line_end and PATTERNS.closing.match(last.strip()) and not _is_said(last, sources):
        text = before
    return text.strip()


def _is_said(part: str, sources: Sequence[str]) -> bool:
    return any(part.strip() in source for source in sources)


def _read_dropped(line: str) -> frozenset[int] | None:
    """The numbers in a line such as "Dropped: 3 (past), 5 (superseded)"; None if it is none."""
    words = [word.lower() for word in _WORD.findall(line)]
    if words[:1] != ["dropped"] or ":" not in line:
        return None
    numbers = [word for word in words if word.isdecimal() and len(word) <= 6]
    others = PATTERNS.words["dropped"].issuperset(set(words[1:]).difference(numbers))
    return frozenset(map(int, numbers)) if others else None
