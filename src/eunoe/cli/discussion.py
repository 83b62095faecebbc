"""`eunoe discussion`: the memory of long chats: how it stands, how it is made, moved and deleted."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import datetime
from io import StringIO
from typing import Annotated, Any, Final

import typer

from eunoe.apps.discussion import ChunkFailure, Discussion, DiscussionStatus, LogReport, UpdateReport
from eunoe.apps.discussion.chunks import ChunkTrial
from eunoe.apps.discussion.model import DEFAULT_USER, discussion_keys
from eunoe.apps.discussion.workflow.document import Environment
from eunoe.apps.discussion.workflow.run import author_sources, check_workflows
from eunoe.cli import inputs
from eunoe.cli.command import Call, Reply, command
from eunoe.cli.discussion_files import export, import_
from eunoe.cli.discussion_memories import (
    IdArgument,
    UserOption,
    YesOption,
    confirm,
    find_discussion,
    forget,
    search,
    show,
)
from eunoe.cli.display import output
from eunoe.cli.display.output import quantity
from eunoe.cli.display.views import Entries, Entry, Grid, Pairs, View, when
from eunoe.cli.workflow_options import WorkflowOptions
from eunoe.errors import InputError

_HELD_NOTE: Final = "chunks are held by another process, or by one that was killed a moment ago: update again later"
_MESSAGES_HELP: Final = (
    "The chat: JSON Lines, or a JSON list, of messages with role and content, or a request; - for standard input."
)
_WHOLE_HELP: Final = "The messages are the whole chat: what they do not show was deleted."
_TRY_HELP: Final = "Only show what chunk N would become; nothing is kept."
_CONTINUE_HELP: Final = "Where an imported discussion goes on: the number of a message, start or end."

__all__ = ["delete", "export", "forget", "import_", "list_", "rebuild", "search", "show", "status", "update"]

ForceOption = Annotated[bool, typer.Option("--force", help="Also from few messages, and what failed a moment ago.")]


@command("eunoe discussion list --user anna")
def list_(
    call: Call,
    user: Annotated[str | None, typer.Option("--user", metavar="NAME", help="Only this user's.")] = None,
) -> Reply:
    """List the discussions: what each holds, and what failed."""
    memory = call.open()
    statuses = [Discussion(memory, id, owner).status() for owner, id in discussion_keys(memory, user)]
    held = [each for each in statuses if not each.is_empty]
    names = (
        "discussion",
        "user",
        "messages",
        "chunk memories",
        "keyword memories",
        "summary",
        "failed",
        "last message",
    )
    conflicts = [f"user {each.user}, {each.import_conflict}" for each in held if each.import_conflict]
    return Reply(held, Grid(names, [_row(each) for each in held]), empty="there are no discussions", notes=conflicts)


@command("eunoe discussion status trip --user anna")
def status(call: Call, id: IdArgument, user: UserOption = DEFAULT_USER) -> Reply:
    """Show how a discussion stands: what it holds, what failed and when it is tried again, what is being done."""
    found = find_discussion(call, id, user).status()
    notes = [found.import_conflict] if found.import_conflict else []
    return Reply(found, Pairs(_status_texts(found)), *_failure_views(found), notes=notes)


@command("eunoe discussion update trip --messages chat.json --settings settings.json", asks_llm=True)
def update(
    call: Call,
    id: IdArgument,
    options_: WorkflowOptions,
    user: UserOption = DEFAULT_USER,
    messages: Annotated[str | None, typer.Option("--messages", metavar="FILE", help=_MESSAGES_HELP)] = None,
    whole: Annotated[bool, typer.Option("--whole", help=_WHOLE_HELP)] = False,
    force: ForceOption = False,
    continue_at: Annotated[str | None, typer.Option("--continue-at", metavar="N", help=_CONTINUE_HELP)] = None,
) -> Reply:
    """Take messages in, and make the memories that are due. The exit code is 1 if chunks failed.

    What failed is tried again at the next update, after a pause.
    """
    request = None if messages is None else _read_messages(messages)
    discussion = find_discussion(call, id, user) if request is None else Discussion(call.open(create=True), id, user)
    environment = options_.environment(discussion.memory.llm)
    taken = discussion.log.take_in(request, is_whole=whole) if request is not None else LogReport()
    with _progress() as tell:
        report = discussion.update(
            None,
            environment.settings,
            force=force,
            continue_at=_parse_place(continue_at),
            progress=tell,
            **_files(environment),
            **_sources(discussion, environment),
        )
    return _update_reply(report, taken)


@command("eunoe discussion rebuild trip --settings settings.json", asks_llm=True)
def rebuild(
    call: Call,
    id: IdArgument,
    options_: WorkflowOptions,
    user: UserOption = DEFAULT_USER,
    force: ForceOption = False,
    try_: Annotated[int | None, typer.Option("--try", metavar="N", help=_TRY_HELP)] = None,
) -> Reply:
    """Make all memories of a discussion anew from its log. The old ones stay in the history.

    Each holds until there is another one, so a rebuild may fail or be killed; the same command goes on with it. What
    was imported stays. The exit code is 1 if chunks failed.
    """
    discussion = find_discussion(call, id, user)
    environment = options_.environment(discussion.memory.llm)
    check_workflows(environment)
    sources = _sources(discussion, environment)
    if try_ is not None:
        return _trial_reply(discussion.try_chunk(try_, environment.settings, **sources))
    with _progress() as tell:
        report = discussion.rebuild(environment.settings, force=force, progress=tell, **_files(environment), **sources)
    return _update_reply(report, LogReport())


@command("eunoe discussion delete trip --yes")
def delete(
    call: Call,
    id: IdArgument,
    user: UserOption = DEFAULT_USER,
    yes: YesOption = False,
) -> Reply:
    """Delete a discussion for good: its log, its memories, its summary and their history.

    Files that were written for other programs stay: delete those yourself.
    """
    discussion = find_discussion(call, id, user)
    size = quantity(discussion.status().messages, "message")
    if not yes and not confirm(f"Delete discussion {id} of {user} with {size}"):
        return Reply({"deleted": False}, "nothing was deleted", code=1)
    report = discussion.delete()
    counts = f"{quantity(len(report.messages), 'message')}, {quantity(len(report.atoms), 'memory')}"
    return Reply(report, f"deleted: {counts}", notes=report.notes)


def _read_messages(name: str) -> list[Any]:
    with inputs.open_text(name) as file:
        text = _messages_of_request(file.read())
    return list(inputs.read_values(name, StringIO(text), "auto", _check_message))


def _messages_of_request(text: str) -> str:
    """The list of messages in a request for a chat API, if the text is one; else the text."""
    with suppress(ValueError, RecursionError):
        request = json.loads(text)
        if isinstance(request, Mapping) and isinstance(request.get("messages"), list):
            return json.dumps(request["messages"])
    return text


def _check_message(value: Any) -> Any:
    if not isinstance(value, Mapping) or not isinstance(value.get("role"), str):
        raise InputError("a message is an object with role and content")
    return value


def _parse_place(text: str | None) -> int | str | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() else text


def _sources(discussion: Discussion, environment: Environment) -> dict[str, Any]:
    """Who puts memories in words."""
    return author_sources(discussion.memory, discussion.scope, environment)._asdict()


def _files(environment: Environment) -> dict[str, Any]:
    """Which files are kept current."""
    return {"files_dir": environment.files_dir, "layout": environment.layout, "key": environment.key}


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """Shows how many chunks are done; one after the other for each kind of memory."""
    with output.progress("chunks") as advance:

        def tell(kind: str, done: int, total: int) -> None:
            advance(done, total)
            if not sys.stderr.isatty():
                output.say(f"{kind.replace('_', ' ')}: {done} of {total} chunks")

        yield tell


def _trial_reply(trials: Sequence[ChunkTrial]) -> Reply:
    views: list[View] = []
    for each in trials:
        title = f"{each.kind.replace('_', ' ')}, chunk {each.number} of {each.chunks}; nothing was kept"
        now = [Entry(("now",), atom.text, f"{_found_by(atom.metadata)}{atom.id}") for atom in each.now]
        made = [Entry(("new",), item["text"], _found_by(item["metadata"])) for item in each.made]
        views += [f"{title}\n{each.text}", Entries(("",), [*now, *made], is_full=True)]
        views += [] if made else ["there would be nothing to remember"]
    return Reply(trials, *views, notes=[note for each in trials for note in each.notes])


def _found_by(fields: Mapping[str, Any]) -> str:
    """The words by which a memory is found."""
    words = [fields.get("title", ""), *fields.get("entities", ()), *fields.get("key_phrases", ())]
    return f"{'; '.join(words)} · " if any(words) else ""


def _update_reply(report: UpdateReport, taken: LogReport) -> Reply:
    counts = {
        "new messages": len(taken.new),
        "retracted messages": len(taken.retracted),
        "restored messages": len(taken.restored),
        "chunks made": report.made,
        "chunks made again": report.redone,
        "chunks with nothing to remember": report.nothing,
        "chunks failed": len(report.failed),
        "chunks held": report.held,
        "messages waiting": report.waiting,
    }
    texts = {name: f"{count:,}" for name, count in counts.items() if count}
    texts |= {"summary": f"revision {report.summary}"} if report.summary else {}
    texts |= {"state document": report.state_document} if report.state_document else {}
    document = {**asdict(report), "log": asdict(taken)}
    views: list[View] = [Pairs(texts or {"changed": "nothing"}), *_failure_grid(report.failed)]
    notes = (*taken.notes, *report.notes, *([_HELD_NOTE] if report.held else []))
    return Reply(document, *views, notes=notes, code=1 if report.failed else 0)


def _row(status: DiscussionStatus) -> tuple[str, ...]:
    counts = (status.messages, status.chunk_memories, status.keyword_memories)
    failed = len(status.failed) + len(status.other_failures)
    return (
        status.id,
        status.user,
        *(f"{count:,}" for count in counts),
        f"revision {status.summary}" if status.summary else "",
        f"{failed:,}" if failed else "",
        when(status.last_message) if status.last_message else "",
    )


def _status_texts(status: DiscussionStatus) -> dict[str, str]:
    return {
        "discussion": status.id,
        "user": status.user,
        "messages": f"{status.messages:,}, and {status.retracted:,} retracted",
        "waiting": f"{quantity(status.waiting, 'message')} in no memory yet",
        "chunk memories": f"{status.chunk_memories:,}",
        "keyword memories": f"{status.keyword_memories:,}",
        "summary": f"revision {status.summary}, {status.new_since_summary:,} newer chunk memories",
        "state document": quantity(status.state_document, "version"),
        "failed": quantity(len(status.failed), "chunk"),
        "in progress": ", ".join(status.in_progress) or "nothing",
    }


def _failure_views(status: DiscussionStatus) -> Iterator[View]:
    yield from _failure_grid(status.failed)
    rows = [(each.name, str(each.attempts), _retry(each.retry)) for each in status.other_failures]
    if rows:
        yield Grid(("failed", "attempts", "tried again"), rows)
        yield _reasons((each.name, each.error) for each in status.other_failures)


def _failure_grid(failures: Sequence[ChunkFailure]) -> Iterator[View]:
    """The chunks that failed, and why; nothing if none did."""
    rows = [
        (each.kind.replace("_", " "), each.first, each.last, str(each.attempts), _retry(each.retry))
        for each in failures
    ]
    if rows:
        yield Grid(("failed chunk", "from message", "to message", "attempts", "tried again"), rows)
        yield _reasons((each.kind.replace("_", " "), each.error) for each in failures)


def _reasons(failures: Iterable[tuple[str, str]]) -> str:
    """Why something failed, in full; the same reason once."""
    return "\n".join(dict.fromkeys(f"{name} failed: {' '.join(error.split())}" for name, error in failures))


def _retry(moment: datetime | None) -> str:
    return f"after {when(moment)}" if moment else "at the next update"
