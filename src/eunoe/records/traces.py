"""The search for what should be gone: in every table, every file, every index and every error."""

from collections.abc import Sequence

from eunoe.records.forgetting import Removal
from eunoe.store.contract import Store, all_items
from eunoe.store.query import ItemQuery
from eunoe.store.tables import RevisionRecord

MIN_SEARCH_CHARACTERS = 12
"""Shorter texts stand by chance in any file; their records are still checked one by one."""


def search_texts(removals: Sequence[Removal]) -> list[str]:
    """The texts that a search of everything should not find any more."""
    texts = (text for removal in removals for record in removal.records for text in (record.text, record.caption))
    return list(dict.fromkeys(text.strip() for text in texts if len(text.strip()) >= MIN_SEARCH_CHARACTERS))


def is_repeated_in(removals: Sequence[Removal], error: str) -> bool:
    """Whether an error, put on one line and cut short, repeats the opening of a removed text."""
    return any(" ".join(text.split())[:MIN_SEARCH_CHARACTERS] in error for text in search_texts(removals))


def _search_names(removals: Sequence[Removal]) -> list[str | bytes]:
    """The ids, identities and topics that no row should have any more."""
    records = [record for removal in removals for record in removal.records]
    ids: list[str | bytes] = [record.id for record in records if len(record.id) >= MIN_SEARCH_CHARACTERS]
    return [*ids, *(name for record in records for name in (record.identity, record.topic) if name)]


def find_traces(store: Store, removals: Sequence[Removal], is_shared: bool = False) -> list[str]:
    """Where something that should be gone was found. Words that another memory still holds are not a trace, nor are
    the names of another memory and the fingerprints of a tombstone.

    In a store that is shared with others, nothing that a table holds counts but the summaries of the same streams:
    whether others have the same words is not to be learned by forgetting one's own.
    """
    traces = []
    for removal in removals:
        ids = [record.id for record in removal.records]
        with store.reading():
            left = store.select(ItemQuery(removal.stream.id, ids=ids)) if ids else []
        traces += [f"items: {record.id} is still there" for record in left]
    texts = search_texts(removals)
    found_places = store.find_traces(texts)
    for text in filter(found_places.__contains__, texts):
        places = found_places[text]
        is_held = "items.text" in places or "items.caption" in places or (is_shared and _is_in_table(places))
        found = _summaries_with(store, removals, text) if is_held else places
        traces += [f"{place}: {text[:40]!r}" for place in found]
    return traces + _name_traces(store, removals, is_shared)


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
    with store.reading():
        return [
            f"revisions.text of {removal.stream.scope}"
            for removal in removals
            if any(text in record.text for record in store.load(RevisionRecord, stream=removal.stream.id))
            and not any(
                text in record.text or text in record.caption
                for record in all_items(store, ItemQuery(removal.stream.id))
            )
        ]
