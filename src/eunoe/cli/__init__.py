"""The command line: every verb of the memory, for people and for scripts."""

import sys
from collections.abc import Sequence
from typing import Final, NoReturn

_INTERRUPTED: Final = 130


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run one command line and leave with its exit code."""
    try:
        from eunoe.cli.app import run  # an import of the package alone stays light

        code = run(sys.argv[1:] if args is None else args)
    except KeyboardInterrupt:
        code = _INTERRUPTED
    sys.exit(code)
