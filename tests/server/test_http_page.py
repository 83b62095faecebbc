"""The examples of docs/http.md, run with curl against a started server."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

from tests.support.live_server import LiveServer

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
