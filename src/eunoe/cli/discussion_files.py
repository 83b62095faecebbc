"""`eunoe discussion import` and `export`: discussions as files of WilmerAI."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final

import typer

from eunoe.apps.discussion.files import (
    DiscussionImport,
    Refusal,
    export_discussion,
    import_discussion,
    import_folder,
)
from eunoe.apps.discussion.files.layout import files_at
from eunoe.apps.discussion.model import DEFAULT_USER
from eunoe.cli.command import Call, MisuseError, Reply, command
from eunoe.cli.display.views import Grid
from eunoe.cli.file_options import KeyOptions, LayoutOption
from eunoe.cli.options import argument, repeatable_option
from eunoe.errors import InputError

_USER_HELP: Final = "Whose they are, where their folder does not say it."
_NAME_HELP: Final = "The name of the user whose discussions stand in FOLDER."
_ID_HELP: Final = "What the one discussion is called here."


@command("eunoe discussion import Public/Discussions --user anna")
def import_(
    call: Call,
    path: Annotated[Path, argument("PATH", "A folder of discussions, the folder of one, or one of its files.")],
    key: KeyOptions,
    user: Annotated[str, typer.Option("--user", metavar="NAME", help=_USER_HELP)] = DEFAULT_USER,
    names: Annotated[list[str] | None, repeatable_option("--name-user", "FOLDER=NAME", _NAME_HELP)] = None,
    id: Annotated[str, typer.Option("--id", metavar="ID", help=_ID_HELP)] = "",
    again: Annotated[bool, typer.Option("--again", help="Also what was forgotten here before.")] = False,
) -> Reply:
    """Bring in discussions from the files of WilmerAI: all below a folder, or one.

    Read twice they change nothing. The exit code is 1 if a discussion was refused; the others are there.
    """
    users = {"": user, **dict(_split(each) for each in names or ())}
    opened, memory = key.key(), call.open(create=True)
    if id or _is_one(path):
        named = "" if user == DEFAULT_USER else user
        return _reply([import_discussion(memory, path, id=id, user=named, key=opened, again=again)])
    report = import_folder(memory, path, users=users, keys=opened, again=again)
    return _reply(report.discussions, report.refused)


@command("eunoe discussion export trip Public/Discussions")
def export(
    call: Call,
    id: Annotated[str, argument("ID", "The id of a discussion.")],
    folder: Annotated[Path, argument("DIR", "The folder that holds all discussions.")],
    key: KeyOptions,
    user: Annotated[str, typer.Option("--user", metavar="NAME", help="Whose discussion it is.")] = DEFAULT_USER,
    layout: LayoutOption = "folders",
) -> Reply:
    """Write a discussion as files of WilmerAI."""
    paths = export_discussion(call.open(), id, folder, user=user, layout=layout, key=key.key())
    return Reply(paths, "\n".join(map(str, paths)) or "nothing changed")


def _is_one(path: Path) -> bool:
    """Whether a path names a single discussion."""
    if path.is_file():
        return True
    with suppress(InputError):
        return bool(files_at(path).parts)
    return False


def _split(text: str) -> tuple[str, str]:
    folder, sign, name = text.partition("=")
    if not sign or not folder or not name:
        raise MisuseError(f"--name-user {text}: write FOLDER=NAME")
    return folder, name


def _reply(done: Sequence[DiscussionImport], refused: Sequence[Refusal] = ()) -> Reply:
    names = ("discussion", "user", "new", "ended", "unchanged", "summary", "state document")
    grid = Grid(names, [_row(each) for each in done])
    notes = [f"{each.id}: {note}" for each in done for note in each.notes]
    refusals = [f"refused: {each.name}: {each.reason}" for each in refused]
    document = {"discussions": done, "refused": refused}
    return Reply(document, grid, notes=[*notes, *refusals], empty="nothing was imported", code=1 if refused else 0)


def _row(done: DiscussionImport) -> tuple[str, ...]:
    counts = (done.stored, done.ended, done.unchanged)
    flags = (done.summary, done.state_document)
    return done.id, done.user, *map(str, counts), *("yes" if flag else "" for flag in flags)
