"""`eunoe mcp`: memory for an assistant, over standard input and output."""

import getpass
import os
from typing import Annotated, Final

import typer

from eunoe.cli.command import Call, MisuseError, command
from eunoe.model.scope import Scope

SCOPE_VARIABLE: Final = "EUNOE_SCOPE"

ProfileOption = Annotated[
    str, typer.Option("--profile", metavar="NAME", help="Which tools: read, default, reference or chatgpt.")
]
ScopeOption = Annotated[
    str | None,
    typer.Option("--scope", metavar="SCOPE", help="Whose memory, where a call names none; else EUNOE_SCOPE, else you."),
]
WithinOption = Annotated[
    str | None, typer.Option("--within", metavar="SCOPE", help="Calls may name scopes with these keys; else --scope.")
]
AnyScopeOption = Annotated[bool, typer.Option("--any-scope", help="Calls may name every scope.")]


@command("eunoe mcp --scope user=anna", asks_llm=True, without=("json",))
def mcp(
    call: Call,
    profile: ProfileOption = "default",
    scope: ScopeOption = None,
    within: WithinOption = None,
    any_scope: AnyScopeOption = False,
) -> None:
    """Serve an assistant over standard input and output (Model Context Protocol)."""
    if within and any_scope:
        raise MisuseError("choose --within or --any-scope, not both")
    default = Scope.parse(scope) if scope else default_scope()
    reach = None if any_scope else Scope.parse(within) if within else default
    from eunoe.server.mcp.backend import Backend
    from eunoe.server.mcp.caller import ScopeRule
    from eunoe.server.mcp.stdio import serve_stdio

    options = call.options
    models = {"embedder": options.embedder or "auto", "llm": options.llm or "auto", "fast_llm": options.fast_llm}
    serve_stdio(Backend(options.store, **models), ScopeRule(default, reach), profile)


def default_scope() -> Scope:
    """The scope that the environment names, else the one of who is logged in."""
    if text := os.environ.get(SCOPE_VARIABLE):
        return Scope.parse(text)
    return Scope(user=getpass.getuser())
