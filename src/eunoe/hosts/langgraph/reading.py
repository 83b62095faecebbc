"""Reads: single items, searches, and the namespaces there are."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from langgraph.store.base import ListNamespacesOp, SearchOp, TTLConfig

from eunoe.hosts.langgraph.filters import fits, fulfils
from eunoe.hosts.langgraph.index import FieldIndex
from eunoe.hosts.langgraph.items import INDEXED, age_of, conditions, is_expired, is_item, since_of, value_of
from eunoe.hosts.langgraph.names import Namespace, Namespaces, id_of
from eunoe.hosts.langgraph.vectors import Rows
from eunoe.memory import Memory
from eunoe.model.arguments import utc_now
from eunoe.model.atom import Atom
from eunoe.model.result import Hit
from eunoe.model.scope import Scope

_PAGE_SIZE: Final = 500
_MAX_PAGE_SIZE: Final = 10_000
_MORE: Final = 8
"""How many times as much is asked for next."""
_SAME_DIGITS: Final = 6
"""Scores that agree to so many digits are the same: what came first stands first."""


NamespaceScope = tuple[Namespace, Scope]
"""A namespace, and the scope that holds its items."""


class FoundAtom(NamedTuple):
    """An atom that holds an item, with its namespace and its score."""

    atom: Atom
    namespace: Namespace
    score: float | None = None

    @property
    def name(self) -> tuple[Namespace, str]:
        """By which it is told from all others."""
        return self.namespace, self.atom.id


class Reader:
    """Reads the items of one root."""

    def __init__(self, memory: Memory, names: Namespaces, index: FieldIndex | None, ttl: TTLConfig | None) -> None:
        self._memory = memory
        self._names = names
        self._index = index
        self._ttl = ttl
        self._ages: dict[Namespace, str] = {}
        """When the first item of a namespace came, of those that were asked about."""

    @property
    def _omits_expired(self) -> bool:
        """Asked each time: whoever has the store may change its `ttl_config`."""
        return bool(self._ttl and self._ttl.get("omit_expired"))

    def get(self, namespace: Namespace, key: str) -> FoundAtom | None:
        """The item of a namespace with this key."""
        for atom in self._memory.get_many(self._names.scope(namespace), [id_of(key)], exact=True):
            if is_item(atom) and not (self._omits_expired and is_expired(atom, utc_now())):
                return FoundAtom(atom, namespace)
        return None

    def find(self, scope: Scope, ids: Sequence[str]) -> dict[str, Atom]:
        """The items of a scope with these ids, whether their time is over or not."""
        return {atom.id: atom for atom in self._memory.get_many(scope, ids, exact=True) if is_item(atom)}

    def _visible(self, atoms: Iterable[Any]) -> Iterator[Atom]:
        """Those that hold an item that may be seen."""
        now = utc_now() if self._omits_expired else None
        for atom in atoms:
            if is_item(atom) and not (now and is_expired(atom, now)):
                yield atom

    def search(self, op: SearchOp, queries: Mapping[str, Rows]) -> list[FoundAtom]:
        """What a search gives: without a query in the order of insertion, with one the best first."""
        if op.limit <= 0:
            return []
        scopes = self._scopes_by_age(tuple(op.namespace_prefix))
        found = self._rank(op, scopes, queries) if op.query and scopes else self._list(op, scopes)
        return list(islice(found, op.offset, op.offset + op.limit))

    def _list(self, op: SearchOp, scopes: Sequence[NamespaceScope]) -> Iterator[FoundAtom]:
        """The items of namespaces, in the order of insertion."""
        where = conditions(op.filter)
        size = _PAGE_SIZE if op.filter and not where else min(op.offset + op.limit, _MAX_PAGE_SIZE)
        for namespace, scope in scopes:
            for atom in self._visible(self.atoms(scope, size, where)):
                if not op.filter or fulfils(value_of(atom), op.filter):
                    yield FoundAtom(atom, namespace)

    def atoms(self, scope: Scope, size: int = _PAGE_SIZE, where: Mapping[str, Any] | None = None) -> Iterator[Any]:
        """All that a scope holds, a page at a time."""
        after = ""
        while True:
            page = self._memory.list(scope, kinds=["fact"], limit=size, after=after, where=where, exact=True)
            yield from page.items
            if not (after := page.next):
                return

    def _rank(self, op: SearchOp, scopes: Sequence[NamespaceScope], queries: Mapping[str, Rows]) -> Iterator[FoundAtom]:
        """The items that a question finds, best first, then the others."""
        namespaces, seen = {scope: namespace for namespace, scope in scopes}, set[tuple[Namespace, str]]()
        for atom, score in self._hits(op, list(namespaces), queries):
            assert atom.scope is not None
            found = FoundAtom(atom, namespaces[atom.scope], score)
            if found.name not in seen and (not op.filter or fulfils(value_of(atom), op.filter)):
                yield found
            seen.add(found.name)
        yield from (found for found in self._list(op, scopes) if found.name not in seen)

    def _hits(self, op: SearchOp, scopes: list[Any], queries: Mapping[str, Rows]) -> Iterator[tuple[Atom, float]]:
        """What recall finds, best first; more is asked for as long as that is wanted."""
        how: dict[str, Any] = {"kinds": ["fact"], "where": conditions(op.filter), "expired": not self._omits_expired}
        if self._index:
            how |= {"recipe": "dense", "labels": [INDEXED], "vector": queries[op.query or ""]}
        limit = op.offset + op.limit + 1
        while True:
            hits = self._memory.recall(scopes, op.query or "", limit=limit, exact=True, **how)
            has_more = len(hits) == limit
            yield from self._by_cosine(hits, has_more) if self._index else _scores(hits)
            if not has_more:
                return
            limit *= _MORE

    def _by_cosine(self, hits: Sequence[Hit], has_more: bool) -> Iterator[tuple[Atom, float]]:
        """What is equally near comes in the order of insertion. The last are held back: others may be as near."""
        assert self._index
        least = round(hits[-1].score, _SAME_DIGITS) if has_more else -1.0
        pairs = [pair for pair in _scores(hits) if round(pair[1], _SAME_DIGITS) > least]
        pairs.sort(key=lambda pair: (-round(pair[1], _SAME_DIGITS), *age_of(pair[0])))
        for atom, score in pairs:
            yield atom, self._index.cosine(score)

    def namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        """The namespaces that hold something and fulfil the conditions."""
        prefix = next((tuple(each.path) for each in op.match_conditions or () if each.match_type == "prefix"), ())
        known = prefix[: prefix.index("*")] if "*" in prefix else prefix
        found = [pair for pair in self.scopes(known) if fits(pair[0], op.match_conditions)]
        if self._omits_expired:
            found = [pair for pair in found if next(self._visible(self.atoms(pair[1])), None)]
        names = {namespace[: op.max_depth] for namespace, _ in found}
        return sorted(names)[op.offset : op.offset + op.limit]

    def scopes(self, prefix: Namespace = ()) -> list[NamespaceScope]:
        """The namespaces with this prefix that hold something, and their scopes."""
        scopes = self._memory.scopes(**self._names.keys(prefix))
        pairs = [(namespace, scope) for scope in scopes if (namespace := self._names.namespace(scope)) is not None]
        return [pair for pair in pairs if pair[0][: len(prefix)] == prefix]

    def _scopes_by_age(self, prefix: Namespace) -> list[NamespaceScope]:
        """The same, in the order in which their first items came."""
        held = self.scopes(prefix)
        return sorted(held, key=lambda pair: self.age(pair[0])) if len(held) > 1 else held

    def age(self, namespace: Namespace) -> str:
        """When the first item of a namespace came; empty if none has."""
        if (known := self._ages.get(namespace)) is None:
            first = self._memory.list(self._names.scope(namespace), kinds=["fact"], limit=1, exact=True).items
            known = next((since_of(atom) for atom in first if is_item(atom)), "")
            if known:
                self.note_age(namespace, known)
        return known

    def note_age(self, namespace: Namespace, since: str) -> None:
        """Remember when the first item of a namespace came."""
        if len(self._ages) >= _MAX_PAGE_SIZE:
            self._ages.clear()  # it is read again where it is needed
        self._ages[namespace] = since


def _scores(hits: Iterable[Hit]) -> Iterator[tuple[Atom, float]]:
    return ((hit.item, hit.score) for hit in hits if is_item(hit.item))
