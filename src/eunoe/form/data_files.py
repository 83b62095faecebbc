"""What the rules and the LLMs are told is data: patterns and word lists in `patterns/`, system texts in `prompts/`.

In a pattern, a line break and the blanks after it are left out, and `{name}` stands for the fragment of that name, of
the same file or of `patterns/shared.toml`.
"""

import json
import re
import tomllib
from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

_LINE_BREAK = re.compile(r"\n\s*")
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


class PatternRow(NamedTuple):
    """One row of a table: a pattern, and what it stands for."""

    name: str
    pattern: re.Pattern[str]
    weight: float = 0.0


class PatternFile:
    """One file of patterns. It is read when it is first needed; each attribute is one of its patterns."""

    def __init__(self, subject: str, **fragments: str) -> None:
        self._subject = subject
        self._given_fragments = fragments

    def __getattr__(self, name: str) -> re.Pattern[str]:
        entries = {} if name.startswith("__") else self.content.get("patterns", {})
        if name not in entries:
            raise AttributeError(f"{self._subject}.toml has no pattern {name}")
        self.__dict__ |= {known: self._compile(entry) for known, entry in entries.items()}
        pattern: re.Pattern[str] = self.__dict__[name]
        return pattern

    @cached_property
    def words(self) -> Mapping[str, frozenset[str]]:
        """The lists of words, by name."""
        return {name: frozenset(text.split()) for name, text in self.content["words"].items()}

    @cached_property
    def tables(self) -> Mapping[str, tuple[PatternRow, ...]]:
        """The tables, by name. A row with several names stands there once for each."""
        return {
            table: tuple(
                PatternRow(name, pattern, row.get("weight", 0.0))
                for row in rows
                for pattern in [self._compile(row)]
                for name in row.get("names") or [row["name"]]
            )
            for table, rows in self.content["tables"].items()
        }

    @cached_property
    def content(self) -> Mapping[str, Any]:
        return _read(f"patterns/{self._subject}.toml")

    @cached_property
    def _fragments(self) -> Mapping[str, str]:
        shared = _read("patterns/shared.toml")["fragments"]
        return {**shared, **self.content.get("fragments", {}), **self._given_fragments}

    def _compile(self, entry: str | Mapping[str, Any]) -> re.Pattern[str]:
        row = {"pattern": entry} if isinstance(entry, str) else entry
        forms = [f"(?:{form})" for form in row.get("forms", ())]
        flags = sum(getattr(re, letter.upper()) for letter in row.get("flags", ""))
        return re.compile(self._fill("|".join(forms) or row["pattern"]), flags)

    def _fill(self, text: str) -> str:
        return _PLACEHOLDER.sub(lambda match: self._fill(self._fragments[match[1]]), _LINE_BREAK.sub("", text))


class PromptFile(NamedTuple):
    """The part of a prompt that is always the same: the system text, and the JSON schema of the answer."""

    system: str
    schema: Mapping[str, Any] | None


@cache
def load_prompt(name: str) -> PromptFile:
    content = _read(f"prompts/{name}.toml")
    return PromptFile(content["system"], json.loads(content["schema"]) if "schema" in content else None)


def _read(path: str) -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / path).read_text("utf-8"))
