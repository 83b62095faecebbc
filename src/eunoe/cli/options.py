"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eunoe.model.choices import RecipeName

ScopeArgument = Annotated[
    str, typer.Argument(metavar="SCOPE", help="Whose memory: key=value, several joined by /.", show_default=False)
]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The id of a memory.", show_default=False)]
ConversationsArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="[FILE]",
        help="Conversations with questions: the plain format, or LoCoMo's own file. "
        "Without one, the conversations in the package.",
    ),
]
FullOption = Annotated[bool, typer.Option("--full", help="Show every text whole.")]
KindOption = Annotated[
    list[str] | None, typer.Option("--kind", metavar="KIND", help="message, fact or observation; may be repeated.")
]
LabelsOption = Annotated[
    list[str] | None, typer.Option("--label", metavar="LABEL", help="Only with this label; may be repeated.")
]
RecipeOption = Annotated[
    RecipeName,
    typer.Option(
        "--recipe", help="How to rank: default, thorough (slower, finds more), lexical, dense, rrf or associative."
    ),
]


def moment_option(name: str, help: str) -> object:
    return typer.Option(name, metavar="TIME", help=f"{help} (ISO 8601)")


def many_option(name: str, metavar: str, help: str) -> object:
    return typer.Option(name, metavar=metavar, help=f"{help} May be repeated.")
