"""Metrics, logs and traces: they tell what happens, never what is remembered."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from starlette.types import Receive, Scope, Send
from tests.support.live_server import LiveServer
from tests.support.waiting import wait_until

from eunoe.server.middleware import EnvelopeMiddleware
from eunoe.server.observation import JsonFormatter, Metrics, TextFormatter, Tracing

SECRET = "Anna's PIN is swordfish."


def test_metrics_count_requests_and_memories(fresh_server: LiveServer) -> None:
    server = fresh_server
    body = {"scope": "user=anna", "items": [SECRET]}
    server.call("POST", "/v1/memories", body, key=server.owner)
    server.call("GET", "/nowhere/anna", key=server.owner)
    text = server.call("GET", "/metrics", key=server.owner).content.decode()
    assert 'eunoe_memories{kind="facts"} 1.0' in text
    assert 'eunoe_requests_total{operation="remember_many",status="200"} 1.0' in text
    assert 'eunoe_requests_total{operation="unmatched",status="404"} 1.0' in text
    assert "eunoe_jobs{" in text
    assert "anna" not in text


def test_metrics_are_for_the_owner(server: LiveServer) -> None:
    _, acme = server.services.keys.create("acme", tenant="acme")
    assert server.call("GET", "/metrics", key=acme).status == 403
    assert server.call("GET", "/metrics").status == 401


def _requests(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.name == "eunoe.server.requests"]


def test_a_request_is_logged_without_contents(server: LiveServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "eunoe")
    server.call("POST", "/v1/memories", {"scope": "user=anna", "items": [SECRET]}, key=server.owner)
    server.call("POST", "/v1/recall", {"scope": "user=anna", "query": "PIN"}, key=server.owner)
    server.call("GET", "/v1/memories?scope=user%3Danna", key=server.owner)
    wait_until(lambda: len(_requests(caplog)) == 3)
    records = _requests(caplog)
    lines = [formatter.format(record) for record in records for formatter in (TextFormatter(), JsonFormatter())]
    for line in lines:
        assert "swordfish" not in line
        assert "anna" not in line
        assert server.owner not in line
    fields = json.loads(lines[1])
    assert (fields["operation"], fields["status"], fields["key"]) == ("remember_many", 200, "owner")
    assert fields["request_id"]


def test_a_fault_is_logged_with_where_and_without_what() -> None:
    try:
        raise RuntimeError(SECRET)
    except RuntimeError as error:
        info = (type(error), error, error.__traceback__)
    record = logging.LogRecord("eunoe.server", logging.ERROR, __file__, 1, "a fault", (), info)
    for formatter in (TextFormatter(), JsonFormatter()):
        line = formatter.format(record)
        assert "RuntimeError" in line
        assert "test_observation.py" in line
        assert "swordfish" not in line.replace("SECRET", "")


async def _answer(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def test_a_request_is_a_span_where_that_is_turned_on(server: LiveServer) -> None:
    import asyncio

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    metrics = Metrics(server.services.memory.blocking.status, server.services.jobs.counts)
    middleware = EnvelopeMiddleware(_answer, server.services.addresses, metrics, Tracing(provider))
    parent = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    scope = {"type": "http", "method": "GET", "path": f"/v1/memories/{SECRET}", "headers": [(b"traceparent", parent)]}

    async def send(message: Any) -> None:
        pass

    asyncio.run(middleware({**scope, "state": {}}, None, send))  # type: ignore[arg-type]
    (span,) = exporter.get_finished_spans()
    assert span.attributes == {
        "http.request.method": "GET",
        "eunoe.operation": "unmatched",
        "http.response.status_code": 204,
    }
    assert f"{span.context.trace_id:032x}" == "0af7651916cd43dd8448eb211c80319c"
    assert SECRET not in span.to_json()
