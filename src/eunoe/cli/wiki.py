"""`eunoe wiki`: a wiki for a repository, written by agents that remember."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from eunoe.cli import display
from eunoe.cli.command import Call, Reply, command
from eunoe.cli.display import one_line, quantity
from eunoe.cli.inputs import argument

if TYPE_CHECKING:
    from eunoe.apps.wiki.workflow import Progress

_MODEL_HELP: Final = "openai:MODEL, anthropic:MODEL, http://host:port/v1?model=NAME ...; else EUNOE_LLM."
_FORCE_HELP: Final = "Start afresh: what was remembered is deleted if all goes well."
_ID_HELP: Final = "Whose memories are used; else from the origin's URL or the root commit."


@command("eunoe wiki . --model openai:gpt-5 --out wiki")
def wiki(
    call: Call,
    path: Annotated[Path, argument("PATH", "The folder of the repository.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Where the wiki is written.")],
    model: Annotated[str, typer.Option("--model", "-m", metavar="NAME", help=_MODEL_HELP)] = "auto",
    force: Annotated[bool, typer.Option("--force", help=_FORCE_HELP)] = False,
    repository_id: Annotated[str | None, typer.Option("--repository-id", metavar="ID", help=_ID_HELP)] = None,
    concurrency: Annotated[int, typer.Option("--concurrency", min=1, help="Pages written at a time.")] = 4,
) -> Reply:
    """Write a wiki for a repository, or the pages that are missing.

    After a run that was killed, or in which pages failed, only the missing pages are written. The exit code is 1 if
    pages failed.
    """
    from eunoe.apps.wiki.agents import load_chat_model  # with it comes LangChain
    from eunoe.apps.wiki.workflow import generate_wiki

    chat_model = load_chat_model(model)
    with display.progress("pages") as advance:

        def tell(progress: Progress) -> None:
            advance(progress.done, progress.total)
            if not sys.stderr.isatty():
                ending = "failed" if progress.is_failure else "is written"
                display.say(f"{progress.done} of {progress.total} pages: {one_line(progress.page)} {ending}")

        report = asyncio.run(
            generate_wiki(
                repository_id,
                force,
                repo_dir=path,
                out_dir=out,
                model=chat_model,
                memory=call.open(create=True),
                concurrency=concurrency,
                tell=tell,
            )
        )
    failures = [f"page {id} failed: {reason}" for id, reason in report.failures]
    if failures:
        count = quantity(len(failures), "page")
        failures.append(f"{count} failed: run the same command again to write what is missing")
    document = {
        "repository_id": report.repository_id,
        "out": str(report.out_dir),
        "written": report.written,
        "kept": report.kept,
        "failures": [failure._asdict() for failure in report.failures],
        "notes": report.notes,
    }
    kept = f", {len(report.kept)} kept from the run before" if report.kept else ""
    text = f"{quantity(len(report.written), 'page')} written{kept}: {report.out_dir / 'index.md'}"
    return Reply(document, text, notes=[*report.notes, *failures], code=1 if failures else 0)
