"""Either of Agentflow's two packages will do; without one the error says what to install."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
OLDER = Path(sys.prefix) / "agentflow-0.10"
"""10xscale-agentflow 0.10.1 has a module that 10xgraph has, too: `make setup` puts it into a folder of its own."""
LEFT_OUT = {"test_framework.py", "test_search.py", "test_testing.py"}
"""What starts processes of its own, or does not touch the framework."""


def python(*arguments: str, first: Path | None = None) -> subprocess.CompletedProcess[str]:
    paths = [str(first) if first else "", os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)


def test_eunoe_alone_imports_no_framework() -> None:
    done = python("-c", "import eunoe, eunoe.cli.app, sys; print({'tenxgraph', 'agentflow'} & set(sys.modules))")
    assert (done.stdout, done.stderr) == ("set()\n", "")


def test_without_either_package_the_error_says_what_to_install() -> None:
    hide = "import sys; sys.modules['tenxgraph'] = sys.modules['agentflow'] = None"
    done = python("-c", f"{hide}; import eunoe.hosts.agentflow")
    last = done.stderr.splitlines()[-1]
    assert last.startswith("eunoe.errors.MissingPackageError: ")
    assert "pip install 'eunoe[agentflow]'" in last


@pytest.mark.skipif(not OLDER.exists(), reason=f"{OLDER} is missing: make setup installs 10xscale-agentflow there")
def test_the_older_package_passes_the_same_tests() -> None:
    files = [str(path) for path in sorted(HERE.glob("test_*.py")) if path.name not in LEFT_OUT]
    options = ["-q", "-p", "tests.support.only_agentflow", "-p", "no:cacheprovider", "-k", "not processes"]
    done = python("-m", "pytest", *options, *files, first=OLDER)
    assert done.returncode == 0, done.stdout[-4000:]
