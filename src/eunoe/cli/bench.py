"""`eunoe bench`: its commands are imported when they are asked for, since they need much that nothing else needs."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import typer
from typer.core import TyperGroup

from eunoe.cli.command import MisuseError, Settings

_COMMANDS = {
    "recall": ("eunoe.bench.recall", "recall_command"),
    "multihop": ("eunoe.bench.multihop", "multihop_command"),
    "context": ("eunoe.bench.context", "context_command"),
    "forming": ("eunoe.bench.forming", "forming_command"),
    "engine": ("eunoe.bench.engine", "engine_command"),
}


class LazyGroup(TyperGroup):
    """A group that knows the names of its commands, and imports one only to run or describe it."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [name for name, (module, _) in _COMMANDS.items() if find_spec(module)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.list_commands(ctx):
            return None
        module, function = _COMMANDS[cmd_name]
        single = typer.Typer(add_completion=False)
        single.command(cmd_name)(getattr(import_module(module), function))
        return typer.main.get_command(single)


bench = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    help="Measure: does the right turn or passage come back, does a context hold it, and how fast beside others?",
    epilog="Example: eunoe bench recall --json",
)


@bench.callback()
def measure(ctx: typer.Context) -> None:
    if Settings.before(ctx).store:
        raise MisuseError("bench takes no --store: it measures on stores of its own")
