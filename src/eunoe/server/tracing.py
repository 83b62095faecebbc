"""OpenTelemetry, where it is turned on: a span for each request, sent to where the OTEL_ variables say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from starlette.datastructures import Headers
from starlette.types import Scope

from eunoe.errors import InputError


class RequestSpan:
    """The span of one request. It names the operation, never the path: that may hold ids."""

    def __init__(self, span: Any) -> None:
        self._span = span

    def end(self, operation: str, status: int) -> None:
        self._span.update_name(operation)
        self._span.set_attribute("eunoe.operation", operation)
        self._span.set_attribute("http.response.status_code", status)


class Tracing:
    """Makes spans with a tracer provider of its own."""

    def __init__(self, provider: Any = None) -> None:
        self._provider = provider or _otlp_provider()
        self._tracer = self._provider.get_tracer("eunoe")

    @contextmanager
    def request(self, scope: Scope) -> Iterator[RequestSpan]:
        from opentelemetry.propagate import extract
        from opentelemetry.trace import SpanKind

        parent = extract(dict(Headers(scope=scope)))
        attributes = {"http.request.method": scope["method"]}
        with self._tracer.start_as_current_span(
            "request", parent, kind=SpanKind.SERVER, attributes=attributes, record_exception=False
        ) as span:
            yield RequestSpan(span)

    def close(self) -> None:
        self._provider.shutdown()


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
