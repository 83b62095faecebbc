"""`eunoe import-chats`: conversations of other services."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Final

import typer

from eunoe.cli import display
from eunoe.cli.command import Call, MisuseError, Reply, command
from eunoe.cli.display import Pairs, quantity, shorten
from eunoe.cli.inputs import YesOption, argument, problem_lines, repeatable_option
from eunoe.model.scope import Scope

if TYPE_CHECKING:
    from eunoe.hosts.chats import ChatSummary

_PERSON_HELP: Final = "Where the conversations of one person go."
_MAX_PEOPLE_SHOWN: Final = 20
_MAX_NAME_CHARACTERS: Final = 60


@command("eunoe import-chats conversations.json --scope user=anna", asks_llm=True)
def import_chats(
    call: Call,
    file: Annotated[str, argument("FILE", "A file, zip archive or folder of an export, or a SQLite file.")],
    scope: Annotated[str | None, typer.Option("--scope", metavar="SCOPE", help="Whose the conversations are.")] = None,
    person: Annotated[list[str] | None, repeatable_option("--person", "NAME=SCOPE", _PERSON_HELP)] = None,
    form: Annotated[bool, typer.Option("--form/--no-form", help="Form memories from what is new.")] = True,
    yes: YesOption = False,
) -> Reply:
    """Bring in chats: ChatGPT, Claude, LangChain, LangGraph, OpenAI Agents SDK, JSON Lines.

    What the file holds is shown before anything is written. A second import of the same file changes nothing.
    """
    from eunoe.hosts import chats

    people, rest = dict(map(_parse_person, person or [])), Scope.parse(scope) if scope is not None else None
    source = chats.open_chats(file)
    with display.progress("reading") as advance:
        summary = chats.summarise_chats(source, progress=advance)
    if rest is None and not people:
        return _preview(summary, "nothing was written: name whose they are, such as --scope user=anna")
    chats.check_owners(summary, people, rest)
    if not yes and (call.json or not _is_terminal()):
        return _preview(summary, "nothing was written: add --yes to bring them in")
    if not call.json:
        call.show(_preview(summary))
    if not yes and not display.agrees("Bring them in?"):
        return Reply(None, empty="nothing was written")
    memory = call.open(create=True)
    with display.progress("bringing in") as advance:
        report = chats.import_chats(memory, source, rest, people=people, form=form, progress=advance)
    return Reply(
        {"found": asdict(summary), "report": asdict(report)},
        f"{quantity(report.conversations, 'conversation')} read, {quantity(report.stored, 'message')} stored",
        f"{report.known:,} known already, {report.forgotten:,} forgotten before",
        f"{quantity(report.formed, 'memory')} formed" if report.formed else "",
        notes=problem_lines("not brought in", tuple(line for line in report.problems if line not in summary.problems)),
        code=1 if report.problems else 0,
    )


def _preview(summary: ChatSummary, *notes: str) -> Reply:
    left_out = f" ({summary.left_out:,} of older versions are left out)" if summary.left_out else ""
    people = [
        f"{shorten(name, _MAX_NAME_CHARACTERS) or 'the file does not say'}: {count:,}"
        for name, count in summary.people.items()
    ]
    more = [f"{len(people) - _MAX_PEOPLE_SHOWN:,} more"] if len(people) > _MAX_PEOPLE_SHOWN else []
    first, last = (f"{time:%Y-%m-%d}" if time else "unknown" for time in (summary.first, summary.last))
    values = {
        "format": summary.format,
        "conversations": f"{summary.conversations:,}",
        "messages": f"{summary.messages:,}{left_out}",
        "whose": "; ".join([*people[:_MAX_PEOPLE_SHOWN], *more]),
        "from": f"{first} to {last}",
    }
    return Reply(
        {"found": asdict(summary)},
        Pairs(values),
        notes=[*problem_lines("cannot be read", summary.problems), *notes],
        code=1 if summary.problems else 0,
    )


def _parse_person(text: str) -> tuple[str, Scope]:
    name, sign, scope = text.partition("=")
    if not sign or not name.strip():
        raise MisuseError(f"--person {text!r}: write NAME=SCOPE, such as 'Anna Berg=user=anna'")
    return name, Scope.parse(scope)


def _is_terminal() -> bool:
    return sys.stdin.isatty()
