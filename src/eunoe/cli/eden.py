"""`eunoe migrate-eden`: moving in from exports of the old system's collections."""

from __future__ import annotations

from typing import Annotated

import typer

from eunoe.cli import output
from eunoe.cli.command import Settings, command


def register(app: typer.Typer) -> None:
    command(app, "migrate-eden", "eunoe migrate-eden memory_user.json memory_agent.json memory_sessions.json")(
        migrate_eden
    )


def migrate_eden(
    settings: Settings,
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Exports, as JSON or JSON Lines.", show_default=False)
    ],
) -> None:
    """Read exports of memory_user, memory_agent and memory_sessions; read twice they change nothing."""
    from eunoe.hosts.eden import migrate

    with settings.memory(create=True) as memory, output.progress("moving in") as advance:
        report = migrate(memory, *files, progress=advance).as_dict()
    if settings.json:
        output.document(report)
        return
    raise NotImplementedError
