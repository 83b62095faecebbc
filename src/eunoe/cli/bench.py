"""`eunoe bench`: its commands are imported when they are asked for, since they need much that nothing else needs."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

import typer
from typer.core import TyperGroup

from eunoe.cli.command import MisuseError, Options

_COMMANDS: Final = ("recall", "multihop", "context", "forming", "engine")
"""Each is the function NAME_command in eunoe.bench.NAME."""


class _LazyGroup(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        return [name for name in _COMMANDS if find_spec(f"eunoe.bench.{name}")]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.list_commands(ctx):
            return None
        single = typer.Typer(add_completion=False)
        single.command(cmd_name)(getattr(import_module(f"eunoe.bench.{cmd_name}"), f"{cmd_name}_command"))
        return typer.main.get_command(single)


bench = typer.Typer(
    cls=_LazyGroup,
    no_args_is_help=True,
    help="Measure quality and speed.",
    epilog="Example: eunoe bench recall --json",
)


@bench.callback()
def check_options(ctx: typer.Context) -> None:
    if Options.before(ctx).store:
        raise MisuseError("bench takes no --store: it measures on stores of its own")
