"""What is said and done where a part of a store is damaged."""

from collections.abc import Iterable
from typing import Final

from eunoe.errors import DamagedStoreError
from eunoe.model.result import Damage
from eunoe.store.contract import Store
from eunoe.store.query import ItemQuery
from eunoe.store.tables import StreamState

_MOST_ROWS: Final = 1000
"""Of a stream that is read whole before a part of it is shown: about 20 ms."""


def damage_notes(damage: Iterable[Damage]) -> tuple[str, ...]:
    """What a caller is told of damage that was left out."""
    return tuple(f"damaged, and left out: {each}" for each in damage)


def stream_notes(store: Store, streams: Iterable[StreamState | None]) -> tuple[str, ...]:
    """What a caller is told who was shown a part of some streams: to be called when that part was read."""
    return damage_notes(damage for stream in streams if stream for damage in store.damage(stream.id, _MOST_ROWS))


def check_undamaged(store: Store, stream: StreamState) -> None:
    """Raise DamagedStoreError if something of a stream is lost: what was not found may have been there."""
    if damage := store.damage(stream.id):
        raise DamagedStoreError(
            f"it cannot be told whether {stream.scope} holds it, because the store is damaged ({damage[0]}): "
            "restore a backup, or run `eunoe check` to see all that is lost"
        )


def renew_vectors(store: Store) -> None:
    """Mark the records whose vectors are lost, so that these are made again."""
    seqs = list(store.lost_vectors)
    with store.writing():
        records = store.select(ItemQuery(seqs=seqs))
        versions = {stream: store.advance(stream).version for stream in {record.stream for record in records}}
        store.update([record._replace(pending=True, version=versions[record.stream]) for record in records])
    store.lost_vectors.difference_update(seqs)
