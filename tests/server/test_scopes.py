"""What a scope means over HTTP, with keys that may do less, and to jobs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.live_server import LiveServer, StartServer
from tests.support.waiting import wait_until

SCOPES = ("user=anna", "session=s1/user=anna", "agent=cook", "agent=cook/user=anna", "agent=cook/user=ben")


def fill(server: LiveServer) -> None:
    for scope in (*SCOPES, "agent=cook/tenant=acme/user=anna"):
        body = {"scope": scope, "items": [f"Bruno the dog of {scope}."]}
        assert server.call("POST", "/v1/memories", body, key=server.owner).status == 200


def recalled(server: LiveServer, key: str, scope: str, **more: Any) -> tuple[int, set[str]]:
    answer = server.call("POST", "/v1/recall", {"scope": scope, "query": "Bruno", "limit": 50, **more}, key=key)
    return answer.status, {hit["scope"] for hit in answer.json.get("hits", ())}


def test_a_key_reads_no_wider_than_its_bounds_and_rights(server: LiveServer) -> None:
    fill(server)
    cooks = {scope for scope in SCOPES if "agent=cook" in scope}
    create = server.services.keys.create
    reader = create("reader", scopes=["agent=cook"], rights=["read"])[1]
    admin = create("admin", scopes=["agent=cook"], rights=["read", "admin"])[1]
    anna = create("anna", scopes=["agent=cook/user=anna"], rights=["read", "admin"])[1]
    acme = create("acme", tenant="acme", rights=["read", "admin"])[1]
    assert recalled(server, reader, "agent=cook") == (200, {"agent=cook"})
    assert recalled(server, reader, "agent=cook/*") == (403, set())
    assert recalled(server, reader, "agent=cook/user=ben") == (200, {"agent=cook/user=ben"})
    assert recalled(server, admin, "agent=cook/*") == (200, cooks)
    assert recalled(server, server.owner, "agent=cook/*") == (200, cooks)
    assert recalled(server, server.owner, "agent=cook/*", exact=True) == (422, set())
    for wide in ("user=anna", "agent=cook/*", "user=anna/*", "agent=cook"):
        assert recalled(server, anna, wide) == (403, set())
    assert recalled(server, acme, "user=anna") == (200, {"agent=cook/tenant=acme/user=anna"})
    assert recalled(server, acme, "agent=cook/*") == (200, {"agent=cook/tenant=acme/user=anna"})


@pytest.mark.parametrize(
    ("asked", "exact", "lines"),
    [
        ("user=anna", False, {"user=anna", "session=s1/user=anna", "agent=cook/user=anna"}),
        ("user=anna", True, {"user=anna"}),
        ("agent=cook", False, {"agent=cook"}),
        ("agent=cook/*", False, {scope for scope in SCOPES if "agent=cook" in scope}),
    ],
)
def test_a_job_means_the_same_scopes(start_server: StartServer, asked: str, exact: bool, lines: set[str]) -> None:
    server = start_server(worker=True)
    fill(server)

    def done(**body: Any) -> str:
        job = server.call("POST", "/v1/jobs", {"scope": asked, "exact": exact, **body}, key=server.owner)
        assert job.status == 202, job.content
        path = f"/v1/jobs/{job.json['id']}"
        wait_until(lambda: server.services.jobs.get(job.json["id"]).state == "succeeded")
        return path

    content = server.call("GET", f"{done(kind='export')}/result", key=server.owner).content.decode()
    assert {line["scope"] for line in map(json.loads, content.splitlines()) if line.get("kind") == "fact"} == lines
    aging = {scope for scope in SCOPES if "user" in scope}  # the agent's own has no settings
    for scope in aging:
        body = {"scope": scope, "settings": {"max_age_days": 1e-9}}
        assert server.call("PATCH", "/v1/streams", body, key=server.owner).status == 200
    if lines & aging:  # a job with nothing to do leaves no record
        done(kind="retention")
    kept = server.call("GET", "/v1/recent", key=server.owner).json["items"]
    assert {item["scope"] for item in kept} & {*SCOPES} == {*SCOPES} - (lines & aging)


def test_a_job_for_everything_within_takes_the_right_admin(server: LiveServer) -> None:
    fill(server)
    key = server.services.keys.create("key", scopes=["agent=cook"], rights=["read", "forget"])[1]
    for kind in ("export", "retention"):
        for scope, status in (("agent=cook", 202), ("agent=cook/user=anna", 202), ("agent=cook/*", 403)):
            assert server.call("POST", "/v1/jobs", {"kind": kind, "scope": scope}, key=key).status == status
    job = server.call("POST", "/v1/jobs", {"kind": "export", "scope": "agent=cook/*"}, key=server.owner).json
    assert server.call("GET", f"/v1/jobs/{job['id']}", key=key).status == 404
