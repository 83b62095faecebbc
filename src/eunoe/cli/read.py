"""Commands that look something up: recall, list, get, history, files, graph, scopes, status."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from eunoe.cli.command import Call, Reply, command
from eunoe.cli.display import Grid, JsonPage, Pairs, View, hit_entries, item_entries, mention_entries, quantity
from eunoe.cli.forming import failure_lines
from eunoe.cli.inputs import (
    ExactOption,
    FilterOptions,
    FullOption,
    IdArgument,
    KindsOption,
    LabelsOption,
    RecipeOption,
    ScopeArgument,
    argument,
    repeatable_option,
    time_option,
)
from eunoe.model.arguments import KINDS
from eunoe.model.json import json_value
from eunoe.model.result import GraphReport, Neighbourhood, Status, Usage
from eunoe.model.scope import Scope

_PAGE_SIZE: Final = 500
_USAGE_COLUMNS: Final = ("operation", "model", "calls", "failed", "tokens in", "out", "seconds", "cost")


@command('eunoe recall user=anna "What must Anna not eat?" --why')
def recall(
    call: Call,
    scope: ScopeArgument,
    query: Annotated[str, argument("QUERY", "The question.")],
    filters: FilterOptions,
    also: Annotated[list[str] | None, repeatable_option("--also", "SCOPE", "Another scope to look in.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", help="At most so many hits; 10 if not given.")] = None,
    tokens: Annotated[int | None, typer.Option("--tokens", help="At most so many tokens of text.")] = None,
    now: Annotated[str | None, time_option("--now", "When the question is asked, for words like yesterday")] = None,
    recipe: RecipeOption = "default",
    why: Annotated[bool, typer.Option("--why", help="Say why each hit is there.")] = False,
    with_notes: Annotated[bool, typer.Option("--notes", help="With --json: hits and notes, in one object.")] = False,
    full: FullOption = False,
    exact: ExactOption = False,
) -> Reply:
    """Bring back what bears on a question, best first."""
    how: dict[str, Any] = {"limit": limit, "tokens": tokens, "now": now, "recipe": recipe, "exact": exact}
    hits = call.open().recall([scope, *(also or ())], query, **how, **filters.as_arguments())
    document = {"hits": list(hits), "notes": hits.notes} if with_notes else hits
    return Reply(document, hit_entries(hits, full=full, why=why, asked=scope), notes=hits.notes)


@command("eunoe list user=anna --kind fact")
def list_(
    call: Call,
    scope: ScopeArgument,
    kinds: KindsOption = None,
    labels: LabelsOption = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many on one page.")] = 50,
    after: Annotated[str, typer.Option("--after", metavar="NEXT", help="Read on from the page before.")] = "",
    all: Annotated[bool, typer.Option("--all", help="Everything, without pages.")] = False,
    retired: Annotated[bool, typer.Option("--retired", help="Also what was superseded or archived.")] = False,
    full: FullOption = False,
    exact: ExactOption = False,
) -> Reply:
    """Show what a scope holds, oldest first, a page at a time."""
    memory = call.open()
    filters: dict[str, Any] = {"kinds": kinds or KINDS, "labels": labels or (), "retired": retired, "exact": exact}
    if all:
        notes = memory.list(scope, limit=1, exact=exact).notes
        from eunoe.memory import iterate  # with it comes the whole memory

        items, next = iterate(memory, scope, after=after, limit=_PAGE_SIZE, **filters), ""
    else:
        page = memory.list(scope, limit=limit, after=after, **filters)
        items, next, notes = iter(page.items), page.next, page.notes
    if call.json:
        return Reply(JsonPage(items, next, notes))
    more = [f"there is more: go on with --after {next}"] if next else []
    return Reply(None, item_entries(items, full=full, asked=scope), notes=more)


@command("eunoe get user=anna ID")
def get(call: Call, scope: ScopeArgument, id: IdArgument, exact: ExactOption = False) -> Reply:
    """Show one memory with everything that is known about it."""
    item = call.open().get(scope, id, exact=exact)
    fields = json_value(item)
    text = fields.pop("text")
    known = {name: value for name, value in fields.items() if value not in (None, "", [], {}, False, -1)}
    return Reply(item, Pairs({name: _field_text(value) for name, value in known.items()} | {"text": text}))


@command("eunoe history user=anna ID")
def history(
    call: Call, scope: ScopeArgument, id: IdArgument, full: FullOption = False, exact: ExactOption = False
) -> Reply:
    """Show all versions of a memory, oldest first."""
    versions = call.open().history(scope, id, exact=exact)
    return Reply(versions, item_entries(versions, full=full, asked=scope))


@command("eunoe files repository=shop src/cart.py docs/")
def files(
    call: Call,
    scope: ScopeArgument,
    paths: Annotated[list[str], argument("PATH...", "Files or folders.")],
    full: FullOption = False,
    exact: ExactOption = False,
) -> Reply:
    """Show what is remembered about files or folders, latest first."""
    atoms = call.open().by_files(scope, paths, exact=exact)
    return Reply(atoms, item_entries(atoms, full=full, asked=scope))


@command('eunoe graph project=atlas "Anna Berg" --open', asks_llm=True)
def graph(
    call: Call,
    scope: ScopeArgument,
    entity: Annotated[str, argument("[ENTITY]", "A name; without one the best connected first.")] = "",
    depth: Annotated[int, typer.Option("--depth", metavar="N", help="Steps from passage to passage.")] = 1,
    limit: Annotated[int, typer.Option("-n", "--limit", metavar="N", help="At most so many names and passages.")] = 30,
    graphml: Annotated[Path | None, typer.Option("--graphml", metavar="FILE", help="Write it as GraphML.")] = None,
    extract: Annotated[bool, typer.Option("--extract", help="First let the language model read what is new.")] = False,
    full: FullOption = False,
    exact: ExactOption = False,
) -> Reply:
    """Show the names around a name, and the passages they share."""
    memory = call.open(needs_llm=extract)
    report = memory.graph.extract(scope) if extract else None
    near = memory.graph.neighbours(scope, entity, depth=depth, limit=limit, exact=exact)
    notes = [*(_extraction_notes(report) if report else ()), *_save_graph(near, graphml)]
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
    return Reply(state, Pairs(_status_lines(state)), Grid(_USAGE_COLUMNS, [_usage_row(each) for each in state.usage]))


def _field_text(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return "yes" if value is True else str(value)


def _status_lines(state: Status) -> dict[str, str]:
    """What fails or is under way only where something is."""
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
        "languages": _language_text(state),
        "vectors": vectors or "none",
        "pending": f"{state.unembedded:,} without a vector",
        "language model": state.llm or "none: memories are formed extractively",
        "due": f"{quantity(state.due_messages, 'message')} to form{jobs}",
        "summaries": quantity(state.revisions, "revision"),
    } | {name: text for name, text in trouble.items() if text}


def _language_text(state: Status) -> str:
    counts = ", ".join(f"{count} {name}" for name, count in state.languages.items())
    return f"{counts} among the latest {sum(state.languages.values())}" if counts else "none yet"


def _usage_row(usage: Usage) -> Sequence[str]:
    counts = (usage.calls, usage.failures, usage.input_tokens, usage.output_tokens)
    cost = f"{usage.cost:,.4f}" if usage.cost else ""
    return usage.operation, usage.model, *(f"{count:,}" for count in counts), f"{usage.seconds:,.1f}", cost


def _extraction_notes(report: GraphReport) -> Iterable[str]:
    due = f"; {report.due:,} still due" if report.due else ""
    names, triples = quantity(report.entities, "name"), quantity(report.triples, "triple")
    yield f"{quantity(report.passages, 'passage')} read: {names}, {triples}{due}"
    yield from failure_lines(report.failed)


def _save_graph(near: Neighbourhood, file: Path | None) -> Iterable[str]:
    from eunoe.apps.projects.graphml import graphml  # with it comes the whole memory
    from eunoe.memory import open_output

    if file:
        with open_output(file) as target:
            target.write(graphml(near))
        yield f"written to {file}"


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
