"""Ids that hold in the whole store: a memory's own id, then its scope.

So a memory is found by its id without looking through scopes. The id stays when the memory is changed.
"""

import base64
import re
from typing import Final

from eunoe.errors import ScopeError
from eunoe.model.scope import Scope

_PLAIN: Final = re.compile(r"[\w-]+", re.ASCII)
_ENCODED: Final = "~"
"""Before an own id that an address could not hold as it is."""


def to_id(scope: Scope, id: str) -> str:
    """
    >>> to_id(Scope(user="anna"), "7b0c")
    '7b0c.dXNlcj1hbm5h'
    """
    own = id if _PLAIN.fullmatch(id) else _ENCODED + _encode(id)
    return f"{own}.{_encode(scope.text)}"


def from_id(text: str) -> tuple[Scope, str] | None:
    """Read an id; None if it is not one of these.

    >>> from_id(to_id(Scope(user="anna"), "a/b"))
    (Scope(user='anna'), 'a/b')
    >>> from_id("7b0c")
    """
    own, sign, place = text.rpartition(".")
    try:
        scope = Scope.parse(_decode(place))
        id = _decode(own[1:]) if own.startswith(_ENCODED) else own
    except (ValueError, ScopeError):
        return None
    return (scope, id) if sign and id and to_id(scope, id) == text else None


def _encode(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decode(text: str) -> str:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
