"""What becomes of a proposal: kept, merged with what is known, or put in the place of what is no longer true."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property

from eunoe.form.duplicates import likeness, same
from eunoe.form.proposal import Proposal
from eunoe.model.atom import Atom
from eunoe.model.scope import Scope
from eunoe.model.stream import FormReport, Target
from eunoe.records.ids import new_ids
from eunoe.records.rows import atom_content, atom_marks, atom_row, people, row_content, source_name, supports
from eunoe.records.turns import Turn
from eunoe.records.vectors import Vectors
from eunoe.records.versions import AUTHOR, MEMORY_KEY, Namesakes, close, key_of, since, succeed, support
from eunoe.store.contract import Row, Store
from eunoe.text.normalize import same_name

CLOSE = 0.97
"""Vectors this close mean the same, if the words do not speak against it."""
_AT_ODDS = 0.5
"""Texts that differ in a number, a date, a name or a negation are never more alike than this."""


def settle(
    store: Store,
    conversation: Scope,
    target: Target,
    proposals: Sequence[Proposal],
    turns: Sequence[Turn],
    near: Mapping[str, Sequence[str]],
    vectors: Vectors,
    now: int,
) -> FormReport:
    """Writes the proposals of one stream, inside the step that finishes the work.

    `near` names atoms of the stream that are close to a proposal's text; they are looked at again here.
    """
    if not proposals:
        return FormReport()
    settling = _Settling(store, conversation, target.scope, turns, vectors, now)
    reports = [settling.settle(proposal, near.get(proposal.text, ())) for proposal in proposals]
    return sum(reports, FormReport())


class _Settling:
    """One step for one stream: each proposal is seen beside what those before it wrote."""

    def __init__(
        self, store: Store, conversation: Scope, scope: Scope, turns: Sequence[Turn], vectors: Vectors, now: int
    ) -> None:
        self._store = store
        self._conversation = conversation
        self._scope = scope
        self._vectors = vectors
        self._now = now
        self._stream = store.make_stream(str(scope))
        self._source = store.make_stream(str(conversation))
        left = {row.id for row in store.by_id(self._source.id, [turn.id for turn in turns])}
        self._turns = [turn for turn in turns if turn.id in left]
        self._written: list[str] = []

    @cached_property
    def _namesakes(self) -> Namesakes:
        return Namesakes(self._store, self._stream)

    def settle(self, proposal: Proposal, near: Sequence[str]) -> FormReport:
        new = self._row(proposal)
        if new is None or self._store.buried(self._stream.id, atom_marks(new.kind, new.text)):
            return FormReport(refused=1)
        if self._source.id != self._stream.id:
            self._store.books.link(self._source.id, self._stream.id)
        twin = self._twin(new, near)
        rivals = [row for row in self._rivals(new, proposal.replaces) if twin is None or row.id != twin.id]
        return self._keep(new, rivals) if twin is None else self._merge(new, twin, rivals)

    def _row(self, proposal: Proposal) -> Row | None:
        """The atom to be; None if no message that is still there bears it out."""
        turns = [turn for turn in self._turns if turn.id in proposal.sources]
        if not turns or not proposal.text.strip():
            return None
        atom = Atom(
            text=proposal.text.strip(),
            kind=proposal.kind,
            label=proposal.label,
            people=_people(proposal, turns, self._conversation.get("user", "")),
            source=tuple(source_name(self._conversation, turn.id, self._scope) for turn in turns),
            time=max((turn.time for turn in turns if turn.time), default=None),
            metadata=_metadata(proposal),
        )
        row = atom_row(atom, new_ids(1)[0], atom_content(atom.kind, atom.text), self._now)
        return row._replace(valid_from=since(self._store, self._stream, row)[0]) if key_of(row) else row

    def _twin(self, new: Row, near: Sequence[str]) -> Row | None:
        """A living atom that says the same: in the same words, or in words that differ in nothing that matters."""
        exact = self._store.by_key(self._stream.id, [new.key])
        exact += [row for row in self._held(new) if row_content(row) == new.key]
        if exact:
            return exact[0]
        rows = self._living([*near, *self._written])
        return next((row for row in rows if self._alike(new, row)), None)

    def _alike(self, new: Row, row: Row) -> bool:
        if row.kind != new.kind or (key_of(row) and key_of(new) and key_of(row) != key_of(new)):
            return False
        if same(new.text, row.text):
            return True
        return self._cosine(new.text, row.text) >= CLOSE and likeness(new.text, row.text) > _AT_ODDS

    def _cosine(self, *texts: str) -> float:
        """0 where a vector is not at hand."""
        one, two = map(self._vectors.whole, texts)
        return 0.0 if one is None or two is None else float(one @ two)

    def _rivals(self, new: Row, replaces: Sequence[str]) -> list[Row]:
        """Living atoms that cannot be true beside it. Only `update` closes a pinned one."""
        named = [row for row in self._living(replaces) if not row.pinned and row_content(row) != new.key]
        held = [row for row in self._held(new) if not row.pinned and row_content(row) != new.key]
        return list({row.id: row for row in (*held, *named)}.values())

    def _held(self, new: Row) -> list[Row]:
        return self._namesakes.of(new) if key_of(new) else []

    def _living(self, ids: Sequence[str]) -> list[Row]:
        """Those that are atoms of this very stream and still open, in the order given."""
        rows = {row.id: row for row in self._store.by_id(self._stream.id, list(dict.fromkeys(ids)))}
        found = [rows[id] for id in dict.fromkeys(ids) if id in rows]
        return [row for row in found if row.kind != "message" and row.retired is None]

    def _keep(self, new: Row, rivals: Sequence[Row]) -> FormReport:
        receipt = succeed(self._store, self._stream, new, rivals, self._vectors)
        closed = len(rivals) - len(self._living([row.id for row in rivals]))
        if receipt.outcome == "duplicate":
            return FormReport(merged=1, superseded=closed)
        self._note(new)
        return FormReport(stored=(new.id,), superseded=closed)

    def _merge(self, new: Row, twin: Row, rivals: Sequence[Row]) -> FormReport:
        """The known one rests on the new messages too, and closes what it outlives now."""
        at = since(self._store, self._stream, new)
        key = json.loads(new.metadata).get(MEMORY_KEY, "") if new.metadata else ""
        twin = support(self._store, self._stream, twin, supports(new), people(new), key)
        older = [row for row in rivals if since(self._store, self._stream, row) <= at]
        for row in older:
            close(self._store, self._stream, row, twin, at[0], self._now)
        self._note(twin)
        return FormReport(merged=1, superseded=len(older))

    def _note(self, row: Row) -> None:
        self._written.append(row.id)
        if key_of(row):
            self._namesakes.add(row)


def _people(proposal: Proposal, turns: Sequence[Turn], owner: str) -> tuple[str, ...]:
    """Whom it names. A speaker who has a name of a user beside it is found by both; to whom the conversation belongs
    says nothing of who spoke."""
    named = list(dict.fromkeys(filter(str.strip, proposal.people)))
    for turn in turns:
        known = set(map(same_name, named))
        both = [name for name in (turn.speaker, turn.user) if turn.user != owner and name]
        if not known.isdisjoint(map(same_name, both)):
            named += [name for name in both if same_name(name) not in known]
    return tuple(named)


def _metadata(proposal: Proposal) -> dict[str, str]:
    """What it is about, and whose words these are: an answer has no say in the second."""
    said = {MEMORY_KEY: proposal.key if proposal.key.strip() else "", AUTHOR: proposal.author}
    return {name: value for name, value in said.items() if value}
