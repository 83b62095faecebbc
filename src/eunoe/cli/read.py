"""Commands that look something up: recall, list, get, history, files, scopes, status."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from eunoe.cli import output
from eunoe.cli.command import Settings, command
from eunoe.cli.options import (
    FullOption,
    IdArgument,
    KindOption,
    LabelsOption,
    RecipeOption,
    ScopeArgument,
    many_option,
    moment_option,
)
from eunoe.model.hit import Hit
from eunoe.model.record import Item
from eunoe.model.report import Status, Usage

if TYPE_CHECKING:
    from eunoe.memory import Memory
from eunoe.model.choices import KINDS, Kind
from eunoe.model.validation import check_choices

_PAGE = 500
_USAGE = ("operation", "model", "calls", "failed", "tokens in", "out", "seconds", "cost")


def register(app: typer.Typer) -> None:
    command(app, "recall", 'eunoe recall user=anna "What must Anna not eat?" --why')(recall)
    command(app, "list", "eunoe list user=anna --kind fact")(list_)
    command(app, "get", "eunoe get user=anna ID")(get)
    command(app, "history", "eunoe history user=anna ID")(history)
    command(app, "files", "eunoe files repository=shop src/cart.py docs/")(files)
    command(app, "scopes", "eunoe scopes user=anna")(scopes)
    command(app, "status", "eunoe status --store team.db")(status)


def recall(
    settings: Settings,
    scope: ScopeArgument,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="The question.", show_default=False)],
    also: Annotated[list[str] | None, many_option("--also", "SCOPE", "Another scope to look in.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", help="At most so many hits; 10 if not given.")] = None,
    tokens: Annotated[int | None, typer.Option("--tokens", help="At most so many tokens of text.")] = None,
    kind: KindOption = None,
    label: LabelsOption = None,
    since: Annotated[str | None, moment_option("--since", "From this moment on")] = None,
    until: Annotated[str | None, moment_option("--until", "Before this moment, itself not included")] = None,
    file: Annotated[list[str] | None, many_option("--file", "PATH", "Only about this file.")] = None,
    person: Annotated[list[str] | None, many_option("--person", "NAME", "Only about this person.")] = None,
    session: Annotated[list[str] | None, many_option("--session", "ID", "Only from this session.")] = None,
    speaker: Annotated[list[str] | None, many_option("--speaker", "NAME", "Only said by this one.")] = None,
    as_of: Annotated[str | None, moment_option("--as-of", "What was true then")] = None,
    known_at: Annotated[str | None, moment_option("--known-at", "What the store knew then")] = None,
    now: Annotated[str | None, moment_option("--now", "When the question is asked, for words like yesterday")] = None,
    recipe: RecipeOption = "default",
    why: Annotated[bool, typer.Option("--why", help="Say why each hit is there.")] = False,
    full: FullOption = False,
) -> None:
    """Bring back what bears on a question, best first."""
    with settings.memory() as memory:
        hits = memory.recall(
            [scope, *(also or ())],
            query,
            limit=limit,
            tokens=tokens,
            kinds=check_choices(kind or KINDS, "kinds", KINDS),
            labels=label or (),
            since=since,
            until=until,
            files=file or (),
            people=person or (),
            sessions=session or (),
            speakers=speaker or (),
            as_of=as_of,
            known_at=known_at,
            now=now,
            recipe=recipe,
        )
    output.say_notes(hits.notes)
    _show_hits(settings, hits, full, why)


def list_(
    settings: Settings,
    scope: ScopeArgument,
    kind: KindOption = None,
    label: LabelsOption = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many on one page.")] = 50,
    after: Annotated[str, typer.Option("--after", metavar="NEXT", help="Read on from the page before.")] = "",
    all: Annotated[bool, typer.Option("--all", help="Everything, without pages.")] = False,
    closed: Annotated[bool, typer.Option("--closed", help="Also versions that were superseded.")] = False,
    full: FullOption = False,
) -> None:
    """Show what a scope holds, oldest first, a page at a time."""
    kinds, labels = check_choices(kind or KINDS, "kinds", KINDS), label or ()
    with settings.memory() as memory:
        if all:
            _show_page(settings, _everything(memory, scope, kinds, labels, after, closed), "", full)
            return
        page = memory.list(scope, kinds=kinds, labels=labels, limit=limit, after=after, retired=closed)
    output.say_notes(page.notes)
    _show_page(settings, page.items, page.next, full)


def get(settings: Settings, scope: ScopeArgument, id: IdArgument) -> None:
    """Show one memory with everything that is known about it."""
    with settings.memory() as memory:
        item = memory.get(scope, id)
    if settings.json:
        output.document(item)
        return
    from eunoe.cli import tables

    fields = output.plain(item)
    text = fields.pop("text")
    shown = {name: _field(value) for name, value in fields.items() if value not in (None, "", [], {}, False, -1)}
    tables.console().print(tables.pairs(shown | {"text": text}))


def history(settings: Settings, scope: ScopeArgument, id: IdArgument, full: FullOption = False) -> None:
    """Show all versions of a memory, oldest first."""
    with settings.memory() as memory:
        versions = memory.history(scope, id)
    _show(settings, versions, full)


def files(
    settings: Settings,
    scope: ScopeArgument,
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Files or folders.", show_default=False)],
    full: FullOption = False,
) -> None:
    """Show what is remembered about files, or about files in folders; latest first."""
    with settings.memory() as memory:
        found = memory.by_files(scope, paths)
    _show(settings, found, full)


def scopes(
    settings: Settings,
    keys: Annotated[str, typer.Argument(metavar="[KEYS]", help="Only scopes with these keys and values.")] = "",
) -> None:
    """Show whose memories the store holds."""
    from eunoe.model.scope import Scope

    with settings.memory() as memory:
        found = memory.scopes(**Scope.parse(keys)) if keys else memory.scopes()
    if settings.json:
        output.document(found)
        return
    for scope in found:
        typer.echo(str(scope))
    if not found:
        output.say("nothing found")


def status(settings: Settings) -> None:
    """Show how the store stands: what it holds, which models it uses and what they took, what waits and what fails."""
    with settings.memory() as memory:
        found = memory.status()
    if settings.json:
        output.document(found)
        return
    from eunoe.cli import tables

    tables.console().print(tables.pairs(_status(found)))
    if found.usage:
        tables.console().print("", tables.grid(_USAGE, [_usage(one) for one in found.usage]), sep="\n")


def _everything(
    memory: Memory, scope: str, kinds: Sequence[Kind], labels: Sequence[str], after: str, closed: bool
) -> Iterator[Item]:
    while True:
        page = memory.list(scope, kinds=kinds, labels=labels, limit=_PAGE, after=after, retired=closed)
        yield from page.items
        if not page.next:
            return
        after = page.next


def _show_page(settings: Settings, items: Iterable[Item], next: str, full: bool) -> None:
    if settings.json:
        output.page(items, next)
        return
    _show_table(items, full)
    if next:
        output.say(f"there is more: go on with --after {next}")


def _show(settings: Settings, items: Sequence[Item], full: bool) -> None:
    if settings.json:
        output.document(items)
    else:
        _show_table(items, full)


def _show_table(items: Iterable[Item], full: bool) -> None:
    from eunoe.cli import tables

    table = tables.items(items, full=full)
    if table.row_count:
        tables.console().print(table)
    else:
        output.say("nothing found")


def _show_hits(settings: Settings, hits: Sequence[Hit], full: bool, why: bool) -> None:
    if settings.json:
        output.document(hits)
        return
    from eunoe.cli import tables

    if hits:
        tables.console().print(tables.hits(hits, full=full, why=why))
    else:
        output.say("nothing found")


def _field(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        import json

        return json.dumps(value, ensure_ascii=False)
    return "yes" if value is True else str(value)


def _status(found: Status) -> dict[str, str]:
    vectors = ", ".join(f"{count:,} by {model}" for model, count in found.vectors.items())
    shown = {
        "store": found.target,
        "size": f"{found.bytes / 1e6:,.1f} MB (schema {found.schema})",
        "scopes": f"{found.scopes:,}",
        "messages": f"{found.messages:,}",
        "facts": f"{found.facts:,}",
        "observations": f"{found.observations:,}",
        "closed": f"{found.retired:,} superseded, {found.tombstones:,} marks of what was forgotten",
        "embedder": found.embedder,
        "vectors": vectors or "none",
        "waiting": f"{found.unembedded:,} without a vector",
    }
    trouble = "; ".join(filter(None, (found.embedder_error, found.reranker_error)))
    return shown | _forming(found) | ({"trouble": trouble} if trouble else {})


def _forming(found: Status) -> dict[str, str]:
    """How forming stands; what fails and what went wrong only where something did."""
    pieces = f", {output.counted(found.jobs, 'job')}" if found.jobs else ""
    shown = {
        "language model": found.llm or "none: memories are formed extractively",
        "due": f"{output.counted(found.due_messages, 'message')} to form{pieces}",
        "summaries": output.counted(found.revisions, "revision"),
    }
    if found.failing:
        shown["failing"] = f"{found.failing:,}, tried again later" + (f": {found.error}" if found.error else "")
    if found.faults:
        shown["faults"] = ", ".join(f"{count:,} × {kind}" for kind, count in found.faults.items())
    return shown


def _usage(one: Usage) -> tuple[str, ...]:
    cost = f"{one.cost:,.4f}" if one.cost else ""
    tokens = (f"{one.input_tokens:,}", f"{one.output_tokens:,}")
    return one.operation, one.model, f"{one.calls:,}", f"{one.failures:,}", *tokens, f"{one.seconds:,.1f}", cost
