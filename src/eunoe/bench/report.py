"""The engine bench for people: progress, tables on the screen and in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

HEADINGS = (
    "engine",
    "search p50 ms",
    "p95 ms",
    "recall@10 %",
    "batch adds/s",
    "single adds/s",
    "disk MB",
    "RSS peak MB",
    "durability",
)


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
    return (
        name,
        f"{one['search']['p50_ms']:.2f}",
        f"{one['search']['p95_ms']:.2f}",
        f"{one['recall@10']:.1f}",
        f"{one['batch_adds']['per_second']:,.0f}",
        f"{one['single_adds']['per_second']:,.0f}",
        f"{one['disk_mb']:,.1f}",
        f"{one['rss_mb']['peak']:,.0f}",
        durability,
    )


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
    other = f"{goal['fastest_peer']} {goal['peer']:,.2f}" if "peer" in goal else f"limit {goal['limit']}"
    return f"goal {name} {'met' if goal['met'] else 'NOT met'}: eunoe {goal['eunoe']:,.2f}, {other}"


def show(result: dict[str, Any]) -> None:
    """Tables and remarks on the terminal."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    for size in result["sizes"]:
        table = Table(title=_title(result, size))
        table.add_column(HEADINGS[0], no_wrap=True)
        for heading in HEADINGS[1:-1]:
            table.add_column(heading, justify="right")
        table.add_column(HEADINGS[-1])
        for row in rows(result, size):
            table.add_row(*row)
        console.print(table)
    for line in remarks(result):
        console.print(f"- {line}", highlight=False, markup=False)


def markdown(result: dict[str, Any]) -> str:
    """The same tables and remarks as a Markdown document."""
    parts = [_introduction(result)]
    for size in result["sizes"]:
        lines = [" | ".join(row) for row in (HEADINGS, _rule(), *rows(result, size))]
        parts.append(f"### {_title(result, size)}\n\n" + "\n".join(f"| {line} |" for line in lines))
    parts.append("### Remarks\n\n" + "\n".join(f"- {line}" for line in remarks(result)))
    parts.append("### Engines\n\n" + "\n".join(_about(*each) for each in result["engines"].items()))
    return "\n\n".join(parts) + "\n"


def _rule() -> tuple[str, ...]:
    return ("---", *("---:" for _ in HEADINGS[2:]), "---")


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
    return f"- **{name}** ({about['package']} {about['version']}): {about['setup']}; {about['durability']}."
