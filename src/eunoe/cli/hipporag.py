"""`eunoe migrate-hipporag`: moving in from a folder that HippoRAG has written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from eunoe.cli import output
from eunoe.cli.command import Settings, command

if TYPE_CHECKING:
    from eunoe.hosts.hipporag import HippoReport

# Lines of trouble that are worth reading one by one; all of them are in the JSON.
_LINES = 20


def register(app: typer.Typer) -> None:
    command(app, "migrate-hipporag", "eunoe migrate-hipporag outputs --project shop")(migrate_hipporag)


def migrate_hipporag(
    settings: Settings,
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="HippoRAG's save_dir.", show_default=False)],
    project: Annotated[str, typer.Option("--project", "-p", metavar="NAME", help="Where its documents go.")],
) -> None:
    """Move in from HippoRAG: the documents of its folder, with their entities and triples; read twice they change
    nothing."""
    from eunoe.hosts.hipporag import import_folder
    from eunoe.projects import ProjectMemory

    with settings.memory(create=True) as memory, output.progress("moving in") as advance:
        report = import_folder(ProjectMemory(memory), project, folder, progress=advance)
    if settings.json:
        output.document(report.as_dict())
    else:
        _show(report)
    if report.problems:
        raise typer.Exit(1)


def _show(report: HippoReport) -> None:
    entities, triples = output.counted(report.entities, "entity"), output.counted(report.triples, "triple")
    typer.echo(f"{output.counted(report.documents, 'document')} read")
    typer.echo(f"{report.stored:,} stored, with {entities} and {triples}")
    typer.echo(f"{report.known:,} known already, {report.forgotten:,} forgotten before")
    for line in report.unread:
        output.say(f"not read: {output.one_line(line)}")
    for line in report.problems[:_LINES]:
        output.say(f"cannot be read: {output.one_line(line)}")
    if len(report.problems) > _LINES:
        output.say(f"cannot be read: {len(report.problems) - _LINES:,} more; --json names them all")
