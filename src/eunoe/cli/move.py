"""Commands on whole stores: export, import, re-embed, reindex."""

from __future__ import annotations

from typing import Annotated

import typer

from eunoe.cli import inputs, output
from eunoe.cli.command import MisuseError, Settings, command
from eunoe.errors import InputError


def register(app: typer.Typer) -> None:
    command(app, "export", "eunoe export user=anna -o anna.jsonl")(export)
    command(app, "import", "eunoe import anna.jsonl --store other.db")(import_)
    command(app, "re-embed", "eunoe re-embed minilm")(re_embed)
    command(app, "reindex", "eunoe reindex user=anna")(reindex)


def export(
    settings: Settings,
    scopes: Annotated[list[str] | None, typer.Argument(metavar="[SCOPE]...", help="Whose memories.")] = None,
    all: Annotated[bool, typer.Option("--all", help="Every scope of the store.")] = False,
    file: Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="A file; - for standard output.")] = "-",
) -> None:
    """Write memories as JSON Lines, without loss."""
    if bool(scopes) == all:
        raise MisuseError("name the scopes, or say --all")
    if settings.json and file == "-":
        raise MisuseError("--json goes with -o FILE: on standard output the export itself is JSON already")
    with settings.memory() as memory, output.progress("exporting") as advance:
        chosen = [*memory.scopes()] if all else [*(scopes or ())]
        if not chosen:
            raise InputError("the store is empty: there is nothing to export")
        target = output.utf8_output() if file == "-" else file
        count = memory.admin.export(chosen, target, progress=advance)
    if settings.json:
        output.document({"file": file, "lines": count})
    elif file != "-":
        typer.echo(f"{output.counted(count, 'line')} written to {file}")
    else:
        output.say(f"{output.counted(count, 'line')} written")


def import_(
    settings: Settings,
    file: Annotated[str, typer.Argument(metavar="FILE", help="An export, or - for standard input.")],
) -> None:
    """Read an export; read twice it changes nothing, and what was forgotten stays forgotten."""
    with inputs.opened(file) as source:
        lines = inputs.export_lines(file, source)
        with settings.memory(create=True) as memory, output.progress("importing") as advance:
            report = memory.admin.import_(lines, progress=advance)
    if settings.json:
        output.document({"lines": report.lines, **output.plain(report)})
        return
    counts = {
        "stored": report.stored,
        "known already": report.duplicates,
        "closed": report.closed,
        "refused (forgotten before)": report.forgotten,
        "refused (the id stands for other words)": report.conflicts,
        "marks of what was forgotten": report.tombstones,
    }
    said = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
    typer.echo(f"{output.counted(report.lines, 'line')}: {said or 'nothing to do'}")


def re_embed(
    settings: Settings,
    model: Annotated[
        str,
        typer.Argument(metavar="[MODEL]", help="none, eunoe, static, minilm or openai:MODEL; else what is missing."),
    ] = "",
) -> None:
    """Make all vectors with another model, or those still missing; stopped halfway, it goes on where it was."""
    with settings.memory() as memory, output.progress("embedding") as advance:
        made = memory.admin.reembed(model or None, progress=advance)
        name = memory.status().embedder
    if settings.json:
        output.document({"made": made, "embedder": name})
    else:
        typer.echo(f"{output.counted(made, 'vector')} made; the store's model is {name}")


def reindex(
    settings: Settings,
    scopes: Annotated[list[str], typer.Argument(metavar="SCOPE...", help="Whose indexes.", show_default=False)],
) -> None:
    """Build indexes anew from the rows; a check that they can be, since they are only ever derived."""
    with settings.memory() as memory:
        count = memory.admin.reindex([*scopes])
    if settings.json:
        output.document({"indexes": count})
    else:
        typer.echo(f"{count:,} {'index' if count == 1 else 'indexes'} built")
