"""The command that takes something out."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated

import typer

from eunoe.cli import output
from eunoe.cli.command import MisuseError, Settings, command
from eunoe.cli.options import ScopeArgument
from eunoe.model.report import ForgetReport


def register(app: typer.Typer) -> None:
    command(app, "forget", "eunoe forget user=anna --person Bruno --verify")(forget)


def forget(
    settings: Settings,
    scope: ScopeArgument,
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Memories to forget.")] = None,
    person: Annotated[str, typer.Option("--person", help="What they said, and what is noted about them.")] = "",
    mentions: Annotated[bool, typer.Option("--mentions", help="Also what others said of the person.")] = False,
    everything: Annotated[bool, typer.Option("--everything", help="All that the scope holds.")] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Search everything for what should be gone.")] = False,
    may_return: Annotated[bool, typer.Option("--may-return", help="The same words may be stored again.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Remove memories for good: some ids, a person, or everything in a scope."""
    if sum((bool(ids), bool(person.strip()), everything)) != 1:
        raise MisuseError("say what to forget: IDs, --person NAME, or --everything")
    if mentions and not person.strip():
        raise MisuseError("--mentions goes with --person")
    if not yes and not _agreed(_plan(scope, ids or [], person, mentions)):
        output.say("nothing was forgotten")
        raise typer.Exit(1)
    with settings.memory() as memory:
        report = memory.forget(
            scope,
            ids or (),
            person=person,
            mentions=mentions,
            everything=everything,
            may_return=may_return,
            verify=verify,
        )
    if settings.json:
        output.document(report)
    else:
        for line in _words(report):
            typer.echo(line)
    if verify and not report.verified:
        raise typer.Exit(1)


def _plan(scope: str, ids: list[str], person: str, mentions: bool) -> str:
    if ids:
        return f"{len(ids)} {'memory' if len(ids) == 1 else 'memories'} in {scope} and all that rests on them"
    if person:
        said = "said, is noted about them or mentions them" if mentions else "said or is noted about them"
        return f"what {person} {said} in {scope}"
    return f"everything in {scope}"


def _agreed(plan: str) -> bool:
    if not sys.stdin.isatty():
        raise MisuseError("there is nobody to ask: pass --yes to forget without a question")
    print(f"Forget {plan}, for good? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _words(report: ForgetReport) -> Iterator[str]:
    yield (
        f"forgotten: {output.counted(len(report.messages), 'message')}, {output.counted(len(report.atoms), 'memory')}, "
        f"{output.counted(report.vectors, 'vector')}"
    )
    if report.mentions:
        shown = ", ".join(report.mentions[:10]) + (" …" if len(report.mentions) > 10 else "")
        verb = "mentions" if len(report.mentions) == 1 else "mention"
        yield f"{output.counted(len(report.mentions), 'other')} still {verb} the name: {shown}"
    if report.verified:
        yield "verified: no table, file, index or cache holds a trace"
    for trace in report.traces:
        yield f"not gone: {trace}"
