"""Export and import over HTTP: whole, in little memory, and nothing left of what was broken off."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

from tests.support.live_server import LiveServer, StartServer


def test_an_export_comes_back_whole(server: LiveServer, start_server: StartServer, tmp_path: Path) -> None:
    _keep(server, "user=anna", 30)
    _keep(server, "user=ben", 3)
    lines = _export(server, "?scope=user%3Danna&scope=user%3Dben")
    assert len(_export(server, "")) == len(lines) == len(_export(server, "?scope=user%3Danna")) + 3
    other = start_server(target=str(tmp_path / "other.db"))
    body = "\n".join(lines) + "\n"
    report = other.call("POST", "/v1/import", body, key=other.owner).json
    assert report["stored"] == 33
    assert other.call("POST", "/v1/import", body, key=other.owner).json["duplicates"] == 33
    assert _export(other, "?scope=user%3Danna&scope=user%3Dben") == lines


def test_an_empty_store_exports_an_empty_file(server: LiveServer) -> None:
    assert _export(server, "") == []


def test_a_scope_without_anything_is_told(server: LiveServer) -> None:
    assert server.call("GET", "/v1/export?scope=user%3Dnobody", key=server.owner).status == 422


def test_bad_lines_are_refused(server: LiveServer) -> None:
    head = b'{"eunoe": 1}\n'
    for body in (b"x", b"\xff\xfe", head + b"[" * 50_000, head + b"{}", head + b'{"kind": 1}', b'{"eunoe": 999}'):
        answer = server.call("POST", "/v1/import", body, key=server.owner)
        assert answer.status == 422, (body[:30], answer.content)


def test_a_client_that_goes_away_leaves_nothing(server: LiveServer) -> None:
    _keep(server, "user=anna", 5)
    lines = "\n".join(line.replace("user=anna", "user=zoe") for line in _export(server, "?scope=user%3Danna"))
    files = _open_files()
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        head = (
            f"POST /v1/import HTTP/1.1\r\nHost: {server.host}\r\nAuthorization: Bearer {server.owner}\r\n"
            f"Content-Length: {len(lines) + 100}\r\n\r\n"
        )
        connection.sendall((head + lines).encode())
    while _open_files() > files:  # until the server has noticed
        time.sleep(0.01)
    assert server.call("GET", "/v1/scopes?user=zoe", key=server.owner).json["scopes"] == []


def test_a_tenant_imports_for_itself_alone(server: LiveServer) -> None:
    _keep(server, "user=anna", 2)
    body = "\n".join(_export(server, "?scope=user%3Danna")) + "\n"
    key = server.services.keys.create("other", tenant="acme")[1]
    server.call("POST", "/v1/import", body, key=key)
    scopes = server.call("GET", "/v1/scopes", key=server.owner).json["scopes"]
    assert set(scopes) <= {"user=anna", "tenant=acme/user=anna"}


def _keep(server: LiveServer, scope: str, count: int) -> None:
    items = [f"Fact {number} of {scope}." for number in range(count)]
    assert server.call("POST", "/v1/memories", {"scope": scope, "items": items}, key=server.owner).status == 200


def _export(server: LiveServer, query: str) -> list[str]:
    answer = server.call("GET", f"/v1/export{query}", key=server.owner)
    assert answer.headers["content-type"] == "application/jsonl"
    return answer.content.decode().splitlines()


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd"))
