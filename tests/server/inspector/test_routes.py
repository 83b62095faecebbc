"""The routes and files of the page: short replies, rights, and no foreign script."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.support.inspector_page import SAMPLE
from tests.support.live_server import LiveServer

import eunoe.server.inspector
from eunoe.server.inspector import MAX_REPLY_BYTES, abridge

_READS = (
    ("/inspector/item", {"id": "launch"}),
    ("/inspector/text", {"id": "launch"}),
    ("/inspector/glance", {}),
    ("/inspector/graph", {}),
    ("/inspector/revisions", {}),
    ("/inspector/absorbed", {"number": "1"}),
)


@pytest.fixture(scope="module")
def foreign_key(live: LiveServer) -> str:
    return live.services.keys.create("other", tenant="other")[1]


@pytest.mark.parametrize(("path", "query"), _READS)
def test_another_tenant_learns_nothing(live: LiveServer, foreign_key: str, path: str, query: dict[str, str]) -> None:
    own = _get(live, path, live.owner, scope=SAMPLE, **query)
    assert own.status == 200
    foreign = _get(live, path, foreign_key, scope=SAMPLE, **query)
    never = _get(live, path, foreign_key, scope="user=nobody", **query)
    assert _without_request_id(foreign.content.replace(SAMPLE.encode(), b"user=nobody")) == _without_request_id(
        never.content
    )
    assert _get(live, path, foreign_key, scope=f"{SAMPLE}/tenant=acme", **query).status in (403, 404)


def test_scopes_and_summaries_of_others_are_not_named(live: LiveServer, foreign_key: str) -> None:
    assert _get(live, "/inspector/scopes", foreign_key).json == {"scopes": [], "next": "", "total": 0}
    assert _get(live, "/inspector/summary-scope", foreign_key).json == {"scope": ""}


@pytest.mark.parametrize("path", [*(path for path, _ in _READS), "/inspector/scopes", "/inspector/summary-scope"])
def test_without_a_key_there_is_nothing(live: LiveServer, path: str) -> None:
    assert live.call("GET", path).status == 401
    assert live.call("POST", "/inspector/sample", {}).status == 401


def test_a_key_that_may_not_write_loads_no_sample(live: LiveServer) -> None:
    _, reader = live.services.keys.create("reader", tenant="acme", rights=["read"])
    assert live.call("POST", "/inspector/sample", {}, key=reader).status == 403


def test_the_sample_of_a_tenant_is_its_own_and_loads_once(live: LiveServer) -> None:
    _, text = live.services.keys.create("sampler", tenant="sampler")
    first = live.call("POST", "/inspector/sample", {}, key=text)
    assert first.status == 200, first.content
    held = _get(live, "/v1/status", text).json
    assert live.call("POST", "/inspector/sample", {}, key=text).status == 200
    again = _get(live, "/v1/status", text).json
    names = ("messages", "facts", "scopes", "retired")
    assert [held[name] for name in names] == [again[name] for name in names]
    item = _get(live, "/inspector/item", text, scope=SAMPLE, id="launch").json
    assert item["sources"][0]["item"]["text"].startswith("If the planks go in by March")


def test_scopes_come_in_pages(live: LiveServer) -> None:
    for number in range(7):
        live.call("POST", "/v1/memories", {"scope": f"user=page{number}", "items": ["Text."]}, key=live.owner)
    names, after = [], ""
    while True:
        page = _get(live, "/inspector/scopes", live.owner, contains="page", limit="3", after=after).json
        names += page["scopes"]
        if not (after := page["next"]):
            break
    assert names == [f"user=page{number}" for number in range(7)]


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/inspector/item", {"scope": "", "id": "x"}),
        ("/inspector/item", {"scope": "user", "id": "x"}),
        ("/inspector/item", {"scope": "user=anna", "id": "no such"}),
        ("/inspector/text", {"scope": "user=anna", "id": "x", "start": "-1"}),
        ("/inspector/graph", {"scope": SAMPLE, "limit": "101"}),
        ("/inspector/graph", {"scope": SAMPLE, "entity": "nobody at all"}),
        ("/inspector/absorbed", {"scope": SAMPLE, "number": "x"}),
        ("/inspector/glance", {}),
    ],
)
def test_bad_input_is_told_as_such(live: LiveServer, path: str, query: dict[str, str]) -> None:
    answer = _get(live, path, live.owner, **query)
    assert answer.status in (404, 422)
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("key", ["limit", "since", "kinds", "retired", "self"])
def test_a_scope_may_have_keys_like_options(live: LiveServer, key: str) -> None:
    scope = f"{key}=5"
    live.call("POST", "/v1/memories", {"scope": scope, "items": [f"Text of {key}."]}, key=live.owner)
    glance = _get(live, "/inspector/glance", live.owner, scope=scope).json
    assert [item["text"] for item in glance["latest"]] == [f"Text of {key}."]
    page = _get(live, "/v1/recent", live.owner, within=scope).json
    assert [item["text"] for item in page["items"]] == [f"Text of {key}."]


def test_a_user_is_seen_with_everything_within(live: LiveServer) -> None:
    talk = "session=within/user=within"
    said = live.call("POST", "/v1/messages", {"scope": talk, "messages": ["Hello."]}, key=live.owner)
    [receipt] = said.json["receipts"]
    items = [{"text": "Said in a talk.", "id": "m", "source": [receipt["id"]], "pinned": True}]
    live.call("POST", "/v1/memories", {"scope": talk, "items": items}, key=live.owner)
    for scope in (talk, "user=within"):
        glance = _get(live, "/inspector/glance", live.owner, scope=scope).json
        assert [item["scope"] for item in glance["pinned"]] == [talk]
        found = _get(live, "/inspector/item", live.owner, scope=scope, id="m").json
        assert (found["item"]["scope"], len(found["versions"]), found["access"]["times"]) == (talk, 1, 0)
        assert [source["item"]["text"] for source in found["sources"]] == ["Hello."]
    assert _get(live, "/inspector/glance", live.owner, scope="session=within/*").json["scopes"] == [talk]


def _get(live: LiveServer, path: str, key: str, **query: str) -> Any:
    return live.call("GET", f"{path}?{urlencode(query)}", key=key)


def _without_request_id(content: bytes) -> Any:
    value = json.loads(content)
    value.pop("request_id", None)
    return value


@pytest.mark.parametrize(
    ("value", "cut"),
    [
        ({"text": "short"}, {"text": "short"}),
        ({"text": "x" * 20}, {"text": {"cut": "x" * 10, "length": 20}}),
        ([1, None, True, 2.5], [1, None, True, 2.5]),
        ({"a": {"b": ["y" * 11]}}, {"a": {"b": [{"cut": "y" * 10, "length": 11}]}}),
        (list(range(600)), {"cut": list(range(500)), "length": 600}),
        ("é日🚀" * 5, {"cut": ("é日🚀" * 5)[:10], "length": 15}),
    ],
)
def test_what_is_long_is_cut_and_counted(value: Any, cut: Any) -> None:
    assert json.loads(abridge(json.dumps(value).encode(), 10)) == cut


@pytest.mark.parametrize(
    "value",
    [
        [{"text": "🚀" * 5000}] * 400,
        {str(number): "x" * 500 for number in range(3000)},
        [[["deep" * 100] * 100] * 100],
        ["x" * 100_000] * 50,
    ],
)
def test_no_reply_is_larger_than_the_limit(value: Any) -> None:
    assert len(abridge(json.dumps(value).encode(), 800)) <= MAX_REPLY_BYTES


def test_only_those_who_ask_get_less(live: LiveServer) -> None:
    text = "A long story. " * 200
    live.call("POST", "/v1/memories", {"scope": "user=cut", "items": [text]}, key=live.owner)
    path = f"/v1/memories?{urlencode({'scope': 'user=cut'})}"
    (whole,) = live.call("GET", path, key=live.owner).json["items"]
    assert whole["text"] == text
    answer = live.call("GET", path, key=live.owner, headers={"Eunoe-Text-Limit": "100"})
    (cut,) = answer.json["items"]
    assert cut["text"] == {"cut": text[:100], "length": len(text)}
    assert int(answer.headers["content-length"]) == len(answer.content)


@pytest.mark.parametrize("limit", ["-1", "x", "1e3", "99999999999999999999", "²"])
def test_a_limit_that_is_none_changes_nothing(live: LiveServer, limit: str) -> None:
    headers = {"Eunoe-Text-Limit": limit.encode().decode("latin-1")}
    assert live.call("GET", "/v1/status", key=live.owner, headers=headers).status == 200


_STATIC = Path(eunoe.server.inspector.__file__).parent / "static"
_SCRIPTS = sorted(_STATIC.rglob("*.js"))
_FORBIDDEN = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|setAttribute\(\s*[\"']on"
    r"|DOMParser|createContextualFragment|srcdoc=|setTimeout\(\s*[\"']"
)
_OUTSIDE = re.compile(r"(https?:)?//(?!www\.w3\.org/2000/svg)[\w.-]+\.\w+")
_CONTENT_POLICY = {
    "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:", "connect-src 'self'",
    "font-src 'self'", "base-uri 'none'", "form-action 'self'", "frame-ancestors 'none'",
}  # fmt: skip


@pytest.mark.parametrize("script", _SCRIPTS, ids=lambda path: str(path.relative_to(_STATIC)))
def test_a_script_makes_no_markup_out_of_text(script: Path) -> None:
    text = script.read_text()
    assert _FORBIDDEN.findall(text) == []
    assert len(text.splitlines()) < 400


@pytest.mark.parametrize("path", sorted(_STATIC.rglob("*.*")), ids=lambda path: path.name)
def test_no_file_names_another_host(path: Path) -> None:
    assert [found.group() for found in _OUTSIDE.finditer(path.read_text())] == []


def test_the_page_has_nothing_inline() -> None:
    page = (_STATIC / "index.html").read_text()
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", page)


def test_the_page_comes_with_its_content_policy(live: LiveServer) -> None:
    answer = live.call("GET", "/")
    assert answer.status == 200
    assert set(answer.headers["content-security-policy"].split("; ")) == _CONTENT_POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_file_is_sent_once(live: LiveServer) -> None:
    first = live.call("GET", "/static/app.js")
    assert first.headers["content-type"] == "text/javascript; charset=utf-8"
    again = live.call("GET", "/static/app.js", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status, again.content) == (304, b"")
    other = live.call("GET", "/static/app.js", headers={"If-None-Match": '"another"'})
    assert other.status == 200


@pytest.mark.parametrize(
    "path",
    ["../routes.py", "%2e%2e/routes.py", "..%2froutes.py", "/etc/passwd", "views", "views/", "app.js/", "nil.js"],
)
def test_no_other_file_can_be_had(live: LiveServer, path: str) -> None:
    assert live.call("GET", f"/static/{path}").status in (400, 404)


def test_the_first_page_is_small(live: LiveServer) -> None:
    """What is needed before the first view stands there."""
    first = ["", *(f"static/{path.relative_to(_STATIC)}" for path in _STATIC.rglob("*.*") if "views/" not in str(path))]
    assert sum(len(live.call("GET", f"/{path}").content) for path in first) < 150_000
