"""The verbs that are not needed every day, answered by a server."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any, Final, TextIO, cast

from eunoe.client.transport import Transport
from eunoe.client.verbs import NoEngine, check_arguments, missing_verb, remote_verb
from eunoe.errors import InputError, RemoteError
from eunoe.memory import Admin, Corrections, Graph, Leases, Streams, Summaries, open_output
from eunoe.memory.groups import Access
from eunoe.model.atom import Correction
from eunoe.model.result import (
    BackupReport,
    CheckReport,
    FormReport,
    GraphReport,
    GraphSize,
    ImportReport,
    LlmReport,
    ModelCall,
    Neighbourhood,
    Page,
    Receipt,
    RetentionReport,
)
from eunoe.model.scope import Scopes, parse_scopes
from eunoe.model.stream import Revision, Settings, Stream
from eunoe.transfer.batches import open_lines
from eunoe.wire.decoding import noun_of

_JSON_LINES: Final = "application/jsonl"
_PROGRESS_LINES: Final = 1000
"""Progress is told after so many."""

Progress = Callable[[int], None]


class _RemoteGroup:
    def __init__(self, transport: Transport) -> None:
        super().__init__(cast("Any", NoEngine(transport.address.url)))  # type: ignore[call-arg]
        self._transport = transport


class RemoteStreams(_RemoteGroup, Streams):
    """`Streams` of a server."""

    list = remote_verb(Streams.list, "GET /v1/streams", list[Stream], "streams")
    configure = remote_verb(Streams.configure, "PATCH /v1/streams", Stream, keywords="settings")
    presets = remote_verb(Streams.presets, "GET /v1/presets", dict[str, Settings], "presets")
    set_preset = remote_verb(Streams.set_preset, "PUT /v1/presets/{name}", Settings, keywords="settings")
    apply_retention = remote_verb(Streams.apply_retention, "POST /v1/retention", RetentionReport)
    unarchive = remote_verb(Streams.unarchive, "POST /v1/memories/{id}/unarchive", Receipt)
    set_incognito = remote_verb(Streams.set_incognito, "POST /v1/incognito", None)


class RemoteSummaries(_RemoteGroup, Summaries):
    """`Summaries` of a server."""

    consolidate = remote_verb(Summaries.consolidate, "POST /v1/consolidate", Revision | None, "revision", is_slow=True)
    revisions = remote_verb(Summaries.revisions, "GET /v1/revisions", list[Revision], "revisions")
    restore = remote_verb(Summaries.restore, "POST /v1/revisions/{number}/restore", Revision)
    write = remote_verb(Summaries.write, "POST /v1/revisions", Revision)


class RemoteCorrections(_RemoteGroup, Corrections):
    """`Corrections` of a server."""

    add = remote_verb(Corrections.add, "POST /v1/corrections", Correction)
    list = remote_verb(Corrections.list, "GET /v1/corrections", list[Correction], "corrections")
    remove = remote_verb(Corrections.remove, "POST /v1/corrections/{id}/remove", None)


class RemoteLeases(_RemoteGroup, Leases):
    """No leases: whoever works under one writes what it gives in the same step, in the process that has the store."""

    acquire = missing_verb(Leases.acquire)
    renew = missing_verb(Leases.renew)
    release = missing_verb(Leases.release)
    fail = missing_verb(Leases.fail)
    list = missing_verb(Leases.list)
    drop = missing_verb(Leases.drop)
    renewing = missing_verb(Leases.renewing)


class RemoteGraph(_RemoteGroup, Graph):
    """`Graph` of a server."""

    neighbours = remote_verb(Graph.neighbours, "GET /v1/graph", Neighbourhood)
    size = remote_verb(Graph.size, "GET /v1/graph/size", GraphSize)
    extract = remote_verb(Graph.extract, "POST /v1/graph/extract", GraphReport, is_slow=True)


class RemoteAdmin(_RemoteGroup, Admin):
    """`Admin` of a server. What takes long is done there in one go: only export and import tell their progress."""

    reembed = remote_verb(Admin.reembed, "POST /v1/reembed", int, "count", is_slow=True)
    check = remote_verb(Admin.check, "POST /v1/check", CheckReport, is_slow=True)
    reindex = remote_verb(Admin.reindex, "POST /v1/reindex", int, "count", is_slow=True)
    process_cold_sessions = remote_verb(Admin.process_cold_sessions, "POST /v1/cold-sessions", FormReport, is_slow=True)
    access_counts = remote_verb(Admin.access_counts, "POST /v1/access-counts", dict[str, Access], "counts", reads=True)

    calls = remote_verb(Admin.calls, "GET /v1/calls", Page[ModelCall], is_paged=True)
    test_llm = remote_verb(Admin.test_llm, "POST /v1/models/test", LlmReport, is_slow=True)

    def backup(self, target: str | Path, *, progress: Callable[[int, int], None] | None = None) -> BackupReport:
        """Copy the whole store to a file of this name, in the server's folder of backups; then read the copy."""
        check_arguments(Admin.backup, self, target, progress=progress)
        if str(target) != Path(target).name:
            raise InputError("a server keeps backups in a folder of its own: give a file name without a folder")
        report = self._transport.call("POST", "/v1/backup", body={"name": str(target)}, is_slow=True)
        return cast("BackupReport", noun_of(BackupReport, report))

    def export(
        self,
        scope: Scopes,
        target: str | Path | TextIO,
        *,
        progress: Callable[[int], None] | None = None,
        skip_damaged: bool = False,
        exact: bool = False,
    ) -> int:
        """Write scopes as JSON Lines to a file here, as they come; return the number of lines.

        A file appears under its name only when it is complete.
        """
        flags = {"skip_damaged": skip_damaged, "exact": exact}
        check_arguments(Admin.export, self, scope, target, progress=progress, **flags)
        query = {"scope": [each.text for each in parse_scopes(scope)], **flags}
        with self._transport.stream("GET", "/v1/export", query=query) as answer:
            if not isinstance(target, str | Path):
                return self._write(answer, target, progress)
            with open_output(target) as file:
                return self._write(answer, file, progress)

    def import_(
        self, source: str | Path | Iterable[str], *, progress: Callable[[int], None] | None = None
    ) -> ImportReport:
        """Send an export from here. The server reads it when all of it is there; `progress` counts what was sent."""
        check_arguments(Admin.import_, self, source, progress=progress)
        with (
            open_lines(source) as lines,
            self._transport.stream(
                "POST", "/v1/import", body=_encoded(lines, progress), content_type=_JSON_LINES
            ) as answer,
        ):
            return cast("ImportReport", noun_of(ImportReport, self._transport.read_json(answer)))

    def _write(self, answer: HTTPResponse, file: TextIO, progress: Progress | None) -> int:
        """Write the lines that come; return how many, without the first, which names the format."""
        count = -1
        try:
            for line in io.TextIOWrapper(cast("Any", answer), encoding="utf-8", newline="\n"):
                file.write(line)
                count += 1
                if progress and count and count % _PROGRESS_LINES == 0:
                    progress(count)
        except HTTPException as error:
            raise RemoteError("the export broke off: try again") from error
        return count


def _encoded(lines: Iterable[str], progress: Progress | None) -> Iterator[bytes]:
    for count, line in enumerate(lines, 1):
        yield (line if line.endswith("\n") else f"{line}\n").encode(errors="surrogatepass")
        if progress and count % _PROGRESS_LINES == 0:
            progress(count)
