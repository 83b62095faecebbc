"""`eunoe migrate`: moving in from another memory."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from eunoe.apps.projects import ProjectMemory
from eunoe.apps.wiki.dumps import DumpReport, import_dumps
from eunoe.cli import display
from eunoe.cli.command import Call, Reply, command
from eunoe.cli.display import Grid, quantity
from eunoe.cli.inputs import argument, problem_lines, repeatable_option
from eunoe.errors import InputError
from eunoe.hosts.eden import migrate as migrate_eden
from eunoe.hosts.hipporag import HippoReport, import_folder, import_projects
from eunoe.hosts.hipporag.folder import check_folder, find_projects
from eunoe.hosts.mem0.migration import COLLECTION, Mem0Report, describe, find_folder
from eunoe.hosts.mem0.migration import migrate as migrate_mem0


@command("eunoe migrate eden memory_user.json memory_agent.json memory_sessions.json")
def eden(call: Call, files: Annotated[list[str], argument("FILE...", "Exports, as JSON or JSON Lines.")]) -> Reply:
    """Move in from Eden: its memory_user, memory_agent and memory_sessions.

    A second run changes nothing.
    """
    _check_files(files)
    memory = call.open(create=True)
    with display.progress("moving in") as advance:
        report = migrate_eden(memory, *files, progress=advance)
    kinds = {"shards": report.settings, "summaries": report.summaries}
    kinds |= {"facts": report.facts, "observations": report.observations}
    rows = [
        (name, *(f"{count:,}" for count in (each.stored, each.known, each.forgotten, each.conflicts)))
        for name, each in kinds.items()
    ]
    left_out = (
        (report.episodes, "episode", "(a session's memory is written anew from its messages)"),
        (report.absorbed, "item", "that a summary has absorbed already"),
        (report.unlisted, "fact", "that no shard lists any more"),
    )
    return Reply(
        asdict(report),
        f"{quantity(report.documents, 'document')} read",
        Grid(("", "stored", "known already", "forgotten before", "in conflict"), rows),
        "\n".join(f"left out: {quantity(count, noun)} {reason}" for count, noun, reason in left_out if count),
        notes=[*problem_lines("not found", report.missing), *problem_lines("cannot be read", report.problems)],
        code=1 if report.problems else 0,
    )


@command("eunoe migrate hipporag outputs --project shop")
def hipporag(
    call: Call,
    folder: Annotated[str, argument("FOLDER", "HippoRAG's save_dir, or a folder of several.")],
    project: Annotated[str, typer.Option("--project", "-p", metavar="NAME", help="Where its documents go.")] = "",
) -> Reply:
    """Move in from HippoRAG: its documents with their entities, triples and metadata.

    Without --project each folder in FOLDER is one save_dir, and becomes the project of its name. A second run brings
    back what was deleted since, not what was forgotten, and changes nothing else.
    """
    for each in [folder] if project else find_projects(folder):
        check_folder(each)  # before a store is made
    memory = ProjectMemory(call.open(create=True))
    with display.progress("moving in") as advance:
        if project:
            reports = {project: import_folder(memory, project, folder, progress=advance)}
        else:
            reports = import_projects(memory, folder, progress=advance)
    report = sum(reports.values(), HippoReport())
    projects = "" if project else f" of {quantity(len(reports), 'project')}"
    graph = f"{quantity(report.entities, 'entity')} and {quantity(report.triples, 'triple')}"
    described = f"; {report.described:,} with metadata" if report.described else ""
    return Reply(
        asdict(report) if project else {name: asdict(each) for name, each in reports.items()},
        f"{quantity(report.documents, 'document')}{projects} read",
        f"{report.stored:,} stored, with {graph}{described}",
        f"{report.known:,} known already, {report.forgotten:,} forgotten before",
        notes=[*(f"not read: {line}" for line in report.unread), *problem_lines("cannot be read", report.problems)],
        code=1 if report.problems else 0,
    )


@command("eunoe migrate wiki wiki_memories.json --clone-path '/tmp/clones/*'")
def wiki(
    call: Call,
    files: Annotated[list[str], argument("FILE...", "Dumps by mongoexport or bsondump, as JSON or JSON Lines.")],
    clone_paths: Annotated[
        list[str] | None,
        repeatable_option("--clone-path", "FOLDER", "Where repositories were cloned to; * is any name."),
    ] = None,
) -> Reply:
    """Move in from MongoDB: a collection wiki_memories, each memory to its repository.

    A second run changes nothing.
    """
    _check_files(files)
    memory = call.open(create=True)
    with display.progress("moving in") as advance:
        report = import_dumps(memory, *files, clone_paths=clone_paths or (), progress=advance)
    return Reply(
        asdict(report),
        f"{quantity(report.documents, 'document')} of {quantity(report.repositories, 'repository')} read",
        _counts(report),
        notes=problem_lines("cannot be read", report.problems),
        code=1 if report.problems else 0,
    )


@command("eunoe migrate mem0 ~/.mem0/qdrant --history ~/.mem0/history.db --dry-run")
def mem0(
    call: Call,
    folder: Annotated[str, argument("FOLDER", "The path of its vector store (qdrant).")],
    history: Annotated[str | None, typer.Option("--history", metavar="FILE", help="Its history database.")] = None,
    collection: Annotated[str, typer.Option("--collection", metavar="NAME", help="Which collection.")] = COLLECTION,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what there is.")] = False,
) -> Reply:
    """Move in from mem0: its memories with their ids, times, metadata and earlier versions.

    A second run changes nothing.
    """
    if dry_run:
        report = describe(folder, history, collection=collection)
    else:
        find_folder(Path(folder))  # before a store is made
        memory = call.open(create=True)
        with display.progress("moving in") as advance:
            report = migrate_mem0(memory, folder, history, collection=collection, progress=advance)
    span = f", from {report.first[:10]} to {report.last[:10]}" if report.first else ""
    earlier = f" with {quantity(report.versions, 'earlier version')}" if report.versions else ""
    done = f"{_counts(report)}, {report.conflicts:,} in conflict"
    no_history = ["no history database was read: name it with --history to keep earlier versions"]
    return Reply(
        asdict(report),
        f"{quantity(report.memories, 'memory')}{earlier} of {quantity(report.scopes, 'scope')}{span}",
        "nothing was written; without --dry-run they move in" if dry_run else done,
        notes=[*([] if report.history else no_history), *problem_lines("cannot be read", report.problems)],
        code=1 if report.problems else 0,
    )


def _check_files(files: list[str]) -> None:
    """Refuse files that are not there before a store is made for them."""
    for file in files:
        if not Path(file).is_file():
            raise InputError(f"{file} is no file")


def _counts(report: DumpReport | Mem0Report) -> str:
    return f"{report.stored:,} stored, {report.known:,} known already, {report.forgotten:,} forgotten before"
