"""The whole OpenAPI document, fuzzed: good and bad data, and never a failure of the server.

Every limit that the document names is tried. `EUNOE_FUZZ_EXAMPLES=100` asks for so many random requests to each
operation: `make soak` does.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from tests.support.live_server import LiveServer

_EXAMPLES: Final = os.environ.get("EUNOE_FUZZ_EXAMPLES", "")
_CHECKS: Final = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
)
_LEFT_OUT: Final = (
    "/v1/events",  # it never ends
    "/v1/import",  # its lines are tested one by one
    "/v1/flush",  # it waits
)


@pytest.mark.skipif(not _EXAMPLES, reason="make soak asks at random")
def test_no_request_makes_it_fail(server: LiveServer, tmp_path: Path) -> None:
    left_out = [part for path in _LEFT_OUT for part in ("--exclude-path", path)]
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "run", f"{server.origin}/v1/openapi.json"),
        *("--header", f"Authorization: Bearer {server.owner}", *left_out, "--exclude-path-regex", "^/(session|oauth)"),
        *("--checks", ",".join(_CHECKS), "--phases", "coverage,fuzzing"),
        *("--max-examples", _EXAMPLES),
        *("--seed", "1", "--generation-deterministic", "--no-shrink"),
        *("--suppress-health-check", "all", "--continue-on-failure", "--no-color", "--request-timeout", "20"),
    ]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]
