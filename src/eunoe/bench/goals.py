"""How Eunoe does beside its peers, and whether it reached what it sets itself."""

from __future__ import annotations

from typing import Any

from eunoe.bench.peers import SUBJECT, engine_class

DURABLE = "durable peers"
INDEXED = "durable peers whose adds feed an index of their own; Eunoe feeds its own at the next recall"


def ratios(run: dict[str, Any]) -> dict[str, dict[str, float]]:
    """How many times better Eunoe does than each peer: above 1 is in its favour."""
    if SUBJECT not in run:
        return {}
    own = run[SUBJECT]
    return {name: _ratio(own, peer) for name, peer in run.items() if name != SUBJECT}


def _ratio(own: dict[str, Any], peer: dict[str, Any]) -> dict[str, float]:
    ratios = {
        "search_p50": peer["search"]["p50_ms"] / own["search"]["p50_ms"],
        "search_p95": peer["search"]["p95_ms"] / own["search"]["p95_ms"],
        "batch_adds": own["batch_adds"]["per_second"] / peer["batch_adds"]["per_second"],
        "single_adds": own["single_adds"]["per_second"] / peer["single_adds"]["per_second"],
        "disk": peer["disk_mb"] / own["disk_mb"],
        "rss_peak": peer["rss_mb"]["peak"] / own["rss_mb"]["peak"],
    }
    return {name: round(value, 3) for name, value in ratios.items()}


def goals(result: dict[str, Any]) -> dict[str, Any]:
    """The figures Eunoe sets itself, and whether this run reached them."""
    found: dict[str, Any] = {}
    size, run = list(result["sizes"].items())[-1] if result["sizes"] else ("", {})
    if SUBJECT in run:
        found |= _beside_peers(size, run)
    if "million" in result:
        ratio = result["million"]["recall"]["warm_ratio"]
        cold = result["million"]["cold_stream"]["first_process_recall_ms"]
        found["scale_warm_ratio"] = {"eunoe": ratio, "limit": 1.5, "met": ratio <= 1.5}
        found["cold_stream_ms"] = {"eunoe": cold, "limit": 300, "met": cold < 300}
    return found


def _beside_peers(size: str, run: dict[str, Any]) -> dict[str, Any]:
    """Adds are set against two peers, since one that keeps no index has less to do for each add."""
    peers = [name for name in run if name != SUBJECT]
    durable = [name for name in peers if engine_class(name).durability == "fsync per commit"]
    indexed = [name for name in durable if engine_class(name).index]
    found: dict[str, Any] = {}
    if peers:
        found[f"search_p50_at_{size}"] = _fastest_search(run, peers)
    if durable:
        found[f"batch_adds_at_{size}"] = _fastest_adds(run, durable, DURABLE)
    if indexed:
        found[f"batch_adds_among_indexed_at_{size}"] = _fastest_adds(run, indexed, INDEXED)
    return found


def _fastest_search(run: dict[str, Any], peers: list[str]) -> dict[str, Any]:
    times = {name: run[name]["search"]["p50_ms"] for name in (SUBJECT, *peers)}
    best = min(peers, key=lambda name: times[name])
    return _goal(times, best, "peers", times[SUBJECT] <= times[best])


def _fastest_adds(run: dict[str, Any], peers: list[str], among: str) -> dict[str, Any]:
    speeds = {name: run[name]["batch_adds"]["per_second"] for name in (SUBJECT, *peers)}
    best = max(peers, key=lambda name: speeds[name])
    return _goal(speeds, best, among, speeds[SUBJECT] >= speeds[best])


def _goal(values: dict[str, float], best: str, among: str, met: bool) -> dict[str, Any]:
    return {"eunoe": values[SUBJECT], "fastest_peer": best, "among": among, "peer": values[best], "met": met}
