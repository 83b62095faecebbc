"""OpenTelemetry, where it is turned on: a span for each request, sent to where the OTEL_ variables say."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from threading import Lock
from time import monotonic
from typing import Any, Final, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector
from starlette.datastructures import Headers
from starlette.types import Scope

from eunoe.errors import InputError
from eunoe.model.result import Status

LogFormat = Literal["text", "json"]
LOG_FORMATS: Final[tuple[LogFormat, ...]] = ("text", "json")
LOG_LEVELS: Final = ("info", "debug", "warning", "error")
REQUEST_LOGGER: Final = "eunoe.server.requests"
FIELDS: Final = "fields"
"""The attribute of a record that holds what is logged beside its message."""


class _QuietFormatter(logging.Formatter):
    """Shows where an error was raised, not what it says: that may repeat memories."""

    def formatException(self, ei: Any) -> str:
        kind, _, trace = ei
        return "".join([*traceback.format_tb(trace), kind.__name__])


class TextFormatter(_QuietFormatter):
    """Time, level, message, then the fields as name=value."""

    def format(self, record: logging.LogRecord) -> str:
        fields = " ".join(f"{name}={value}" for name, value in getattr(record, FIELDS, {}).items())
        line = f"{_time(record)} {record.levelname.lower()} {_one_line(record.getMessage())} {fields}".rstrip()
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonFormatter(_QuietFormatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        said = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, FIELDS, {}),
        }
        if record.exc_info:
            said["exception"] = self.formatException(record.exc_info)
        return json.dumps(said, ensure_ascii=False)


def configure_logs(format: LogFormat, level: str) -> None:
    """Write what this package logs to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if format == "json" else TextFormatter())
    logger = logging.getLogger("eunoe")
    for known in list(logger.handlers):  # the command line's own
        logger.removeHandler(known)
    logger.addHandler(handler)
    logger.setLevel(level.upper())


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


def _one_line(text: str) -> str:
    return " ".join(text.split())


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


class Tracing:
    """OpenTelemetry, where it is turned on: a span for each request, with a tracer provider of its own."""

    def __init__(self, provider: Any = None) -> None:
        self._provider = provider or _otlp_provider()
        self._tracer = self._provider.get_tracer("eunoe")

    def request(self, scope: Scope) -> AbstractContextManager[Any]:
        """A span until the block ends."""
        from opentelemetry.propagate import extract
        from opentelemetry.trace import SpanKind

        parent = extract(dict(Headers(scope=scope)))
        attributes = {"http.request.method": scope["method"]}
        span: AbstractContextManager[Any] = self._tracer.start_as_current_span(
            "request", parent, kind=SpanKind.SERVER, attributes=attributes, record_exception=False
        )
        return span

    def close(self) -> None:
        self._provider.shutdown()


def end_span(span: Any, operation: str, status: int) -> None:
    """It names the operation, never the path: that may hold ids."""
    span.update_name(operation)
    span.set_attribute("eunoe.operation", operation)
    span.set_attribute("http.response.status_code", status)


def _otlp_provider() -> Any:
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise InputError("tracing needs OpenTelemetry: pip install 'eunoe[otel]'") from None
    provider = TracerProvider(resource=Resource.create({"service.name": "eunoe"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider
