"""The OpenAPI document and the page about HTTP: true, whole, and with examples that work."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from fastapi.routing import APIRoute
from tests.support.http_calls import ID, TEXT, Call, calls
from tests.support.live_server import Answer, LiveServer

from eunoe.server.app import create_app
from eunoe.server.requests import JsonRoute

_ELSEWHERE = ("jobs", "webhooks", "events", "keys", "audit", "session", "sessions", "metrics", "inspector", "chat")
"""Tags of routes whose own tests call them."""


@pytest.fixture
def document(server: LiveServer) -> dict[str, Any]:
    return server.call("GET", "/v1/openapi.json", key=server.owner).json


def test_every_reply_is_as_the_document_says(server: LiveServer, document: dict[str, Any]) -> None:
    items = [{"text": TEXT, "id": ID, "files": ["zoo/quagga.md"]}, {"text": "A zebra is striped.", "id": "zebra-2"}]
    server.call("POST", "/v1/memories", {"scope": "user=anna", "items": items}, key=server.owner)
    for text in ("Anna keeps a zebra.", "Anna keeps a zebra.\nIts name is Quagga."):
        server.call("POST", "/v1/revisions", {"scope": "user=anna", "text": text}, key=server.owner)
    listed = server.call("GET", "/compat/mem0/memories?user_id=anna", key=server.owner).json["results"]
    mem0_id = next(each["id"] for each in listed if each["memory"] != TEXT)
    made = calls(mem0_id=mem0_id)
    wrong = []
    for call in made:
        answer = server.call(call.method, call.path, call.body, key=server.owner)
        if call.status not in (answer.status, None):
            wrong.append((call.operation, answer.status, answer.content[:300]))
        else:
            _check_reply(document, call, answer)
    assert wrong == []
    told = [operation for _, operation in _operations(document) if operation["tags"][0] not in _ELSEWHERE]
    assert {call.operation for call in made} == {operation["operationId"] for operation in told} - {"metrics"}


def test_every_operation_is_described(document: dict[str, Any]) -> None:
    ids = []
    for place, operation in _operations(document):
        ids.append(operation["operationId"])
        assert ids[-1].isidentifier(), place
        assert operation["summary"], place
        assert operation["tags"], place
        if operation["tags"][0] in _ELSEWHERE or place == "GET /metrics":
            continue
        assert operation["description"], place
        assert any(status.startswith(("2", "409")) for status in operation["responses"]), place
        for status, answer in operation["responses"].items():
            kinds = set(answer.get("content", ()))
            if status.startswith("2"):
                assert kinds, place
            elif operation["tags"] != ["projects"]:
                assert kinds == {"application/problem+json"}, (place, status)
    assert len(ids) == len(set(ids))


def test_every_example_fits_its_schema(document: dict[str, Any]) -> None:
    count = 0
    for place, operation in _operations(document):
        answers = [each for status, each in operation["responses"].items() if status.startswith("2")]
        for part in (operation.get("requestBody", {}), *answers):
            content = part.get("content", {}).get("application/json")
            if content and content["schema"]:
                count += 1
                errors = list(_validator(document, content["schema"]).iter_errors(content["example"]))
                assert not errors, (place, errors[0].message)
    assert count > 50


def test_every_route_reads_json_strictly(server: LiveServer) -> None:
    app = create_app(server.services)
    plain = [route.path for route in app.routes if isinstance(route, APIRoute) and not isinstance(route, JsonRoute)]
    assert [path for path in plain if path.startswith(("/v1", "/api", "/compat", "/session"))] == []


def test_keys_are_asked_for(document: dict[str, Any]) -> None:
    assert set(document["components"]["securitySchemes"]) == {"bearer", "key"}
    open_paths = {place.split(" ")[1] for place, operation in _operations(document) if "security" not in operation}
    assert open_paths <= {"/healthz", "/readyz", "/v1/identity", "/session", "/", "/favicon.ico"}


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            yield f"{method.upper()} {path}", operation


def _check_reply(document: dict[str, Any], call: Call, answer: Answer) -> None:
    operation = next(each for _, each in _operations(document) if each["operationId"] == call.operation)
    declared = operation["responses"][str(answer.status)]["content"]
    kind = answer.headers["content-type"].partition(";")[0]
    assert kind in declared, (call.operation, kind)
    if kind.endswith("json"):
        errors = list(_validator(document, declared[kind]["schema"]).iter_errors(answer.json))
        assert not errors, (call.operation, errors[0].message)


def _validator(document: dict[str, Any], schema: dict[str, Any]) -> jsonschema.Draft202012Validator:
    """It takes no field that is not told."""
    components = {name: _strict(each) for name, each in document["components"]["schemas"].items()}
    return jsonschema.Draft202012Validator({**_strict(schema), "components": {"schemas": components}})


def _strict(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {"additionalProperties": False} if isinstance(schema.get("properties"), dict) else {}
    return closed | {name: each if name in ("example", "examples") else _strict(each) for name, each in schema.items()}


_PAGE = Path(__file__).parents[2] / "docs" / "http.md"
_BLOCK = re.compile(r"^```sh\n(.*?)^```\n(?:```json\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
_MARK = "--- end of block ---"


def test_the_examples_say_what_they_claim(server: LiveServer, tmp_path: Path) -> None:
    blocks = _BLOCK.findall(_PAGE.read_text(encoding="utf-8"))
    assert len(blocks) > 8
    script = "set -euo pipefail\n" + "".join(f"{code}\necho\necho '{_MARK}'\n" for code, _ in blocks)
    variables = {**os.environ, "URL": server.origin, "KEY": server.owner}
    run = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=variables, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, (run.stdout[-500:], run.stderr)
    said = run.stdout.split(_MARK)
    for (code, claim), output in zip(blocks, said, strict=False):
        if claim:
            assert _fits(json.loads(claim), json.loads(output)), (code, output)


def test_the_table_names_every_route(server: LiveServer) -> None:
    page = _PAGE.read_text(encoding="utf-8")
    document = server.call("GET", "/v1/openapi.json", key=server.owner).json
    parts = {path.split("/")[2] for path in document["paths"] if path.startswith("/v1/")} - {"identity"}
    assert [part for part in sorted(parts) if f"/v1/{part}" not in page] == []


def _fits(claim: Any, value: Any) -> bool:
    """Whether a reply is as the page shows it; `…` stands for anything."""
    if claim == "…":
        return True
    if isinstance(claim, dict) and isinstance(value, dict):
        return claim.keys() == value.keys() and all(_fits(claim[name], value[name]) for name in claim)
    if isinstance(claim, list) and isinstance(value, list):
        return len(claim) == len(value) and all(map(_fits, claim, value))
    return bool(claim == value)
