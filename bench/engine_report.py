"""The engine bench for people: Eunoe beside its peers, the goals it sets itself, tables, Markdown and a plot."""

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bench import Result
from bench.peers import DESCRIPTIONS, SUBJECT

INDEXED_PEERS = "durable peers whose adds feed an index of their own; Eunoe feeds its own at the next recall"
_DURABLE = "fsync per commit"
_MARKS = {"files, no fsync": "[1]", "memory only": "[2]"}
"""What stands beside an engine whose adds are less durable than Eunoe's."""
_MAX_WARM_RATIO = 1.5
_MAX_COLD_STREAM_MS = 300
_COLUMNS = {
    "search\np50 ms": "{search[p50_ms]:.2f}",
    "search\np95 ms": "{search[p95_ms]:.2f}",
    "recall\n@10 %": "{recall@10:.1f}",
    "batch\nadds/s": "{batch_adds[per_second]:,.0f}",
    "single\nadds/s": "{single_adds[per_second]:,.0f}",
    "disk\nMB": "{disk_mb:,.1f}",
    "RSS\nMB": "{rss_mb[peak]:,.0f}",
}
_OWN_COLOUR, _PEER_COLOUR = "#c2410c", "#94a3b8"


def peer_ratios(run: Result) -> dict[str, dict[str, float]]:
    """How many times better Eunoe does than each peer: above 1 is in its favour."""
    own = run.get(SUBJECT)
    return {name: _ratios(own, peer) for name, peer in run.items() if own and name != SUBJECT}


def _ratios(own: Result, peer: Result) -> dict[str, float]:
    ratios = {
        "search_p50": peer["search"]["p50_ms"] / own["search"]["p50_ms"],
        "search_p95": peer["search"]["p95_ms"] / own["search"]["p95_ms"],
        "batch_adds": own["batch_adds"]["per_second"] / peer["batch_adds"]["per_second"],
        "single_adds": own["single_adds"]["per_second"] / peer["single_adds"]["per_second"],
        "disk": peer["disk_mb"] / own["disk_mb"],
        "rss_peak": peer["rss_mb"]["peak"] / own["rss_mb"]["peak"],
    }
    return {name: round(value, 3) for name, value in ratios.items()}


def check_goals(result: Result) -> Result:
    """The figures Eunoe sets itself, and whether this run reached them."""
    goals: Result = {}
    size, run = list(result["sizes"].items())[-1] if result["sizes"] else ("", {})
    if SUBJECT in run:
        goals |= _compare_with_peers(size, run)
    if "million" in result:
        ratio = result["million"]["recall"]["warm_ratio"]
        cold = result["million"]["cold_stream"]["first_process_recall_ms"]
        goals["scale_warm_ratio"] = {"eunoe": ratio, "limit": _MAX_WARM_RATIO, "met": ratio <= _MAX_WARM_RATIO}
        goals["cold_stream_ms"] = {"eunoe": cold, "limit": _MAX_COLD_STREAM_MS, "met": cold < _MAX_COLD_STREAM_MS}
    return goals


def _compare_with_peers(size: str, run: Result) -> Result:
    """Adds are set against two peers, since one that keeps no index has less to do for each add."""
    peers = [name for name in run if name != SUBJECT]
    durable = [name for name in peers if DESCRIPTIONS[name].durability == _DURABLE]
    indexed = [name for name in durable if DESCRIPTIONS[name].index]
    search_ms = {name: figures["search"]["p50_ms"] for name, figures in run.items()}
    adds = {name: figures["batch_adds"]["per_second"] for name, figures in run.items()}
    goals: Result = {}
    if peers:
        fastest = min(peers, key=lambda name: search_ms[name])
        is_met = search_ms[SUBJECT] <= search_ms[fastest]
        goals[f"search_p50_at_{size}"] = _peer_goal(search_ms, fastest, "peers", is_met)
    groups = {"batch_adds": (durable, "durable peers"), "batch_adds_among_indexed": (indexed, INDEXED_PEERS)}
    for goal, (names, among) in groups.items():
        if names:
            fastest = max(names, key=lambda name: adds[name])
            goals[f"{goal}_at_{size}"] = _peer_goal(adds, fastest, among, adds[SUBJECT] >= adds[fastest])
    return goals


def _peer_goal(values: Mapping[str, float], fastest: str, among: str, is_met: bool) -> Result:
    own, peer = values[SUBJECT], values[fastest]
    return {"eunoe": own, "fastest_peer": fastest, "among": among, "peer": peer, "met": is_met}


def print_tables(result: Result) -> None:
    console = Console()
    for size in result["sizes"]:
        table = Table(title=_title(result, size), box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
        table.add_column("engine", no_wrap=True)
        for heading in _COLUMNS:
            table.add_column(heading, justify="right", no_wrap=True)
        for row in _rows(result, size):
            table.add_row(*map(escape, row))
        console.print(table, "")
    for line in (_footnote(result), *(f"- {remark}" for remark in remarks(result))):
        console.print(line, highlight=False, markup=False)


def markdown(result: Result) -> str:
    """Tables, remarks and descriptions of the engines as a Markdown document."""
    machine, work = result["machine"], result["workload"]
    parts = [
        f"Measured in one run on {machine['cpus']} CPUs, {machine['system']}, Python {machine['python']}: "
        f"{work['dimension']}-d vectors given, no model timed, each engine in its own process. Search is the "
        f"ten best of one scope, warm, {work['queries']} queries: vectors only for the peers, lexical and dense "
        f"together for Eunoe. Recall@10 is against exact search (Eunoe: its `dense` recipe). A batch is one "
        f"scope's memories, at most {work['batch']}; single adds go into the full store. Take ratios, not values."
    ]
    head = [("engine", *(heading.replace("\n", " ") for heading in _COLUMNS)), ("---", *("---:" for _ in _COLUMNS))]
    for size in result["sizes"]:
        lines = [f"| {' | '.join(row)} |" for row in (*head, *_rows(result, size))]
        parts.append("\n".join([f"### {_title(result, size)}\n", *lines]))
    parts.append(_footnote(result))
    parts.append("\n".join(["### Remarks\n", *(f"- {line}" for line in remarks(result))]))
    engines = []
    for name, engine in result["engines"].items():
        index = f"index: {engine['index']}" if engine["index"] else "no index for search"
        package = f"{engine['package']} {engine['version']}"
        engines.append(f"- **{name}** ({package}): {engine['setup']}; {index}; {engine['durability']}.")
    parts.append("\n".join(["### Engines\n", *engines]))
    return "\n\n".join(parts) + "\n"


def _title(result: Result, size: str) -> str:
    return f"{int(size):,} memories over {result['workload']['scopes']} scopes"


def _rows(result: Result, size: str) -> list[tuple[str, ...]]:
    ordered = sorted(result["sizes"][size].items(), key=lambda pair: pair[1]["search"]["p50_ms"])
    marks = {name: _MARKS.get(engine["durability"], "") for name, engine in result["engines"].items()}
    return [
        (f"{name} {marks[name]}".strip(), *(cell.format(**figures) for cell in _COLUMNS.values()))
        for name, figures in ordered
    ]


def _footnote(result: Result) -> str:
    """How durable adds are, where a mark stands beside the engine's name and where none does."""
    used = {result["engines"][name]["durability"] for run in result["sizes"].values() for name in run}
    marked = [f"{mark} {durability}" for durability, mark in _MARKS.items() if durability in used]
    exceptions = f", except where marked: {'; '.join(marked)}" if marked else ""
    return f"Adds are on disk when they return ({_DURABLE}){exceptions}."


def remarks(result: Result) -> list[str]:
    """What a reader must know beside the figures: peers missing, limits reached, scale, goals."""
    lines = [f"{name} is missing: {reason}" for name, reason in result["unavailable"].items()]
    for size, run in result["sizes"].items():
        lines += [f"{name} at {int(size):,}: {note}" for name, figures in run.items() for note in figures["notes"]]
    if "million" in result:
        lines += scale_remarks(result["million"])
    for name, goal in result["goals"].items():
        other = f"limit {goal['limit']}" if "limit" in goal else ""
        other = other or f"{goal['fastest_peer']} {goal['peer']:,.2f} (the fastest of the {goal['among']})"
        lines.append(f"goal {name} {'met' if goal['met'] else 'NOT met'}: eunoe {goal['eunoe']:,.2f}, {other}")
    return lines


def scale_remarks(million: Result) -> list[str]:
    large, small, recall, cold = (million[name] for name in ("large", "small", "recall", "cold_stream"))
    lines = [
        f"Eunoe {kind} recall p50: {recall[kind]['large']['p50_ms']:.2f} ms with {large['memories']:,} in "
        f"{large['scopes']:,} scopes, {recall[kind]['small']['p50_ms']:.2f} ms with {small['memories']:,} in "
        f"{small['scopes']:,}: ratio {recall[f'{kind}_ratio']:.2f}"
        for kind in ("warm", "cold")
    ]
    return [
        *lines,
        f"Eunoe with {large['memories']:,}: {large['disk_mb']:,.0f} MB on disk, "
        f"{large['batch_adds']['per_second']:,.0f} batched adds/s ({large['batch_adds']['batch']:.0f} a batch)",
        f"Eunoe, first recall after opening a stream of {cold['memories']:,}: "
        f"{cold['first_process_recall_ms']:.0f} ms in a new process, {cold['recall_ms']:.0f} ms in a running one",
    ]


def draw_plot(result: Result, path: Path) -> None:
    """Search latency and adds of every engine at the largest size, as a PNG."""
    matplotlib = importlib.import_module("matplotlib")
    matplotlib.use("Agg")
    pyplot = importlib.import_module("matplotlib.pyplot")
    size, run = list(result["sizes"].items())[-1]
    figure, axes = pyplot.subplots(1, 2, figsize=(11, 0.5 * len(run) + 1.6), layout="constrained")
    searches, adds = {}, {}
    for name, figures in run.items():
        durability = result["engines"][name]["durability"]
        searches[name] = figures["search"]["p50_ms"]
        adds[name if durability == _DURABLE else f"{name}\n({durability})"] = figures["batch_adds"]["per_second"]
    _draw_bars(axes[0], searches, "scoped search, p50 ms (less is better)", lowest_first=True)
    _draw_bars(axes[1], adds, "batched adds per second (more is better)", lowest_first=False)
    figure.suptitle(f"{_title(result, size)}, {result['workload']['dimension']}-d, one run")
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def _draw_bars(axis: Any, values: Mapping[str, float], title: str, *, lowest_first: bool) -> None:
    ordered = dict(sorted(values.items(), key=lambda item: item[1], reverse=lowest_first))
    colours = [_OWN_COLOUR if name.startswith(SUBJECT) else _PEER_COLOUR for name in ordered]
    bars = axis.barh(list(ordered), list(ordered.values()), color=colours)
    labels = [f"{value:,.2f}" if value < 100 else f"{value:,.0f}" for value in ordered.values()]
    axis.bar_label(bars, labels=labels, padding=3)
    axis.set_xscale("log")
    axis.margins(x=0.18)
    axis.set_title(title, fontsize=10)
    axis.spines[["top", "right"]].set_visible(False)
