"""Writes: puts, deletes, and what becomes of items whose time is over."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langgraph.store.base import PutOp

from eunoe.hosts.langgraph.index import FieldIndex
from eunoe.hosts.langgraph.items import end_of_life, is_expired, new_item, ttl_of
from eunoe.hosts.langgraph.names import Namespace, Namespaces, id_of
from eunoe.hosts.langgraph.reading import FoundAtom, Reader
from eunoe.hosts.langgraph.vectors import Rows
from eunoe.memory import Memory
from eunoe.model.arguments import utc_now
from eunoe.model.atom import Atom
from eunoe.model.scope import Scope


class Writer:
    """Writes the items of one root."""

    def __init__(self, memory: Memory, names: Namespaces, index: FieldIndex | None, reader: Reader) -> None:
        self._memory = memory
        self._names = names
        self._index = index
        self._reader = reader

    def write(self, ops: Iterable[PutOp], vectors: Mapping[str, Rows]) -> None:
        """Put and delete; of several with the same key the last one counts. What is in one namespace is one write."""
        last = {(tuple(op.namespace), op.key): op for op in ops}
        groups: dict[Namespace, list[PutOp]] = {}
        for (namespace, _), op in last.items():
            groups.setdefault(namespace, []).append(op)
        for namespace, own in groups.items():
            self._write_group(namespace, own, vectors)

    def _write_group(self, namespace: Namespace, ops: Sequence[PutOp], vectors: Mapping[str, Rows]) -> None:
        scope = self._names.scope(namespace)
        old = self._reader.find(scope, [id_of(op.key) for op in ops])
        gone = [id for op in ops if op.value is None and (id := id_of(op.key)) in old]
        if gone:
            self._forget(scope, gone)
        if puts := [op for op in ops if op.value is not None]:
            items = [self._item(op, namespace, old, vectors) for op in puts]
            self._memory.remember_many(scope, items, replace=True, again=True)

    def _item(
        self, op: PutOp, namespace: Namespace, old: Mapping[str, Atom], vectors: Mapping[str, Rows]
    ) -> dict[str, Any]:
        texts = self._index.texts(op) if self._index else []
        now, since = utc_now(), self._reader.age(namespace)
        item = new_item(op, texts, now, old.get(id_of(op.key)), since)
        self._reader.note_age(namespace, since or now.isoformat())
        if self._index:
            item["vector"] = self._index.rows(texts, vectors)
        return item

    def _forget(self, scope: Scope, ids: Sequence[str]) -> None:
        self._memory.forget(scope, ids, may_return=True, exact=True)

    def refresh(self, found: Iterable[FoundAtom]) -> None:
        """Have items that were read live on for as long as they were given."""
        now, ends = utc_now(), dict[tuple[Namespace, float], list[str]]()
        for atom, namespace, _ in found:
            if (ttl := ttl_of(atom)) is not None:
                ends.setdefault((namespace, ttl), []).append(atom.id)
        for (namespace, ttl), ids in ends.items():
            self._memory.expire(self._names.scope(namespace), ids, end_of_life(ttl, now))

    def sweep(self) -> int:
        """Delete the items whose time is over; return how many."""
        count, now = 0, utc_now()
        for _, scope in self._reader.scopes():
            ids = [atom.id for atom in self._reader.atoms(scope) if is_expired(atom, now)]
            if ids:
                self._forget(scope, ids)
            count += len(ids)
        return count
