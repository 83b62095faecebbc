"""`eunoe demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eunoe.cli.command import MisuseError, Settings


def demo(
    ctx: typer.Context,
    keep: Annotated[
        Path | None, typer.Option("--keep", metavar="PATH", help="Keep the store in this new file.")
    ] = None,
) -> None:
    """Take a guided tour: load a sample conversation, ask it questions, change and forget something."""
    from eunoe.demo import guide

    if Settings.before(ctx) != Settings():
        raise MisuseError("demo takes no --store, --embedder or --json: it tells its tour on a store of its own")
    guide(keep)
