"""What becomes of a proposal: kept, merged with what is known, or put in the place of what is no longer true."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from typing import Any

from eunoe.form.duplicates import is_duplicate
from eunoe.form.proposal import Proposal
from eunoe.form.rivals import is_rival, says_more
from eunoe.model.atom import AUTHOR, EXTRACTIVE, MEMORY_KEY
from eunoe.model.choices import ATOM_KINDS
from eunoe.model.record import Record
from eunoe.model.report import FormReport
from eunoe.model.source import source_name
from eunoe.model.turn import Turn
from eunoe.records.fingerprints import atom_identity, memory_key, record_content, tombstone_identities, topic_of
from eunoe.records.ids import new_ids
from eunoe.records.insertion import VectorBatch, insert_records
from eunoe.records.versions import (
    LastSaid,
    add_support,
    close_into,
    find_by_id,
    find_same_topic,
    insert_in_time,
    last_said,
)
from eunoe.store.contract import Store
from eunoe.store.query import ItemQuery
from eunoe.store.tables import StreamLink, StreamState
from eunoe.text.normalize import normalize_name


@dataclass(slots=True)
class Resolver:
    """Writes the proposals of one stream, inside the step that finishes the job: each is seen beside what those before
    it wrote."""

    store: Store
    conversation: StreamState
    stream: StreamState
    turns: Sequence[Turn]
    messages: Mapping[str, Record]
    """The messages of the turns that are still there, by id."""
    vectors: VectorBatch
    now: datetime
    _written: list[str] = field(default_factory=list)
    _stored: list[str] = field(default_factory=list)
    _merged: int = 0
    _superseded: int = 0
    _refused: int = 0

    def resolve(self, proposals: Sequence[Proposal], similar: Mapping[str, Sequence[str]]) -> FormReport:
        """Write proposals. `similar` names atoms of the stream that are close to a proposal's text."""
        if self.conversation.id != self.stream.id:
            self.store.save([StreamLink(self.conversation.id, self.stream.id)])
        texts = [proposal.text.strip() for proposal in proposals]
        pairs = zip(proposals, texts, strict=True)
        identities = [tombstone_identities(proposal.kind, text) for proposal, text in pairs]
        found = self.store.tombstones(self.stream.id, list(chain.from_iterable(identities)))
        forgotten = {tombstone.identity for tombstone in found}
        for proposal, text, own, id in zip(proposals, texts, identities, new_ids(len(texts)), strict=True):
            if text and forgotten.isdisjoint(own):
                self._resolve(replace(proposal, text=text), id, own[0], similar.get(proposal.text, ()))
            else:
                self._refused += 1
        return FormReport(
            stored=tuple(self._stored), merged=self._merged, superseded=self._superseded, refused=self._refused
        )

    def _resolve(self, proposal: Proposal, id: str, identity: bytes, similar: Sequence[str]) -> None:
        turns = [turn for turn in self.turns if turn.id in proposal.sources and turn.id in self.messages]
        if not turns:
            self._refused += 1
            return
        said = max((message.happened, message.seq) for message in (self.messages[turn.id] for turn in turns))
        new = self._make_record(proposal, id, identity, turns, said[0])
        related = find_same_topic(self.store, self.stream, new)
        duplicate = self._find_duplicate(new, related, similar)
        rivals = self._find_rivals(new, [*related, *self._open_atoms(proposal.replaces)], duplicate)
        if duplicate:
            self._merge(new, duplicate, rivals, said)
        else:
            self._insert(new, rivals, said)

    def _make_record(
        self, proposal: Proposal, id: str, identity: bytes, turns: Sequence[Turn], said: datetime
    ) -> Record:
        # An answer has no say in whose words these are.
        metadata: dict[str, Any] = {MEMORY_KEY: proposal.key} if proposal.key.strip() else {}
        metadata |= {AUTHOR: proposal.author} if proposal.author else {}
        conversation, owner = self.conversation.scope, self.stream.scope
        people = _find_people(proposal, turns, conversation.pairs.get("user", ""))
        topic = topic_of(proposal.kind, metadata, people)
        return Record(
            kind=proposal.kind,
            id=id,
            identity=identity,
            text=proposal.text,
            recorded=self.now,
            label=proposal.label,
            people=people,
            supports=(tuple(source_name(conversation, turn.id, owner) for turn in turns),),
            time=max((turn.time for turn in turns if turn.time), default=None),
            metadata=metadata,
            topic=topic,
            valid_from=said if topic else None,
        )

    def _find_duplicate(self, new: Record, related: Sequence[Record], similar: Sequence[str]) -> Record | None:
        """An open atom that says the same: in the same words, or in words that differ in nothing that matters."""
        exact = self.store.select(ItemQuery(self.stream.id, identities=[new.identity], open=True))
        exact += [record for record in related if record_content(record) == new.identity]
        if exact:
            return exact[0]
        for record in self._open_atoms([*similar, *self._written]):
            keys = {memory_key(record.metadata), memory_key(new.metadata), ""}
            if record.kind == new.kind and len(keys) <= 2 and self._says_same(new.text, record.text):
                return record
        return None

    def _find_rivals(self, new: Record, others: Sequence[Record], duplicate: Record | None) -> list[Record]:
        """Those that cannot be true beside it. Only `update` closes a pinned one."""
        unpinned = {record.id: record for record in others if not record.pinned and record != duplicate}
        return [
            record
            for record in unpinned.values()
            if record_content(record) != new.identity and self._is_rival(record, new)
        ]

    def _is_rival(self, old: Record, new: Record) -> bool:
        """Whether a new atom is about the same thing as an old one. A key or a number in an LLM's answer does not show
        that; a key that the rules found in both does."""
        key = memory_key(new.metadata)
        if key and key == memory_key(old.metadata) and {_author(old), _author(new)} == {EXTRACTIVE}:
            return True
        names, others = (set(map(normalize_name, record.people)) for record in (old, new))
        if names and names.isdisjoint(others) and others:
            return False
        speakers = {name for turn in self.turns for name in (turn.name, turn.user)}
        owner = self.stream.scope.get("user", "")
        return is_rival(old.text, new.text, key or memory_key(old.metadata), {*names, *others, *speakers, owner})

    def _says_same(self, text: str, other: str) -> bool:
        vector, other_vector = self.vectors.mean(text), self.vectors.mean(other)
        if vector is None or other_vector is None:
            return is_duplicate(text, other)
        return is_duplicate(text, other, float(vector @ other_vector))

    def _open_atoms(self, ids: Sequence[str]) -> list[Record]:
        wanted = list(dict.fromkeys(ids))
        if not wanted:
            return []
        atoms = self.store.select(ItemQuery(self.stream.id, kinds=ATOM_KINDS, ids=wanted, open=True))
        by_id = {record.id: record for record in atoms}
        return [by_id[id] for id in wanted if id in by_id]

    def _insert(self, new: Record, rivals: Sequence[Record], said: LastSaid) -> None:
        receipt = insert_in_time(self.store, self.stream, new, rivals, self.vectors, said)
        still_open = {record.id for record in self._open_atoms([record.id for record in rivals])}
        self._superseded += len(rivals) - len(still_open)
        if receipt.outcome == "duplicate":
            self._merged += 1
        else:
            self._written.append(new.id)
            self._stored.append(new.id)
        for closed in (record.id for record in (*rivals, new) if record.id not in still_open):
            self._keep_remainder(find_by_id(self.store, self.stream.id, closed))

    def _keep_remainder(self, closed: Record | None) -> None:
        """Keep what else a closed atom says, marked as what was true until then: "I live in Turin with my wife Eva"
        still tells of Eva after a move. It rests on the closed one and on the one in its place."""
        by = find_by_id(self.store, self.stream.id, closed.superseded_by) if closed else None
        if closed is None or by is None or closed.valid_to is None or not says_more(closed.text, by.text):
            return
        text = f"{closed.text} (until {closed.valid_to:%Y-%m-%d})"
        identity = atom_identity(closed.kind, text)
        is_known = self.store.select(ItemQuery(self.stream.id, identities=[identity], open=True))
        if is_known or self.store.tombstones(self.stream.id, tombstone_identities(closed.kind, text)):
            return
        author = closed.metadata.get(AUTHOR)
        remainder = Record(
            kind=closed.kind,
            id=new_ids(1)[0],
            identity=identity,
            text=text,
            recorded=self.now,
            label=closed.label,
            people=closed.people,
            supports=((closed.id, by.id),),
            time=closed.time,
            metadata={AUTHOR: author} if author else {},
        )
        insert_records(self.store, self.stream, [remainder], self.vectors)
        self._stored.append(remainder.id)

    def _merge(self, new: Record, known: Record, rivals: Sequence[Record], said: LastSaid) -> None:
        """Let the known one rest on the new messages too, and close what it outlives now."""
        store, stream = self.store, self.stream
        key = str(new.metadata.get(MEMORY_KEY, ""))
        known = add_support(store, stream, known, new.supports, new.people, key)
        older = [record for record in rivals if last_said(store, stream, record) <= said]
        for record in older:
            close_into(store, stream, record, known, said[0], self.now)
            self._keep_remainder(find_by_id(store, stream.id, record.id))
        self._written.append(known.id)
        self._merged += 1
        self._superseded += len(older)


def _author(record: Record) -> str:
    return str(record.metadata.get(AUTHOR, ""))


def _find_people(proposal: Proposal, turns: Sequence[Turn], owner: str) -> tuple[str, ...]:
    """Whom it names. A speaker who has a name of a user beside it is found by both; to whom the conversation belongs
    says nothing of who spoke."""
    people = list(dict.fromkeys(filter(str.strip, proposal.people)))
    for turn in turns:
        names = [name for name in (turn.speaker, turn.user) if turn.user != owner and name]
        known = set(map(normalize_name, people)) if names else set()
        if not known.isdisjoint(map(normalize_name, names)):
            people += [name for name in names if normalize_name(name) not in known]
    return tuple(people)
