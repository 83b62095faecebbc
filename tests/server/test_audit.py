"""The audit log: every change is in it, whoever made it and by which way, and nothing that was remembered."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.support.live_server import LiveServer

from eunoe.errors import AccessError, InputError
from eunoe.model.arguments import to_micros, utc_now
from eunoe.server.audit import Audit, AuditEntry
from eunoe.server.keys import OWNER

SECRET = "Anna has a secret garden."


def _entries(server: LiveServer, key: str = "") -> list[dict]:
    return server.call("GET", "/v1/audit", key=key or server.owner).json["items"]


def test_a_change_is_noted_with_who_what_where_and_how_much(server: LiveServer) -> None:
    key, text = server.services.keys.create("writer", tenant="acme")
    answer = server.call("POST", "/v1/memories", {"scope": "user=anna", "items": [SECRET, "Two."]}, key=text)
    (entry,) = _entries(server)
    assert entry.pop("time")
    assert entry.pop("id")
    assert entry == {
        "action": "remember",
        "key": key.id,
        "tenant": "acme",
        "scopes": ["tenant=acme/user=anna"],
        "count": 2,
        "outcome": "done",
        "via": "http",
        "request_id": answer.headers["x-request-id"],
    }


def test_questions_are_not_noted(server: LiveServer) -> None:
    server.services.memory.blocking.remember("user=anna", SECRET)
    body = {"scope": "user=anna", "query": "garden"}
    assert server.call("POST", "/v1/recall", body, key=server.owner).status == 200
    assert server.call("POST", "/v1/context", {"scope": "user=anna", "message": "hi"}, key=server.owner).status == 200
    assert server.call("POST", "/v1/by-files", {"scope": "user=anna", "paths": ["a"]}, key=server.owner).status == 200
    assert server.call("GET", "/v1/status", key=server.owner).status == 200
    assert _entries(server) == []


def test_no_words_and_no_ids_are_kept_in_it(server: LiveServer) -> None:
    body = {"scope": "user=zoe", "items": [SECRET]}
    receipt = server.call("POST", "/v1/memories", body, key=server.owner).json["receipts"][0]
    server.call("POST", "/v1/forget", {"scope": "user=zoe", "ids": [receipt["id"]]}, key=server.owner)
    entries = _entries(server)
    assert [(entry["action"], entry["count"]) for entry in entries] == [("forget", 1), ("remember", 1)]
    files = [path.read_bytes() for path in server.services.files.state.parent.glob("memory.server.db*")]
    assert not any(receipt["id"].encode() in content or b"garden" in content for content in files)


def test_a_session_is_told_from_a_key(server: LiveServer) -> None:
    headers = server.log_in(server.owner)
    server.call("POST", "/v1/memories", {"scope": "user=anna", "items": [SECRET]}, headers=headers)
    server.call("DELETE", "/session", headers=headers)
    assert [(entry["action"], entry["via"]) for entry in _entries(server)] == [
        ("end_session", "inspector"),
        ("remember", "inspector"),
        ("start_session", "http"),
    ]


def test_a_request_that_is_sent_again_is_one_change(server: LiveServer) -> None:
    body, headers = {"scope": "user=anna", "items": ["Once."]}, {"Idempotency-Key": "one-change"}
    answers = [server.call("POST", "/v1/memories", body, key=server.owner, headers=headers) for _ in range(2)]
    assert answers[0].content == answers[1].content
    assert [entry["action"] for entry in _entries(server)] == ["remember"]


def test_changes_of_keys_are_noted(server: LiveServer) -> None:
    id = server.call("POST", "/v1/keys", {"name": "x"}, key=server.owner).json["key"]["id"]
    server.call("POST", f"/v1/keys/{id}/rotate", {}, key=server.owner)
    server.call("DELETE", f"/v1/keys/{id}", key=server.owner)
    assert [entry["action"] for entry in _entries(server)] == ["revoke_key", "rotate_key", "create_key"]


def test_what_was_refused_is_noted_too(server: LiveServer) -> None:
    _, reader = server.services.keys.create("reader", tenant="acme", rights=["read"])
    server.call("POST", "/v1/memories", {"scope": "user=anna", "items": [SECRET]}, key=reader)
    server.call("POST", "/v1/keys", {"name": "x"}, key=reader)
    noted = [(entry["action"], entry["outcome"], entry["count"]) for entry in _entries(server)]
    assert noted == [("create_key", "refused", 0), ("remember_many", "refused", 0)]


def test_a_tenant_sees_what_happened_in_it(server: LiveServer) -> None:
    _, admin = server.services.keys.create("admin", tenant="acme")
    _, other = server.services.keys.create("other", tenant="other")
    for key, scope in ((admin, "user=anna"), (other, "user=bob"), (server.owner, "tenant=acme/user=carl")):
        server.call("POST", "/v1/memories", {"scope": scope, "items": [SECRET]}, key=key)
    scopes = [entry["scopes"] for entry in _entries(server, admin)]
    assert scopes == [["tenant=acme/user=carl"], ["tenant=acme/user=anna"]]
    assert len(_entries(server)) == 3


def test_a_tenant_cannot_count_what_happens_elsewhere(server: LiveServer) -> None:
    _, admin = server.services.keys.create("admin", tenant="acme")
    ids = []
    for number in range(3):
        for tenant in ("other", "", "acme"):
            server.services.audit.write(AuditEntry(f"verb{number}", "k", tenant))
        page = server.call("GET", "/v1/audit?limit=1", key=admin).json
        ids.append((page["items"][0]["id"], page["next"]))
    assert ids == [(1, ""), (2, "2"), (3, "3")]
    assert [entry["action"] for entry in _entries(server, admin)] == ["verb2", "verb1", "verb0"]


def test_the_log_is_read_page_by_page(server: LiveServer) -> None:
    for number in range(5):
        server.services.audit.write(AuditEntry(f"verb{number}", "owner"))
    seen, after = [], ""
    while True:
        page = server.call("GET", f"/v1/audit?limit=2&after={after}", key=server.owner).json
        seen += [entry["action"] for entry in page["items"]]
        after = page["next"]
        if not after:
            break
    assert seen == [f"verb{number}" for number in reversed(range(5))]
    for cursor in ("x", "-1", "²"):
        with pytest.raises(InputError):
            server.services.audit.list(OWNER, after=cursor)


def test_the_log_is_for_admins_of_a_whole_tenant(server: LiveServer) -> None:
    for binding in ({"rights": ["read", "write"]}, {"tenant": "acme", "scopes": "user=anna"}):
        key, text = server.services.keys.create("narrow", **binding)
        assert server.call("GET", "/v1/audit", key=text).status == 403
        with pytest.raises(AccessError):
            server.services.audit.list(key)


def test_entries_are_kept_for_their_time(server: LiveServer) -> None:
    audit = Audit(server.services.state, days=30)
    audit.write(AuditEntry("old", "owner"))
    with server.services.state.write() as db:
        db.execute("UPDATE audit SET time = ?", (to_micros(utc_now() - timedelta(days=31)),))
    Audit(server.services.state, days=30).write(AuditEntry("new", "owner"))
    assert [entry.action for entry in audit.list(OWNER)[0]] == ["new"]
