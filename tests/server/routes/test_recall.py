"""Recall over HTTP: a recipe by its name, or a time in its place."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.live_server import LiveServer

PATHS = {"/v1/recall": "query", "/v1/look-up": "query", "/v1/context": "message"}


def ask(server: LiveServer, path: str, recipe: Any) -> Any:
    body = {"scope": "user=anna", PATHS[path]: "Where is the kite?", "recipe": recipe}
    return server.call("POST", path, body, key=server.owner)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("recipe", ["thorough", 1, 500, 60_000])
def test_a_name_or_a_time_is_taken(server: LiveServer, path: str, recipe: str | int) -> None:
    assert ask(server, path, recipe).status == 200


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("recipe", [0, -5, 60_001, 10**30, 1.5, True, "120", "best", None, [120], {"ms": 120}])
def test_anything_else_is_refused(server: LiveServer, path: str, recipe: Any) -> None:
    answer = ask(server, path, recipe)
    assert answer.status in (400, 422), answer.content
    assert "recipe: there is no recipe" in answer.json["detail"]
    assert "thorough" in answer.json["detail"]
    assert "milliseconds for reading, from 1 to 60,000" in answer.json["detail"]
