"""`eunoe mcp`: memory for an assistant, over standard input and output."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from eunoe.cli.command import Call, MisuseError, Options, command
from eunoe.cli.display import output
from eunoe.cli.installation import InstallationOptions, take_in_events
from eunoe.model.scope import Scope
from eunoe.net.local_server import default_scope

if TYPE_CHECKING:
    from eunoe.server.mcp.backend import Backend

ProfileOption = Annotated[
    str, typer.Option("--profile", metavar="NAME", help="Which tools: default, read, reference, chatgpt or discussion.")
]
ScopeOption = Annotated[
    str | None,
    typer.Option("--scope", metavar="SCOPE", help="Whose memory, if a call names none; else EUNOE_SCOPE, else yours."),
]
WithinOption = Annotated[
    str | None, typer.Option("--within", metavar="SCOPE", help="Calls may name scopes with these keys; else --scope.")
]
AnyScopeOption = Annotated[bool, typer.Option("--any-scope", help="Calls may name every scope.")]
ImportOption = Annotated[
    Path | None,
    typer.Option("--import", metavar="FILE", help="Read the file of the reference memory server, and leave."),
]


@command("eunoe mcp --scope user=anna", asks_llm=True, without=("json",))
def mcp(
    call: Call,
    installation: InstallationOptions,
    profile: ProfileOption = "default",
    scope: ScopeOption = None,
    within: WithinOption = None,
    any_scope: AnyScopeOption = False,
    import_: ImportOption = None,
) -> None:
    """Serve an assistant over standard input and output (Model Context Protocol), or install that in one."""
    parent = os.getppid()  # before all that takes time: it may be gone by then
    if within and any_scope:
        raise MisuseError("choose --within or --any-scope, not both")
    default = Scope.parse(scope) if scope else default_scope()
    if import_:
        _import(call.options, default, import_)
        return
    if installation.is_wanted:
        installation.carry_out(call, default.text, _arguments(call.options, profile, within, any_scope))
        return
    take_in_events(call.options.store)
    reach = Scope.parse(within) if within else default
    serve_stdio = _load_server()
    serve_stdio(_backend(call.options), default, None if any_scope else reach, profile, parent)


def _load_server() -> Callable[..., NoReturn]:
    gc.disable()  # the SDK makes a thousand classes to begin with, and no garbage
    try:
        from eunoe.server.mcp.stdio import serve_stdio
    except ModuleNotFoundError as error:
        raise MisuseError(f"eunoe mcp needs {error.name}: pip install 'eunoe[server]'") from None
    finally:
        gc.freeze()
        gc.enable()
    return serve_stdio


def _arguments(options: Options, profile: str, within: str | None, any_scope: bool) -> tuple[str, ...]:
    """The arguments with which an assistant starts it, beside the store and the scope."""
    from eunoe.embed import absolute_spec

    values = {
        "--embedder": absolute_spec(options.embedder or ""),
        "--llm": options.llm,
        "--fast-llm": options.fast_llm,
        "--profile": profile if profile != "default" else None,
        "--within": within,
    }
    given = [word for name, value in values.items() if value for word in (name, value)]
    return (*given, *(["--any-scope"] if any_scope else []))


def _backend(options: Options) -> Backend:
    from eunoe.server.mcp.backend import Backend

    models = {"embedder": options.embedder or "auto", "llm": options.llm or "auto", "fast_llm": options.fast_llm}
    return Backend(options.store, **models)


def _import(options: Options, scope: Scope, path: Path) -> None:
    from eunoe.server.mcp.reference import import_graph

    backend = _backend(options)
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            report = import_graph(backend.find_memory(), scope, lines)
    finally:
        backend.close()
    output.say(
        f"{scope}: {report.entities} entities, {report.relations} relations and {report.observations} observations are "
        f"new, {report.known} were there already"
    )
    if report.skipped:
        output.say_notes([f"skipped lines that hold no entity and no relation: {', '.join(map(str, report.skipped))}"])
