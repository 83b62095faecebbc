"""Commands that look something up: recall, look-up, list, recent, get, history, files, graph, scopes, status."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Final

import typer

from eunoe.cli.command import Call, Command, Given, Reply, command, verb_command
from eunoe.cli.display import Grid, JsonPage, Pairs, View, hit_entries, item_entries, mention_entries, quantity
from eunoe.cli.forming import failure_lines
from eunoe.cli.inputs import FullOption, ScopeArgument, argument, repeatable_option
from eunoe.model.atom import Item
from eunoe.model.json import json_value
from eunoe.model.result import Neighbourhood, Status
from eunoe.model.scope import Scope

_PAGE_SIZE: Final = 500
_USAGE_COLUMNS: Final = ("operation", "model", "calls", "failed", "tokens in", "out", "seconds", "cost")


@command('eunoe recall user=anna "What must Anna not eat?" --why', verb="recall")
def recall(
    call: Call,
    given: Given,
    scope: ScopeArgument,
    also: Annotated[list[str] | None, repeatable_option("--also", "SCOPE", "Another scope to look in.")] = None,
    why: Annotated[bool, typer.Option("--why", help="Say why each hit is there.")] = False,
    with_notes: Annotated[bool, typer.Option("--notes", help="With --json: hits and notes, in one object.")] = False,
    full: FullOption = False,
) -> Reply:
    """Bring back what bears on a question, best first."""
    hits = call.ask(given, scope=[scope, *(also or ())])
    document = {"hits": list(hits), "notes": hits.notes} if with_notes else hits
    return Reply(document, hit_entries(hits, full=full, why=why, asked=scope), notes=hits.notes)


@command('eunoe look-up session=s1/user=anna "food Anna avoids"', verb="look_up")
def look_up(call: Call, given: Given, full: FullOption = False) -> Reply:
    """Recall as a conversation may: in all the memory that its context shows."""
    hits = call.ask(given)
    return Reply(hits, hit_entries(hits, full=full, asked=given["scope"]), notes=hits.notes)


@command("eunoe list user=anna --kind fact", verb="list")
def list_(
    call: Call,
    given: Given,
    all: Annotated[bool, typer.Option("--all", help="Everything, without pages.")] = False,
    full: FullOption = False,
) -> Reply:
    """Show what a scope holds, oldest first, a page at a time."""
    if all:
        from eunoe.memory import iterate  # with it comes the whole memory

        scope, memory = given["scope"], call.open()
        notes = memory.list(scope, limit=1, exact=given["exact"]).notes
        items, next = iterate(memory, **{**given, "limit": _PAGE_SIZE}), ""
    else:
        page = call.ask(given)
        items, next, notes = iter(page.items), page.next, page.notes
    if call.json:
        return Reply(JsonPage(items, next, notes))
    return Reply(None, item_entries(items, full=full, asked=given["scope"]), notes=more_notes(next))


@command("eunoe recent user=anna --since 2024-05-01", verb="recent", without=("within",))
def recent(
    call: Call,
    given: Given,
    scope: Annotated[str, argument("[SCOPE]", "Whose memory; all if none is named.")] = "",
    full: FullOption = False,
) -> Reply:
    """Show what was learned last, of all scopes or of one."""
    page = call.ask(given, within=scope or None)
    return Reply(page, item_entries(page.items, full=full, asked=scope), notes=(*page.notes, *more_notes(page.next)))


def more_notes(next: str) -> list[str]:
    return [f"there is more: go on with --after {next}"] if next else []


def _show_item(item: Item, _: Given) -> Reply:
    fields = json_value(item)
    text = fields.pop("text")
    known = {name: value for name, value in fields.items() if value not in (None, "", [], {}, False, -1)}
    return Reply(item, Pairs({name: _field_text(value) for name, value in known.items()} | {"text": text}))


get = verb_command(
    "eunoe get user=anna ID", "get", "Show one memory with everything that is known about it.", _show_item
)


def _items_command(example: str, verb: str, help: str) -> Command:
    def run(call: Call, given: Given, full: FullOption = False) -> Reply:
        found = call.ask(given)
        return Reply(found, item_entries(found, full=full, asked=given["scope"]))

    run.__doc__ = help
    return command(example, verb=verb)(run)


history = _items_command("eunoe history user=anna ID", "history", "Show all versions of a memory, oldest first.")
files = _items_command(
    "eunoe files repository=shop src/cart.py docs/",
    "by_files",
    "Show what is remembered about files or folders, latest first.",
)


@command('eunoe graph project=atlas "Anna Berg"', verb="graph.neighbours", asks_llm=True)
def graph(
    call: Call,
    given: Given,
    graphml: Annotated[Path | None, typer.Option("--graphml", metavar="FILE", help="Write it as GraphML.")] = None,
    extract: Annotated[bool, typer.Option("--extract", help="First let the language model read what is new.")] = False,
    full: FullOption = False,
) -> Reply:
    """Show the names around a name, and the passages they share."""
    memory = call.open(needs_llm=extract)
    report = memory.graph.extract(given["scope"]) if extract else None
    near = call.ask(given)
    notes: list[str] = []
    if report:
        due = f"; {report.due:,} still due" if report.due else ""
        names, triples = quantity(report.entities, "name"), quantity(report.triples, "triple")
        notes.append(f"{quantity(report.passages, 'passage')} read: {names}, {triples}{due}")
        notes += failure_lines(report.failed)
    if graphml:
        from eunoe.apps.projects.graphml import graphml as as_graphml  # with it comes the whole memory
        from eunoe.memory import open_output

        with open_output(graphml) as target:
            target.write(as_graphml(near))
        notes.append(f"written to {graphml}")
    code = 1 if report and report.failed else 0
    return Reply(near, *_graph_views(near, full), notes=notes, empty="no names found", code=code)


@command("eunoe scopes user=anna")
def scopes(
    call: Call, keys: Annotated[str, argument("[KEYS]", "Only scopes with these keys and values.")] = ""
) -> Reply:
    """Show whose memories the store holds."""
    found = call.open().scopes(**Scope.parse(keys) if keys else {})
    return Reply(found, "\n".join(map(str, found)))


@command("eunoe status --store team.db")
def status(call: Call) -> Reply:
    """Show what the store holds, what waits, what fails, and what language models took."""
    state = call.open().status()
    usage = [
        (
            *(each.operation, each.model, f"{each.calls:,}", f"{each.failures:,}", f"{each.input_tokens:,}"),
            *(f"{each.output_tokens:,}", f"{each.seconds:,.1f}", f"{each.cost:,.4f}" if each.cost else ""),
        )
        for each in state.usage
    ]
    return Reply(state, Pairs(_status_lines(state)), Grid(_USAGE_COLUMNS, usage))


def _field_text(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return "yes" if value is True else str(value)


def _status_lines(state: Status) -> dict[str, str]:
    """What fails or is under way only where something is."""
    languages = ", ".join(f"{count} {name}" for name, count in state.languages.items())
    languages += f" among the latest {sum(state.languages.values())}" if languages else ""
    vectors = ", ".join(f"{count:,} by {model}" for model, count in state.vectors.items())
    jobs = f", {quantity(state.jobs, 'job')}" if state.jobs else ""
    error = f": {state.error}" if state.error else ""
    trouble = {
        "failing": f"{state.failing:,}, tried again later{error}" if state.failing else "",
        "faults": ", ".join(f"{count:,} × {kind}" for kind, count in state.faults.items()),
        "errors": "; ".join(filter(None, (state.embedder_error, state.reranker_error))),
    }
    return {
        "store": state.target,
        "size": f"{state.bytes / 1e6:,.1f} MB (schema {state.schema})",
        "scopes": f"{state.scopes:,}",
        "messages": f"{state.messages:,}",
        "facts": f"{state.facts:,}",
        "observations": f"{state.observations:,}",
        "in review": f"{state.in_review:,} to be looked at",
        "retired": f"{state.retired:,} superseded or archived",
        "forgotten": quantity(state.tombstones, "tombstone"),
        "embedder": state.embedder + (f", reads {', '.join(reads)}" if (reads := state.embedder_languages) else ""),
        "languages": languages or "none yet",
        "vectors": vectors or "none",
        "pending": f"{state.unembedded:,} without a vector",
        "language model": state.llm or "none: memories are formed extractively",
        "due": f"{quantity(state.due_messages, 'message')} to form{jobs}",
        "summaries": quantity(state.revisions, "revision"),
    } | {name: text for name, text in trouble.items() if text}


def _graph_views(near: Neighbourhood, full: bool) -> Iterable[View]:
    others = near.entities
    if near.entity:
        first, *rest = near.entities
        others = tuple(rest)
        yield f"{first.name}: in {quantity(first.passages, 'passage')}"
    rows = [(each.name, f"{each.weight:g}", f"{each.passages:,}", str(each.distance or "")) for each in others]
    yield Grid(("name", "tie", "passages", "steps"), rows)
    names = {each.key: each.name for each in near.entities}
    relations = [(names[each.subject], each.relation, names[each.object]) for each in near.relations]
    yield Grid(("subject", "relation", "object"), relations)
    yield mention_entries(near.passages, full=full)
