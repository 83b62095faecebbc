"""The role of a speaker who is called by one, such as "Assistant", in the languages that are known by rule."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

_MODEL_ID: Final = re.compile(r"(?:chat)?gpt-\d\S*|(?:claude|gemini|gemma|llama|mistral|qwen|grok|deepseek)-\S*\d\S*")
"""A model by its number. People are called Claude, but not claude-3-opus."""


def role_named(speaker: str) -> str:
    """Return the role that a speaker's name says; "user" for a name of anybody's own.

    >>> role_named("Assistant"), role_named("Benutzer"), role_named("gpt-4o"), role_named("Claude")
    ('assistant', 'user', 'assistant', 'user')
    """
    name = " ".join(speaker.split())
    if not name or (len(name) == 2 and name.istitle()):  # "AI" and "ai" are no people, but Ai may be
        return "user"
    lowered = name.casefold()
    return "assistant" if _MODEL_ID.fullmatch(lowered) else _roles_by_name().get(lowered, "user")


@cache
def _roles_by_name() -> Mapping[str, str]:
    import tomllib  # quicker to start without it

    names = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    return {name.casefold(): role for role, own in names.items() for name in own}
