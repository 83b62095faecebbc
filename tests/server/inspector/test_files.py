"""The files of the page: small, cached by their hashes, and nothing in them that could run stored text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.support.live_server import LiveServer

import eunoe.server.inspector

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
