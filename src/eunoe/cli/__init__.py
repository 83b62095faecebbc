"""The command line: every verb of the engine, for people and for scripts."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Runs one command line and leaves with its exit code."""
    from eunoe.cli.app import run

    sys.exit(run(sys.argv[1:] if args is None else args))
