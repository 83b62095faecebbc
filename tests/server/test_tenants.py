"""Every route with a key of another tenant: it finds nothing, and cannot tell what is there from what is not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.http_calls import ID, TEXT, Call, calls
from tests.support.live_server import Answer, LiveServer

_SECRETS = (TEXT, "zebra", "Quagga", ID, "acme")


@pytest.fixture
def full(fresh_server: LiveServer) -> LiveServer:
    """A server where the tenant acme has memories of every kind, and beta has none."""
    server = fresh_server
    key = _key(server, "acme")
    items = [{"text": TEXT, "id": ID, "files": ["zoo/quagga.md"]}]
    for path, body in (
        ("/v1/memories", {"scope": "user=anna", "items": items}),
        ("/v1/messages", {"scope": "user=anna", "messages": ["My zebra is called Quagga."]}),
        ("/v1/revisions", {"scope": "user=anna", "text": TEXT}),
        ("/v1/revisions", {"scope": "user=anna", "text": f"{TEXT} It is striped."}),
        ("/api/projects/p1/memory/index", {"docs": [TEXT]}),
    ):
        answer = server.call("POST", path, body, key=key)
        assert answer.status == 200, answer.content
    return server


def test_another_tenant_sees_nothing(full: LiveServer) -> None:
    """Neither under the same scope, which is its own, nor by naming the tenant, nor by any id."""
    key, mem0_id = _key(full, "beta"), _mem0_id(full)
    for scope in ("user=anna", "tenant=acme/user=anna"):
        for call in calls(scope, mem0_id=mem0_id):
            answer = full.call(call.method, call.path, call.body, key=key)
            assert answer.status < 500, (call, answer.content)
            _check_silence(call, answer)


def test_what_is_elsewhere_is_as_what_is_nowhere(full: LiveServer) -> None:
    """The same requests to a server that has never heard of acme's memories have the same replies."""
    known, unknown = _key(full, "beta"), _key(full, "gamma")
    mem0_id = _mem0_id(full)
    for there, nowhere in zip(
        calls("tenant=acme/user=anna", mem0_id=mem0_id),
        calls("tenant=nobody/user=anna", mem0_id=mem0_id[:-6] + "AAAAAA"),
        strict=True,
    ):
        first = full.call(there.method, there.path, there.body, key=known)
        second = full.call(nowhere.method, nowhere.path, nowhere.body, key=unknown)
        assert first.status == second.status, there
        assert _neutral(first, "acme") == _neutral(second, "nobody"), there


def test_nothing_was_changed_by_others(full: LiveServer) -> None:
    before = _export(full)
    for scope in ("user=anna", "tenant=acme/user=anna"):
        for call in calls(scope, mem0_id=_mem0_id(full)):
            full.call(call.method, call.path, call.body, key=_key(full, "beta"))
    assert _export(full) == before


def test_what_the_server_keeps_is_as_hidden(full: LiveServer) -> None:
    """Keys, jobs, webhooks, the audit log: by any id of acme's they are as unknown as one that never was."""
    acme, beta = _key(full, "acme"), _key(full, "beta")
    made = full.call("POST", "/v1/keys", {"name": "zebra-key", "tenant": "acme"}, key=acme)
    job = full.call("POST", "/v1/jobs", {"kind": "form", "scope": "user=anna"}, key=acme)
    hook = full.call("POST", "/v1/webhooks", {"url": "https://example.org/zebra"}, key=acme)
    assert (made.status, job.status, hook.status) == (201, 202, 201), (made.content, job.content, hook.content)
    ids = {"keys": made.json["key"]["id"], "jobs": job.json["id"], "webhooks": hook.json["id"]}
    document = full.call("GET", "/v1/openapi.json", key=full.owner).json
    walked = set()
    for path, operations in document["paths"].items():
        name = path.split("/")[2] if path.startswith("/v1/") else ""
        for method, operation in operations.items():
            if name in ids and "{id}" in path:
                walked.add(operation["operationId"])
                body = {} if "requestBody" in operation else None
                there = full.call(method.upper(), path.replace("{id}", ids[name]), body, key=beta)
                nowhere = full.call(method.upper(), path.replace("{id}", "a2b3c4d5"), body, key=beta)
                assert there.status == nowhere.status == 404, (method, path)
                assert _neutral(there, "acme") == _neutral(nowhere, "acme")
            elif name in (*ids, "audit") and method == "get":
                walked.add(operation["operationId"])
                content = full.call("GET", path, key=beta).content.decode()
                assert [each for each in (*ids.values(), "zebra", "acme") if each in content] == [], path
    assert len(walked) >= 12
    assert full.call("GET", "/metrics", key=beta).status == 403
    assert full.call("GET", "/v1/keys", key=acme).content.count(b"zebra-key") == 1


def _check_silence(call: Call, answer: Answer) -> None:
    sent = json.dumps([call.path, call.body])
    told = [secret for secret in _SECRETS if secret not in sent and secret in answer.content.decode()]
    assert told == [], call
    if call.operation not in ("update", "observe", "remember_many", "preview", "mem0_add", "streams_configure"):
        assert TEXT not in answer.content.decode(), call


def _neutral(answer: Answer, tenant: str) -> Any:
    text = answer.content.decode().replace(tenant, "TENANT").replace("beta", "OWN").replace("gamma", "OWN")
    try:
        return _without_own(json.loads(text))
    except ValueError:
        return text


def _without_own(value: Any) -> Any:
    """Ids and times that every write makes anew are left out."""
    if isinstance(value, dict):
        names = {"id", "request_id", "recorded", "created_at", "updated_at", "receipts", "path", "bytes", "results"}
        return {name: _without_own(each) for name, each in value.items() if name not in names}
    return [_without_own(each) for each in value] if isinstance(value, list) else value


def _export(server: LiveServer) -> list[str]:
    answer = server.call("GET", "/v1/export?scope=tenant%3Dacme%2Fuser%3Danna", key=server.owner)
    assert answer.status == 200
    return answer.content.decode().splitlines()


def _mem0_id(server: LiveServer) -> str:
    key = _key(server, "acme")
    results = server.call("GET", "/compat/mem0/memories?user_id=anna", key=key).json["results"]
    return str(results[0]["id"])


def _key(server: LiveServer, tenant: str) -> str:
    return server.services.keys.create("test", tenant=tenant)[1]
