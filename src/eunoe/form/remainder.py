"""What else a closed atom says, beside what another one took the place of."""

from datetime import datetime

from eunoe.form.rivals import says_more
from eunoe.model.atom import AUTHOR, Record
from eunoe.records.identity import atom_identity, new_ids, tombstone_identities
from eunoe.records.insertion import VectorBatch, insert_records
from eunoe.records.versions import find_by_id
from eunoe.store.contract import ItemQuery, Store
from eunoe.store.schema import StreamState


def keep_remainder(store: Store, stream: StreamState, id: str, vectors: VectorBatch, now: datetime) -> str:
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
