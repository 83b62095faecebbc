"""The application: all commands, the exit codes, and every failure as one line."""

import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from eunoe import __version__
from eunoe.cli.admin import backup, check, export, import_, reembed, reindex, restore
from eunoe.cli.chat import chat
from eunoe.cli.command import (
    Call,
    Command,
    EmbedderOption,
    Group,
    JsonOption,
    MisuseError,
    Options,
    StoreOption,
    command,
)
from eunoe.cli.display import one_line, shorten
from eunoe.cli.forming import archive, consolidate, context, form, incognito, unarchive
from eunoe.cli.groups import correct, corrections
from eunoe.cli.import_chats import import_chats
from eunoe.cli.read import files, get, graph, history, list_, look_up, recall, recent, scopes, status
from eunoe.cli.serve import doctor, hook, mcp, serve, worker
from eunoe.cli.wiki import wiki
from eunoe.cli.write import expire, forget, observe, pin, remember, retract, update
from eunoe.errors import EunoeError

FAILED, MISUSED, INTERRUPTED = 1, 2, 130
_MAX_ERROR_CHARACTERS: Final = 1500
"""Of an error that repeats what it was given."""
_DEBUG_VARIABLE: Final = "EUNOE_DEBUG"

KeepOption = Annotated[Path | None, typer.Option("--keep", metavar="PATH", help="Keep the store in this new file.")]


@command("eunoe demo --keep tour.db", without=("store", "embedder", "json"))
def demo(call: Call, keep: KeepOption = None) -> None:
    """Take a guided tour through a sample conversation."""
    from eunoe.cli.demo import show_tour  # with it comes the whole memory

    show_tour(keep)


_COMMANDS: Final[dict[str, tuple[Command | Group, ...]]] = {
    "Store and find": (observe, remember, recall, look_up, context, chat),
    "Look around": (list_, recent, get, history, files, graph, scopes, status),
    "Change and forget": (update, expire, retract, correct, corrections, pin, archive, unarchive, forget, incognito),
    "Form memories": (
        form,
        consolidate,
        worker,
        Group("streams", "Show and change how each memory is formed.", "eunoe streams user=anna", "groups"),
        Group("review", "Look at new memories before they are used.", "eunoe review user=anna", "groups"),
        Group(
            "summaries", "Compare the revisions of a summary, go back to one.", "eunoe summaries user=anna", "groups"
        ),
    ),
    "Move and repair": (
        backup,
        restore,
        export,
        import_,
        import_chats,
        Group("migrate", "Move in from another memory.", "eunoe migrate hipporag outputs --project shop", "migrate"),
        reembed,
        reindex,
        check,
    ),
    "Serve": (
        serve,
        mcp,
        hook,
        doctor,
        Group(
            "key",
            "Make and revoke keys for a server, see who changed what.",
            "eunoe key create laptop --tenant acme",
            "key",
        ),
    ),
    "More": (
        demo,
        wiki,
        Group(
            "discussion",
            "Make, show and move the memory of long chats.",
            "eunoe discussion update trip --messages chat.json",
            "discussion",
        ),
        Group("workflow", "Check and run workflows.", "eunoe workflow run main.json --discussion trip", "workflow"),
        Group("ticket", "Work tickets off with a coding worker.", "eunoe ticket run login.md --project shop", "ticket"),
    ),
}
"""All commands, by the panel of `--help` in which they stand."""

app = typer.Typer(
    name="eunoe",
    help="A memory for AI agents: keeps every word, brings the right ones back, in one file.",
    epilog='Example: eunoe remember user=anna "Anna is allergic to peanuts."',
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
)
for _panel, _commands in _COMMANDS.items():
    for _command in _commands:
        _command.register(app, _panel)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"eunoe {__version__}")
        raise typer.Exit


@app.callback()
def root(
    ctx: typer.Context,
    store: StoreOption = None,
    embedder: EmbedderOption = None,
    json: JsonOption = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    ctx.obj = Options(store, embedder, json)
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


@cache
def _root_command() -> Any:
    """All commands, made once: a process that runs several need not read all signatures again for each."""
    return typer.main.get_command(app)


def run(args: Sequence[str], program: str = "eunoe", root: Callable[[], Any] = _root_command) -> int:
    """Run a command line and return its exit code. Whatever goes wrong is one line on standard error.

    Args:
        root: gives the commands, those of `eunoe` or those of another program.
    """
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with _warnings_on_one_line():
            code = root().main(list(args), prog_name=program, standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has left: what is still in the buffer must not fail again at exit.
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        return FAILED
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except Exception as error:
        if os.environ.get(_DEBUG_VARIABLE):
            raise
        text, code = _describe(error)
        print(f"{program}: {shorten(text, _MAX_ERROR_CHARACTERS)}", file=sys.stderr)
    return code if isinstance(code, int) else 0


class _OneLineFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return f"eunoe: {one_line(record.getMessage())}"


@contextmanager
def _warnings_on_one_line() -> Iterator[None]:
    """Show what the engine logs like an error of a command, without where it came from."""
    handler = logging.StreamHandler()
    if not os.environ.get(_DEBUG_VARIABLE):
        handler.setFormatter(_OneLineFormatter())
    logger = logging.getLogger("eunoe")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def _describe(error: Exception) -> tuple[str, int]:
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
    return f"unexpected {type(error).__name__}: {one_line(error)} (set {_DEBUG_VARIABLE}=1 to see where)", FAILED
