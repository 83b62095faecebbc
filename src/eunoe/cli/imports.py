"""Moving in: chats of other services, and other memories (`eunoe migrate`)."""

from __future__ import annotations

import sys
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from eunoe.apps.projects import ProjectMemory
from eunoe.apps.wiki.dumps import import_dumps
from eunoe.cli import display
from eunoe.cli.command import Call, MisuseError, Reply, command
from eunoe.cli.display import Grid, Pairs, one_line, quantity, shorten
from eunoe.cli.inputs import argument, problem_lines, repeatable_option
from eunoe.errors import InputError
from eunoe.hosts.eden import EdenReport
from eunoe.hosts.eden import migrate as migrate_eden
from eunoe.hosts.hipporag import HippoReport, import_folder, import_projects
from eunoe.hosts.hipporag.folder import check_folder, find_projects
from eunoe.hosts.mem0.migration import COLLECTION, Mem0Report, describe, find_folder
from eunoe.hosts.mem0.migration import migrate as migrate_mem0
from eunoe.model.scope import Scope

if TYPE_CHECKING:
    from eunoe.hosts.chats import ChatReport, ChatSummary

_PERSON_HELP: Final = "Where the conversations of one person go."
_MAX_PEOPLE_SHOWN: Final = 20
_MAX_NAME_CHARACTERS: Final = 60


@command("eunoe import-chats conversations.json --scope user=anna", asks_llm=True)
def import_chats(
    call: Call,
    file: Annotated[str, argument("FILE", "A file, zip archive or folder of an export, or a SQLite file.")],
    scope: Annotated[str | None, typer.Option("--scope", metavar="SCOPE", help="Whose the conversations are.")] = None,
    person: Annotated[list[str] | None, repeatable_option("--person", "NAME=SCOPE", _PERSON_HELP)] = None,
    form: Annotated[bool, typer.Option("--form/--no-form", help="Form memories from what is new.")] = True,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before writing.")] = False,
) -> Reply:
    """Bring in chats: ChatGPT, Claude, LangChain, LangGraph, OpenAI Agents SDK, JSON Lines.

    What the file holds is shown before anything is written. A second import of the same file changes nothing.
    """
    from eunoe.hosts import chats

    people, rest = dict(map(_parse_person, person or [])), Scope.parse(scope) if scope is not None else None
    source = chats.open_chats(file)
    with display.progress("reading") as advance:
        summary = chats.summarise_chats(source, progress=advance)
    if rest is None and not people:
        return _preview(summary, "nothing was written: name whose they are, such as --scope user=anna")
    chats.check_owners(summary, people, rest)
    if not yes and (call.json or not _is_terminal()):
        return _preview(summary, "nothing was written: add --yes to bring them in")
    if not call.json:
        call.show(_preview(summary))
    if not yes and not _agrees():
        return Reply(None, empty="nothing was written")
    memory = call.open(create=True)
    with display.progress("bringing in") as advance:
        report = chats.import_chats(memory, source, rest, people=people, form=form, progress=advance)
    return _reply(summary, report)


def _preview(summary: ChatSummary, *notes: str) -> Reply:
    return Reply(
        {"found": asdict(summary)},
        Pairs(_summary_values(summary)),
        notes=[*problem_lines("cannot be read", summary.problems), *notes],
        code=1 if summary.problems else 0,
    )


def _reply(summary: ChatSummary, report: ChatReport) -> Reply:
    return Reply(
        {"found": asdict(summary), "report": asdict(report)},
        f"{quantity(report.conversations, 'conversation')} read, {quantity(report.stored, 'message')} stored",
        f"{report.known:,} known already, {report.forgotten:,} forgotten before",
        f"{quantity(report.formed, 'memory')} formed" if report.formed else "",
        notes=problem_lines("not brought in", tuple(line for line in report.problems if line not in summary.problems)),
        code=1 if report.problems else 0,
    )


def _parse_person(text: str) -> tuple[str, Scope]:
    name, sign, scope = text.partition("=")
    if not sign or not name.strip():
        raise MisuseError(f"--person {text!r}: write NAME=SCOPE, such as 'Anna Berg=user=anna'")
    return name, Scope.parse(scope)


def _summary_values(summary: ChatSummary) -> dict[str, str]:
    left_out = f" ({summary.left_out:,} of older versions are left out)" if summary.left_out else ""
    names = [f"{_name(name)}: {count:,}" for name, count in summary.people.items()]
    more = [f"{len(names) - _MAX_PEOPLE_SHOWN:,} more"] if len(names) > _MAX_PEOPLE_SHOWN else []
    return {
        "format": summary.format,
        "conversations": f"{summary.conversations:,}",
        "messages": f"{summary.messages:,}{left_out}",
        "whose": "; ".join([*names[:_MAX_PEOPLE_SHOWN], *more]),
        "from": f"{_day(summary.first)} to {_day(summary.last)}",
    }


def _name(name: str) -> str:
    return shorten(one_line(name), _MAX_NAME_CHARACTERS) or "the file does not say"


def _day(time: datetime | None) -> str:
    return time.strftime("%Y-%m-%d") if time else "unknown"


def _agrees() -> bool:
    print("Bring them in? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _is_terminal() -> bool:
    return sys.stdin.isatty()


@command("eunoe migrate eden memory_user.json memory_agent.json memory_sessions.json")
def eden(call: Call, files: Annotated[list[str], argument("FILE...", "Exports, as JSON or JSON Lines.")]) -> Reply:
    """Move in from Eden: its memory_user, memory_agent and memory_sessions.

    A second run changes nothing.
    """
    _check_files(files)
    memory = call.open(create=True)
    with display.progress("moving in") as advance:
        report = migrate_eden(memory, *files, progress=advance)
    return Reply(
        asdict(report),
        f"{quantity(report.documents, 'document')} read",
        _eden_grid(report),
        "\n".join(_left_out_lines(report)),
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
        f"{report.stored:,} stored, {report.known:,} known already, {report.forgotten:,} forgotten before",
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
    no_history = ["no history database was read: name it with --history to keep earlier versions"]
    return Reply(
        asdict(report),
        _mem0_contents(report),
        "nothing was written; without --dry-run they move in" if dry_run else _mem0_outcome(report),
        notes=[*([] if report.history else no_history), *problem_lines("cannot be read", report.problems)],
        code=1 if report.problems else 0,
    )


def _check_files(files: list[str]) -> None:
    """Refuse files that are not there before a store is made for them."""
    for file in files:
        if not Path(file).is_file():
            raise InputError(f"{file} is no file")


def _mem0_contents(report: Mem0Report) -> str:
    span = f", from {report.first[:10]} to {report.last[:10]}" if report.first else ""
    earlier = f" with {quantity(report.versions, 'earlier version')}" if report.versions else ""
    return f"{quantity(report.memories, 'memory')}{earlier} of {quantity(report.scopes, 'scope')}{span}"


def _mem0_outcome(report: Mem0Report) -> str:
    done = f"{report.stored:,} stored, {report.known:,} known already, {report.forgotten:,} forgotten before"
    return f"{done}, {report.conflicts:,} in conflict"


def _eden_grid(report: EdenReport) -> Grid:
    kinds = {"shards": report.settings, "summaries": report.summaries}
    kinds |= {"facts": report.facts, "observations": report.observations}
    rows = [
        (name, *(f"{count:,}" for count in (each.stored, each.known, each.forgotten, each.conflicts)))
        for name, each in kinds.items()
    ]
    return Grid(("", "stored", "known already", "forgotten before", "in conflict"), rows)


def _left_out_lines(report: EdenReport) -> list[str]:
    reasons = (
        (report.episodes, "episode", "(a session's memory is written anew from its messages)"),
        (report.absorbed, "item", "that a summary has absorbed already"),
        (report.unlisted, "fact", "that no shard lists any more"),
    )
    return [f"left out: {quantity(count, noun)} {reason}" for count, noun, reason in reasons if count]
