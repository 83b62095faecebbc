"""What happened to a memory, in mem0's rows. A deletion leaves a row that says when, and no words."""

from collections.abc import Sequence
from typing import Any, Final

import eunoe.memory
from eunoe.errors import EunoeError
from eunoe.hosts.mem0.ids import to_id
from eunoe.hosts.mem0.payload import created_at, scope_of
from eunoe.hosts.mem0.scope_groups import DELETIONS
from eunoe.model.arguments import utc_now
from eunoe.model.atom import Item
from eunoe.model.scope import Scope

_NO_WORDS: Final = "deleted"
"""The text of a note that a memory was deleted."""


def to_rows(memory_id: str, versions: Sequence[Item]) -> list[dict[str, Any]]:
    """A row for each version of a memory, oldest first."""
    return [
        _row(
            to_id(scope_of(version), version.id),
            memory_id,
            "UPDATE" if before else "ADD",
            old=before.text if before else None,
            new=version.text,
            created=created_at(versions[0]),
            updated=version.metadata.get("updated_at") or created_at(version),
            said_by=version,
        )
        for before, version in zip([None, *versions], versions, strict=False)
    ]


def mark_deleted(memory: eunoe.memory.Memory, item: Item) -> None:
    """Note that a memory was deleted, and when."""
    times = {"created_at": created_at(item), "updated_at": utc_now().isoformat()}
    scope = scope_of(item).extended(DELETIONS)
    memory.remember(scope, _NO_WORDS, id=item.id, metadata=times, again=True, replace=True)


def deletion_rows(memory: eunoe.memory.Memory, memory_id: str, scope: Scope, id: str) -> list[dict[str, Any]]:
    """The row of a memory that was deleted; none if nothing is known of it."""
    try:
        note = memory.get(scope.extended(DELETIONS), id)
    except EunoeError:
        return []
    times = note.metadata["created_at"], note.metadata["updated_at"]
    return [_row(to_id(scope.extended(DELETIONS), id), memory_id, "DELETE", None, None, *times, is_deleted=True)]


def _row(
    id: str,
    memory_id: str,
    event: str,
    old: str | None,
    new: str | None,
    created: str,
    updated: str,
    said_by: Item | None = None,
    is_deleted: bool = False,
) -> dict[str, Any]:
    fields = said_by.metadata if said_by else {}
    return {
        "id": id,
        "memory_id": memory_id,
        "old_memory": old,
        "new_memory": new,
        "event": event,
        "created_at": created,
        "updated_at": updated,
        "is_deleted": is_deleted,
        "actor_id": fields.get("actor_id"),
        "role": fields.get("role"),
    }
