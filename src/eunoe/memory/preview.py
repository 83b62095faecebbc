"""Preview: what would be learned from messages, formed in a store of its own that is gone afterwards."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from eunoe.engine import Engine
from eunoe.model.atom import Atom
from eunoe.model.bounds import Bounds
from eunoe.model.choices import ATOM_KINDS
from eunoe.model.message import Message
from eunoe.model.report import Page
from eunoe.model.scope import Scope
from eunoe.records.fingerprints import tombstone_identities
from eunoe.records.incognito import incognito_places
from eunoe.records.streams import changed_presets, load_presets, save_preset
from eunoe.store.contract import Store
from eunoe.store.query import ItemQuery
from eunoe.store.tables import SettingsRecord
from eunoe.store.temporary import TemporaryStore

_NO_SUMMARY: Final = {"consolidation_prompt": ""}
"""A summary would be written for nobody."""
_INCOGNITO: Final = "the session is incognito: nothing is learned from it"


def preview(engine: Engine, scope: Scope, messages: Sequence[Message], bounds: Bounds) -> Page[Atom]:
    """What the streams within the bounds that a conversation feeds would learn from messages, and do not know yet."""
    store = engine.store
    with store.reading():
        hidden = incognito_places(store, scope, messages)
    shown = [message for place, message in enumerate(messages) if place not in hidden]
    with _engine_apart(engine) as apart:
        apart.observe(scope, shown)
        report = apart.former.form(scope, 1, True, bounds)
        atoms = [atom for atom in _all_atoms(apart.store) if atom.scope and bounds.covers(atom.scope)]
    with store.reading():
        news = tuple(atom for atom in atoms if _is_news(store, atom))
    return Page(news, notes=(*report.failed, *([_INCOGNITO] if hidden else ())))


@contextmanager
def _engine_apart(engine: Engine) -> Iterator[Engine]:
    """An engine with the same settings and models, on a store of its own. The models count where they belong."""
    apart = Engine(TemporaryStore(), embedder=engine.embedder.embedder or "none", llm="none", form=False)
    try:
        apart.models = engine.models
        with engine.store.reading(), apart.store.writing():
            _copy_settings(engine.store, apart.store)
        yield apart
    finally:
        apart.close()


def _copy_settings(source: Store, target: Store) -> None:
    changes = changed_presets(source)
    for name in load_presets(source):
        save_preset(target, name, "", {**changes.get(name, {}), **_NO_SUMMARY})
    records = {record.stream: record for record in source.load(SettingsRecord)}
    for stream in source.streams(ids=list(records)) if records else ():
        own = records[stream.id]
        copy = target.create_stream(stream.scope)
        target.save([own._replace(stream=copy.id, changes={**own.changes, **_NO_SUMMARY})])


def _all_atoms(store: Store) -> Iterator[Atom]:
    with store.reading():
        records = store.select(ItemQuery(kinds=ATOM_KINDS, open=True))
        scopes = {stream.id: stream.scope for stream in store.streams(ids=list({each.stream for each in records}))}
    for record in records:
        if isinstance(item := record.item(scopes[record.stream]), Atom):
            yield item


def _is_news(store: Store, atom: Atom) -> bool:
    """Whether its stream neither knows the same words nor forgot them on purpose."""
    stream = store.stream(atom.scope) if atom.scope else None
    if stream is None:
        return True
    identities = tombstone_identities(atom.kind, atom.text)
    known = store.select(ItemQuery(stream.id, identities=identities[:1], open=True))
    return not known and not store.tombstones(stream.id, identities)
