"""Commands that form memories and put them before the agent: context, form, consolidate, archive, incognito."""

from __future__ import annotations

import getpass
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

import eunoe
from eunoe.cli import display, inputs
from eunoe.cli.command import IN_MEMORY, Call, Given, MisuseError, Reply, command, verb_command
from eunoe.cli.display import Entries, Entry, Grid, View, how_sure, item_entries, quantity
from eunoe.cli.inputs import OffOption, argument
from eunoe.cli.write import parse_line
from eunoe.errors import ConflictError, EunoeError, InputError, ScopeError
from eunoe.model.arguments import shorten
from eunoe.model.atom import WORTH, Atom
from eunoe.model.json import json_value
from eunoe.model.message import Message
from eunoe.model.result import FormReport, Preview, Receipt
from eunoe.model.scope import Scope
from eunoe.model.stream import Revision

_SESSION: Final = "dry-run"
_FILE_NAME: Final = re.compile(r"\S+\.(?:txt|md|log|csv|json|jsonl)", re.IGNORECASE)


def dry_run_reply(call: Call, scope: str, text: str, speakers: bool) -> Reply:
    """Show what would be learned. A single argument is a scope, a file or what is said."""
    if not scope and not text:
        raise MisuseError("say what to read: a SCOPE, a text, a file, or - for standard input")
    owner = _parse_scope(scope, is_sure=bool(text))
    said = text or ("" if owner else scope)
    messages = _read_messages(said, speakers) if said else None
    memory = call.open(needs_llm=True) if owner else call.open_to_look(needs_llm=True, store=IN_MEMORY)
    with display.progress("reading"):
        found = memory.preview(owner or Scope(session=_SESSION, user=getpass.getuser()), messages)
    document = {
        "memories": found.items,
        "doubtful": found.doubtful,
        "passed_over": found.passed_over,
        "corrected": found.corrected,
        "notes": found.notes,
    }
    empty = "nothing waits to be formed" if messages is None else "nothing would be learned"
    return Reply(document, *_views(found), notes=found.notes, empty=empty)


def _parse_scope(text: str, is_sure: bool) -> Scope | None:
    """The scope that an argument names; None if it is a file or what somebody says."""
    if is_sure:
        return Scope.parse(text)
    with suppress(ScopeError):
        return None if _is_file(text) else Scope.parse(text)
    return None


def _read_messages(said: str, speakers: bool) -> list[Message]:
    if not _is_file(said):
        return [parse_line(speakers, {}, line) for line in said.splitlines() if line.strip()]
    with inputs.open_text(said) as file:
        messages = list(inputs.read_values(said, file, "auto", partial(parse_line, speakers, {})))
    if not messages:
        raise InputError(f"{said} holds no message")
    return messages


def _is_file(text: str) -> bool:
    """Whether a text is standard input, names a file or folder, or looks as if it should."""
    with suppress(OSError, ValueError):  # too long for a name, or not one at all
        return text == "-" or bool(_FILE_NAME.fullmatch(text)) or Path(text).exists()
    return False


def _views(found: Preview) -> Iterator[View]:
    if not found.items and not found.passed_over:
        return
    learned = dict.fromkeys(atom.text for atom in found.items)
    yield (
        f"{quantity(len(learned), 'memory')} would be learned, {quantity(len(found.passed_over), 'message')} "
        "passed over; nothing was kept"
    )
    yield Entries(("kind", "how sure"), [_learned_entry(found, text) for text in learned], is_full=True)
    if found.passed_over:
        yield "\npassed over"
        yield Entries(("who",), [Entry((each.speaker,), each.text, each.reason) for each in found.passed_over])


def _learned_entry(found: Preview, text: str) -> Entry:
    """A memory, once for all the streams that would learn it."""
    atoms = [atom for atom in found.items if atom.text == text]
    is_doubtful = all(atom.id in found.doubtful for atom in atoms)
    streams = dict.fromkeys(f"{atom.kind} in {atom.scope}" for atom in atoms)
    best = max(atoms, key=lambda atom: float(atom.metadata.get(WORTH, 0.0)))
    sure = f"{'doubtful' if is_doubtful else 'sure'} {how_sure(best)}".rstrip()
    corrected = next((found.corrected[atom.id] for atom in atoms if atom.id in found.corrected), "")
    reasons = [f"by your correction of {shorten(corrected)!r}"] if corrected else []
    return Entry((atoms[0].label or atoms[0].kind, sure), text, ", ".join(streams), reasons)


_MAX_SEARCHED_STREAMS: Final = 200
"""Streams that are searched for new atoms; an atom in another one is named by its id alone."""


@command("eunoe form agent=cook/session=s1/user=anna", asks_llm=True)
def form(
    call: Call,
    scope: Annotated[str, argument("[SCOPE]", "The conversation: key=value, joined by /.")] = "",
    text: Annotated[
        str, argument("[TEXT]", "With --dry-run: what is said, a file of it, or - for standard input.")
    ] = "",
    due: Annotated[bool, typer.Option("--due", help="Only where enough was said.")] = False,
    all: Annotated[bool, typer.Option("--all", help="Every conversation with messages that wait.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be learned, and what not.")] = False,
    speakers: Annotated[bool, typer.Option("--speakers", help="With --dry-run: lines read 'Name: text'.")] = False,
) -> Reply:
    """Turn what was said into memories now, and show them.

    With --dry-run keep nothing, and show what would be learned from what waits, or from a text or a file; these may
    also stand without a SCOPE.
    """
    if dry_run:
        if due or all:
            raise MisuseError("--dry-run goes with neither --due nor --all")
        return dry_run_reply(call, scope, text, speakers)
    if text or speakers:
        raise MisuseError("TEXT and --speakers go with --dry-run; `eunoe observe` stores what was said")
    if bool(scope) == all:
        raise MisuseError("name the conversation as SCOPE, or say --all")
    total, learned = FormReport(), list[Atom]()
    memory = call.open(needs_llm=True)
    with display.progress("forming") as advance:
        scopes = memory.scopes() if all else [Scope.parse(scope)]
        for number, conversation in enumerate(scopes, 1):
            try:
                report = memory.form(conversation, force=not due)
            except EunoeError as error:
                if not all:
                    raise
                report = FormReport(failed=(f"{conversation}: {error}",))
            learned += learned_atoms(memory, conversation, report)
            total += report
            advance(number, len(scopes))
    return Reply(
        {**json_value(total), "learned": learned},
        *_form_views(total, learned),
        notes=failure_lines(total.failed),
        is_empty=total == FormReport(),
        code=1 if total.failed else 0,
    )


@command('eunoe context session=s1/user=anna "What can I cook?" --tokens 2000', verb="context", asks_llm=True)
def context(
    call: Call,
    given: Given,
    users: Annotated[str, typer.Option("--users", metavar="A,B", help="Who else is present.")] = "",
    recall: Annotated[bool, typer.Option("--recall/--no-recall", help="Look something up for the message.")] = True,
) -> Reply:
    """Print what to put in front of the agent before it replies."""
    present = [name.strip() for name in users.split(",") if name.strip()]
    found = call.ask(given, users=present, recall="auto" if recall else "off")
    text = json.dumps(found.messages, ensure_ascii=False, indent=2) if found.messages else found.text
    return Reply(found, text, notes=found.notes)


@command("eunoe consolidate user=anna", verb="summaries.consolidate", asks_llm=True)
def consolidate(
    call: Call,
    given: Given,
    due: Annotated[bool, typer.Option("--due", help="Only if enough observations wait.")] = False,
) -> Reply:
    """Write the observations that wait into the summary now."""
    call.open(needs_llm=True)
    with display.progress("consolidating"):
        return revision_reply(call.ask(given, force=not due))


@command("eunoe archive user=anna --keep-best 500 --dry-run", verb="streams.apply_retention")
def archive(call: Call, given: Given) -> Reply:
    """Archive memories that are too old, unused or too many.

    Pinned ones stay. What is not given is taken from the settings of the stream.
    """
    memory, report = call.open(), call.ask(given)
    verb = "would be archived" if report.dry_run else "archived"
    rows = [
        (id, reason, "" if call.json else _text_of(memory, given["scope"], id, given["exact"]))
        for id, reason in report.archived
    ]
    return Reply(
        report,
        f"{quantity(len(report.archived), 'memory')} {verb}, {report.kept:,} kept",
        Grid(("id", "why", "text"), rows),
        is_empty=not rows,
    )


def _text_of(memory: eunoe.Memory, scope: str, id: str, exact: bool) -> str:
    with suppress(ConflictError):  # several scopes within have this id
        return memory.get(scope, id, exact=exact).text
    return ""


def _show_unarchived(receipt: Receipt, given: Given) -> Reply:
    was_there = receipt.outcome == "duplicate"
    return Reply(receipt, f"{given['id']} was not archived" if was_there else f"{given['id']} is back")


unarchive = verb_command(
    "eunoe unarchive user=anna ID", "streams.unarchive", "Bring an archived memory back.", _show_unarchived
)


@command("eunoe incognito session=s1/user=anna", verb="streams.set_incognito")
def incognito(call: Call, given: Given, off: OffOption = False) -> Reply:
    """Mark a session of which nothing is kept."""
    scope = given["scope"]
    call.ask(given, on=not off, create=True)
    document = {"scope": Scope.parse(scope), "incognito": not off}
    return Reply(document, f"{scope} is kept again" if off else f"nothing of {scope} is kept")


def learned_atoms(memory: eunoe.Memory, scope: Scope, report: FormReport) -> list[Atom]:
    """The new atoms of a conversation, each out of the stream that has it."""
    missing, atoms = set(report.stored), list[Atom]()
    for stream in _compatible_scopes(memory, scope) if missing else ():
        for id in memory.admin.access_counts(stream, sorted(missing), exact=True):
            item = memory.get(stream, id, exact=True)
            atoms += [item] if isinstance(item, Atom) else []
            missing.discard(id)
        if not missing:
            break
    return atoms


def form_summary(report: FormReport) -> str:
    """What forming did, in one line."""
    counts = {
        "new": len(report.stored),
        "in review": report.in_review,
        "merged": report.merged,
        "superseded": report.superseded,
    }
    words = [f"{count:,} {name}" for name, count in (counts | {"refused": report.refused}).items() if count]
    words += [quantity(len(report.consolidated), "summary")] if report.consolidated else []
    words += [f"{len(report.failed):,} failed"] if report.failed else []
    if not report.messages and not words:
        return "nothing to form"
    return f"{quantity(report.messages, 'message')}: {', '.join(words) or 'nothing worth keeping'}"


def failure_lines(failures: Iterable[str]) -> list[str]:
    return [f"failed, and still due: {display.one_line(failure)}" for failure in failures]


def revision_reply(revision: Revision | None) -> Reply:
    """A summary that was just written, if one was."""
    if revision is None:
        return Reply(None, empty="nothing to do")
    absorbed = f", {quantity(len(revision.absorbed), 'observation')} absorbed" if revision.absorbed else ""
    return Reply(revision, revision.text, notes=[f"revision {revision.number} by {revision.author}{absorbed}"])


def _compatible_scopes(memory: eunoe.Memory, scope: Scope) -> Sequence[Scope]:
    """Scopes that contradict the conversation's in no key, those most like it first."""
    scopes = [each for each in memory.scopes() if all(scope.get(key, value) == value for key, value in each.items())]
    return sorted(scopes, key=lambda each: len(each.keys() ^ scope.keys()))[:_MAX_SEARCHED_STREAMS]


def _form_views(report: FormReport, learned: Sequence[Atom]) -> Iterable[View]:
    yield form_summary(report)
    yield from (f"new summary: {scope}" for scope in dict.fromkeys(report.consolidated))
    if others := sorted(set(report.stored) - {atom.id for atom in learned}):
        yield f"new, in other streams: {', '.join(others)}"
    for scope in dict.fromkeys(atom.scope for atom in learned):
        yield f"new in {scope}:"
        yield item_entries((atom for atom in learned if atom.scope == scope), full=True)
