"""Every reader of text takes time that grows with the length of the text alone, whatever stands in it."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.pathological import readers

SCRIPT = Path(__file__).parents[1] / "support" / "pathological.py"


@pytest.mark.parametrize("reader", readers())
def test_no_text_stalls_a_reader(reader: str) -> None:
    child = subprocess.run([sys.executable, "-W", "error", SCRIPT, reader], capture_output=True, text=True)
    last = child.stdout.splitlines()[-1:]
    assert (child.returncode, last) == (0, ["done"]), child.stderr
