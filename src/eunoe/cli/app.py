"""The application: its commands, its exit codes, and every failure as one line."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from typing import Annotated

import typer

from eunoe import __version__
from eunoe.cli import (
    chat,
    eden,
    forget,
    forming,
    graph,
    hipporag,
    move,
    read,
    revisions,
    streams,
    ticket,
    worker,
    write,
)
from eunoe.cli.bench import bench
from eunoe.cli.command import EmbedderOption, JsonOption, MisuseError, Settings, StoreOption
from eunoe.cli.output import one_line
from eunoe.cli.tour import demo
from eunoe.errors import EunoeError

FAILED, MISUSED, INTERRUPTED = 1, 2, 130
DEBUG = "EUNOE_DEBUG"

app = typer.Typer(
    name="eunoe",
    help="A memory for AI agents: keeps every word, brings the right ones back, in one file.",
    epilog='Example: eunoe remember user=anna "Anna is allergic to peanuts."',
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
)
for module in (write, read, graph, forming, streams, revisions, forget, chat, worker, ticket, move, eden, hipporag):
    module.register(app)
app.command("demo", epilog="Example: eunoe demo --keep tour.db")(demo)
app.add_typer(bench, name="bench")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"eunoe {__version__}")
        raise typer.Exit


@app.callback()
def root(
    ctx: typer.Context,
    store: StoreOption = None,
    embedder: EmbedderOption = None,
    json: JsonOption = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    ctx.obj = Settings(store, embedder, json)
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


def run(args: Sequence[str]) -> int:
    """Runs a command line; gives its exit code. Whatever goes wrong is said in one line on standard error."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    command = typer.main.get_command(app)
    try:
        with warnings_in_one_line():
            code = command.main(list(args), prog_name="eunoe", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        _silence(sys.stdout.fileno())
        return FAILED
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except Exception as error:
        if os.environ.get(DEBUG):
            raise
        text, code = _said(error)
        print(f"eunoe: {text}", file=sys.stderr)
    return code if isinstance(code, int) else 0


class OneLine(logging.Formatter):
    """A log record like an error of a command."""

    def format(self, record: logging.LogRecord) -> str:
        return f"eunoe: {one_line(record.getMessage())}"


@contextmanager
def warnings_in_one_line() -> Iterator[None]:
    """What the engine logs for its host is said like an error, without where it came from."""
    handler = logging.StreamHandler()
    if not os.environ.get(DEBUG):
        handler.setFormatter(OneLine())
    logger = logging.getLogger("eunoe")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def _said(error: Exception) -> tuple[str, int]:
    """The line for an error, and the exit code it stands for."""
    if isinstance(error, EunoeError):
        return one_line(error), FAILED
    if isinstance(error, MisuseError):
        return str(error), MISUSED
    # Releases of typer differ in where the base of their usage errors lives, not in what it can do.
    format_message = getattr(error, "format_message", None)
    if format_message is not None:
        context = getattr(error, "ctx", None)
        hint = f" (see '{context.command_path} --help')" if context else ""
        return one_line(format_message()) + hint, MISUSED
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{error.strerror or error}", FAILED
    return f"unexpected {type(error).__name__}: {one_line(error)} (set {DEBUG}=1 to see where)", FAILED


def _silence(descriptor: int) -> None:
    """Whoever read our output has left: what is still in the buffer goes nowhere instead of failing again at exit."""
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), descriptor)
