"""What becomes of a proposal: kept, merged with what is known, or put in the place of what is no longer true.

In review new atoms wait until somebody has looked at them. What such an atom is to close stays in force until then.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from typing import Any

from eunoe.errors import ConflictError, InputError
from eunoe.form.chunk import Proposal
from eunoe.form.likeness import is_duplicate, is_rival, says_more, tells_change, tells_past
from eunoe.model.arguments import ATOM_KINDS, utc_now
from eunoe.model.atom import AUTHOR, EXTRACTIVE, MEMORY_KEY, WORTH, Record, source_name
from eunoe.model.result import FormReport, Receipt
from eunoe.model.scope import Scope
from eunoe.model.turn import Turn
from eunoe.recall.search import SimilarAtoms
from eunoe.records.atoms import archive, find_record
from eunoe.records.identity import atom_identity, memory_key, new_ids, record_content, tombstone_identities, topic_of
from eunoe.records.insertion import VectorBatch, insert_records
from eunoe.records.reading import find_owner
from eunoe.records.versions import (
    LastSaid,
    add_support,
    all_versions,
    bridge_gaps,
    close_into,
    find_by_id,
    find_same_topic,
    insert_in_time,
    last_said,
    note_replaced,
    split_rivals,
    stored_receipt,
)
from eunoe.store.contract import ItemQuery, Store, Writing
from eunoe.store.schema import Absorption, StreamLink, StreamState
from eunoe.text.normalize import normalize_name


def keep_remainder(store: Writing, stream: StreamState, id: str, vectors: VectorBatch, now: datetime) -> str:
    """Keep what else a closed atom says, marked as what was true until then: "I live in Turin with my wife Eva" still
    tells of Eva after a move. It rests on the closed one and on the one in its place. Return its id, if any."""
    closed = find_by_id(store, stream.id, id)
    by = find_by_id(store, stream.id, closed.superseded_by) if closed else None
    if closed is None or by is None or closed.valid_to is None or not says_more(closed.text, by.text):
        return ""
    text = f"{closed.text} (until {closed.valid_to:%Y-%m-%d})"
    identity = atom_identity(closed.kind, text)
    is_known = store.select(ItemQuery(stream.id, identities=[identity], open=True))
    if is_known or store.tombstones(stream.id, tombstone_identities(closed.kind, text)):
        return ""
    author = closed.metadata.get(AUTHOR)
    remainder = Record(
        kind=closed.kind,
        id=new_ids(1)[0],
        identity=identity,
        text=text,
        recorded=now,
        label=closed.label,
        people=closed.people,
        supports=((closed.id, by.id),),
        time=closed.time,
        metadata={AUTHOR: author} if author else {},
    )
    insert_records(store, stream, [remainder], vectors)
    return remainder.id


_CHANGE = "change"
"""The label of a statement that something known before is no longer so."""
_MAX_WAITING = 100
"""Atoms in review, the latest, that a proposal is compared with."""


@dataclass(slots=True)
class Resolver:
    """Writes the proposals of one stream, inside the step that finishes the job: each is seen beside what those before
    it wrote."""

    store: Writing
    conversation: StreamState
    stream: StreamState
    turns: Sequence[Turn]
    messages: Mapping[str, Record]
    """The messages of the turns that are still there, by id."""
    vectors: VectorBatch
    now: datetime
    review: str = "off"
    """Which of them wait to be looked at, as in `Settings`."""
    _written: list[str] = field(default_factory=list)
    _stored: list[str] = field(default_factory=list)
    _merged: int = 0
    _superseded: int = 0
    _refused: int = 0
    _in_review: int = 0

    def resolve(self, proposals: Sequence[Proposal], similar: Mapping[str, SimilarAtoms]) -> FormReport:
        """Write proposals. `similar` has the atoms of the stream that are close to a proposal's text."""
        if self.conversation.id != self.stream.id:
            self.store.save([StreamLink(self.conversation.id, self.stream.id)])
        texts = [proposal.text.strip() for proposal in proposals]
        pairs = zip(proposals, texts, strict=True)
        identities = [tombstone_identities(proposal.kind, text) for proposal, text in pairs]
        found = self.store.tombstones(self.stream.id, list(chain.from_iterable(identities)))
        forgotten = {tombstone.identity for tombstone in found}
        for proposal, text, own, id in zip(proposals, texts, identities, new_ids(len(texts)), strict=True):
            if text and forgotten.isdisjoint(own):
                self._resolve(replace(proposal, text=text), id, own[0], similar.get(proposal.text, {}))
            else:
                self._refused += 1
        return FormReport(
            stored=tuple(self._stored),
            in_review=self._in_review,
            merged=self._merged,
            superseded=self._superseded,
            refused=self._refused,
        )

    def _resolve(self, proposal: Proposal, id: str, identity: bytes, similar: SimilarAtoms) -> None:
        turns = [turn for turn in self.turns if turn.id in proposal.sources and turn.id in self.messages]
        if not turns:
            self._refused += 1
            return
        said = max((message.happened, message.seq) for message in (self.messages[turn.id] for turn in turns))
        new = self._make_record(proposal, id, identity, turns, said[0])
        related = find_same_topic(self.store, self.stream, new)
        duplicate = self._find_duplicate(new, related, similar)
        # What was said to have changed is looked for among what is near to it.
        is_change = (proposal.label == _CHANGE or tells_change(proposal.text)) and not tells_past(proposal.text)
        replaced = [*proposal.replaces, *(similar if is_change else ())]
        others = {record.id: record for record in [*related, *self._open_atoms(replaced)] if record != duplicate}
        rivals = [
            record
            for record in others.values()
            if not record.pinned and record_content(record) != new.identity and self._is_rival(record, new)
        ]
        if duplicate:
            self._merge(new, duplicate, rivals, said)
        elif self.review == "all" or (self.review == "uncertain" and (proposal.is_doubtful or rivals)):
            # What it is to close stays in force until it is kept.
            waiting = new._replace(in_review=True, replaces=tuple(record.id for record in rivals))
            insert_records(self.store, self.stream, [waiting], self.vectors)
            self._written.append(new.id)
            self._stored.append(new.id)
            self._in_review += 1
        else:
            self._insert(new, rivals, said)

    def _make_record(
        self, proposal: Proposal, id: str, identity: bytes, turns: Sequence[Turn], said: datetime
    ) -> Record:
        # An answer has no say in whose words these are.
        metadata: dict[str, Any] = {MEMORY_KEY: proposal.key} if proposal.key.strip() else {}
        metadata |= {AUTHOR: proposal.author} if proposal.author else {}
        metadata |= {} if proposal.worth is None else {WORTH: proposal.worth}
        conversation, owner = self.conversation.scope, self.stream.scope
        people = _find_people(proposal, turns, conversation.pairs.get("user", ""), "shard" in owner.pairs)
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

    def _find_duplicate(self, new: Record, related: Sequence[Record], similar: SimilarAtoms) -> Record | None:
        """An open atom that says the same: in the same words, or in words that differ in nothing that matters."""
        exact = self.store.select(ItemQuery(self.stream.id, identities=[new.identity], open=True))
        exact += [record for record in related if record_content(record) == new.identity]
        if exact:
            return exact[0]
        # Recall, by which similar ones are found, leaves out those that wait for review.
        query = ItemQuery(self.stream.id, open=True, in_review=True, order="newest", limit=_MAX_WAITING)
        waiting = [record.id for record in self.store.select(query)]
        for record in self._open_atoms([*similar, *waiting, *self._written]):
            keys = {memory_key(record.metadata), memory_key(new.metadata), ""}
            cosine = similar.get(record.id, 0.0)
            if not cosine:  # it was embedded in this step
                vector, other = self.vectors.mean(new.text), self.vectors.mean(record.text)
                cosine = 0.0 if vector is None or other is None else float(vector @ other)
            if record.kind == new.kind and len(keys) <= 2 and is_duplicate(new.text, record.text, cosine):
                return record
        return None

    def _is_rival(self, old: Record, new: Record) -> bool:
        """Whether a new atom is about the same thing as an old one. A key or a number in an LLM's answer does not show
        that; a key that the rules found in both does."""
        key, authors = memory_key(new.metadata), {str(each.metadata.get(AUTHOR, "")) for each in (old, new)}
        if key and key == memory_key(old.metadata) and authors == {EXTRACTIVE}:
            return True
        owner = self.stream.scope.get("user", "")
        names, others = (_named_people(record, normalize_name(owner)) for record in (old, new))
        if names and names.isdisjoint(others) and others:
            return False
        speakers = {name for turn in self.turns for name in (turn.name, turn.user)}
        return is_rival(old.text, new.text, key or memory_key(old.metadata), {*names, *others, *speakers, owner})

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
            self._keep_remainder(closed)

    def _keep_remainder(self, closed: str) -> None:
        if remainder := keep_remainder(self.store, self.stream, closed, self.vectors, self.now):
            self._stored.append(remainder)

    def _merge(self, new: Record, known: Record, rivals: Sequence[Record], said: LastSaid) -> None:
        """Let the known one rest on the new messages too, and close what it outlives now. Under review nothing is
        closed: what the known one is to close when it is kept is noted, if it waits itself."""
        store, stream = self.store, self.stream
        key = str(new.metadata.get(MEMORY_KEY, ""))
        known = add_support(store, stream, known, new.supports, new.people, key)
        older = [record for record in rivals if last_said(store, stream, record) <= said]
        if known.in_review:
            note_replaced(store, stream, known, [record.id for record in older])
        older = [] if known.in_review or self.review != "off" else older
        for record in older:
            close_into(store, stream, record, known, said[0], self.now)
            self._keep_remainder(record.id)
        self._written.append(known.id)
        self._merged += 1
        self._superseded += len(older)


def _named_people(record: Record, owner: str) -> set[str]:
    """Whom a memory is about. Its owner counts if its words say so: where nobody is named, the one who spoke is noted,
    and another name may mean the same person."""
    names = set(map(normalize_name, record.people))
    return names if owner in normalize_name(record.text) else names - {owner}


def _find_people(proposal: Proposal, turns: Sequence[Turn], owner: str, is_shared: bool) -> tuple[str, ...]:
    """Whom it names; the users who said it, if it names nobody, has no key that says whose it is and is not everybody's
    to read. A speaker who has a name of a user beside it is found by both; to whom the conversation belongs says
    nothing of who spoke."""
    people = list(dict.fromkeys(filter(str.strip, proposal.people)))
    if not (people or proposal.key.strip() or is_shared):
        people = list(dict.fromkeys(turn.name for turn in turns if turn.user))
    for turn in turns:
        names = [name for name in (turn.speaker, turn.user) if turn.user != owner and name]
        known = set(map(normalize_name, people)) if names else set()
        if not known.isdisjoint(map(normalize_name, names)):
            people += [name for name in names if normalize_name(name) not in known]
    return tuple(people)


def review_atoms(store: Store, scope: Scope, ids: Sequence[str], keep: bool) -> list[Receipt]:
    """Keep atoms that wait, or let kept ones wait again; all of them or, on an error, none."""

    def review(store: Writing) -> list[Receipt]:
        now, receipts = utc_now(), []
        for id in ids:  # each is read when it is its turn: those before it may have closed it
            stream = find_owner(store, scope, id)
            record = find_record(store, stream, id)
            assert stream is not None
            receipts.append((keep_atom if keep else put_back)(store, stream, record, now))
        return receipts

    return store.write([scope], review)


def keep_atom(store: Writing, stream: StreamState, record: Record, now: datetime) -> Receipt:
    """Put an atom in review into force: it closes what it was to close, or is closed by what was said later."""
    _check_open_atom(record)
    if not record.in_review:
        return Receipt("duplicate", record.id, embedded=not record.pending)
    said = last_said(store, stream, record)
    replaced = store.select(ItemQuery(record.stream, ids=record.replaces, open=True)) if record.replaces else []
    # Only `update` closes a pinned one.
    rivals = [rival for rival in replaced if not rival.pinned]
    earlier, later = split_rivals(store, stream, record, rivals, said)
    start = said[0] if earlier and record.valid_from is None else record.valid_from
    version = store.advance(stream.id).version
    kept = record._replace(in_review=False, replaces=(), valid_from=start, version=version)
    store.update([kept])
    for rival in earlier:
        close_into(store, stream, rival, kept, said[0], now)
        keep_remainder(store, stream, rival.id, VectorBatch(), now)
    if later:
        kept = find_by_id(store, stream.id, kept.id) or kept
        close_into(store, stream, kept, later[0], last_said(store, stream, later[0])[0], now)
    return Receipt("superseded", kept.id, not kept.pending, earlier[0].id) if earlier else stored_receipt(kept)


def put_back(store: Writing, stream: StreamState, record: Record, now: datetime) -> Receipt:
    """Let an atom wait again. What it had closed is open again."""
    _check_open_atom(record)
    if record.in_review:
        return Receipt("duplicate", record.id, embedded=not record.pending)
    if record.pinned:
        raise ConflictError(f"{record.id} is pinned: take the pin off first")
    if store.load(Absorption, stream=stream.id, id=record.id):
        raise ConflictError(f"{record.id} is part of the summary: go back to an earlier revision first, or forget it")
    closed = [version.id for version in all_versions(store, stream, record) if version.superseded_by == record.id]
    # What was kept of these is put away.
    groups = {(id, record.id) for id in closed}
    query = ItemQuery(stream.id, kinds=ATOM_KINDS, supported=True, open=True)
    remainders = [each for each in store.select(query) if not groups.isdisjoint(each.supports)] if groups else []
    if remainders:
        archive(store, stream, remainders, now)
    version = store.advance(stream.id).version
    store.update([each._replace(version=version) for each in bridge_gaps(store, stream, [record])])
    waiting = record._replace(in_review=True, replaces=tuple(closed), supersedes="", version=version)
    store.update([waiting])
    return stored_receipt(waiting)


def _check_open_atom(record: Record) -> None:
    if record.kind == "message":
        raise InputError(f"{record.id} is a message: only facts and observations are reviewed")
    if record.retired is not None:
        by = f"closed by {record.superseded_by}" if record.superseded_by else "archived"
        raise ConflictError(f"{record.id} was {by}: there is nothing to review")
