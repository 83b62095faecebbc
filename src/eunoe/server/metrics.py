"""Metrics in Prometheus' format. They count; they name no scope, no user and no tenant."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Lock
from time import monotonic
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from eunoe.model.result import Status

_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_STATUS_SECONDS: Final = 5.0
"""How long the counts of the store are taken as they were: counting them costs something."""


class Metrics:
    """The figures of one server process."""

    def __init__(self, find_status: Callable[[], Status], find_jobs: Callable[[], dict[str, int]]) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._registry.register(_StoreCollector(find_status, find_jobs))
        self._requests = Counter(
            "eunoe_requests", "Requests answered.", ("operation", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "eunoe_request_seconds",
            "How long requests took.",
            ("operation",),
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self.in_flight = Gauge("eunoe_requests_in_flight", "Requests under way.", registry=self._registry)

    def note_request(self, operation: str, status: int, seconds: float) -> None:
        self._requests.labels(operation, str(status)).inc()
        self._seconds.labels(operation).observe(seconds)

    def text(self) -> bytes:
        return generate_latest(self._registry)


class _StoreCollector(Collector):
    """What the store holds and what is due in it, looked up when somebody asks."""

    def __init__(self, find_status: Callable[[], Status], find_jobs: Callable[[], dict[str, int]]) -> None:
        self._find_status = find_status
        self._find_jobs = find_jobs
        self._lock = Lock()
        self._status: Status | None = None
        self._looked = 0.0

    def describe(self) -> Iterator[Metric]:
        """Nothing: otherwise the store would be asked when this is registered."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        status = self._recent_status()
        memories = GaugeMetricFamily("eunoe_memories", "What the store holds.", labels=["kind"])
        for kind in ("messages", "facts", "observations"):
            memories.add_metric([kind], getattr(status, kind))
        yield memories
        for name, about, value in (
            ("eunoe_scopes", "Scopes that hold something.", status.scopes),
            ("eunoe_due_messages", "Messages not yet turned into memories.", status.due_messages),
            ("eunoe_unembedded", "Items without any vector, which is still to be made.", status.unembedded),
            ("eunoe_outdated", "Items whose vector is by a replaced model and is made anew.", _outdated(status)),
            ("eunoe_store_bytes", "Size of the store on disk.", status.bytes),
            ("eunoe_index_cache_bytes", "Memory that indexes take.", status.cached_bytes),
        ):
            yield GaugeMetricFamily(name, about, value=value)
        jobs = GaugeMetricFamily("eunoe_jobs", "Jobs by state.", labels=["state"])
        for state, count in self._find_jobs().items():
            jobs.add_metric([state], count)
        yield jobs
        yield from _model_metrics(status)

    def _recent_status(self) -> Status:
        with self._lock:
            if self._status is None or monotonic() - self._looked > _STATUS_SECONDS:
                self._status, self._looked = self._find_status(), monotonic()
            return self._status


def _outdated(status: Status) -> int:
    return status.reembedding.total - status.reembedding.done if status.reembedding else 0


def _model_metrics(status: Status) -> Iterator[Metric]:
    names = ["operation", "model"]
    calls = CounterMetricFamily("eunoe_model_calls", "Calls of language models.", labels=[*names, "outcome"])
    tokens = CounterMetricFamily("eunoe_model_tokens", "Tokens of language models.", labels=[*names, "direction"])
    cost = CounterMetricFamily("eunoe_model_cost", "What calls have cost, where prices are known.", labels=names)
    for usage in status.usage:
        key = [usage.operation, usage.model]
        calls.add_metric([*key, "answered"], usage.calls - usage.failures)
        calls.add_metric([*key, "failed"], usage.failures)
        tokens.add_metric([*key, "input"], usage.input_tokens)
        tokens.add_metric([*key, "output"], usage.output_tokens)
        cost.add_metric(key, usage.cost)
    yield from (calls, tokens, cost)
