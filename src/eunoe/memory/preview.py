"""Preview: what would be learned from messages, formed in a store of its own that is gone afterwards."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

from eunoe.engine import Engine
from eunoe.form.chunk import Extraction
from eunoe.form.extraction import Chunk
from eunoe.form.statements import is_secret
from eunoe.form.turns import MIN_WORTH, TurnReading
from eunoe.llm.models import Models
from eunoe.model.arguments import ATOM_KINDS, shorten
from eunoe.model.atom import Atom, Bounds, source_place
from eunoe.model.message import Message
from eunoe.model.result import PassedOver, Preview
from eunoe.model.scope import Scope
from eunoe.model.turn import FORMER, SILENT_ROLES, TOOL_ROLES
from eunoe.records.corrections import CorrectionReader, LikeSentences
from eunoe.records.identity import tombstone_identities
from eunoe.records.jobs import job_messages
from eunoe.records.log import load_session, log_after
from eunoe.records.streams import changed_presets, incognito_places, load_presets, save_preset
from eunoe.store.contract import ItemQuery, Reading, Writing
from eunoe.store.schema import Job, SettingsRecord
from eunoe.store.temporary import TemporaryStore

_TOOL: Final = "it is what a tool gave back, not what somebody said"
_SECRET: Final = "it speaks of a secret, which stays in the log alone"
_QUESTION: Final = "it only asks"
_SMALL_TALK: Final = "it states nothing: a greeting, a reaction or the like"
_TOO_LITTLE: Final = "what it says is not worth enough"
_NO_ROOM: Final = "other messages were worth more, and a stream takes only so many"
_LEAST: Final = 0.25
"""What is worth less states nothing."""


def explain_passed_over(reading: TurnReading) -> str:
    """The reason why a turn was passed over when it was read without an LLM.

    >>> from eunoe.form.turns import read_by_rules
    >>> from eunoe.model.turn import Turn
    >>> explain_passed_over(read_by_rules(Turn("1", "What time is it?")))
    'it only asks'
    """
    if reading.turn.role.lower() in TOOL_ROLES:
        return _TOOL
    if any(is_secret(sentence.text) for sentence in reading.sentences):
        return _SECRET
    if text := next((sentence.correction for sentence in reading.sentences if sentence.correction), ""):
        return f"by your correction of {shorten(text)!r}"
    worth = max((sentence.worth for sentence in reading.sentences), default=0.0)
    if worth < _LEAST:
        return _QUESTION if any(sentence.kind == "request" for sentence in reading.sentences[-1:]) else _SMALL_TALK
    return _NO_ROOM if worth >= MIN_WORTH else f"{_TOO_LITTLE} ({worth:.0%})"


_MAX_WAITING: Final = 2000
"""Messages of a conversation that are looked at, the first that wait."""
_NO_SUMMARY: Final = {"consolidation_prompt": ""}
"""A summary would be written for nobody."""
_INCOGNITO: Final = "the session is incognito: nothing is learned from it"
_NO_STREAM: Final = "no stream learns from this scope"
_NO_WORDS: Final = "it has no words of its own to learn from"
_SYSTEM: Final = "it is a system prompt, which nothing is learned from"
_KNOWN: Final = "what it says is known already, or was forgotten on purpose"
_SAID_TWICE: Final = "another message says the same, or says it later"
_LLM: Final = "the language model found nothing to keep in it"


def preview(engine: Engine, scope: Scope, messages: Sequence[Message] | None, bounds: Bounds) -> Preview:
    """What the streams within the bounds that a conversation feeds would learn from messages, and do not know yet.

    Without messages, from those of the conversation that are still to be formed.
    """
    store = engine.store

    def find(store: Reading) -> tuple[Sequence[Message], Set[int]]:
        said = _waiting_messages(store, scope) if messages is None else messages
        return said, incognito_places(store, scope, said)

    said, hidden = store.read([scope], find)
    shown = [message for place, message in enumerate(said) if place not in hidden]
    trial = _Trial(engine.models, bounds)
    with _engine_apart(engine) as apart:
        apart.former.watch = trial.note
        ids = [receipt.id for receipt in apart.observe(scope, shown)]
        report, targets = apart.former.form(scope, 1, True, bounds), apart.former.find_targets(scope)
        atoms = [atom for atom in apart.store.read((), _all_atoms) if atom.scope and bounds.covers(atom.scope)]
    news = store.read([scope], lambda store: tuple(atom for atom in atoms if _is_news(store, atom)))
    unread = _NO_STREAM if not targets else "" if report.failed else _NO_WORDS
    return Preview(
        news,
        notes=(*report.failed, *([_INCOGNITO] if hidden else ())),
        doubtful=tuple(atom.id for atom in news if (atom.scope, atom.text) in trial.doubtful),
        corrected={
            atom.id: text for atom in news if atom.scope and (text := trial.corrected.get((atom.scope, atom.text)))
        },
        passed_over=tuple(trial.find_passed_over(dict(zip(ids, shown, strict=True)), atoms, news, unread)),
    )


class _Trial:
    """What extractors made of the messages, as far as it is within the bounds."""

    def __init__(self, models: Models, bounds: Bounds) -> None:
        self.doubtful: set[tuple[Scope | None, str]] = set()
        """Scopes and texts of doubtful proposals."""
        self.corrected: dict[tuple[Scope, str], str] = {}
        """The corrected sentences that decided about proposals, by scope and text."""
        self._models = models
        self._bounds = bounds
        self._readings: dict[str, TurnReading] = {}
        self._read: set[str] = set()
        """Ids of the turns that an extractor saw."""
        self._proposed: set[str] = set()
        """Ids of the turns that proposals rest on."""
        self._is_by_llm = False

    def note(self, chunk: Chunk, extraction: Extraction) -> None:
        """Note what was extracted from a chunk."""
        self._readings |= {reading.turn.id: reading for reading in extraction.readings}
        self._read.update(turn.id for turn in chunk.turns)
        self._is_by_llm |= any(self._models.get(target.settings.extraction_model) for target in chunk.targets)
        for proposal in extraction.proposals:
            scope = chunk.targets[proposal.target].scope
            if self._bounds.covers(scope):
                self._proposed.update(proposal.sources)
                place = scope, proposal.text.strip()
                self.doubtful |= {place} if proposal.is_doubtful else set()
                self.corrected |= {place: proposal.correction} if proposal.correction else {}

    def find_passed_over(
        self, messages: Mapping[str, Message], atoms: Sequence[Atom], news: Sequence[Atom], unread: str
    ) -> Iterator[PassedOver]:
        """The messages, by their ids, that no new atom rests on. `unread` says why no extractor saw a message; if it is
        empty, notes tell that, and the message is left out."""
        learned, known = _source_ids(news), _source_ids(atoms)
        for id, message in messages.items():
            reason = "" if id in learned else _KNOWN if id in known else self._explain(id, message) or unread
            if reason:
                yield PassedOver(id, message.speaker or message.role, message.text, reason)

    def _explain(self, id: str, message: Message) -> str:
        if former := message.metadata.get(FORMER):
            return f"{former} forms memories from it"
        if message.role.lower() in SILENT_ROLES:
            return _SYSTEM
        if id in self._proposed:
            return _SAID_TWICE
        is_explained = id in self._readings and not self._is_by_llm
        return explain_passed_over(self._readings[id]) if is_explained else _LLM if id in self._read else ""


def _waiting_messages(store: Reading, scope: Scope) -> list[Message]:
    """The messages of a conversation that no memories were formed from yet."""
    stream = store.stream(scope)
    if stream is None:
        return []
    session, jobs = load_session(store, stream), store.load(Job, stream=stream.id)
    records = [record for job in jobs for record in job_messages(store, job)]
    records += log_after(store, stream.id, session.cursor if session else 0, _MAX_WAITING)
    items = (record.item(scope) for record in records[:_MAX_WAITING])
    # As they were observed: what the store fills in belongs to its own log.
    return [replace(item, scope=None, position=-1, recorded=None) for item in items if isinstance(item, Message)]


def _source_ids(atoms: Iterable[Atom]) -> set[str]:
    return {source_place(name, atom.scope)[1] for atom in atoms if atom.scope for name in atom.source}


@contextmanager
def _engine_apart(engine: Engine) -> Iterator[Engine]:
    """An engine with the same settings and models, on a store of its own. The models count where they belong."""
    apart = Engine(TemporaryStore(), embedder=engine.embedder.embedder or "none", llm="none", form=False)
    try:
        apart.models = engine.models
        apart.corrections = _OwnCorrections(engine)
        apart.store.write((), partial(_copy_settings, engine.store.read((), _read_settings)))
        yield apart
    finally:
        apart.close()


class _OwnCorrections(CorrectionReader):
    """The corrections of the store itself, whichever store is being read."""

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self._engine = engine

    def read(self, store: Reading, scopes: Iterable[Scope]) -> Mapping[Scope, LikeSentences]:
        asked = tuple(scopes)
        return self._engine.store.read(asked, lambda own: self._engine.corrections.read(own, asked))


class _AllSettings(NamedTuple):
    """All presets with their changes, and the settings of streams by scope."""

    presets: Mapping[str, Mapping[str, Any]]
    streams: Mapping[Scope, SettingsRecord]


def _read_settings(store: Reading) -> _AllSettings:
    changes = changed_presets(store)
    records = {record.stream: record for record in store.load(SettingsRecord)}
    streams = store.streams(ids=list(records)) if records else []
    return _AllSettings(
        {name: changes.get(name, {}) for name in load_presets(store)},
        {stream.scope: records[stream.id] for stream in streams},
    )


def _copy_settings(settings: _AllSettings, store: Writing) -> None:
    for name, changes in settings.presets.items():
        save_preset(store, name, "", {**changes, **_NO_SUMMARY})
    for scope, own in settings.streams.items():
        copy = store.create_stream(scope)
        store.save([own._replace(stream=copy.id, changes={**own.changes, **_NO_SUMMARY})])


def _all_atoms(store: Reading) -> list[Atom]:
    records = store.select(ItemQuery(kinds=ATOM_KINDS, open=True))
    scopes = {stream.id: stream.scope for stream in store.streams(ids=list({each.stream for each in records}))}
    return [item for record in records if isinstance(item := record.item(scopes[record.stream]), Atom)]


def _is_news(store: Reading, atom: Atom) -> bool:
    """Whether its stream neither knows the same words nor forgot them on purpose."""
    stream = store.stream(atom.scope) if atom.scope else None
    if stream is None:
        return True
    identities = tombstone_identities(atom.kind, atom.text)
    known = store.select(ItemQuery(stream.id, identities=identities[:1], open=True))
    return not known and not store.tombstones(stream.id, identities)
