"""What becomes of a proposal: kept, merged with what is known, or put in the place of what is no longer true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from eunoe.form.duplicates import likeness, same
from eunoe.form.proposal import Proposal
from eunoe.model.atom import AUTHOR, MEMORY_KEY
from eunoe.model.choices import ATOM_KINDS
from eunoe.model.record import Record
from eunoe.model.report import FormReport
from eunoe.model.scope import Scope
from eunoe.model.source import source_name
from eunoe.model.turn import Turn
from eunoe.records.fingerprints import atom_identity, record_content, tombstone_identities, topic_of
from eunoe.records.ids import new_ids
from eunoe.records.insertion import VectorBatch
from eunoe.records.versions import add_support, close_into, insert_in_time, last_said, same_topic
from eunoe.store.contract import Store
from eunoe.store.query import ItemQuery
from eunoe.store.tables import StreamLink, StreamState
from eunoe.text.normalize import normalize_name

SAME_COSINE = 0.97
"""Vectors this close mean the same, if the words do not speak against it."""
_DIFFERENT_LIKENESS = 0.5
"""Texts that differ in a number, a date, a name or a negation are never more alike than this."""


class Resolver:
    """Writes the proposals of one stream, inside the step that finishes the job: each is seen beside what those before
    it wrote."""

    def __init__(
        self,
        store: Store,
        conversation: StreamState,
        scope: Scope,
        turns: Sequence[Turn],
        vectors: VectorBatch,
        now: datetime,
    ) -> None:
        self._store = store
        self._conversation = conversation
        self._stream = store.create_stream(scope)
        self._turns = turns
        self._vectors = vectors
        self._now = now
        self._written: list[str] = []

    def resolve_all(self, proposals: Sequence[Proposal], near: Mapping[str, Sequence[str]]) -> FormReport:
        """Write proposals. `near` names atoms of the stream that are close to a proposal's text."""
        if self._conversation.id != self._stream.id:
            self._store.save([StreamLink(self._conversation.id, self._stream.id)])
        return sum((self._resolve(proposal, near.get(proposal.text, ())) for proposal in proposals), FormReport())

    def _resolve(self, proposal: Proposal, near: Sequence[str]) -> FormReport:
        new = self._record(proposal)
        if new is None or self._store.tombstones(self._stream.id, tombstone_identities(new.kind, new.text)):
            return FormReport(refused=1)
        related = same_topic(self._store, self._stream, new)
        duplicate = self._find_duplicate(new, related, near)
        others = [*related, *self._open_atoms(proposal.replaces)]
        rivals = {
            record.id: record
            for record in others  # only `update` closes a pinned one
            if not record.pinned and record_content(record) != new.identity
        }
        if duplicate is None:
            return self._keep(new, list(rivals.values()))
        rivals.pop(duplicate.id, None)
        return self._merge(new, duplicate, list(rivals.values()))

    def _record(self, proposal: Proposal) -> Record | None:
        """The atom to be; None if no message that is still there bears it out."""
        turns = [turn for turn in self._turns if turn.id in proposal.sources]
        text = proposal.text.strip()
        if not turns or not text:
            return None
        metadata = _metadata(proposal)
        scope, owner = self._conversation.scope, self._stream.scope
        record = Record(
            kind=proposal.kind,
            id=new_ids(1)[0],
            identity=atom_identity(proposal.kind, text),
            text=text,
            recorded=self._now,
            label=proposal.label,
            people=_people(proposal, turns, scope.pairs.get("user", "")),
            supports=(tuple(source_name(scope, turn.id, owner) for turn in turns),),
            time=max((turn.time for turn in turns if turn.time), default=None),
            metadata=metadata,
            topic=topic_of(proposal.kind, metadata),
        )
        if record.topic is None:
            return record
        return record._replace(valid_from=last_said(self._store, self._stream, record)[0])

    def _find_duplicate(self, new: Record, related: Sequence[Record], near: Sequence[str]) -> Record | None:
        """An open atom that says the same: in the same words, or in words that differ in nothing that matters."""
        exact = self._store.select(ItemQuery(self._stream.id, identities=[new.identity], open=True))
        exact += [record for record in related if record_content(record) == new.identity]
        if exact:
            return exact[0]
        return next(
            (record for record in self._open_atoms([*near, *self._written]) if self._is_same(new, record)), None
        )

    def _is_same(self, new: Record, record: Record) -> bool:
        if record.kind != new.kind or (record.topic and new.topic and record.topic != new.topic):
            return False
        if same(new.text, record.text):
            return True
        return (
            self._cosine(new.text, record.text) >= SAME_COSINE and likeness(new.text, record.text) > _DIFFERENT_LIKENESS
        )

    def _cosine(self, *texts: str) -> float:
        """0 where a vector is missing."""
        one, two = map(self._vectors.mean, texts)
        return 0.0 if one is None or two is None else float(one @ two)

    def _open_atoms(self, ids: Sequence[str]) -> list[Record]:
        """Those that are atoms of this very stream and open, in the order given."""
        wanted = list(dict.fromkeys(ids))
        if not wanted:
            return []
        found = self._store.select(ItemQuery(self._stream.id, kinds=ATOM_KINDS, ids=wanted, open=True))
        records = {record.id: record for record in found}
        return [records[id] for id in wanted if id in records]

    def _keep(self, new: Record, rivals: Sequence[Record]) -> FormReport:
        receipt = insert_in_time(self._store, self._stream, new, rivals, self._vectors)
        closed = len(rivals) - len(self._open_atoms([record.id for record in rivals]))
        if receipt.outcome == "duplicate":
            return FormReport(merged=1, superseded=closed)
        self._written.append(new.id)
        return FormReport(stored=(new.id,), superseded=closed)

    def _merge(self, new: Record, known: Record, rivals: Sequence[Record]) -> FormReport:
        """The known one rests on the new messages too, and closes what it outlives now."""
        store, stream = self._store, self._stream
        said = last_said(store, stream, new)
        key = str(new.metadata.get(MEMORY_KEY, ""))
        known = add_support(store, stream, known, new.supports, new.people, key)
        older = [record for record in rivals if last_said(store, stream, record) <= said]
        for record in older:
            close_into(store, stream, record, known, said[0], self._now)
        self._written.append(known.id)
        return FormReport(merged=1, superseded=len(older))


def _people(proposal: Proposal, turns: Sequence[Turn], owner: str) -> tuple[str, ...]:
    """Whom it names. A speaker who has a name of a user beside it is found by both; to whom the conversation belongs
    says nothing of who spoke."""
    named = list(dict.fromkeys(filter(str.strip, proposal.people)))
    for turn in turns:
        known = set(map(normalize_name, named))
        both = [name for name in (turn.speaker, turn.user) if turn.user != owner and name]
        if not known.isdisjoint(map(normalize_name, both)):
            named += [name for name in both if normalize_name(name) not in known]
    return tuple(named)


def _metadata(proposal: Proposal) -> dict[str, Any]:
    """What it is about, and whose words these are: an answer has no say in the second."""
    said = {MEMORY_KEY: proposal.key if proposal.key.strip() else "", AUTHOR: proposal.author}
    return {name: value for name, value in said.items() if value}
