"""Whose discussion it is: ids, the tag that carries one in a message, and the scope."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from eunoe.errors import InputError
from eunoe.memory import Memory
from eunoe.model.arguments import show
from eunoe.model.scope import Scope

DEFAULT_USER: Final = "default"
"""Whose discussions they are where a program has one user and does not name them."""
MAX_ID_BYTES: Final = 200
"""Of an id in UTF-8: it is part of the names of files."""
_NO_ID_SIGNS: Final = re.compile(r"[/\\:]")
_WORDS: Final = ("content", "text")
_TAG: Final = re.compile(r"\[DiscussionId\](.*?)\[/DiscussionId\]", re.DOTALL)


def check_discussion_id(id: str) -> str:
    """Return an id of a discussion, or raise InputError.

    >>> check_discussion_id("Trip to Köln")
    'Trip to Köln'
    """
    if not is_discussion_id(id):
        raise InputError(
            f"discussion: {show(id)} is no id of a discussion: one has at most {MAX_ID_BYTES} bytes, no '/', '\\', ':' "
            "or unprintable characters, no blank at its ends, and is neither '.' nor '..'"
        )
    return id


def is_discussion_id(id: object) -> bool:
    """Whether something is an id of a discussion."""
    if not isinstance(id, str) or not id.isprintable() or _NO_ID_SIGNS.search(id) or id in (".", ".."):
        return False
    return id == id.strip() and 0 < len(id.encode()) <= MAX_ID_BYTES


def discussion_scope(id: str, user: str = DEFAULT_USER) -> Scope:
    """The scope of a discussion: its user and its id.

    >>> discussion_scope("trip", "anna")
    Scope(discussion='trip', user='anna')
    """
    if type(id) is type(user) is str:
        return _known_scope(id, user)
    return Scope(user=user, discussion=check_discussion_id(id))


@lru_cache(maxsize=1024)
def _known_scope(id: str, user: str) -> Scope:
    return Scope(user=user, discussion=check_discussion_id(id))


def discussion_key(scope: Scope) -> tuple[str, str]:
    """Whose discussion a scope is, and its id, whether or not the scope names its tenant."""
    return scope.pairs["user"], scope.pairs["discussion"]


def discussion_ids(memory: Memory, user: str = DEFAULT_USER) -> list[str]:
    """The ids of a user's discussions that hold something."""
    return [id for _, id in discussion_keys(memory, user)]


def discussion_keys(memory: Memory, user: str | None = None) -> list[tuple[str, str]]:
    """The users and ids of the discussions that hold something, of one user or of all."""
    scopes = (scope.pairs for scope in memory.scopes(**{} if user is None else {"user": user}))
    # A restricted memory names its tenant in what it lists, and adds it to what it is asked for.
    named = (pairs for pairs in scopes if pairs.keys() - {"tenant"} == {"user", "discussion"})
    keys = {(pairs["user"], pairs["discussion"]) for pairs in named if is_discussion_id(pairs["discussion"])}
    how: Any = {"limit": 1, "retired": True, "exact": True}
    return sorted(key for key in keys if memory.list(discussion_scope(*key[::-1]), **how).items)


def take_tag(messages: Sequence[Mapping[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
    """The id that a `[DiscussionId]` tag names, the last one if there are several, and the messages without tags.

    The id is not checked.

    >>> take_tag([{"role": "user", "content": "[DiscussionId]trip[/DiscussionId]Hello"}])
    ('trip', [{'role': 'user', 'content': 'Hello'}])
    """
    names: list[str] = []
    cleaned = [
        {name: _without_tags(value, names) if name in _WORDS else value for name, value in message.items()}
        for message in messages
    ]
    return names[-1].strip() if names else "", cleaned


def _without_tags(content: Any, names: list[str]) -> Any:
    """The content of a message, a text or a list of parts, without tags; what they name is added to the names."""
    if isinstance(content, str):
        names += _TAG.findall(content)
        return _TAG.sub("", content)
    if isinstance(content, list):
        return [_without_tags(part, names) for part in content]
    if isinstance(content, Mapping) and "text" in content:
        return {**content, "text": _without_tags(content["text"], names)}
    return content
