"""Items as a memory keeps them, and what is asked of them.

A namespace is a scope, each of its labels one key, so that a prefix is a scope with fewer keys; a key is an id. The
text of an atom is what is searched, its metadata holds value and times. Filters mean what they mean to LangGraph's own
`InMemoryStore`.
"""

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from hashlib import sha256
from math import inf, isfinite
from numbers import Real
from typing import Any, Final, TypeGuard

from langgraph.store.base import Item, MatchCondition, PutOp, SearchItem, get_text_at_path

from eunoe.errors import InputError, ScopeError
from eunoe.hosts.common import plain_mapping
from eunoe.model.atom import Atom
from eunoe.model.scope import Scope

Namespace = tuple[str, ...]

_PART: Final = "namespace_"
_EMPTY: Final = {"namespace": "~"}
"""What stands for the namespace without labels, so that its items are apart from what else the root holds."""
_MAX_CHARACTERS: Final = 500
"""Of a label in one key of a scope; a longer one goes on in further keys."""
_MAX_ID_CHARACTERS: Final = 1000
_ESCAPE: Final = re.compile(r"~([0-9a-f]+);")

INDEXED: Final = "indexed"
"""The label of an item that a question may find by its vectors."""
_UPDATED: Final = "updated"
_CREATED: Final = "created"
"""Where that was another moment."""
_SINCE: Final = "since"
"""When the first item of its namespace came, where it was another one: namespaces are searched in that order."""
_TTL: Final = "ttl"
"""In minutes."""
_MAX_MINUTES: Final = 1000 * 365 * 24 * 60
"""A thousand years: whoever says more means for ever."""
_KEY: Final = "key"
"""The key, where the id is only a fingerprint of it."""
_VALUE: Final = "value"

_COMPARISONS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_OPERATORS: Final = frozenset({"$eq", "$ne", *_COMPARISONS})


class Namespaces:
    """The scopes of namespaces below a root."""

    def __init__(self, root: Scope) -> None:
        if any(key.startswith("namespace") for key in root):
            raise ScopeError(f"the scope {root} cannot be the root of a store: a namespace has keys of that name")
        self.root = root
        self.scope = lru_cache(maxsize=4096)(lambda namespace: root.extended(_pairs(namespace) or _EMPTY))
        """The scope of a namespace."""
        self.namespace = lru_cache(maxsize=4096)(self._namespace)
        """The namespace of a scope; None if it is none of this root's."""

    def keys(self, prefix: Namespace) -> Mapping[str, str]:
        """What all scopes of namespaces with this prefix have; some others may have it too."""
        return {**self.root.pairs, **_pairs(prefix)}

    def _namespace(self, scope: Scope) -> Namespace | None:
        if not self.root.pairs.items() <= scope.pairs.items():
            return None
        pairs = {key: value for key, value in scope.pairs.items() if key not in self.root.pairs}
        if pairs == _EMPTY:
            return ()
        labels: list[str] = []
        while text := pairs.pop(f"{_PART}{len(labels) + 1}", ""):
            place = 1
            while more := pairs.pop(f"{_PART}{len(labels) + 1}_{place}", ""):
                text, place = text + more, place + 1
            labels.append(_unescape(text))
        return tuple(labels) if labels and not pairs else None


def _pairs(namespace: Namespace) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for number, label in enumerate(namespace, 1):
        text = _escape(label)
        pairs[f"{_PART}{number}"] = text[:_MAX_CHARACTERS]
        for place in range(1, -(-len(text) // _MAX_CHARACTERS)):
            pairs[f"{_PART}{number}_{place}"] = text[place * _MAX_CHARACTERS : (place + 1) * _MAX_CHARACTERS]
    return pairs


def _escape(text: str) -> str:
    """A text without blanks and unprintable characters, such as "Anna~20;B.~7e;" for "Anna B.~"."""
    if text.isalnum():
        return text
    return "".join([each if each.isprintable() and each not in " ~" else f"~{ord(each):x};" for each in text])


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text) if "~" in text else text


def id_of(key: str) -> str:
    """The id of an item: its key, or a fingerprint of a key that cannot be one."""
    if key.isprintable() and 0 < len(key) <= _MAX_ID_CHARACTERS and key[0] not in " ~":
        return key
    return f"~{sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()}"


def with_plain_value(op: PutOp) -> PutOp:
    """The same put with a value that JSON can carry, and a ttl that is a number or None."""
    value = None if op.value is None else plain_mapping(op.value, "value")
    ttl: Any = op.ttl
    if ttl is None or ttl == inf:
        return op._replace(value=value, ttl=None)
    if isinstance(ttl, bool) or not isinstance(ttl, Real) or not isfinite(ttl):
        raise InputError(f"ttl is {ttl!r}: give a number of minutes, or None for ever")
    return op._replace(value=value, ttl=float(ttl))


def new_item(op: PutOp, texts: Sequence[str], now: datetime, old: Atom | None, since: str) -> dict[str, Any]:
    """What `remember` takes for a put."""
    id, value, moment = id_of(op.key), op.value or {}, now.isoformat()
    metadata: dict[str, Any] = {_VALUE: value, _UPDATED: moment}
    if old:
        metadata[_CREATED] = _created_of(old)
    if since:
        metadata[_SINCE] = since
    if id != op.key:
        metadata[_KEY] = _escape(op.key)
    if op.ttl is not None:
        metadata[_TTL] = op.ttl
    return {
        "id": id,
        "text": "\n".join(texts).strip() or get_text_at_path(value, "$")[0],
        "label": INDEXED if texts else "",
        "valid_to": None if op.ttl is None else end_of_life(op.ttl, now),
        "metadata": metadata,
    }


def end_of_life(ttl: float, now: datetime) -> datetime:
    return now + timedelta(minutes=min(max(ttl, 0), _MAX_MINUTES))


def is_item(atom: object) -> TypeGuard[Atom]:
    """Whether an atom holds an item. One that was replaced does not, nor what somebody wrote there by hand."""
    return isinstance(atom, Atom) and atom.retired is None and _VALUE in atom.metadata and _UPDATED in atom.metadata


def is_expired(atom: Atom, now: datetime) -> bool:
    return atom.valid_to is not None and atom.valid_to <= now


def ttl_of(atom: Atom) -> float | None:
    return atom.metadata.get(_TTL)


def since_of(atom: Atom) -> str:
    return str(atom.metadata.get(_SINCE) or _created_of(atom))


def age_of(atom: Atom) -> tuple[str, str]:
    """Where an item stands in the order of insertion."""
    return since_of(atom), _created_of(atom)


def _created_of(atom: Atom) -> str:
    return str(atom.metadata.get(_CREATED) or atom.metadata[_UPDATED])


def item_of(atom: Atom, namespace: Namespace) -> Item:
    """The item that an atom holds. LangGraph reads times that are texts."""
    return Item(
        value=atom.metadata[_VALUE],
        key=_key_of(atom),
        namespace=namespace,
        created_at=_created_of(atom),  # type: ignore[arg-type]
        updated_at=atom.metadata[_UPDATED],
    )


def search_item_of(atom: Atom, namespace: Namespace, score: float | None) -> SearchItem:
    created: Any = _created_of(atom)
    return SearchItem(namespace, _key_of(atom), atom.metadata[_VALUE], created, atom.metadata[_UPDATED], score)


def _key_of(atom: Atom) -> str:
    return _unescape(atom.metadata[_KEY]) if _KEY in atom.metadata else atom.id


def conditions(wanted: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """What a filter asks of metadata, as far as the memory can look it up; None if that is nothing.

    1 is True to LangGraph's stores, and a missing field is None: those are left to the filter itself.
    """
    plain = {}
    for name, each in (wanted or {}).items():
        is_number = isinstance(each, int | float) and isfinite(each) and each not in (0, 1)
        if "." not in name and (isinstance(each, str) or is_number):
            plain[f"{_VALUE}.{name}"] = each
    return plain or None


def check_filter(wanted: Any) -> None:
    """Refuse a filter that is none, or that names an operator that there is not."""
    if wanted is None:
        return
    if not isinstance(wanted, Mapping):
        raise InputError(f"filter must be a mapping, not {type(wanted).__name__}")
    for name, each in wanted.items():
        if isinstance(name, str) and name.startswith("$") and name not in _OPERATORS:
            raise InputError(f"Unsupported operator: {name}; use {', '.join(sorted(_OPERATORS))}")
        if isinstance(each, Mapping):
            check_filter(each)


def fulfils(atom: Atom, wanted: Mapping[str, Any]) -> bool:
    value: dict[str, Any] = atom.metadata[_VALUE]
    return all(_equals(_field(value, name), each) for name, each in wanted.items())


def _field(value: Mapping[str, Any], name: str) -> Any:
    """A field by its name; one that no field has leads through dicts, with dots between."""
    if name in value or "." not in name:
        return value.get(name)
    found: Any = value
    for part in name.split("."):
        if not isinstance(found, Mapping):
            return None
        found = found.get(part)
    return found


def _equals(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        if any(name.startswith("$") for name in wanted):
            return all(_is_true(value, name, operand) for name, operand in wanted.items())
        return isinstance(value, dict) and all(_equals(value.get(name), each) for name, each in wanted.items())
    if isinstance(wanted, list | tuple):
        return isinstance(value, list) and len(value) == len(wanted) and all(map(_equals, value, wanted))
    return bool(value == wanted)


def _is_true(value: Any, name: str, operand: Any) -> bool:
    if name in ("$eq", "$ne"):
        return bool(value == operand) == (name == "$eq")
    try:
        return _COMPARISONS[name](float(value), float(operand))
    except (TypeError, ValueError):  # what is no number is neither more nor less, as in a database
        return False


def fits(namespace: Namespace, conditions: Iterable[MatchCondition] | None) -> bool:
    for condition in conditions or ():
        if condition.match_type not in ("prefix", "suffix"):
            raise ValueError(f"Unsupported match type: {condition.match_type}")
        path, count = condition.path, len(condition.path)
        part = namespace[:count] if condition.match_type == "prefix" else namespace[max(len(namespace) - count, 0) :]
        if len(part) < count or not all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True)):
            return False
    return True
