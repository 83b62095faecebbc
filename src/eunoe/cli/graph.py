"""`eunoe graph`: what stands around a name, as tables, as GraphML and as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eunoe.cli import output
from eunoe.cli.command import MisuseError, Settings, command
from eunoe.cli.options import FullOption, ScopeArgument
from eunoe.model.graph import Entity, Neighbourhood
from eunoe.model.report import GraphReport

FileOption = Path | None


def register(app: typer.Typer) -> None:
    command(app, "graph", 'eunoe graph project=atlas "Anna Berg" --picture anna.svg', models=True)(graph)


def graph(
    settings: Settings,
    scope: ScopeArgument,
    entity: Annotated[str, typer.Argument(metavar="[ENTITY]", help="A name; without one the best connected.")] = "",
    depth: Annotated[int, typer.Option("--depth", metavar="N", help="Steps from passage to passage.")] = 1,
    limit: Annotated[int, typer.Option("-n", "--limit", metavar="N", help="At most so many names and passages.")] = 30,
    graphml: Annotated[FileOption, typer.Option("--graphml", metavar="FILE", help="Write it as GraphML.")] = None,
    picture: Annotated[FileOption, typer.Option("--picture", metavar="FILE.svg", help="Draw it as SVG.")] = None,
    read: Annotated[bool, typer.Option("--read", help="First have the language model read what it has not.")] = False,
    full: FullOption = False,
) -> None:
    """Show the names around a name, how strongly they are tied to it, and the passages they share."""
    if picture and picture.suffix.lower() != ".svg":
        raise MisuseError(f"the picture is drawn as SVG: call it {picture.with_suffix('.svg')}")
    with settings.memory(asks=read) as memory:
        report = memory.graph.extract(scope) if read else GraphReport()
        found = memory.graph.neighbours(scope, entity, depth=depth, limit=limit)
    if read:
        _tell(report)
    _save(found, graphml, picture)
    if settings.json:
        output.document(found)
    elif not found.entities:
        output.say("no names found")
    else:
        _show(found, full)
    if report.failed:
        raise typer.Exit(1)


def _tell(report: GraphReport) -> None:
    counts = {"name": report.entities, "triple": report.triples}
    said = ", ".join(output.counted(count, noun) for noun, count in counts.items())
    due = f"; {report.due:,} still due" if report.due else ""
    output.say(f"{output.counted(report.passages, 'passage')} read: {said}{due}")
    for fault in report.failed:
        output.say(f"failed, and still due: {output.one_line(fault)}")


def _save(found: Neighbourhood, graphml: Path | None, picture: Path | None) -> None:
    if graphml or picture:
        from eunoe.projects import drawing

        for file, draw in ((graphml, drawing.graphml), (picture, drawing.svg)):
            if file:
                file.write_text(draw(found), encoding="utf-8")
                output.say(f"written to {file}")


def _show(found: Neighbourhood, full: bool) -> None:
    from eunoe.cli import tables

    shown = found.entities
    if found.entity:
        asked, *shown_list = found.entities
        shown = tuple(shown_list)
        typer.echo(f"{tables.safe(asked.name)}: in {output.counted(asked.passages, 'passage')}")
    if shown:
        tables.console().print(tables.grid(("name", "tie", "passages", "steps"), [_row(entity) for entity in shown]))
    if found.passages:
        tables.console().print(tables.mentions(found.passages, full=full))


def _row(entity: Entity) -> tuple[str, ...]:
    return entity.name, f"{entity.weight:g}", f"{entity.passages:,}", f"{entity.distance}" if entity.distance else ""
