"""The search for what should be gone: in every table, every file, every index and every error."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from eunoe.model.atom import Bounds, Record, SourcePlace
from eunoe.model.scope import Scope
from eunoe.model.turn import speaking_users
from eunoe.records.forgetting import Forgotten, Held, Removal
from eunoe.records.revisions import MIN_PHRASE_CHARACTERS, find_forgotten
from eunoe.records.streams import SettingsReader
from eunoe.store.contract import ItemQuery, Reading, Store, streams_of
from eunoe.store.schema import RevisionRecord, StreamState
from eunoe.text.normalize import normalize

_HELD_IN = ("items.text", "items.caption", "revisions.text", "passage_graphs.data")
"""Where words that a memory still holds may stand too; summaries are looked at one by one."""


def search_texts(removals: Sequence[Removal]) -> list[str]:
    """The texts that a search of everything should not find any more."""
    return [text for text in _texts(removals) if len(text) >= MIN_PHRASE_CHARACTERS]


def _texts(removals: Sequence[Removal]) -> list[str]:
    texts = [text for removal in removals for record in removal.records for text in (record.text, record.caption)]
    texts += [text for removal in removals for text in removal.prompts]
    return list(dict.fromkeys(stripped for text in texts if (stripped := text.strip())))


class Traces(NamedTuple):
    """What a search of everything found."""

    places: list[str]
    """Where something is that should be gone."""
    held: list[str]
    """The texts that other memories still have."""


def find_held(
    store: Store, forgotten: Forgotten, scopes: Sequence[Scope], bounds: Bounds, traces: Traces | None
) -> Held:
    """What stays and still has the words, within bounds: what the memories came from and, after a search, what says the
    same. Whoever is bound is told nothing of what is beyond, nor whether it is there."""
    texts = _texts(forgotten.removals)
    same = {normalize(text) for text in texts}

    def has_words(record: Record) -> bool:
        held = (text in record.text or text in record.caption for text in traces.held) if traces else ()
        return normalize(record.text) in same or any(held)

    def find(store: Reading) -> tuple[set[SourcePlace], set[Scope], set[SourcePlace], set[SourcePlace]]:
        origins = _find_standing(store, [place for place in forgotten.origins if bounds.covers(place[0])])
        shown = _shown_scopes(store, forgotten.removals)
        if not traces or not texts:
            return origins, shown, set(), set()
        streams = own_streams(store, scopes, bounds)
        own = _find_saying(store, streams, has_words)
        return origins, shown, own, _find_elsewhere(store, streams, bounds, has_words, is_known=bool(traces.held))

    origins, shown, own, others = store.read((), find)
    places = defaultdict[Scope, list[str]](list)
    for scope, id in sorted(origins | own | others, key=lambda place: (place[0].text, place[1])):
        places[scope].append(id)
    is_unreached = forgotten.is_unreached or not all(
        map(bounds.covers, [*(scope for scope, _ in forgotten.origins), *shown])
    )
    return Held({scope: tuple(ids) for scope, ids in places.items()}, bool(origins | own), is_unreached)


def is_repeated_in(removals: Sequence[Removal], error: str) -> bool:
    """Whether an error, put on one line and cut short, repeats the opening of a removed text."""
    return any(" ".join(text.split())[:MIN_PHRASE_CHARACTERS] in error for text in search_texts(removals))


def _search_names(removals: Sequence[Removal]) -> list[str | bytes]:
    """The ids, identities and topics that no row should have any more."""
    records = [record for removal in removals for record in removal.records]
    ids: list[str | bytes] = [record.id for record in records if len(record.id) >= MIN_PHRASE_CHARACTERS]
    return [*ids, *(name for record in records for name in (record.identity, record.topic) if name)]


def own_streams(store: Reading, scopes: Sequence[Scope], bounds: Bounds) -> dict[int, StreamState]:
    """The streams of the scopes that were named, of a user's all there are, by their numbers."""
    meant = (scope.everything if "user" in scope.pairs else scope for scope in scopes)
    streams = (stream for scope in meant for stream in streams_of(store, scope))
    return {stream.id: stream for stream in streams if bounds.covers(stream.scope)}


def shown_streams(store: Reading, removals: Sequence[Removal], bounds: Bounds) -> dict[int, StreamState]:
    """The streams that a context of what went shows, by their numbers."""
    found = (store.stream(scope) for scope in _shown_scopes(store, removals) if bounds.covers(scope))
    return {stream.id: stream for stream in found if stream}


def _shown_scopes(store: Reading, removals: Sequence[Removal]) -> set[Scope]:
    """What a context of what went shows, whether or not anything is stored there."""
    reader = SettingsReader(store)
    return {
        target.scope
        for removal in removals
        if removal.records
        for scope in [removal.stream.scope]
        for target in reader.targets(scope, speaking_users(removal.records, scope))
    }


def _find_standing(store: Reading, places: Iterable[SourcePlace]) -> set[SourcePlace]:
    found = set()
    for scope, id in places:
        stream = store.stream(scope)
        if stream and store.select(ItemQuery(stream.id, ids=[id])):
            found.add((scope, id))
    return found


def _find_saying(
    store: Reading, streams: Mapping[int, StreamState], has_words: Callable[[Record], bool]
) -> set[SourcePlace]:
    return {
        (stream.scope, record.id)
        for stream in streams.values()
        for record in store.iterate(ItemQuery(stream.id))
        if has_words(record)
    }


def _find_elsewhere(
    store: Reading, own: Mapping[int, StreamState], bounds: Bounds, has_words: Callable[[Record], bool], is_known: bool
) -> set[SourcePlace]:
    """What says the same in other streams: of the whole store if it is known that some do, else in all within bounds,
    so that the time it takes tells nothing of what is beyond."""
    if bounds.scopes:
        within = own_streams(store, [scope.everything for scope in bounds.scopes], bounds)
        return _find_saying(store, {id: stream for id, stream in within.items() if id not in own}, has_words)
    records = [record for record in store.iterate(ItemQuery()) if has_words(record)] if is_known else []
    ids = list({record.stream for record in records} - own.keys())
    scopes = {stream.id: stream.scope for stream in store.streams(ids=ids)} if ids else {}
    return {(scopes[record.stream], record.id) for record in records if record.stream in scopes}


def find_traces(
    store: Store,
    removals: Sequence[Removal],
    own: Mapping[int, StreamState],
    shown: Mapping[int, StreamState],
    is_shared: bool = False,
) -> Traces:
    """Where something that should be gone was found. Words that another memory still holds are not a trace, nor are
    the names of another memory and the fingerprints of a tombstone.

    In a store that is shared with others, nothing that a table holds counts but the summaries of the same streams:
    whether others have the same words is not to be learned by forgetting one's own.
    """
    traces, held = [], []
    for removal in removals:
        ids = [record.id for record in removal.records]
        traces += [f"items: {id} is still there" for id in store.read((), partial(_still_there, removal.stream, ids))]
    texts = search_texts(removals)
    found_places = store.find_traces(texts)
    for text in filter(found_places.__contains__, texts):
        places = found_places[text]
        if "items.text" in places or "items.caption" in places:
            held.append(text)
        if held[-1:] == [text] or (is_shared and _is_in_table(places)):
            places = [] if is_shared else [each for each in places if _is_in_table([each]) and each not in _HELD_IN]
            places += _summaries_with(store, removals, text)
        traces += [f"{place}: {text[:40]!r}" for place in places]
    traces += _doubtful_summaries(store, removals, own, shown)
    return Traces(list(dict.fromkeys(traces + _name_traces(store, removals, is_shared))), held)


def _still_there(stream: StreamState, ids: Sequence[str], store: Reading) -> list[str]:
    return [record.id for record in store.select(ItemQuery(stream.id, ids=ids))] if ids else []


def _doubtful_summaries(
    store: Store, removals: Sequence[Removal], own: Mapping[int, StreamState], shown: Mapping[int, StreamState]
) -> list[str]:
    """Summaries of the scopes that were named, or that are shown with them, which say something of what is gone, or
    may. What others feed too, such as an agent's shard, counts only where it surely does."""
    gone = _texts(removals)

    def find(store: Reading) -> list[str]:
        parts = []
        for stream in {**shown, **own}.values():
            texts = [record.text for record in store.load(RevisionRecord, stream=stream.id)]
            found = find_forgotten(store, stream, texts, gone)
            is_strict = stream.id in own or "user" in stream.scope.pairs
            doubtful = [part for part, is_sure in found.items() if is_sure or is_strict]
            parts += [f"revisions.text of {stream.scope}: {part[:40]!r}" for part in doubtful]
        return parts

    return store.read((), find)


def _is_in_table(places: Sequence[str]) -> bool:
    return any(not place.startswith(("file ", "unused bytes ")) for place in places)


def _name_traces(store: Store, removals: Sequence[Removal], is_shared: bool) -> list[str]:
    traces = []
    for name, places in store.find_traces(_search_names(removals)).items():
        is_held = any(place.startswith(("items.", "tombstones.", "passage_graphs.")) for place in places)
        if not is_held and not (is_shared and _is_in_table(places)):
            traces += [f"{place}: {name!r}" for place in places]
    return traces


def _summaries_with(store: Store, removals: Sequence[Removal], text: str) -> list[str]:
    """Summaries that repeat a text which no memory of their own scope holds: those of other scopes excuse nothing."""

    def find(store: Reading) -> list[str]:
        return [
            f"revisions.text of {removal.stream.scope}"
            for removal in removals
            if any(text in record.text for record in store.load(RevisionRecord, stream=removal.stream.id))
            and not any(
                text in record.text or text in record.caption for record in store.iterate(ItemQuery(removal.stream.id))
            )
        ]

    return store.read((), find)
