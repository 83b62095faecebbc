"""Commands that make memories out of talk and put them before the agent: form, context, consolidate and others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from eunoe.cli import output
from eunoe.cli.command import MisuseError, Settings, command
from eunoe.cli.options import IdArgument, RecipeOption, ScopeArgument
from eunoe.errors import EunoeError
from eunoe.model.atom import Atom
from eunoe.model.choices import CONTEXT_FORMATS, ContextFormat
from eunoe.model.context import Context
from eunoe.model.report import FormReport, RetentionReport
from eunoe.model.scope import Scope
from eunoe.model.stream import Revision

if TYPE_CHECKING:
    from eunoe.memory import Memory

# Streams that are searched for what was learned; beyond them a memory is named by its id alone.
_NEAR = 200


def register(app: typer.Typer) -> None:
    command(app, "form", "eunoe form agent=cook/session=s1/user=anna", models=True)(form)
    command(app, "context", 'eunoe context session=s1/user=anna "What can I cook?" --tokens 2000', models=True)(context)
    command(app, "consolidate", "eunoe consolidate user=anna", models=True)(consolidate)
    command(app, "tidy", "eunoe tidy user=anna --keep-best 500 --dry-run")(tidy)
    command(app, "unarchive", "eunoe unarchive user=anna ID")(unarchive)
    command(app, "incognito", "eunoe incognito session=s1/user=anna")(incognito)


def form(
    settings: Settings,
    scope: Annotated[str, typer.Argument(metavar="[SCOPE]", help="The conversation: key=value, joined by /.")] = "",
    due: Annotated[bool, typer.Option("--due", help="Only where enough was said.")] = False,
    all: Annotated[bool, typer.Option("--all", help="Every conversation with messages that wait.")] = False,
) -> None:
    """Turn what was said in a conversation into memories now, and show what was learned."""
    if bool(scope) == all:
        raise MisuseError("name the conversation as SCOPE, or say --all")
    total, made = FormReport(), list[Atom]()
    with settings.memory(asks=True) as memory, output.progress("forming") as advance:
        scopes = memory.scopes() if all else [Scope.parse(scope)]
        for number, one in enumerate(scopes, 1):
            report = _formed(memory, one, not due, guarded=all)
            made += learned(memory, one, report)
            total += report
            advance(number, len(scopes))
    _show_report(settings, total, made)
    if total.failed:
        raise typer.Exit(1)


def context(
    settings: Settings,
    scope: ScopeArgument,
    message: Annotated[str, typer.Argument(metavar="[MESSAGE]", help="What is to be replied to.")] = "",
    users: Annotated[str, typer.Option("--users", metavar="A,B", help="Who else is present.")] = "",
    tokens: Annotated[int | None, typer.Option("--tokens", help="At most so many tokens of text.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", help="At most so many recalled memories.")] = None,
    format: Annotated[ContextFormat, typer.Option("--format", help=f"One of {', '.join(CONTEXT_FORMATS)}.")] = "xml",
    no_recall: Annotated[bool, typer.Option("--no-recall", help="Look nothing up for the message.")] = False,
    recipe: RecipeOption = "default",
    sources: Annotated[bool, typer.Option("--sources", help="Name the messages each memory rests on.")] = False,
) -> None:
    """Print what to put in front of the agent before it replies to a message."""
    with settings.memory() as memory:
        found = memory.context(
            scope,
            message,
            users=[name.strip() for name in users.split(",") if name.strip()],
            tokens=tokens,
            limit=limit,
            recall="off" if no_recall else "auto",
            recipe=recipe,
            format=format,
            sources=sources,
        )
        output.say_notes(found.notes)
    if settings.json:
        output.document(found)
    else:
        _print_context(found)


def consolidate(
    settings: Settings,
    scope: ScopeArgument,
    due: Annotated[bool, typer.Option("--due", help="Only if enough observations wait.")] = False,
) -> None:
    """Write a stream's waiting observations into its summary now."""
    with settings.memory(asks=True) as memory, output.progress("consolidating"):
        revision = memory.summaries.consolidate(scope, force=not due)
    show_revision(settings, revision)


def tidy(
    settings: Settings,
    scope: ScopeArgument,
    max_age_days: Annotated[float | None, typer.Option("--max-age-days", help="Archive what is older.")] = None,
    max_idle_days: Annotated[float | None, typer.Option("--max-idle-days", help="Or not recalled for so long.")] = None,
    keep_best: Annotated[int | None, typer.Option("--keep-best", help="Or beyond this number.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be archived.")] = False,
) -> None:
    """Archive memories that are too old, unused for too long or too many; never pinned ones."""
    with settings.memory() as memory:
        report = memory.streams.apply_retention(
            scope, max_age_days=max_age_days, max_idle_days=max_idle_days, keep_best=keep_best, dry_run=dry_run
        )
        texts = {id: memory.get(scope, id).text for id, _ in report.archived} if not settings.json else {}
    if settings.json:
        output.document(report)
    else:
        _show_tidied(report, texts)


def unarchive(settings: Settings, scope: ScopeArgument, id: IdArgument) -> None:
    """Bring an archived memory back."""
    with settings.memory() as memory:
        receipt = memory.streams.unarchive(scope, id)
    if settings.json:
        output.document(receipt)
    else:
        typer.echo(f"{id} was not archived" if receipt.outcome == "duplicate" else f"{id} is back")


def incognito(
    settings: Settings,
    scope: ScopeArgument,
    off: Annotated[bool, typer.Option("--off", help="Take the mark off again.")] = False,
) -> None:
    """Mark a session as one of which nothing is kept."""
    with settings.memory(create=True) as memory:
        memory.streams.set_incognito(scope, not off)
    if settings.json:
        output.document({"scope": str(Scope.parse(scope)), "incognito": not off})
    else:
        typer.echo(f"{scope} is kept again" if off else f"nothing of {scope} is kept")


def learned(memory: Memory, scope: Scope, report: FormReport) -> list[Atom]:
    """The atoms that a report of this conversation names, each out of the stream that has it."""
    missing, found = set(report.stored), list[Atom]()
    for stream in _near(memory, scope) if missing else ():
        for id in memory.admin.access_counts(stream, sorted(missing)):
            item = memory.get(stream, id)
            found += [item] if isinstance(item, Atom) else []
            missing.discard(id)
        if not missing:
            break
    return found


def words(report: FormReport) -> str:
    """What forming did, in one line."""
    counts = {"new": len(report.stored), "merged": report.merged, "superseded": report.superseded}
    said = [f"{count:,} {name}" for name, count in (counts | {"refused": report.refused}).items() if count]
    said += [output.counted(len(report.consolidated), "summary")] if report.consolidated else []
    said += [f"{len(report.failed):,} failed"] if report.failed else []
    if not report.messages and not said:
        return "nothing to form"
    return f"{output.counted(report.messages, 'message')}: {', '.join(said) or 'nothing worth keeping'}"


def show_revision(settings: Settings, revision: Revision | None) -> None:
    """A summary that was just written."""
    if settings.json:
        output.document(revision)
    elif revision is None:
        output.say("nothing to do")
    else:
        took = f", {output.counted(len(revision.absorbed), 'observation')} taken in" if revision.absorbed else ""
        output.say(f"revision {revision.number} by {revision.author}{took}")
        raw(revision.text)


def raw(text: str) -> None:
    """A text on standard output as it is; on a terminal its control characters are made visible."""
    file = output.utf8_output()
    if file.isatty():
        from eunoe.cli.tables import safe

        text = safe(text)
    file.write(text if text.endswith("\n") else f"{text}\n")


def _formed(memory: Memory, scope: Scope, force: bool, guarded: bool) -> FormReport:
    """Forms one conversation; where there are more to come, an error is one more thing to report."""
    try:
        return memory.form(scope, force=force)
    except EunoeError as error:
        if not guarded:
            raise
        return FormReport(failed=(f"{scope}: {error}",))


def _near(memory: Memory, scope: Scope) -> Iterable[Scope]:
    """Scopes that contradict the conversation's in no key, those most like it first."""
    fitting = [one for one in memory.scopes() if all(scope.get(key, value) == value for key, value in one.items())]
    return sorted(fitting, key=lambda one: len(one.keys() ^ scope.keys()))[:_NEAR]


def _show_report(settings: Settings, report: FormReport, made: list[Atom]) -> None:
    if settings.json:
        output.document({**output.plain(report), "learned": made})
        return
    typer.echo(words(report))
    for line in _details(report, made):
        typer.echo(line)
    if made:
        from eunoe.cli import tables

        tables.console().print(tables.learned(made))
    for fault in report.failed:
        output.say(f"failed, and still due: {output.one_line(fault)}")


def _details(report: FormReport, made: list[Atom]) -> Iterator[str]:
    for scope in dict.fromkeys(report.consolidated):
        yield f"new summary: {scope}"
    unseen = sorted(set(report.stored) - {atom.id for atom in made})
    if unseen:
        yield f"new, in other streams: {', '.join(unseen)}"


def _print_context(found: Context) -> None:
    import json

    text = json.dumps(found.messages, ensure_ascii=False, indent=2) if found.messages else found.text
    if text:
        raw(text)
    else:
        output.say("nothing found")


def _show_tidied(report: RetentionReport, texts: dict[str, str]) -> None:
    verb = "would be archived" if report.dry_run else "archived"
    typer.echo(f"{output.counted(len(report.archived), 'memory')} {verb}, {report.kept:,} kept")
    if report.archived:
        from eunoe.cli import tables

        rows = [(id, reason, texts[id]) for id, reason in report.archived]
        tables.console().print(tables.grid(("id", "why", "text"), rows))
