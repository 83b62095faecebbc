"""LangGraph's operations on a memory, a batch at a time. Both stores are made of it."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from langgraph.store.base import (
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchOp,
    TTLConfig,
    validate_op_namespace,
)

from eunoe.errors import EunoeError
from eunoe.hosts.common import blocking
from eunoe.hosts.langgraph.items import (
    INDEXED,
    Namespace,
    Namespaces,
    age_of,
    check_filter,
    conditions,
    end_of_life,
    fits,
    fulfils,
    id_of,
    is_expired,
    is_item,
    item_of,
    new_item,
    search_item_of,
    since_of,
    ttl_of,
    with_plain_value,
)
from eunoe.hosts.langgraph.vectors import FieldIndex, Rows
from eunoe.memory import AsyncMemory, Memory, iterate
from eunoe.model.arguments import check_count, check_text, utc_now
from eunoe.model.atom import Atom
from eunoe.model.result import Hit
from eunoe.model.scope import Scope, ScopeLike

_TTL: Final[TTLConfig] = {"refresh_on_read": False}
"""What a `ttl` means where it does not say so: what SqliteStore takes it for."""
_SWEEP_MINUTES: Final = 5.0
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
        return self.namespace, self.atom.id


class Vectors(NamedTuple):
    """What a batch needs of the index: the vectors of texts to put and of queries, by text."""

    texts: Mapping[str, Rows] = {}
    queries: Mapping[str, Rows] = {}


class Operations:
    """Carries out the operations of one store, whose items stand below one root."""

    def __init__(
        self, memory: Memory | AsyncMemory | None, scope: ScopeLike, index: IndexConfig | None, ttl: TTLConfig | None
    ) -> None:
        self._names = Namespaces(Scope.of(scope))
        self.memory = blocking(memory)
        self.index = FieldIndex(index, self.memory) if index else None
        self.ttl: TTLConfig | None = {**_TTL, **ttl} if ttl else None
        self._ages: dict[Namespace, str] = {}
        """When the first item of a namespace came, of those that were asked about."""

    def run(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out a batch: all reads see what was there before it."""
        plain = _check(ops)
        vectors = Vectors(*self.index.embed(*_to_embed(plain, self.index))) if self.index else Vectors()
        return self._run(plain, vectors)

    async def arun(self, ops: Iterable[Op], alone: bool = False) -> list[Result]:
        """Do the same beside the event loop. With `alone`, the result of what is refused is the error."""
        plain = await asyncio.to_thread(_check, ops, alone)
        if self.index is None:
            return await asyncio.to_thread(self._run, plain, Vectors())
        to_embed = await asyncio.to_thread(_to_embed, plain, self.index)
        return await asyncio.to_thread(self._run, plain, Vectors(*await self.index.aembed(*to_embed)))

    def get(self, op: GetOp) -> Item | None:
        """Carry out a single read, as a batch of one would, in less time."""
        validate_op_namespace(op)
        return self._get(op)

    def sweep(self) -> int:
        """Delete the items whose time is over; return how many."""
        count, now = 0, utc_now()
        for _, scope in self._scopes():
            ids = [atom.id for atom in self._atoms(scope) if is_expired(atom, now)]
            if ids:
                self.memory.forget(scope, ids, may_return=True, exact=True)
            count += len(ids)
        return count

    def sweep_seconds(self, minutes: float | None) -> float:
        return 60 * float(minutes or (self.ttl or {}).get("sweep_interval_minutes") or _SWEEP_MINUTES)

    def _run(self, ops: Sequence[Op | Exception], vectors: Vectors) -> list[Result]:
        results: list[Any] = []
        last: dict[Namespace, dict[str, PutOp]] = {}  # of several puts with the same key the last one counts
        for op in ops:
            result: Any = None
            if isinstance(op, Exception):
                result = op
            elif isinstance(op, GetOp):
                result = self._get(op)
            elif isinstance(op, SearchOp):
                scopes = self._scopes(tuple(op.namespace_prefix)) if op.limit > 0 else []
                if len(scopes) > 1:
                    scopes.sort(key=lambda pair: self._age(pair[0]))
                held = self._rank(op, scopes, vectors.queries) if op.query and scopes else self._list(op, scopes)
                found = list(islice(held, op.offset, op.offset + op.limit))
                if op.refresh_ttl and self.ttl:
                    self._refresh(found)
                result = [search_item_of(each.atom, each.namespace, each.score) for each in found]
            elif isinstance(op, ListNamespacesOp):
                result = self._namespaces(op)
            else:
                last.setdefault(tuple(op.namespace), {})[op.key] = op
            results.append(result)
        for namespace, puts in last.items():
            self._write(namespace, list(puts.values()), vectors.texts)
        return results

    def _write(self, namespace: Namespace, ops: Sequence[PutOp], vectors: Mapping[str, Rows]) -> None:
        """Put and delete in one namespace, in one write."""
        scope = self._names.scope(namespace)
        found = self.memory.get_many(scope, [id_of(op.key) for op in ops], exact=True)
        old = {atom.id: atom for atom in found if is_item(atom)}
        if gone := [id for op in ops if op.value is None and (id := id_of(op.key)) in old]:
            self.memory.forget(scope, gone, may_return=True, exact=True)
        items = []
        for op in ops:
            if op.value is None:
                continue
            texts, now, since = self.index.texts(op) if self.index else [], utc_now(), self._age(namespace)
            item = new_item(op, texts, now, old.get(id_of(op.key)), since)
            self._note_age(namespace, since or now.isoformat())
            if self.index:
                item["vector"] = self.index.rows(texts, vectors)
            items.append(item)
        if items:
            self.memory.remember_many(scope, items, replace=True, again=True)

    def _refresh(self, found: Iterable[FoundAtom]) -> None:
        """Have items that were read live on for as long as they were given."""
        now, ends = utc_now(), dict[tuple[Namespace, float], list[str]]()
        for atom, namespace, _ in found:
            if (ttl := ttl_of(atom)) is not None:
                ends.setdefault((namespace, ttl), []).append(atom.id)
        for (namespace, ttl), ids in ends.items():
            self.memory.expire(self._names.scope(namespace), ids, end_of_life(ttl, now))

    @property
    def _omits_expired(self) -> bool:
        """Asked each time: whoever has the store may change its `ttl_config`."""
        return bool(self.ttl and self.ttl.get("omit_expired"))

    def _visible(self, atoms: Iterable[Any]) -> Iterator[Atom]:
        """Those that hold an item that may be seen."""
        now = utc_now() if self._omits_expired else None
        for atom in atoms:
            if is_item(atom) and not (now and is_expired(atom, now)):
                yield atom

    def _get(self, op: GetOp) -> Item | None:
        namespace = tuple(op.namespace)
        held = self.memory.get_many(self._names.scope(namespace), [id_of(op.key)], exact=True)
        for atom in self._visible(held):
            if op.refresh_ttl and self.ttl:
                self._refresh([FoundAtom(atom, namespace)])
            return item_of(atom, namespace)
        return None

    def _list(self, op: SearchOp, scopes: Sequence[NamespaceScope]) -> Iterator[FoundAtom]:
        """The items of namespaces, in the order of insertion."""
        where = conditions(op.filter)
        size = _PAGE_SIZE if op.filter and not where else min(op.offset + op.limit, _MAX_PAGE_SIZE)
        for namespace, scope in scopes:
            for atom in self._visible(self._atoms(scope, size, where)):
                if not op.filter or fulfils(atom, op.filter):
                    yield FoundAtom(atom, namespace)

    def _atoms(self, scope: Scope, size: int = _PAGE_SIZE, where: Mapping[str, Any] | None = None) -> Iterator[Any]:
        return iterate(self.memory, scope, kinds=["fact"], limit=size, where=where, exact=True)

    def _rank(self, op: SearchOp, scopes: Sequence[NamespaceScope], queries: Mapping[str, Rows]) -> Iterator[FoundAtom]:
        """The items that a question finds, best first, then the others."""
        namespaces, seen = {scope: namespace for namespace, scope in scopes}, set[tuple[Namespace, str]]()
        for atom, score in self._hits(op, list(namespaces), queries):
            assert atom.scope is not None
            found = FoundAtom(atom, namespaces[atom.scope], score)
            if found.name not in seen and (not op.filter or fulfils(atom, op.filter)):
                yield found
            seen.add(found.name)
        yield from (found for found in self._list(op, scopes) if found.name not in seen)

    def _hits(self, op: SearchOp, scopes: list[Any], queries: Mapping[str, Rows]) -> Iterator[tuple[Atom, float]]:
        """What recall finds, best first; more is asked for as long as that is wanted."""
        how: dict[str, Any] = {"kinds": ["fact"], "where": conditions(op.filter), "expired": not self._omits_expired}
        if self.index:
            how |= {"recipe": "dense", "labels": [INDEXED], "vector": queries[op.query or ""]}
        limit = op.offset + op.limit + 1
        while True:
            hits = self.memory.recall(scopes, op.query or "", limit=limit, exact=True, **how)
            has_more = len(hits) == limit
            pairs = [(hit.item, hit.score) for hit in hits if is_item(hit.item)]
            yield from _by_cosine(self.index, hits, pairs, has_more) if self.index else pairs
            if not has_more:
                return
            limit *= _MORE

    def _namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        """The namespaces that hold something and fulfil the conditions."""
        prefix = next((tuple(each.path) for each in op.match_conditions or () if each.match_type == "prefix"), ())
        known = prefix[: prefix.index("*")] if "*" in prefix else prefix
        found = [pair for pair in self._scopes(known) if fits(pair[0], op.match_conditions)]
        if self._omits_expired:
            found = [pair for pair in found if next(self._visible(self._atoms(pair[1])), None)]
        names = {namespace[: op.max_depth] for namespace, _ in found}
        return sorted(names)[op.offset : op.offset + op.limit]

    def _scopes(self, prefix: Namespace = ()) -> list[NamespaceScope]:
        """The namespaces with this prefix that hold something, and their scopes."""
        scopes = self.memory.scopes(**self._names.keys(prefix))
        pairs = [(namespace, scope) for scope in scopes if (namespace := self._names.namespace(scope)) is not None]
        return [pair for pair in pairs if pair[0][: len(prefix)] == prefix]

    def _age(self, namespace: Namespace) -> str:
        """When the first item of a namespace came; empty if none has."""
        if (known := self._ages.get(namespace)) is None:
            first = self.memory.list(self._names.scope(namespace), kinds=["fact"], limit=1, exact=True).items
            known = next((since_of(atom) for atom in first if is_item(atom)), "")
            if known:
                self._note_age(namespace, known)
        return known

    def _note_age(self, namespace: Namespace, since: str) -> None:
        if len(self._ages) >= _MAX_PAGE_SIZE:
            self._ages.clear()  # it is read again where it is needed
        self._ages[namespace] = since


def _check(ops: Iterable[Op], alone: bool = False) -> list[Op]:
    """Check a batch before anything of it is done. With `alone`, an error stands in the place of what it refuses."""
    checked: list[Any] = []
    for op in ops:
        try:
            checked.append(_check_op(op))
        except (EunoeError, ValueError) as error:
            if not alone:
                raise
            checked.append(error)
    return checked


def _check_op(op: Op) -> Op:
    """Return an operation as it is carried out; raise if there is something wrong with it."""
    if not isinstance(op, GetOp | SearchOp | PutOp | ListNamespacesOp):
        raise ValueError(f"Unknown operation type: {type(op)}")
    validate_op_namespace(op)
    if isinstance(op, PutOp):
        return with_plain_value(op)
    if isinstance(op, SearchOp | ListNamespacesOp):
        check_count(op.limit, "limit", least=0)
        check_count(op.offset, "offset", least=0)
    if isinstance(op, SearchOp):
        check_filter(op.filter)
        return op._replace(query=op.query if op.query and check_text(op.query, "query").strip() else None)
    return op


def _to_embed(ops: Iterable[Op], index: FieldIndex) -> tuple[Iterable[str], Iterable[str]]:
    """The texts and the queries of a batch, each once."""
    texts, queries = dict[str, None](), dict[str, None]()
    for op in ops:
        if isinstance(op, PutOp):
            texts |= dict.fromkeys(index.texts(op))
        elif isinstance(op, SearchOp) and op.query:
            queries[op.query] = None
    return texts, queries


def _by_cosine(
    index: FieldIndex, hits: Sequence[Hit], pairs: Iterable[tuple[Atom, float]], has_more: bool
) -> Iterator[tuple[Atom, float]]:
    """What is equally near comes in the order of insertion. The last are held back: others may be as near."""
    least = round(hits[-1].score, _SAME_DIGITS) if has_more else -1.0
    kept = [pair for pair in pairs if round(pair[1], _SAME_DIGITS) > least]
    kept.sort(key=lambda pair: (-round(pair[1], _SAME_DIGITS), *age_of(pair[0])))
    for atom, score in kept:
        yield atom, index.cosine(score)
