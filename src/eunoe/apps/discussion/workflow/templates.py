"""Jinja templates of nodes with `"jinja2": true`, rendered in a sandbox in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from eunoe.errors import MissingPackageError, WorkflowError

_PROCESS: Final = Path(__file__).with_name("template_process.py")
SECONDS: Final = 5
"""What a template may take: a prompt is made in less than one."""
_MARGIN_SECONDS: Final = 10
"""For the start of a process on a busy machine."""


def template_names(source: str, seconds: int = SECONDS) -> set[str]:
    """The names that a template takes from outside. Raise WorkflowError if it is no template."""
    return set(_run_apart(source, None, seconds)["names"])


def render_template(source: str, values: Mapping[str, Any], seconds: int = SECONDS) -> str:
    """Render a template. Raise WorkflowError if it fails, takes too long, or names something unknown."""
    return str(_run_apart(source, values, seconds)["text"])


def _run_apart(source: str, values: Mapping[str, Any] | None, seconds: int) -> dict[str, Any]:
    """Also the reading of a template is done apart, since it computes what is constant."""
    if find_spec("jinja2") is None:
        raise MissingPackageError("a node with \"jinja2\": true needs Jinja: pip install 'eunoe[discussion]'")
    request = json.dumps({"source": source, "values": values, "seconds": seconds}, default=str)
    try:
        done = subprocess.run(
            [sys.executable, "-P", str(_PROCESS)],
            input=request.encode(),
            capture_output=True,
            timeout=seconds + _MARGIN_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise WorkflowError(f"its template takes longer than {seconds} s") from None
    if done.returncode or not done.stdout:
        raise WorkflowError(f"its template takes longer than {seconds} s, or more memory than it may have")
    answer: dict[str, Any] = json.loads(done.stdout)
    if "error" in answer:
        raise WorkflowError(f"its template failed: {answer['error']}")
    return answer
