"""Who can read a stream, and so which streams may be spoken of beside it."""

from collections.abc import Sequence

from eunoe.model.scope import Scope
from eunoe.model.stream import Target


def shows_beside(shown: Target, others: Sequence[Target], conversation: Scope, is_group: bool) -> bool:
    """Return whether what a stream holds may stand beside others in one prompt: everybody who can read any of these
    can read it too."""
    return all(can_all_read(shown, other, conversation, is_group) for other in others)


def can_all_read(stream: Target, other: Target, conversation: Scope, is_group: bool) -> bool:
    """Return whether everybody who can read one stream can read another, both fed by the same conversation."""
    circles = [_circle(each, conversation, is_group) for each in (stream, other)]
    return circles[0] == circles[1] or circles[0][0] > circles[1][0]


def _circle(target: Target, conversation: Scope, is_group: bool) -> tuple[int, str]:
    """How wide the circle of its readers is, and whose it is: one user, all who take part, or everybody.

    A conversation that belongs to no user may be joined by another one at any time.
    """
    is_conversation = target.scope == conversation or target.settings.owner[-1] in ("session", "thread")
    user = target.user or target.scope.pairs.get("user", "")
    if user and not (is_conversation and not target.user and is_group):
        return 0, user
    return (1, "") if is_conversation else (2, "")
