"""`eunoe ticket`: tickets that a director brings to an end with a coding worker."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eunoe.cli import output
from eunoe.cli.command import Listing, MisuseError, Settings, command
from eunoe.errors import EunoeError

if TYPE_CHECKING:
    from eunoe.projects import ProjectMemory
    from eunoe.tickets import DamagedRun, Run, RunFolder, RunState

_CODES = {"completed": 0, "failed": 1, "cancelled": 130}
_TERMINATED = 143
_DAMAGED = "damaged"

ProjectOption = Annotated[str, typer.Option("--project", "-p", metavar="NAME", help="The project it belongs to.")]
MemoryOption = Annotated[
    str | None,
    typer.Option("--memory", metavar="DIR", help="Folder of the project memory; else MEMORY_SAVE_DIR, else --store."),
]
LogOption = Annotated[
    str | None, typer.Option("--log", metavar="DIR", help="Folder of the logs; else one beside your own store.")
]
TicketArgument = Annotated[str, typer.Argument(metavar="ID", help="The id of a ticket.", show_default=False)]


def register(app: typer.Typer) -> None:
    group = typer.Typer(
        cls=Listing,
        help="Work tickets off with a director and a coding worker; without a command they are listed.",
        epilog="Example: eunoe ticket run login.md --project shop --worker claude --model anthropic:MODEL",
    )
    example = "eunoe ticket run login.md --project shop --worker claude --model anthropic:MODEL"
    command(group, "run", example)(run)
    command(group, "revert", "eunoe ticket revert login --project shop")(revert)
    command(group, "list", "eunoe ticket list --project shop")(list_)
    command(group, "show", "eunoe ticket show login --project shop")(show)
    app.add_typer(group, name="ticket")


def run(
    settings: Settings,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="The ticket: Markdown, JSON or TOML.", show_default=False)
    ],
    project: ProjectOption = "",
    worker: Annotated[
        str, typer.Option("--worker", "-w", metavar="WORKER", help='claude, claude:"OPTIONS" or command:"COMMAND".')
    ] = "claude",
    model: Annotated[
        str, typer.Option("--model", "-m", metavar="NAME", help="The director's model, as --llm; else EUNOE_LLM.")
    ] = "auto",
    turns: Annotated[int, typer.Option("--turns", metavar="N", help="At most so many prompts.", min=1)] = 20,
    directory: Annotated[str, typer.Option("--directory", "-C", metavar="DIR", help="Where the worker works.")] = ".",
    timeout: Annotated[float, typer.Option("--timeout", metavar="SECONDS", help="For one answer of it.")] = 3600.0,
    memory: MemoryOption = None,
    no_memory: Annotated[bool, typer.Option("--no-memory", help="Recall nothing and leave nothing.")] = False,
    log: LogOption = None,
    again: Annotated[bool, typer.Option("--again", help="Run it although it was completed.")] = False,
) -> None:
    """Work a ticket off. One that was killed is taken up again; Ctrl-C ends it after the turn, twice at once."""
    from eunoe.tickets import Director, Limits, Run, TicketMemory, ticket
    from eunoe.tickets.worker import load_worker

    if memory and no_memory:
        raise MisuseError("give either --memory or --no-memory")
    found = ticket.read_ticket(file, project)
    if not found.project:
        raise MisuseError("name the project of the ticket: --project NAME")
    director = Director(model, Limits(turns=turns))
    hands = load_worker(worker, directory=directory, timeout=timeout)
    shelf = _shelf(log)
    warn = partial(_warn_within, directory, shelf.path, _target(settings, memory))
    with _tolerant(settings, memory, no_memory) as opened:
        recollection = TicketMemory(opened, found.project, on_first_recall=warn)
        job = Run(found, director, hands, shelf, recollection, again=again, say=_say)
        with _interruptible(job):
            progress = job.finish()
    _report(settings, progress)
    raise typer.Exit(_CODES.get(progress.outcome, 1))


def revert(
    settings: Settings,
    id: TicketArgument,
    project: ProjectOption,
    memory: MemoryOption = None,
    log: LogOption = None,
) -> None:
    """Take back what a ticket left in memory: that, and nothing else."""
    from eunoe import tickets
    from eunoe.tickets.state import REVERTED

    target = _target(settings, memory)
    if target is None:
        raise MisuseError("there is no memory to take it from: name it with --memory DIR or MEMORY_SAVE_DIR")
    shelf = _shelf(log)
    before = shelf.load(project, id)
    with _opened(settings, target) as opened:
        removed = tickets.revert(shelf, opened, project, id)
    if settings.json:
        output.document({"ticket": id, "project": project, "removed": removed})
    elif before is not None and before.outcome == REVERTED and not removed:
        typer.echo(f"{id} was reverted already, nothing is left to remove")
    else:
        typer.echo(f"{id} is reverted, {output.counted(len(removed), 'memory')} removed")


def list_(settings: Settings, project: ProjectOption = "", log: LogOption = None) -> None:
    """List the tickets that were begun, and how each ended."""
    shelf = _shelf(log)
    found = list(shelf.all(project))
    if settings.json:
        output.document([_listed(shelf, one) for one in found])
    elif not found:
        output.say("nothing found")
    else:
        from eunoe.cli import tables

        names = ("project", "ticket", "outcome", "runs", "turns", "memories", "title")
        tables.console().print(tables.grid(names, [_row(shelf, one) for one in found]))


def show(settings: Settings, id: TicketArgument, project: ProjectOption, log: LogOption = None) -> None:
    """Show the log of a ticket's last run."""
    progress = _shelf(log).get(project, id)
    if settings.json:
        output.document(progress)
    else:
        from eunoe.cli.tables import safe
        from eunoe.tickets.run_log import render_log

        typer.echo(safe(render_log(progress)), nl=False)


def _shelf(folder: str | None) -> RunFolder:
    from eunoe.store.location import default_path
    from eunoe.tickets import RunFolder

    return RunFolder(folder or default_path().parent / "tickets")


def _target(settings: Settings, memory: str | None) -> tuple[str, bool] | None:
    """Where the project memory rests, and whether that is a folder for it; None if nobody named a place."""
    from eunoe.projects import SAVE_DIR_VARIABLE
    from eunoe.store.location import STORE_VARIABLE

    for place, is_folder in ((memory, True), (settings.store, False)):
        if place:
            return place, is_folder
    for variable, is_folder in ((SAVE_DIR_VARIABLE, True), (STORE_VARIABLE, False)):
        if place := os.environ.get(variable, "").strip():
            return place, is_folder
    return None


def _opened(settings: Settings, target: tuple[str, bool]) -> ProjectMemory:
    import eunoe
    from eunoe.projects import ProjectMemory

    place, is_folder = target
    if is_folder:
        return ProjectMemory.open(place, embedder=settings.embedder)
    return ProjectMemory(eunoe.open(place, embedder=settings.embedder or "auto", form=False))


def _tolerant(settings: Settings, memory: str | None, no_memory: bool) -> Any:
    """The project memory, if there is one; a ticket runs without one that cannot be opened, too."""
    from eunoe.tickets.memory import UnavailableMemory

    target = None if no_memory else _target(settings, memory)
    if target is None:
        return nullcontext(None)
    try:
        return _opened(settings, target)
    except (EunoeError, OSError) as error:
        return nullcontext(UnavailableMemory(error))


def _warn_within(directory: str, log: Path, target: tuple[str, bool] | None) -> None:
    """A worker reads what lies in its folder: what only the director may see should lie elsewhere."""
    from eunoe.store.location import IN_MEMORY

    home = Path(directory).resolve()
    places = [("logs", str(log)), *([("memory", target[0])] if target else [])]
    within = [
        f"the {name} in {place}"
        for name, place in places
        if "://" not in place and place != IN_MEMORY and Path(place).expanduser().resolve().is_relative_to(home)
    ]
    if within:
        output.say(f"{' and '.join(within)} can be read by the worker, which works in {home}")


@contextmanager
def _interruptible(job: Run) -> Iterator[None]:
    """Ctrl-C ends the ticket after its turn, a second one at once; SIGTERM stops it, to be taken up again."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked = threading.Event()

    def interrupt(number: int, frame: object) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()
        job.cancel()
        output.say("the ticket ends after this turn; Ctrl-C again ends it at once")

    def terminate(number: int, frame: object) -> None:
        output.say("the ticket is stopped; `eunoe ticket run` takes it up again")
        sys.exit(_TERMINATED)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _say(line: str) -> None:
    from eunoe.cli.tables import safe

    output.say(safe(line))


def _report(settings: Settings, progress: RunState) -> None:
    if settings.json:
        output.document(_plain(progress))
        return
    from eunoe.cli.tables import safe

    why = safe(output.one_line(progress.reason or progress.summary))
    typer.echo(f"{progress.outcome} in {output.counted(len(progress.turns), 'turn')}: {why}")
    typer.echo(f"log: {progress.log}")


def _plain(progress: RunState) -> dict[str, Any]:
    ticket = progress.ticket
    return {
        "project": ticket.project,
        "ticket": ticket.id,
        "title": ticket.title,
        "run": progress.run,
        "outcome": progress.outcome,
        "reason": progress.reason,
        "summary": progress.summary,
        "turns": len(progress.turns),
        "began": progress.began,
        "ended": progress.ended,
        "memories": progress.memories,
        "memory_failures": progress.memory_failures,
        "usage": progress.usage,
        "worker_cost": sum(step.worker_cost for step in progress.steps),
        "log": progress.log,
    }


def _listed(shelf: RunFolder, one: RunState | DamagedRun) -> dict[str, Any]:
    from eunoe.tickets import DamagedRun

    if isinstance(one, DamagedRun):
        return {"project": one.project, "ticket": one.ticket, "outcome": _DAMAGED, "reason": one.reason}
    return {**_plain(one), "outcome": shelf.outcome(one)}


def _row(shelf: RunFolder, one: RunState | DamagedRun) -> tuple[str, ...]:
    from eunoe.tickets import DamagedRun

    if isinstance(one, DamagedRun):
        return one.project, one.ticket, _DAMAGED, "", "", "", one.reason
    counts = (str(one.run), str(len(one.turns)), str(len(one.memories)))
    return one.ticket.project, one.ticket.id, shelf.outcome(one), *counts, one.ticket.title
