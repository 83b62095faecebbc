"""`eunoe ticket`: tickets that a director brings to an end with a coding worker."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import typer

import eunoe
from eunoe.apps import tickets
from eunoe.apps.projects import SAVE_DIR_VARIABLE, ProjectMemory, ProjectSettings
from eunoe.apps.projects.settings import is_server
from eunoe.apps.tickets import (
    Check,
    DamagedRun,
    Director,
    Limits,
    Run,
    RunFolder,
    RunState,
    TicketMemory,
    WorkFolder,
    load_worker,
    read_ticket,
)
from eunoe.apps.tickets.memory import UnavailableMemory
from eunoe.apps.tickets.run_folder import render_log
from eunoe.apps.tickets.ticket import as_sentence
from eunoe.cli import display
from eunoe.cli.command import Call, MisuseError, Options, Reply, command
from eunoe.cli.display import Entries, Entry, Grid
from eunoe.cli.inputs import argument
from eunoe.cli.serve import signal_handlers
from eunoe.errors import EunoeError, NotFoundError
from eunoe.memory import IN_MEMORY, STORE_VARIABLE, default_path

_EXIT_CODES: Final = {"completed": 0, "failed": 1, "cancelled": 130}
_TERMINATED: Final = 143
_DAMAGED: Final = "damaged"
_MEMORY_HELP: Final = "Folder of the project memory, or a server; else --store, MEMORY_SAVE_DIR or EUNOE_STORE."
_LOG_HELP: Final = "Folder of the logs; else one beside your own store."
_WORKER_HELP: Final = 'claude, codex, either with :"OPTIONS", or command:"COMMAND".'
_CHECK_HELP: Final = "A command that must succeed before the ticket is complete."
_MODEL_HELP: Final = "The director's model, as --llm; else EUNOE_LLM."

ProjectOption = Annotated[str, typer.Option("--project", "-p", metavar="NAME", help="The project it belongs to.")]
MemoryOption = Annotated[str | None, typer.Option("--memory", metavar="DIR", help=_MEMORY_HELP)]
LogOption = Annotated[str | None, typer.Option("--log", metavar="DIR", help=_LOG_HELP)]
TicketArgument = Annotated[str, argument("ID", "The id of a ticket.")]


@command("eunoe ticket run login.md --project shop --worker claude --model anthropic:MODEL")
def run(
    call: Call,
    file: Annotated[str, argument("FILE", "The ticket: Markdown, JSON or TOML.")],
    project: ProjectOption = "",
    worker: Annotated[str, typer.Option("--worker", "-w", metavar="WORKER", help=_WORKER_HELP)] = "claude",
    model: Annotated[str, typer.Option("--model", "-m", metavar="NAME", help=_MODEL_HELP)] = "auto",
    turns: Annotated[int, typer.Option("--turns", metavar="N", help="At most so many prompts.", min=1)] = 20,
    directory: Annotated[str, typer.Option("--directory", "-C", metavar="DIR", help="Where the worker works.")] = ".",
    timeout: Annotated[float, typer.Option("--timeout", metavar="SECONDS", help="For one answer of it.")] = 3600.0,
    check: Annotated[str | None, typer.Option("--check", metavar="COMMAND", help=_CHECK_HELP)] = None,
    memory: MemoryOption = None,
    no_memory: Annotated[bool, typer.Option("--no-memory", help="Recall nothing and leave nothing.")] = False,
    log: LogOption = None,
    again: Annotated[bool, typer.Option("--again", help="Run it although it was completed.")] = False,
) -> Reply:
    """Work a ticket off, or take up one that was killed.

    Ctrl-C ends it after the turn, twice at once.
    """
    if memory and no_memory:
        raise MisuseError("give either --memory or --no-memory")
    ticket = read_ticket(file, project)
    if not ticket.project:
        raise MisuseError("name the project of the ticket: --project NAME")
    director = Director(model, Limits(turns=turns))
    coder = load_worker(worker, directory=directory, timeout=timeout)
    judge = None if check is None else Check(check, directory=directory, timeout=timeout)
    folder = _run_folder(log)
    place = None if no_memory else _find_place(call.options, memory)
    warn = partial(_warn_of_readable_places, directory, folder.path, place)
    with _open_if_possible(call.options, place) as opened:
        memories = TicketMemory(opened, ticket.project, on_first_recall=warn)
        job = Run(
            ticket,
            director,
            coder,
            folder,
            memories,
            work_folder=WorkFolder(directory, [folder.path, *([place.target] if place else [])]),
            check=judge,
            again=again,
            say=display.say,
        )
        with _cancel_on_signals(job):
            state = job.finish()
    reason = display.one_line(f"{as_sentence(state.reason or state.summary)} {state.evidence}")
    text = f"{state.outcome} in {display.quantity(len(state.turns), 'turn')}: {display.escape_controls(reason)}"
    text += f"\nlog: {state.log}"
    return Reply(_document(state), text, code=_EXIT_CODES.get(state.outcome, 1))


@command("eunoe ticket revert login --project shop")
def revert(
    call: Call, id: TicketArgument, project: ProjectOption, memory: MemoryOption = None, log: LogOption = None
) -> Reply:
    """Remove what a ticket left in memory; set a damaged state aside."""
    folder = _run_folder(log)
    was_reverted = folder.outcome_of(project, id) == "reverted"
    with _open_memory(call.options, memory) as opened:
        removed = tickets.revert(folder, opened, project, id)
    text = f"{id} is reverted, {display.quantity(len(removed), 'memory')} removed"
    if was_reverted and not removed:
        text = f"{id} was reverted already, nothing is left to remove"
    return Reply({"ticket": id, "project": project, "removed": removed}, text)


@command("eunoe ticket lessons --project shop")
def lessons(
    call: Call,
    project: ProjectOption,
    ticket: Annotated[str, typer.Option("--ticket", metavar="ID", help="Of this ticket only.")] = "",
    memory: MemoryOption = None,
) -> Reply:
    """List what tickets left in memory."""
    with _open_memory(call.options, memory) as opened:
        found = tickets.find_lessons(opened, project, ticket)
    rows = [Entry((lesson.ticket, lesson.time[:10], lesson.outcome), lesson.text, lesson.id) for lesson in found]
    return Reply([lesson._asdict() for lesson in found], Entries(("ticket", "date", "outcome"), rows, is_full=True))


@command("eunoe ticket redact --project shop --dry-run")
def redact(
    call: Call,
    project: ProjectOption,
    memory: MemoryOption = None,
    log: LogOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say where secrets are.")] = False,
) -> Reply:
    """Take secrets out of lessons, states and logs. The old words are forgotten."""
    found: list[tickets.Cleaning] = []
    if _find_place(call.options, memory):
        with _open_memory(call.options, memory) as opened:
            found += tickets.redact_lessons(opened, project, dry_run=dry_run)
    found += tickets.redact_runs(_run_folder(log), project, dry_run=dry_run)
    rows = [(cleaning.what, str(cleaning.secrets), cleaning.trouble) for cleaning in found]
    verb = "would be redacted" if dry_run else "redacted"
    return Reply(
        [cleaning._asdict() for cleaning in found],
        Grid((verb, "secrets", "still to do"), rows),
        empty="no secrets found",
        code=int(any(cleaning.trouble for cleaning in found)),
    )


@command("eunoe ticket list --project shop")
def list_(call: Call, project: ProjectOption = "", log: LogOption = None) -> Reply:
    """List the tickets that were begun, and how each ended."""
    folder = _run_folder(log)
    documents = [_listed_document(folder, ticket) for ticket in folder.all(project)]
    names = ("project", "ticket", "outcome", "runs", "turns", "memories", "title")
    rows = [
        (
            *(each["project"], each["ticket"], each["outcome"], str(each.get("run", "")), str(each.get("turns", ""))),
            str(len(each["memories"])) if "memories" in each else "",
            each.get("title", each["reason"]),
        )
        for each in documents
    ]
    return Reply(documents, Grid(names, rows))


@command("eunoe ticket show login --project shop")
def show(call: Call, id: TicketArgument, project: ProjectOption, log: LogOption = None) -> Reply:
    """Show the log of a ticket's last run."""
    state = _run_folder(log).get(project, id)
    return Reply(state, display.escape_controls(render_log(state)))


class _Place(NamedTuple):
    """Where the project memory rests: in a folder of its own, in a store, or on a server."""

    target: str
    is_folder: bool

    def open(self, options: Options, *, create: bool = True) -> ProjectMemory:
        if self.is_folder or is_server(self.target):
            return ProjectMemory.open(self.target, embedder=options.embedder)
        return ProjectMemory(eunoe.open(self.target, embedder=options.embedder or "auto", form=False, create=create))


def _open_memory(options: Options, memory: str | None) -> ProjectMemory:
    """Open a memory to look into it: one that is not there is not made."""
    place = _find_place(options, memory)
    if place is None:
        raise MisuseError("there is no memory to look into: name it with --memory DIR or MEMORY_SAVE_DIR")
    store = ProjectSettings(save_dir=place.target).target() if place.is_folder else ""
    if isinstance(store, Path) and not store.exists():
        raise NotFoundError(f"there is no project memory in {place.target}")
    return place.open(options, create=False)


def _run_folder(folder: str | None) -> RunFolder:
    return RunFolder(folder or default_path().parent / "tickets")


def _find_place(options: Options, memory: str | None) -> _Place | None:
    named = (
        (memory, True),
        (options.store, False),
        (os.environ.get(SAVE_DIR_VARIABLE), True),
        (os.environ.get(STORE_VARIABLE), False),
    )
    return next((_Place(target.strip(), is_folder) for target, is_folder in named if target and target.strip()), None)


def _open_if_possible(options: Options, place: _Place | None) -> AbstractContextManager[Any]:
    """A ticket also runs without a memory, or with one that cannot be opened."""
    try:
        return place.open(options) if place else nullcontext()
    except (EunoeError, OSError) as error:
        return nullcontext(UnavailableMemory(error))


def _warn_of_readable_places(directory: str, log: Path, place: _Place | None) -> None:
    """A worker reads what lies in its folder: what only the director may see should lie elsewhere."""
    home = Path(directory).resolve()
    places = [("logs", str(log)), *([("memory", place.target)] if place else [])]
    readable = [
        f"the {name} in {target}"
        for name, target in places
        if "://" not in target and target != IN_MEMORY and Path(target).expanduser().resolve().is_relative_to(home)
    ]
    if readable:
        display.say(f"{' and '.join(readable)} can be read by the worker, which works in {home}")


def _cancel_on_signals(job: Run) -> AbstractContextManager[None]:
    """Ctrl-C ends the ticket after its turn, a second one at once; SIGTERM stops it, to be taken up again."""
    if threading.current_thread() is not threading.main_thread():
        return nullcontext()
    cancelled = threading.Event()

    def interrupt(number: int, frame: object) -> None:
        if cancelled.is_set():
            raise KeyboardInterrupt
        cancelled.set()
        job.cancel()
        display.say("the ticket ends after this turn; Ctrl-C again ends it at once")

    def terminate(number: int, frame: object) -> None:
        display.say("the ticket is stopped; `eunoe ticket run` takes it up again")
        sys.exit(_TERMINATED)

    return signal_handlers(interrupt, terminate)


def _document(state: RunState) -> dict[str, Any]:
    plain = ("run", "outcome", "reason", "summary", "evidence", "began", "ended", "memories", "memory_failures")
    return {
        "project": state.ticket.project,
        "ticket": state.ticket.id,
        "title": state.ticket.title,
        **{name: getattr(state, name) for name in (*plain, "usage", "log")},
        "turns": len(state.turns),
        "worker_cost": sum(step.worker_cost for step in state.steps),
    }


def _listed_document(folder: RunFolder, ticket: RunState | DamagedRun) -> dict[str, Any]:
    if isinstance(ticket, DamagedRun):
        return {"project": ticket.project, "ticket": ticket.ticket, "outcome": _DAMAGED, "reason": ticket.reason}
    return {**_document(ticket), "outcome": folder.outcome(ticket)}
