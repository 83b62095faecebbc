"""Where items are kept: a namespace is a scope, a key is an id, and each can be read back.

Each label of a namespace is a key of its scope, so that a prefix is a scope with fewer keys.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Final

from eunoe.errors import ScopeError
from eunoe.model.scope import Scope

Namespace = tuple[str, ...]

_PART: Final = "namespace_"
_EMPTY: Final = {"namespace": "~"}
"""What stands for the namespace without labels, so that its items are apart from what else the root holds."""
_MAX_CHARACTERS: Final = 500
"""Of a label in one key of a scope; a longer one goes on in further keys."""
_MAX_ID_CHARACTERS: Final = 1000
_ESCAPE: Final = re.compile(r"~([0-9a-f]+);")


class Namespaces:
    """The scopes of namespaces below a root."""

    def __init__(self, root: Scope) -> None:
        if any(key.startswith("namespace") for key in root):
            raise ScopeError(f"the scope {root} cannot be the root of a store: a namespace has keys of that name")
        self.root = root
        self.scope = lru_cache(maxsize=4096)(self._scope)
        """The scope of a namespace."""
        self.namespace = lru_cache(maxsize=4096)(self._namespace)
        """The namespace of a scope; None if it is none of this root's."""

    def keys(self, prefix: Namespace) -> Mapping[str, str]:
        """What all scopes of namespaces with this prefix have; some others may have it too."""
        return {**self.root.pairs, **_pairs(prefix)}

    def _scope(self, namespace: Namespace) -> Scope:
        return self.root.extended(_pairs(namespace) or _EMPTY)

    def _namespace(self, scope: Scope) -> Namespace | None:
        if not self.root.pairs.items() <= scope.pairs.items():
            return None
        pairs = {key: value for key, value in scope.pairs.items() if key not in self.root.pairs}
        if pairs == _EMPTY:
            return ()
        labels: list[str] = []
        while first := pairs.pop(f"{_PART}{len(labels) + 1}", ""):
            labels.append(unescape(first + _rest(pairs, len(labels) + 1)))
        return tuple(labels) if labels and not pairs else None


def _pairs(namespace: Namespace) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for number, label in enumerate(namespace, 1):
        text = escape(label)
        pairs[f"{_PART}{number}"] = text[:_MAX_CHARACTERS]
        for place in range(1, -(-len(text) // _MAX_CHARACTERS)):
            pairs[f"{_PART}{number}_{place}"] = text[place * _MAX_CHARACTERS : (place + 1) * _MAX_CHARACTERS]
    return pairs


def _rest(pairs: dict[str, str], number: int) -> str:
    text, place = "", 1
    while more := pairs.pop(f"{_PART}{number}_{place}", ""):
        text, place = text + more, place + 1
    return text


def escape(text: str) -> str:
    """Write a text without blanks and unprintable characters.

    >>> escape("Anna B.~")
    'Anna~20;B.~7e;'
    """
    if text.isalnum():
        return text
    return "".join([each if each.isprintable() and each not in " ~" else f"~{ord(each):x};" for each in text])


def unescape(text: str) -> str:
    """Read what `escape` has written."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text) if "~" in text else text


def id_of(key: str) -> str:
    """The id of an item: its key, or a fingerprint of a key that cannot be one."""
    if key.isprintable() and 0 < len(key) <= _MAX_ID_CHARACTERS and key[0] not in " ~":
        return key
    return f"~{sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()}"
