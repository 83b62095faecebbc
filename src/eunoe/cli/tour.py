"""`eunoe demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    keep: Annotated[
        Path | None, typer.Option("--keep", metavar="PATH", help="Keep the store in this new file.")
    ] = None,
) -> None:
    """Take a guided tour: load a sample conversation, ask it questions, change and forget something."""
    from eunoe.demo import guide

    guide(keep)
