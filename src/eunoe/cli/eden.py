"""`eunoe migrate-eden`: moving in from exports of the old system's collections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from eunoe.cli import output
from eunoe.cli.command import Settings, command

if TYPE_CHECKING:
    from eunoe.hosts.eden import EdenReport, ImportCounts

# Lines of trouble that are worth reading one by one; all of them are in the JSON.
_LINES = 20


def register(app: typer.Typer) -> None:
    example = "eunoe migrate-eden memory_user.json memory_agent.json memory_sessions.json"
    command(app, "migrate-eden", example)(migrate_eden)


def migrate_eden(
    settings: Settings,
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Exports, as JSON or JSON Lines.", show_default=False)
    ],
) -> None:
    """Move in from Eden: exports of memory_user, memory_agent and memory_sessions; read twice they change nothing."""
    from eunoe.hosts.eden import migrate

    with settings.memory(create=True) as memory, output.progress("moving in") as advance:
        report = migrate(memory, *files, progress=advance)
    if settings.json:
        output.document(report.as_dict())
    else:
        _show(report)
    if report.problems:
        raise typer.Exit(1)


def _show(report: EdenReport) -> None:
    from eunoe.cli import tables

    kinds = {"shards": report.settings, "summaries": report.summaries}
    kinds |= {"facts": report.facts, "observations": report.observations}
    typer.echo(f"{output.counted(report.documents, 'document')} read")
    names = ("", "stored", "known already", "forgotten before", "in conflict")
    tables.console().print(tables.grid(names, [_row(name, came) for name, came in kinds.items()]))
    for count, why in _left_out(report).items():
        typer.echo(f"left out: {count} {why}")
    _list("not found", report.missing)
    _list("cannot be read", report.problems)


def _row(name: str, came: ImportCounts) -> tuple[str, ...]:
    return name, *(f"{count:,}" for count in (came.stored, came.known, came.forgotten, came.conflicts))


def _left_out(report: EdenReport) -> dict[str, str]:
    counts = {
        output.counted(report.episodes, "episode"): "(a session's memory is written anew from its messages)",
        output.counted(report.absorbed, "item"): "that a summary has taken in already",
        output.counted(report.unlisted, "fact"): "that no shard lists any more",
    }
    return {count: why for count, why in counts.items() if not count.startswith("0 ")}


def _list(title: str, lines: tuple[str, ...]) -> None:
    for line in lines[:_LINES]:
        output.say(f"{title}: {output.one_line(line)}")
    if len(lines) > _LINES:
        output.say(f"{title}: {len(lines) - _LINES:,} more; --json names them all")
