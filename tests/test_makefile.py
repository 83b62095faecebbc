"""`make setup`: which Python it takes, and that it begins again where it was interrupted."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAKE = shutil.which("make") or ""
PYTHON = """#!/bin/sh
case "$1 $2" in
  "-m venv") mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
  "-m pip") ;;
  *) exec {real} -c 'import sys; sys.version_info = {version}; exec(sys.argv[1])' "$2" ;;
esac
"""

pytestmark = pytest.mark.skipif(not MAKE, reason="make is not installed")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with a Makefile, and the few tools it calls."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "tools").mkdir()
    for tool in ("ls", "sort", "rm", "touch", "mkdir", "cp"):
        (tmp_path / "tools" / tool).symlink_to(shutil.which(tool) or "")
    return tmp_path


def python(checkout: Path, name: str, version: tuple[int, ...]) -> Path:
    """A program that says it is this version of Python, and makes environments of nothing."""
    path = checkout / "tools" / name
    path.write_text(PYTHON.format(real=sys.executable, version=version))
    path.chmod(0o755)
    return path


def make(checkout: Path, target: str) -> subprocess.CompletedProcess[str]:
    own = ("PATH", "HOME", "PYTHON", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    inherited = {name: value for name, value in os.environ.items() if name not in own}
    environment = {**inherited, "PATH": str(checkout / "tools"), "HOME": str(checkout)}
    return subprocess.run([MAKE, target], cwd=checkout, env=environment, capture_output=True, text=True, check=False)


def test_a_newer_python_is_taken_where_there_is_no_other(checkout: Path) -> None:
    newer = python(checkout, "python3", (3, 14, 0))
    assert f"Making .venv with {newer}\n" in make(checkout, "setup").stdout
    tested = python(checkout, "python3.12", (3, 12, 1))
    shutil.rmtree(checkout / ".venv")
    assert f"Making .venv with {tested}\n" in make(checkout, "setup").stdout


def test_an_older_python_is_refused(checkout: Path) -> None:
    python(checkout, "python3", (3, 10, 0))
    done = make(checkout, "setup")
    assert done.returncode != 0
    assert "eunoe needs Python 3.11 or newer; none was found" in done.stderr


def test_nothing_is_done_twice(checkout: Path) -> None:
    python(checkout, "python3", (3, 13, 0))
    first, second = make(checkout, "setup"), make(checkout, "setup")
    assert (first.returncode, second.returncode) == (0, 0)
    assert "Installing eunoe" in first.stdout
    assert "Installing" not in second.stdout
    assert "Making" not in second.stdout


def test_a_half_made_environment_is_made_anew(checkout: Path) -> None:
    python(checkout, "python3", (3, 13, 0))
    (checkout / ".venv" / "lib").mkdir(parents=True)
    assert make(checkout, "setup").returncode == 0
    assert not (checkout / ".venv" / "lib").exists()
    assert (checkout / ".venv" / ".dev").exists()
