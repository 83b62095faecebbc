"""The command that starts the server."""

from __future__ import annotations

import gc
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eunoe.cli.command import Call, MisuseError, command
from eunoe.cli.display import output
from eunoe.cli.installation import take_in_events
from eunoe.cli.options import OptionGroup, repeatable_option
from eunoe.errors import InputError

if TYPE_CHECKING:
    from eunoe.server.services import Services


PrintLinkOption = Annotated[
    bool, typer.Option("--print-link", help="Print the link with the token even where output is no terminal.")
]


@dataclass(frozen=True, slots=True)
class ServerOptions(OptionGroup):
    """How the server is set up; named as the fields of its configuration."""

    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1"
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 takes a free one.")] = 8765
    public_url: Annotated[str, typer.Option("--public-url", help="How others reach it; turns on OAuth.")] = ""
    allowed_hosts: Annotated[
        list[str] | None, repeatable_option("--allowed-host", "NAME", "A further name that requests may call it by.")
    ] = None
    origins: Annotated[
        list[str] | None, repeatable_option("--origin", "URL", "A foreign origin whose pages may call it.")
    ] = None
    workflows: Annotated[
        Path | None,
        typer.Option("--workflows", metavar="DIR", help="Workflows that a chat may name as its model: workflow:NAME."),
    ] = None
    requests_per_minute: Annotated[
        int | None, typer.Option("--requests-per-minute", min=0, help="For each key; 0 is no limit.")
    ] = None
    failures_per_minute: Annotated[
        int | None, typer.Option("--failures-per-minute", min=0, help="Wrong keys from one address; 0 is no limit.")
    ] = None
    audit_days: Annotated[
        int | None, typer.Option("--audit-days", min=1, max=36500, help="How long the audit log is kept.")
    ] = None
    processes: Annotated[
        int, typer.Option("--processes", min=1, max=64, help="Processes that answer requests, one a core.")
    ] = 1
    worker: Annotated[bool, typer.Option("--worker/--no-worker", help="Do jobs in this process.")] = True
    log_format: Annotated[str, typer.Option("--log-format", help="text or json.")] = "text"
    log_level: Annotated[str, typer.Option("--log-level", help="debug, info, warning or error.")] = "info"
    tracing: Annotated[bool, typer.Option("--tracing", help="Send OpenTelemetry spans; see OTEL_ variables.")] = False


@command("eunoe serve --port 8765", asks_llm=True)
def serve(call: Call, server: ServerOptions, print_link: PrintLinkOption = False) -> None:
    """Serve this memory: HTTP, MCP and the inspector."""
    gc.disable()  # the server's modules make thousands of classes to begin with, and no garbage
    from eunoe.apps.projects import SAVE_DIR_VARIABLE, ProjectSettings
    from eunoe.server.process import configure
    from eunoe.server.process import serve as run

    gc.freeze()
    gc.enable()
    options = call.options
    settings, store = ProjectSettings.from_environment(), options.store
    if settings.save_dir and not store:
        store = str(settings.target(create=True))
        output.say(f"The store is that of {SAVE_DIR_VARIABLE}: {store}")
    take_in_events(store)
    models = {"embedder": options.embedder, "llm": options.llm, "fast_llm": options.fast_llm}
    given = {name: value for name, value in models.items() if value}
    try:
        config = configure(target=store, **given, **server.as_arguments())
    except InputError as error:
        raise MisuseError(str(error)) from None
    run(config, partial(_announce, with_token=print_link or sys.stderr.isatty()))


def _announce(url: str, services: Services, with_token: bool) -> None:
    """Say where it listens. What is no terminal may be a log, and a log must not hold the token."""
    output.say(f"Eunoe listens on {url}  (HTTP under /v1, MCP under /mcp; Ctrl-C stops it)")
    if services.config.public_url:
        output.say(f"Others reach it at {services.config.public_url}, with a key or by OAuth")
    if with_token:
        output.say(f"Open the inspector: {url}/#token={services.owner_token}")
    else:
        output.say(f"Open the inspector: {url}/  The token to sign in is in {services.files.token}")
