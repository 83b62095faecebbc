"""`eunoe discussion`: the memory of long chats: how it stands, how it is made, moved and deleted."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import datetime
from io import StringIO
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, Final, Literal

import typer

from eunoe.apps.discussion import ChunkFailure, Discussion, LogReport, UpdateReport
from eunoe.apps.discussion.chunks import ChunkTrial
from eunoe.apps.discussion.documents import StateDocument, current_summary
from eunoe.apps.discussion.files import FolderImport, export_discussion, import_discussion, import_folder
from eunoe.apps.discussion.files.layout import files_at
from eunoe.apps.discussion.model import (
    CHUNK_MEMORY,
    DEFAULT_USER,
    KEYWORD_MEMORY,
    ChunkMemory,
    KeywordMemory,
    chunk_memories,
    discussion_keys,
    keyword_memories,
)
from eunoe.apps.discussion.workflow.document import Environment
from eunoe.apps.discussion.workflow.run import author_sources, check_workflows
from eunoe.cli import display, inputs
from eunoe.cli.command import Call, Reply, command, confirm
from eunoe.cli.display import Entries, Entry, Grid, Pairs, View, hit_entries, quantity, when
from eunoe.cli.inputs import FullOption, YesOption, argument, repeatable_option
from eunoe.cli.workflow import KeyOptions, LayoutOption, WorkflowOptions, split_pair
from eunoe.errors import InputError, NotFoundError
from eunoe.model.result import ForgetReport

Part = Literal["summary", "memories", "keywords", "state"]
IdArgument = Annotated[str, argument("ID", "The id of a discussion.")]
UserOption = Annotated[str, typer.Option("--user", metavar="NAME", help="Whose discussion it is.")]
MemoriesArgument = Annotated[list[str], argument("MEMORY...", "Ids of memories, or of messages.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Also from few messages, and what failed a moment ago.")]

_HELD_NOTE: Final = "chunks are held by another process, or by one that was killed a moment ago: update again later"
_USER_HELP: Final = "Whose they are, where their folder does not say it."
_NAME_HELP: Final = "The name of the user whose discussions stand in FOLDER."
_MESSAGES_HELP: Final = (
    "The chat: JSON Lines, or a JSON list, of messages with role and content, or a request; - for standard input."
)
_WHOLE_HELP: Final = "The messages are the whole chat: what they do not show was deleted."
_CONTINUE_HELP: Final = "Where an imported discussion goes on: the number of a message, start or end."


@command("eunoe discussion import Public/Discussions --user anna")
def import_(
    call: Call,
    path: Annotated[Path, argument("PATH", "A folder of discussions, the folder of one, or one of its files.")],
    key: KeyOptions,
    user: Annotated[str, typer.Option("--user", metavar="NAME", help=_USER_HELP)] = DEFAULT_USER,
    names: Annotated[list[str] | None, repeatable_option("--name-user", "FOLDER=NAME", _NAME_HELP)] = None,
    id: Annotated[str, typer.Option("--id", metavar="ID", help="What the one discussion is called here.")] = "",
    again: Annotated[bool, typer.Option("--again", help="Also what was forgotten here before.")] = False,
) -> Reply:
    """Bring in discussions from the files of WilmerAI: all below a folder, or one.

    Read twice they change nothing. The exit code is 1 if a discussion was refused; the others are there.
    """
    users = {"": user, **dict(split_pair(each, "--name-user", "FOLDER=NAME") for each in names or ())}
    opened, memory = key.key(), call.open(create=True)
    is_one = bool(id) or path.is_file()
    with suppress(InputError):
        is_one = is_one or bool(files_at(path).parts)
    if is_one:
        named = "" if user == DEFAULT_USER else user
        report = FolderImport((import_discussion(memory, path, id=id, user=named, key=opened, again=again),), ())
    else:
        report = import_folder(memory, path, users=users, keys=opened, again=again)
    done, refused = report.discussions, report.refused
    columns = ("discussion", "user", "new", "ended", "unchanged", "summary", "state document")
    rows = [
        (
            *(each.id, each.user, *map(str, (each.stored, each.ended, each.unchanged))),
            *("yes" if has_it else "" for has_it in (each.summary, each.state_document)),
        )
        for each in done
    ]
    notes = [f"{each.id}: {note}" for each in done for note in each.notes]
    notes += [f"refused: {each.name}: {each.reason}" for each in refused]
    document = {"discussions": done, "refused": refused}
    return Reply(document, Grid(columns, rows), notes=notes, empty="nothing was imported", code=1 if refused else 0)


@command("eunoe discussion export trip Public/Discussions")
def export(
    call: Call,
    id: IdArgument,
    folder: Annotated[Path, argument("DIR", "The folder that holds all discussions.")],
    key: KeyOptions,
    user: UserOption = DEFAULT_USER,
    layout: LayoutOption = "folders",
) -> Reply:
    """Write a discussion as files of WilmerAI."""
    paths = export_discussion(call.open(), id, folder, user=user, layout=layout, key=key.key())
    return Reply(paths, "\n".join(map(str, paths)) or "nothing changed")


@command("eunoe discussion show trip keywords")
def show(
    call: Call,
    id: IdArgument,
    part: Annotated[
        Part | None, argument("[PART]", "Only the summary, the memories, the keywords or the state document.")
    ] = None,
    user: UserOption = DEFAULT_USER,
    full: FullOption = False,
) -> Reply:
    """Show what a discussion remembers: its summary, memories and keyword memories, each with its id.

    `eunoe update SCOPE ID TEXT` puts a memory right, `eunoe summaries write SCOPE TEXT` the summary.
    """
    trip = find_discussion(call, id, user)
    memory, scope = trip.memory, trip.scope
    found: dict[str, str | Sequence[ChunkMemory] | Sequence[KeywordMemory]] = {
        "summary": current_summary(memory, scope),
        "memories": chunk_memories(memory, scope),
        "keywords": keyword_memories(memory, scope),
        "state": StateDocument(memory, scope).read(),
    }
    shown = {name: each for name, each in found.items() if part in (None, name)}
    views: list[View] = []
    for name, each in shown.items():
        text: View = each if isinstance(each, str) else Entries(("when",), list(map(_entry, each)), full)
        views += [f"{name}\n", text] if text and part is None else [text]
    hint = (
        f"to change one: eunoe update {quote(str(scope))} ID TEXT; "
        f"to remove one: eunoe discussion forget {quote(id)} ID --user {quote(user)}"
    )
    return Reply({"scope": str(scope), **shown}, *views, notes=[hint] if any(shown.values()) else [])


def _entry(memory: ChunkMemory | KeywordMemory) -> Entry:
    if isinstance(memory, KeywordMemory):
        words = "; ".join((*memory.entities, *memory.key_phrases))
        return Entry((when(memory.moment),), f"{memory.title}: {memory.summary}", f"{memory.id} · {words}")
    return Entry((when(memory.recorded),), memory.text, memory.id)


@command('eunoe discussion search trip "Hotel Aurora"')
def search(
    call: Call,
    id: IdArgument,
    query: Annotated[str, argument("QUERY", "The question, or some words.")],
    user: UserOption = DEFAULT_USER,
    limit: Annotated[int | None, typer.Option("--limit", "-n", help="At most so many; 10 if not given.")] = None,
    full: FullOption = False,
) -> Reply:
    """Find the memories of a discussion that bear on a question, best first, each with its id.

    `eunoe recall` finds what was said, too.
    """
    trip, labels = find_discussion(call, id, user), (CHUNK_MEMORY, KEYWORD_MEMORY)
    hits = trip.memory.recall(trip.scope, query, kinds=["observation", "fact"], labels=labels, limit=limit)
    return Reply(hits, hit_entries(hits, full=full), notes=hits.notes)


@command("eunoe discussion forget trip MEMORY")
def forget(
    call: Call, id: IdArgument, memories: MemoriesArgument, user: UserOption = DEFAULT_USER, yes: YesOption = False
) -> Reply:
    """Remove memories of a discussion for good, so that no update makes them again.

    A rebuild does. To forget what was said, name the messages.
    """
    trip = find_discussion(call, id, user)
    if not yes and not confirm(f"Remove {quantity(len(memories), 'memory')} of the discussion {id} of {user}"):
        return Reply({"forgotten": False}, "nothing was removed", code=1)
    report = trip.forget(memories)
    return Reply(report, f"removed: {_counts(report)}", notes=report.notes, code=0 if report.total else 1)


@command("eunoe discussion delete trip --yes")
def delete(call: Call, id: IdArgument, user: UserOption = DEFAULT_USER, yes: YesOption = False) -> Reply:
    """Delete a discussion for good: its log, its memories, its summary and their history.

    Files that were written for other programs stay: delete those yourself.
    """
    discussion = find_discussion(call, id, user)
    size = quantity(discussion.status().messages, "message")
    if not yes and not confirm(f"Delete discussion {id} of {user} with {size}"):
        return Reply({"deleted": False}, "nothing was deleted", code=1)
    report = discussion.delete()
    return Reply(report, f"deleted: {_counts(report)}", notes=report.notes)


def _counts(report: ForgetReport) -> str:
    return f"{quantity(len(report.messages), 'message')}, {quantity(len(report.atoms), 'memory')}"


def find_discussion(call: Call, id: str, user: str) -> Discussion:
    """A discussion that is there."""
    discussion = Discussion(call.open(), id, user)
    if discussion.status().is_empty:
        raise NotFoundError(f"there is no discussion {id} of {user}: `eunoe discussion list` shows all there are")
    return discussion


@command("eunoe discussion list --user anna")
def list_(
    call: Call,
    user: Annotated[str | None, typer.Option("--user", metavar="NAME", help="Only this user's.")] = None,
) -> Reply:
    """List the discussions: what each holds, and what failed."""
    memory = call.open()
    statuses = [Discussion(memory, id, owner).status() for owner, id in discussion_keys(memory, user)]
    held = [each for each in statuses if not each.is_empty]
    names = ("discussion", "user", "messages", "chunk memories", "keyword memories", "summary", "failed")
    rows = [
        (
            *(each.id, each.user, f"{each.messages:,}", f"{each.chunk_memories:,}", f"{each.keyword_memories:,}"),
            f"revision {each.summary}" if each.summary else "",
            f"{failed:,}" if (failed := len(each.failed) + len(each.other_failures)) else "",
            when(each.last_message) if each.last_message else "",
        )
        for each in held
    ]
    conflicts = [f"user {each.user}, {each.import_conflict}" for each in held if each.import_conflict]
    return Reply(held, Grid((*names, "last message"), rows), empty="there are no discussions", notes=conflicts)


@command("eunoe discussion status trip --user anna")
def status(call: Call, id: IdArgument, user: UserOption = DEFAULT_USER) -> Reply:
    """Show how a discussion stands: what it holds, what failed and when it is tried again, what is being done."""
    found = find_discussion(call, id, user).status()
    texts = {
        "discussion": found.id,
        "user": found.user,
        "messages": f"{found.messages:,}, and {found.retracted:,} retracted",
        "waiting": f"{quantity(found.waiting, 'message')} in no memory yet",
        "chunk memories": f"{found.chunk_memories:,}",
        "keyword memories": f"{found.keyword_memories:,}",
        "summary": f"revision {found.summary}, {found.new_since_summary:,} newer chunk memories",
        "state document": quantity(found.state_document, "version"),
        "failed": quantity(len(found.failed), "chunk"),
        "in progress": ", ".join(found.in_progress) or "nothing",
    }
    others = [(each.name, str(each.attempts), _retry(each.retry)) for each in found.other_failures]
    return Reply(
        found,
        Pairs(texts),
        *_failure_views(found.failed),
        Grid(("failed", "attempts", "tried again"), others),
        _reasons((each.name, each.error) for each in found.other_failures),
        notes=[found.import_conflict] if found.import_conflict else [],
    )


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
    place = int(continue_at) if continue_at and continue_at.isascii() and continue_at.isdigit() else continue_at
    with _progress() as tell:
        how = _sources(discussion, environment) | _files(environment)
        settings = environment.settings
        report = discussion.update(None, settings, force=force, continue_at=place, progress=tell, **how)
    return _update_reply(report, taken)


@command("eunoe discussion rebuild trip --settings settings.json", asks_llm=True)
def rebuild(
    call: Call,
    id: IdArgument,
    options_: WorkflowOptions,
    user: UserOption = DEFAULT_USER,
    force: ForceOption = False,
    try_: Annotated[
        int | None, typer.Option("--try", metavar="N", help="Only show what chunk N would become; nothing is kept.")
    ] = None,
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


def _sources(discussion: Discussion, environment: Environment) -> dict[str, Any]:
    """Who puts memories in words."""
    return author_sources(discussion.memory, discussion.scope, environment)._asdict()


def _files(environment: Environment) -> dict[str, Any]:
    """Which files are kept current."""
    return {"files_dir": environment.files_dir, "layout": environment.layout, "key": environment.key}


def _read_messages(name: str) -> list[Any]:
    """The messages of a file: a list, lines, or those in a request for a chat API."""

    def check(value: Any) -> Any:
        if not isinstance(value, Mapping) or not isinstance(value.get("role"), str):
            raise InputError("a message is an object with role and content")
        return value

    with inputs.open_text(name) as file:
        text = file.read()
    with suppress(ValueError, RecursionError):
        request = json.loads(text)
        if isinstance(request, Mapping) and isinstance(request.get("messages"), list):
            text = json.dumps(request["messages"])
    return list(inputs.read_values(name, StringIO(text), "auto", check))


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """Shows how many chunks are done; one after the other for each kind of memory."""
    with display.progress("chunks") as advance:

        def tell(kind: str, done: int, total: int) -> None:
            advance(done, total)
            if not sys.stderr.isatty():
                display.say(f"{kind.replace('_', ' ')}: {done} of {total} chunks")

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
    notes = (*taken.notes, *report.notes, *([_HELD_NOTE] if report.held else []))
    views = (Pairs(texts or {"changed": "nothing"}), *_failure_views(report.failed))
    return Reply(document, *views, notes=notes, code=1 if report.failed else 0)


def _failure_views(failures: Sequence[ChunkFailure]) -> tuple[View, View]:
    """The chunks that failed, and why."""
    kinds = [each.kind.replace("_", " ") for each in failures]
    rows = [
        (kind, each.first, each.last, str(each.attempts), _retry(each.retry))
        for kind, each in zip(kinds, failures, strict=True)
    ]
    grid = Grid(("failed chunk", "from message", "to message", "attempts", "tried again"), rows)
    return grid, _reasons(zip(kinds, (each.error for each in failures), strict=True))


def _reasons(failures: Iterable[tuple[str, str]]) -> str:
    """Why something failed, in full; the same reason once."""
    return "\n".join(dict.fromkeys(f"{name} failed: {' '.join(error.split())}" for name, error in failures))


def _retry(moment: datetime | None) -> str:
    return f"after {when(moment)}" if moment else "at the next update"
