"""The engine bench for people: progress, tables on the screen and in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

HEADINGS = (
    "engine",
    "search\np50 ms",
    "search\np95 ms",
    "recall\n@10 %",
    "batch\nadds/s",
    "single\nadds/s",
    "disk\nMB",
    "RSS\nMB",
)
NOTES = {"files, no fsync": "[1]", "memory only": "[2]"}


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """A status line on standard error; plain lines where that is not a terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda text: console.print(text, highlight=False, markup=False)
        return
    with console.status("starting") as status:
        yield lambda text: status.update(text)


def rows(result: dict[str, Any], size: str) -> list[tuple[str, ...]]:
    """One row per engine at one size, the quickest search first."""
    run = result["sizes"][size]
    ordered = sorted(run, key=lambda name: run[name]["search"]["p50_ms"])
    return [_row(name, run[name], result["engines"][name]["durability"]) for name in ordered]


def _row(name: str, one: dict[str, Any], durability: str) -> tuple[str, ...]:
    mark = NOTES.get(durability, "")
    return (
        f"{name} {mark}".strip(),
        f"{one['search']['p50_ms']:.2f}",
        f"{one['search']['p95_ms']:.2f}",
        f"{one['recall@10']:.1f}",
        f"{one['batch_adds']['per_second']:,.0f}",
        f"{one['single_adds']['per_second']:,.0f}",
        f"{one['disk_mb']:,.1f}",
        f"{one['rss_mb']['peak']:,.0f}",
    )


def footnote(result: dict[str, Any]) -> str:
    """How durable adds are, where a mark stands beside the engine's name and where none does."""
    used = {result["engines"][name]["durability"] for run in result["sizes"].values() for name in run}
    marked = [f"{mark} {durability}" for durability, mark in NOTES.items() if durability in used]
    exceptions = f", except where marked: {'; '.join(marked)}" if marked else ""
    return f"Adds are on disk when they return (fsync per commit){exceptions}."


def remarks(result: dict[str, Any]) -> list[str]:
    """What a reader must know beside the figures: limits reached, peers missing, goals, scale."""
    lines = [f"{name} is missing: {reason}" for name, reason in result["unavailable"].items()]
    for size, run in result["sizes"].items():
        lines += [f"{name} at {int(size):,}: {note}" for name, one in run.items() for note in one["notes"]]
    return lines + _scale(result.get("million")) + [_goal(*each) for each in result["goals"].items()]


def _scale(million: dict[str, Any] | None) -> list[str]:
    if million is None:
        return []
    large, small, recall = million["large"], million["small"], million["recall"]
    lines = [
        f"Eunoe {kind} recall p50: {recall[kind]['large']['p50_ms']:.2f} ms with {large['memories']:,} in "
        f"{large['scopes']:,} scopes, {recall[kind]['small']['p50_ms']:.2f} ms with {small['memories']:,} in "
        f"{small['scopes']:,}: ratio {recall[f'{kind}_ratio']:.2f}"
        for kind in ("warm", "cold")
    ]
    cold = million["cold_stream"]
    return [
        *lines,
        f"Eunoe with {large['memories']:,}: {large['disk_mb']:,.0f} MB on disk, "
        f"{large['batch_adds']['per_second']:,.0f} batched adds/s ({large['batch_adds']['batch']:.0f} a batch)",
        f"Eunoe, first recall after opening a stream of {cold['memories']:,}: "
        f"{cold['first_process_recall_ms']:.0f} ms in a new process, {cold['recall_ms']:.0f} ms in a running one",
    ]


def _goal(name: str, goal: dict[str, Any]) -> str:
    if "limit" in goal:
        other = f"limit {goal['limit']}"
    else:
        other = f"{goal['fastest_peer']} {goal['peer']:,.2f} (the fastest of the {goal['among']})"
    return f"goal {name} {'met' if goal['met'] else 'NOT met'}: eunoe {goal['eunoe']:,.2f}, {other}"


def show(result: dict[str, Any]) -> None:
    """Tables and remarks on the terminal."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    for size in result["sizes"]:
        table = Table(title=_title(result, size), box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
        for place, heading in enumerate(HEADINGS):
            table.add_column(heading, justify="right" if place else "left", no_wrap=True)
        for row in rows(result, size):
            table.add_row(*map(escape, row))
        console.print(table, "")
    console.print(footnote(result), highlight=False, markup=False)
    for line in remarks(result):
        console.print(f"- {line}", highlight=False, markup=False)


def markdown(result: dict[str, Any]) -> str:
    """The same tables and remarks as a Markdown document."""
    parts = [_introduction(result)]
    for size in result["sizes"]:
        headings = [heading.replace("\n", " ") for heading in HEADINGS]
        lines = [" | ".join(row) for row in (headings, _rule(), *rows(result, size))]
        parts.append(f"### {_title(result, size)}\n\n" + "\n".join(f"| {line} |" for line in lines))
    parts.append(footnote(result))
    parts.append("### Remarks\n\n" + "\n".join(f"- {line}" for line in remarks(result)))
    parts.append("### Engines\n\n" + "\n".join(_about(*each) for each in result["engines"].items()))
    return "\n\n".join(parts) + "\n"


def _rule() -> tuple[str, ...]:
    return ("---", *("---:" for _ in HEADINGS[1:]))


def _title(result: dict[str, Any], size: str) -> str:
    return f"{int(size):,} memories over {result['workload']['scopes']} scopes"


def _introduction(result: dict[str, Any]) -> str:
    machine, work = result["machine"], result["workload"]
    return (
        f"Measured in one run on {machine['cpus']} CPUs, {machine['system']}, Python {machine['python']}: "
        f"{work['dimension']}-d vectors given, no model timed, each engine in its own process. Search is the "
        f"ten best of one scope, warm, {work['queries']} queries: vectors only for the peers, lexical and dense "
        f"together for Eunoe. Recall@10 is against exact search (Eunoe: its `dense` recipe). A batch is one "
        f"scope's memories, at most {work['batch']}; single adds go into the full store. Take ratios, not values."
    )


def _about(name: str, about: dict[str, str]) -> str:
    index = f"index: {about['index']}" if about["index"] else "no index for search"
    return f"- **{name}** ({about['package']} {about['version']}): {about['setup']}; {index}; {about['durability']}."
