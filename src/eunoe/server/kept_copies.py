"""What a server keeps that may repeat what was forgotten: replies to requests that are done once, files of exports."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from eunoe.errors import ConflictError
from eunoe.memory import Change
from eunoe.model.scope import Scope
from eunoe.server.idempotency import Idempotency
from eunoe.server.jobs import JobQueue

_EXPORT: Final = "export"


class KeptCopies:
    """Follows every forgetting that a server is asked for."""

    def __init__(self, idempotency: Idempotency, jobs: JobQueue, exports: Path) -> None:
        self._idempotency = idempotency
        self._jobs = jobs
        self._exports = exports

    def __call__(self, change: Change) -> None:
        """Drop what repeats a change, if something was forgotten by it."""
        if change.verb == "forget" and not change.error:
            self._idempotency.forget(change.forgotten)
            self._drop_exports(change.scopes)

    def _drop_exports(self, scopes: Iterable[Scope]) -> None:
        for job in self._jobs.of_kind(_EXPORT):
            exported = [Scope.stored(text) for text in job.options["scopes"]]
            if any(_may_share(scope, each) for scope in scopes for each in exported):
                (self._exports / f"{job.id}.jsonl").unlink(missing_ok=True)
                if job.state == "running":  # it may have read what is gone
                    with suppress(ConflictError):
                        self._jobs.cancel(job.id)


def _may_share(scope: Scope, other: Scope) -> bool:
    """Whether one stream can be meant by both."""
    pairs = other.pairs.items()
    is_tenant = scope.pairs.get("tenant") == other.pairs.get("tenant")
    return is_tenant and all(scope.pairs.get(key, value) == value for key, value in pairs)
