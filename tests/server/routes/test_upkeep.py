"""Looking after the store over HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.embed.folder.models import bert
from tests.support.live_server import LiveServer


@pytest.mark.parametrize(("path", "body"), [("/v1/reembed", {}), ("/v1/jobs", {"kind": "embed"})])
def test_not_even_the_owner_chooses_a_folder_of_the_server_from_afar(
    path: str, body: dict[str, str], server: LiveServer, tmp_path: Path
) -> None:
    good = bert(tmp_path / "model").spec
    for spec in (good, f" {good}", good.upper(), "folder:", "folder:/etc", f"openai:\n{good}"):
        answer = server.call("POST", path, {**body, "model": spec}, key=server.owner)
        assert (answer.status, answer.json["code"]) == (422, "input"), spec
    assert server.call("POST", path, {**body, "model": "none"}, key=server.owner).status in (200, 202)
