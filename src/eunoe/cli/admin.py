"""Commands on whole stores: backup, restore, export, import, reembed, reindex, check."""

from typing import Annotated

import typer

import eunoe
from eunoe.cli import display, inputs
from eunoe.cli.command import Call, Given, MisuseError, Reply, command, verb_command
from eunoe.cli.display import quantity
from eunoe.cli.inputs import argument
from eunoe.errors import InputError
from eunoe.model.json import json_value


@command("eunoe backup anna-monday.db")
def backup(call: Call, file: Annotated[str, argument("FILE", "A new file, or an earlier backup.")]) -> Reply:
    """Copy the whole store to a file, while it is in use.

    The copy is read once more before it takes the place of an earlier backup.
    """
    memory = call.open()
    with display.progress("copying") as advance:
        report = memory.admin.backup(file, progress=advance)
    return Reply(report, f"{_content(report)} written to {file}")


@command("eunoe restore anna-monday.db --store memory.db", without=("embedder",))
def restore(
    call: Call,
    file: Annotated[str, argument("FILE", "A backup.")],
    discard: Annotated[bool, typer.Option("--discard", help="Delete the store that is replaced.")] = False,
) -> Reply:
    """Put a backup in the place of the store.

    Nobody may have the store open. It is kept beside the new one, under a name with the date.
    """
    with display.progress("copying") as advance:
        report = eunoe.restore(file, call.options.store, keep=not discard, progress=advance)
    kept = [f"the store before is kept as {report.kept}"] if report.kept else []
    return Reply(report, f"{_content(report)} restored to {report.path}", notes=kept)


def _content(report: eunoe.BackupReport) -> str:
    counts = {"message": report.messages, "fact": report.facts, "observation": report.observations}
    words = ", ".join(quantity(count, noun) for noun, count in counts.items())
    return f"{words} in {quantity(report.scopes, 'scope')} ({report.bytes:,} bytes)"


@command("eunoe export user=anna -o anna.jsonl", verb="admin.export", without=("scope",))
def export(
    call: Call,
    given: Given,
    scopes: Annotated[list[str] | None, argument("[SCOPE]...", "Whose memories.")] = None,
    all: Annotated[bool, typer.Option("--all", help="Every scope of the store.")] = False,
    file: Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="A file; - for standard output.")] = "-",
) -> Reply | None:
    """Write memories as JSON Lines, without loss."""
    if bool(scopes) == all:
        raise MisuseError("name the scopes, or say --all")
    if call.json and file == "-":
        raise MisuseError("--json goes with -o FILE: on standard output the export itself is JSON already")
    memory = call.open()
    chosen = [*memory.scopes()] if all else [*(scopes or ())]
    if not chosen:
        raise InputError("the store is empty: there is nothing to export")
    with display.progress("exporting") as advance:
        target = display.utf8_output() if file == "-" else file
        given["exact"] = given["exact"] or all
        count = call.ask(given, scope=chosen, target=target, progress=advance)
    if file == "-":
        display.say(f"{quantity(count, 'line')} written")
        return None
    return Reply({"file": file, "lines": count}, f"{quantity(count, 'line')} written to {file}")


@command("eunoe import anna.jsonl --store other.db")
def import_(call: Call, file: Annotated[str, argument("FILE", "An export, or - for standard input.")]) -> Reply:
    """Read an export.

    Read twice it changes nothing, and what was forgotten here stays forgotten.
    """
    with inputs.open_text(file) as source:
        lines = inputs.export_lines(file, source)
        memory = call.open(create=True)
        with display.progress("importing") as advance:
            report = memory.admin.import_(lines, progress=advance)
    counts = {
        "stored": report.stored,
        "known already": report.duplicates,
        "closed": report.closed,
        "refused (forgotten before)": report.forgotten,
        "refused (the id stands for other words)": report.conflicts,
        "tombstones": report.tombstones,
    }
    words = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
    document = {"lines": report.lines, **json_value(report)}
    return Reply(document, f"{quantity(report.lines, 'line')}: {words or 'nothing to do'}")


@command("eunoe reembed minilm")
def reembed(
    call: Call,
    model: Annotated[str, argument("[MODEL]", "none, eunoe, static, minilm, folder:PATH or openai:MODEL.")] = "",
) -> Reply:
    """Make all vectors with another model, or those that are missing.

    Stopped halfway, it goes on where it was.
    """
    memory = call.open(embedder="auto")
    with display.progress("embedding") as advance:
        count = memory.admin.reembed(model or call.options.embedder, progress=advance)
    name = memory.status().embedder
    return Reply({"made": count, "embedder": name}, f"{quantity(count, 'vector')} made; the store's model is {name}")


def _show_reindexed(count: int, _: Given) -> Reply:
    return Reply({"indexes": count}, f"{quantity(count, 'index')} built")


reindex = verb_command(
    "eunoe reindex user=anna", "admin.reindex", "Build indexes anew from what is stored.", _show_reindexed
)


@command("eunoe check")
def check(call: Call) -> Reply:
    """Read the whole store and say what is damaged or lost.

    Exits with 1 if anything is.
    """
    memory = call.open()
    with display.progress("checking") as advance:
        report = memory.admin.check(progress=advance)
    read = f"{quantity(report.rows, 'row')} read"
    lines = [str(damage) for damage in report.damage] or ["everything is as it was written"]
    return Reply(report, "\n".join([*lines, read]), code=0 if report else 1)
