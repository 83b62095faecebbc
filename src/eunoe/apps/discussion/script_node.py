"""The script node: a file that WilmerAI runs as a `PythonModule`. See docs/discussions/wilmer.md.

It is loaded anew for every call, so it holds nothing; `plugin` keeps the store open between calls.
"""

from typing import Any


def Invoke(*args: Any, **kwargs: Any) -> str:
    """Read or update a discussion: an action, the id of the discussion, and what the action needs."""
    from eunoe.apps.discussion.plugin import answer_call

    return answer_call(args, kwargs)
