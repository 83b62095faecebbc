"""Options of `eunoe mcp` that install it in an assistant, and what hooks have left for whoever starts next."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated

import typer

from eunoe.assistants.hook import start_intake
from eunoe.assistants.store_file import store_file
from eunoe.cli.command import Call, MisuseError
from eunoe.cli.display import output
from eunoe.errors import EunoeError

_NAMES = "claude-desktop, claude-code, cursor, vscode, zed, windsurf, codex or gemini"


@dataclass(frozen=True, slots=True)
class InstallationOptions:
    """Where to install it, or where to take it out."""

    install: Annotated[str | None, typer.Option("--install", metavar="NAME", help=f"Install it in {_NAMES}.")] = None
    uninstall: Annotated[str | None, typer.Option("--uninstall", metavar="NAME", help="Take it out again.")] = None
    hooks: Annotated[bool, typer.Option("--hooks", help="With --install: also capture and recall by hooks.")] = False
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Write without asking.")] = False
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be written, and leave.")] = False

    @property
    def is_wanted(self) -> bool:
        return bool(self.install or self.uninstall)

    def carry_out(self, call: Call, scope: str, arguments: tuple[str, ...]) -> None:
        """Show what would be written, ask, and write it."""
        from eunoe.assistants.installation import carry_out, install, make_options, uninstall

        if self.install and self.uninstall:
            raise MisuseError("choose --install or --uninstall, not both")
        if self.install:
            options = make_options(call.options.store, scope=scope, hooks=self.hooks, arguments=arguments)
            plan = install(self.install, options)
        else:
            plan = uninstall(self.uninstall or "")
        carry_out(plan, output.write_text, output.say, self._agrees)

    def _agrees(self) -> bool:
        return not self.dry_run and (self.yes or typer.confirm("Write this?", err=True))


def take_in_events(store: str | None) -> None:
    """Have what hooks left in the spool taken in, by a process of its own."""
    with suppress(EunoeError):  # of a store that is no file there are no hooks
        start_intake(str(store_file(store)))
