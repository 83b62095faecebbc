"""Corrections by hand: what they make of the memory or message at once, and the example that is kept of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Final, NamedTuple

from eunoe.embed.encoder import Encoder
from eunoe.engine import Engine
from eunoe.errors import ConflictError, EmbedderError, InputError
from eunoe.form.resolution import keep_atom
from eunoe.form.statements import is_secret
from eunoe.form.turns import MIN_WORTH, Sentence, TurnReader
from eunoe.model.arguments import ATOM_KINDS, Verdict, utc_now
from eunoe.model.atom import AUTHOR, CORRECTION, Atom, Bounds, Correction, Record, Support, source_name, source_place
from eunoe.model.scope import Scope
from eunoe.model.turn import Turn, read_turns
from eunoe.records.atoms import archive, check_open, find_record, supersede, unarchive
from eunoe.records.corrections import CorrectedSentence, as_correction, save_correction
from eunoe.records.insertion import VectorBatch
from eunoe.records.jobs import messages_before
from eunoe.records.log import load_session
from eunoe.records.streams import CONVERSATION_KEYS, SettingsReader
from eunoe.records.versions import find_by_id
from eunoe.store.contract import ItemQuery, Reading, Writing
from eunoe.store.schema import Job, Lease, StreamLink, StreamState
from eunoe.text.normalize import fold
from eunoe.work import leases

_MAX_SENTENCES: Final = 8
"""Of a long message, those that say most."""
_MAX_CHARACTERS: Final = 2000
"""Of one sentence. More of it is not compared."""
_WORD: Final = re.compile(r"\w+")
_NOTHING: Final = "there is nothing in it that could be learned: correct what somebody said, or remember it yourself"
_SECRET: Final = "it speaks of a secret, which stays in the log alone: remember it yourself"


class _Message(NamedTuple):
    """A message that was corrected, or that a corrected memory rests on."""

    stream: StreamState
    record: Record
    turn: Turn | None
    """None if nothing is learned from it."""


def corrections_add(
    engine: Engine, scope: Scope, id: str, verdict: Verdict, sentence: str, bounds: Bounds
) -> Correction:
    """Keep a correction, and do at once what it says."""
    task = _Task(engine, scope, id, verdict, sentence, bounds)
    store, now = engine.store, utc_now()
    record, messages = store.read([scope], task.read)
    examples = task.make_examples(record, messages)

    def keep(store: Writing) -> tuple[Correction, list[_Message], list[tuple[StreamState, Job]], list[str]]:
        record, messages = task.read(store)  # anew: it may have been forgotten meanwhile
        stream = store.create_stream(task.find_owner(store, record, messages))
        kept = save_correction(store, stream, examples, _supports(scope, record, messages, stream.scope), now)
        return as_correction(kept, stream.scope), messages, *task.act(store, record, messages, examples, stream, now)

    kept, messages, jobs, changed = store.write([scope], keep)
    for source, job in jobs:
        changed += [atom for report in engine.former.form_job(source, job, bounds) for atom in report.stored]
    if jobs:
        store.write([scope], lambda store: _keep_waiting(store, messages, examples))
    engine.pending.note_write()
    return replace(kept, changed=tuple(dict.fromkeys(changed)))


def _keep_waiting(store: Writing, messages: Sequence[_Message], examples: Sequence[CorrectedSentence]) -> None:
    """Put into force what waits for review: who corrects it has looked at it."""
    for stream, atom in dict(_formed_atoms(store, messages, examples)).values():
        if atom.in_review:
            keep_atom(store, stream, atom, utc_now())


class _Task(NamedTuple):
    """A correction that is to be made."""

    engine: Engine
    scope: Scope
    id: str
    verdict: Verdict
    sentence: str
    bounds: Bounds

    def read(self, store: Reading) -> tuple[Record, list[_Message]]:
        """What is corrected, and the messages that hold its words."""
        stream = store.stream(self.scope)
        record = find_record(store, stream, self.id)
        if record.label == CORRECTION or stream is None:
            raise InputError(f"{self.id} is a correction: remove it, or correct what it was about")
        if record.kind == "message":
            return record, [_read_message(stream, record)]
        places = (source_place(name, self.scope) for name in record.sources)
        return record, [message for place in places for message in _find_message(store, *place)]

    def make_examples(self, record: Record, messages: Sequence[_Message]) -> list[CorrectedSentence]:
        """The sentences that the correction is about, and where the kind model puts them."""
        reader = TurnReader(self.engine.embedder.embedder)
        found = [each for message in messages for each in self._read_sentences(reader, message)]
        texts = self._choose(record, found, messages)
        if self.verdict != "drop" and any(map(is_secret, texts)):
            raise InputError(_SECRET)
        places = self._find_places(reader, texts)
        return [CorrectedSentence(text, self.verdict, *place) for text, place in zip(texts, places, strict=True)]

    def _find_places(self, reader: TurnReader, texts: Sequence[str]) -> list[tuple[str, bytes]]:
        """The name of the kind model and where it puts each sentence; both empty where it cannot read them."""
        encoder = self.engine.embedder.embedder
        if reader.model and isinstance(encoder, Encoder):
            with suppress(EmbedderError):
                places = reader.model.place(list(encoder.layer_means(texts)))
                return [(place.model, place.row.astype("<f2").tobytes()) for place in places]
        return [("", b"")] * len(texts)

    def _read_sentences(self, reader: TurnReader, message: _Message) -> Sequence[Sentence]:
        if message.turn is None:
            return ()
        job = _job_of(message)
        earlier = self.engine.store.read([message.stream.scope], lambda store: messages_before(store, job, 1))
        return reader.read([message.turn], read_turns(earlier, message.stream.scope))[0].sentences

    def _choose(self, record: Record, found: Sequence[Sentence], messages: Sequence[_Message]) -> list[str]:
        if self.sentence:
            said = [record.text, *(message.record.text for message in messages)]
            if not any(_words(self.sentence) in _words(text) for text in said):
                raise InputError("sentence is no part of the message or memory: give its words as they stand there")
            return [self.sentence[:_MAX_CHARACTERS]]
        if record.kind != "message":
            own = [each.text for each in found if _holds(record.text, each.text)]
            return _plain(own or [_without_name(record.text, messages)])
        if not found:
            raise InputError(_NOTHING)
        ranked = sorted(found, key=lambda each: -each.worth)
        return _plain([each.text for each in ranked if each.worth >= MIN_WORTH] or [ranked[0].text])

    def find_owner(self, store: Reading, record: Record, messages: Sequence[_Message]) -> Scope:
        """The stream that it counts in: a memory's own; of a conversation, that of the user who spoke if there is one
        within the bounds."""
        if record.kind != "message" and self.scope.pairs.keys().isdisjoint(CONVERSATION_KEYS):
            return self.scope
        for message in messages:
            user = message.turn.user if message.turn else ""
            targets = SettingsReader(store).targets(message.stream.scope, [user] if user else ())
            own = [each.scope for each in targets if user and each.user == user and self.bounds.covers(each.scope)]
            if own:
                return own[0]
        return self.scope

    def act(
        self,
        store: Writing,
        record: Record,
        messages: Sequence[_Message],
        examples: Sequence[CorrectedSentence],
        owner: StreamState,
        now: datetime,
    ) -> tuple[list[tuple[StreamState, Job]], list[str]]:
        """Change what was learned; return jobs for what is still to be learned, and the ids of what was changed."""
        own = store.create_stream(self.scope)
        atoms = dict(_formed_atoms(store, messages, examples))
        if record.kind != "message":
            self._check(record)
            atoms[record.seq] = (own, record)
        if self.verdict == "keep" and record.kind != "message":
            archived = dict(_formed_atoms(store, messages, examples, record.retired) if record.retired else ())
            archived.pop(record.seq, None)
            brought = _keep(store, own, record, now)
            return [], [
                *brought,
                *(id for stream, atom in archived.values() for id in _bring_back(store, stream, atom)),
            ]
        has_learned = any(stream.id == owner.id for stream, _ in atoms.values())
        if self.verdict == "drop" or record.kind != "message" or has_learned:
            return [], [id for stream, atom in atoms.values() for id in self._change(store, stream, atom, now)]
        # The stream that it counts in has not learned it: it is learned anew, and what others hold is merged with it.
        stale = list(atoms.values()) if self.verdict != "keep" else []
        changed = [id for stream, atom in stale for id in _archive(store, stream, atom, now)]
        return [(message.stream, job) for message in messages if (job := _lease_again(store, message))], changed

    def _check(self, record: Record) -> None:
        if record.superseded_by or (record.retired and self.verdict not in ("keep", "drop")):
            check_open(record)
        if record.pinned and self.verdict == "drop":
            raise ConflictError(f"{record.id} is pinned: take the pin off first")

    def _change(self, store: Writing, stream: StreamState, atom: Record, now: datetime) -> Iterator[str]:
        if atom.retired is not None:
            return
        if self.verdict == "drop":
            yield from _archive(store, stream, atom, now)
            return
        if atom.in_review:
            keep_atom(store, stream, atom, now)
            atom = find_by_id(store, stream.id, atom.id) or atom
            yield atom.id
        item = atom.item(stream.scope)
        if self.verdict != "keep" and isinstance(item, Atom) and item.label != self.verdict:
            other = replace(item, label=self.verdict, valid_from=None, valid_to=None)
            yield from (atom.id, supersede(store, stream, atom, other, VectorBatch(), now).id)


def _archive(store: Writing, stream: StreamState, atom: Record, now: datetime) -> Iterator[str]:
    """Archive an atom that is not pinned."""
    if not atom.pinned:
        archive(store, stream, [atom], now)
        yield atom.id


def _keep(store: Writing, stream: StreamState, record: Record, now: datetime) -> list[str]:
    """Bring a memory back that was archived, or put one into force that waits for review."""
    if record.retired is not None:
        return [record.id] if unarchive(store, stream, record.id).outcome == "stored" else []
    if record.in_review:
        keep_atom(store, stream, record, now)
        return [record.id]
    return []


def _bring_back(store: Writing, stream: StreamState, atom: Record) -> list[str]:
    """Bring back what was archived with another memory, unless something has taken its place since."""
    try:
        return [atom.id] if unarchive(store, stream, atom.id).outcome == "stored" else []
    except ConflictError:
        return []


def _read_message(stream: StreamState, record: Record) -> _Message:
    turns = read_turns([record], stream.scope)
    return _Message(stream, record, turns[0] if turns else None)


def _find_message(store: Reading, scope: Scope, id: str) -> Iterator[_Message]:
    stream = store.stream(scope)
    record = find_by_id(store, stream.id, id) if stream else None
    if stream and record and record.kind == "message":
        yield _read_message(stream, record)


def _job_of(message: _Message) -> Job:
    return Job(message.stream.id, message.record.seq - 1, message.record.seq)


def _lease_again(store: Writing, message: _Message) -> Job | None:
    """A job of our own for a message that was formed before; None if it still waits to be formed."""
    session, job = load_session(store, message.stream), _job_of(message)
    waits = any(each.start < message.record.seq <= each.stop for each in store.load(Job, stream=message.stream.id))
    if session is None or message.record.seq > session.cursor or waits:
        return None
    leased = job._replace(lease=leases.take(Lease()))
    store.save([leased])
    return leased


def _formed_atoms(
    store: Reading,
    messages: Sequence[_Message],
    examples: Sequence[CorrectedSentence],
    retired: datetime | None = None,
) -> Iterator[tuple[int, tuple[StreamState, Record]]]:
    """Atoms that were formed from the corrected sentences, in whatever stream: open ones, or those archived at once."""
    for message in messages:
        links = store.load(StreamLink, source=message.stream.id)
        for stream in [message.stream, *(store.streams(ids=[link.stream for link in links]) if links else ())]:
            name = source_name(message.stream.scope, message.record.id, stream.scope)
            for atom in store.select(ItemQuery(stream.id, kinds=ATOM_KINDS, supported=True, open=retired is None)):
                is_formed = AUTHOR in atom.metadata and name in atom.sources and atom.retired == retired
                if is_formed and any(_holds(atom.text, example.text) for example in examples):
                    yield atom.seq, (stream, atom)


def _supports(scope: Scope, record: Record, messages: Sequence[_Message], owner: Scope) -> tuple[Support, ...]:
    """What a correction rests on: the message; of a memory this, and what it rests on itself."""
    own = source_name(scope, record.id, owner)
    if record.kind == "message" or not record.supports:
        return ((own,),)
    groups = ([source_place(name, scope) for name in group] for group in record.supports)
    return tuple((own, *(source_name(*place, owner) for place in group)) for group in groups)


def _plain(texts: Sequence[str]) -> list[str]:
    """Sentences as they are kept, each on one line."""
    plain = dict.fromkeys(" ".join(text.split())[:_MAX_CHARACTERS] for text in texts)
    return [text for text in plain if text][:_MAX_SENTENCES]


def _without_name(text: str, messages: Sequence[_Message]) -> str:
    """A memory's text without the name of who said it."""
    names = [message.turn.name for message in messages if message.turn]
    return next((text.removeprefix(f"{name}: ") for name in names if text.startswith(f"{name}: ")), text)


def _holds(text: str, sentence: str) -> bool:
    """Whether a memory has all words of a sentence. A date may have come between them."""
    return set(_words(sentence).split()) <= set(_words(text).split())


def _words(text: str) -> str:
    return f" {' '.join(_WORD.findall(fold(text)))} "
