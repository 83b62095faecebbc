"""Commands that change what is stored: observe, remember, update, pin, retract, expire, forget."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Annotated, Any, Final, TypeVar

import typer

import eunoe
from eunoe.cli import display, inputs
from eunoe.cli.command import Call, Given, MisuseError, Reply, command, confirm
from eunoe.cli.display import quantity
from eunoe.cli.inputs import OffOption, ScopeArgument, YesOption, argument
from eunoe.errors import InputError
from eunoe.model.arguments import shorten
from eunoe.model.atom import parse_item
from eunoe.model.message import Message, parse_message
from eunoe.model.result import ForgetReport, Receipt
from eunoe.model.scope import Scope

T = TypeVar("T")

_PATIENCE_SECONDS: Final = 2.0
"""Of background work, before a user is told what is going on."""
_MAX_SPEAKER_CHARACTERS: Final = 60
_MAX_IDS_SHOWN: Final = 10
_ROLES: Final = ("user", "assistant", "system", "tool")
_ALIASES: Final = {"speaker": ("name",), "time": ("timestamp", "created_at")}
_OUTCOMES: Final = {
    "stored": ("stored", "stored"),
    "superseded": ("superseded", "put in place of others"),
    "duplicate": ("duplicates", "known already"),
    "forgotten": ("forgotten", "refused (forgotten before)"),
    "conflict": ("conflicts", "refused (id taken by other words)"),
    "ignored": ("ignored", "not kept (incognito)"),
}
"""Each outcome of a write, as its count is called in JSON and in words."""


@command('eunoe observe user=anna "I am allergic to nuts."', asks_llm=True)
def observe(
    call: Call,
    scope: ScopeArgument,
    text: Annotated[str, argument("[TEXT]", "What was said, or - for standard input.")] = "",
    file: Annotated[str, typer.Option("--file", help="A file of messages, or - for standard input.")] = "",
    role: Annotated[
        str, typer.Option("--role", help="The role of messages that name none; else read from the speaker.")
    ] = "",
    speaker: Annotated[str, typer.Option("--speaker", help="The speaker of messages that name none.")] = "",
    session: Annotated[str, typer.Option("--session", help="The session of messages that name none.")] = "",
    time: Annotated[str | None, typer.Option("--time", help="The time of messages that name none (ISO 8601).")] = None,
    format: Annotated[str, typer.Option("--format", help=f"One of {', '.join(inputs.FORMATS)}.")] = "auto",
    speakers: Annotated[bool, typer.Option("--speakers", help="Plain lines read 'Name: text'.")] = False,
    form: Annotated[bool, typer.Option("--form/--no-form", help="Form memories if enough was said.")] = True,
) -> Reply:
    """Append messages to the log, word for word.

    A file or standard input holds JSON Lines, a JSON array, or plain text with one message a line.
    """
    if bool(text) == bool(file):
        raise MisuseError("give either TEXT (or - for standard input) or --file FILE")
    given = {"role": role, "speaker": speaker, "session": session, "time": time}
    defaults = {key: value for key, value in given.items() if value}
    memory = call.open(create=True, form="due" if form else False)
    source = file or ("-" if text == "-" else "")
    if source:
        parse = partial(parse_line, speakers, defaults)
        receipts = _store_file(source, format, parse, _message_batches, partial(memory.observe, scope))
    else:
        receipts = memory.observe(scope, [{**defaults, "text": text}])
        if inputs.is_file(text):
            display.say(f"{text!r} was stored as a text; `eunoe observe {scope} --file {text}` reads the file")
    if not memory.flush(_PATIENCE_SECONDS):
        display.say("stored; memories are being formed (Ctrl-C leaves the rest for later)")
        with suppress(KeyboardInterrupt):
            memory.flush()
    return _reply(memory, receipts, "message")


@command('eunoe remember user=anna "Anna prefers tea." --label preference', verb="remember")
def remember(
    call: Call,
    given: Given,
    text: Annotated[str, argument("[TEXT]", "What to keep.")] = "",
    from_: Annotated[str, typer.Option("--from", metavar="FILE", help="Many at once: JSON Lines, array, text.")] = "",
) -> Reply:
    """Keep a fact or an observation."""
    if bool(text) == bool(from_):
        raise MisuseError("give either TEXT or --from FILE")
    memory = call.open(create=True)
    write = partial(memory.remember_many, given.pop("scope"), again=given.pop("again"), replace=given.pop("replace"))
    if text:
        receipts = write([{**given, "text": text}])
        return _reply(memory, receipts, "memory", code=0 if receipts[0] else 1)

    def check(value: Any) -> Any:
        own = {"text": value} if isinstance(value, str) else value
        item = given | own if isinstance(own, dict) else own
        parse_item(item)
        return item

    return _reply(memory, _store_file(from_, "auto", check, _batches, write), "memory")


@command('eunoe update user=anna ID "Anna prefers coffee."', verb="update")
def update(call: Call, given: Given) -> Reply:
    """Supersede a memory with a new one.

    The old one stays in its history. What is not named stays as it was.
    """
    if given.keys() <= {"scope", "id"}:
        raise MisuseError("say what changes: a new TEXT or an option")
    receipt = call.ask(given)
    return _reply(call.open(), [receipt], "memory", code=0 if receipt else 1)


@command("eunoe pin user=anna ID", verb="pin")
def pin(call: Call, given: Given, off: OffOption = False) -> Reply:
    """Mark a memory as one that is never archived."""
    receipt = call.ask(given, pinned=not off)
    state = "not pinned" if off else "pinned"
    was_so = receipt.outcome == "duplicate"
    return Reply(receipt, f"{given['id']} was {state} already" if was_so else f"{given['id']} is {state} now")


@command("eunoe retract user=anna ID", verb="retract")
def retract(call: Call, given: Given, off: OffOption = False) -> Reply:
    """Take messages back that were edited or deleted where they were said.

    They are no longer recalled, and stay in the log.
    """
    return _changed(call.ask(given, retracted=not off), "message", "said again" if off else "retracted")


@command("eunoe expire user=anna ID --at 2024-06-01", verb="expire")
def expire(
    call: Call,
    given: Given,
    at: Annotated[str | None, typer.Option("--at", metavar="TIME", help="Until when (ISO 8601).")] = None,
    never: Annotated[bool, typer.Option("--never", help="They hold for ever.")] = False,
) -> Reply:
    """Set until when memories hold, in place and without a new version."""
    if bool(at) == never:
        raise MisuseError("give either --at TIME or --never")
    return _changed(call.ask(given, at=at), "memory", f"true until {at}" if at else "true for ever")


def _changed(receipts: Sequence[Receipt], noun: str, state: str) -> Reply:
    changed = sum(receipt.outcome != "duplicate" for receipt in receipts)
    return Reply(receipts, f"{quantity(changed, noun)} {state}")


@command("eunoe forget user=anna --person Bruno --verify", verb="forget")
def forget(
    call: Call,
    given: Given,
    scope: ScopeArgument,
    ids: Annotated[list[str] | None, argument("[ID]...", "Memories to forget.")] = None,
    words: Annotated[str, typer.Option("--words", help="What has all these words. It is shown before.")] = "",
    yes: YesOption = False,
) -> Reply:
    """Remove memories for good: by id, by their words, about a person, or all of a scope."""
    person, exact, verify = given.get("person", "").strip(), given["exact"], given["verify"]
    if sum((bool(ids), bool(words.strip()), bool(person), given["everything"])) != 1:
        raise MisuseError("say what to forget: IDs, --words WORDS, --person NAME, or --everything")
    if given["mentions"] and not person:
        raise MisuseError("--mentions goes with --person")
    if words.strip():
        ids = _find_words(call.open(), scope, words, exact)
        if not ids:
            return Reply(ForgetReport(), f"nothing in {scope} has the words {words!r}", is_empty=True)
    if not yes and not confirm(f"Forget {_selection_text(scope, exact, ids or [], person, given['mentions'])}"):
        display.say("nothing was forgotten")
        raise typer.Exit(1)
    report = call.ask(given, scope=scope, ids=ids or ())
    code = 1 if verify and not report.verified else 0
    lines = "\n".join(_forget_lines(report, scope, person))
    return Reply(report, lines, notes=report.notes, is_empty=not report.total, code=code)


def _store_file(
    name: str,
    format: str,
    parse: Callable[[Any], T],
    batches: Callable[[Iterable[T]], Iterator[list[T]]],
    write: Callable[[list[T]], list[Receipt]],
) -> list[Receipt]:
    receipts: list[Receipt] = []
    try:
        with inputs.open_text(name) as file, display.progress("storing") as advance:
            for batch in batches(inputs.read_values(name, file, format, parse)):
                receipts += write(batch)
                advance(len(receipts))
    except InputError as error:
        stored = f"the first {len(receipts):,} were stored" if receipts else "nothing was stored"
        raise InputError(f"{error}; {stored}") from None
    return receipts


def parse_line(speakers: bool, defaults: dict[str, str], value: Any) -> Message:
    """Read a message as a file has it. The defaults fill in what it does not say."""
    fields = (_split_speaker(value) if speakers else {"text": value}) if isinstance(value, str) else value
    if not isinstance(fields, dict):
        return parse_message(fields)
    names = {key: (key, *_ALIASES.get(key, ())) for key in defaults}
    return parse_message(fields | {key: defaults[key] for key in defaults if not any(map(fields.get, names[key]))})


def _split_speaker(line: str) -> dict[str, str]:
    name, colon, text = line.partition(":")
    if not colon or not name.strip() or len(name) > _MAX_SPEAKER_CHARACTERS:
        return {"text": line}
    who = {"role": name.strip().lower()} if name.strip().lower() in _ROLES else {"speaker": name.strip()}
    return {**who, "text": text.strip()}


def _batches(items: Iterable[T]) -> Iterator[list[T]]:
    rest = iter(items)
    while batch := list(islice(rest, inputs.BATCH_SIZE)):
        yield batch


def _message_batches(messages: Iterable[Message]) -> Iterator[list[Message]]:
    """Batches cut where no message loses its identity.

    Without an id a message is recognised by its words and time, equal ones counted within a batch, so a batch does not
    end inside a moment. Without a time too, it is recognised by its place in the batch: from there on all stay
    together.
    """
    batch: list[Message] = []
    goes_by_place = False
    for message in messages:
        is_full = len(batch) >= inputs.BATCH_SIZE
        if is_full and not goes_by_place and (message.id or message.time != batch[-1].time):
            yield batch
            batch = []
        goes_by_place = goes_by_place or not (message.id or message.time)
        batch.append(message)
    if batch:
        yield batch


def _reply(memory: eunoe.Memory, receipts: Sequence[Receipt], noun: str, code: int = 0) -> Reply:
    unembedded = sum(not receipt.embedded for receipt in receipts)
    if unembedded:
        memory.flush(_PATIENCE_SECONDS)
        unembedded = min(unembedded, memory.status().unembedded)
    counts = Counter[str](receipt.outcome for receipt in receipts)
    totals = {name: counts[outcome] for outcome, (name, _) in _OUTCOMES.items()}
    document = {**totals, "unembedded": unembedded, "receipts": receipts}
    lines = [_receipt_line(receipts[0])] if len(receipts) == 1 else list(_count_lines(receipts, counts, noun))
    if unembedded:
        lines.append(f"{unembedded:,} without a vector yet; found by their words until `eunoe reembed` makes it")
    return Reply(document, "\n".join(lines), code=1 if counts["conflict"] else code)


def _count_lines(receipts: Sequence[Receipt], counts: Counter[str], noun: str) -> Iterator[str]:
    totals = [f"{counts[outcome]:,} {words}" for outcome, (_, words) in _OUTCOMES.items() if counts[outcome]]
    yield f"{quantity(len(receipts), noun)}: {', '.join(totals) or 'nothing to do'}"
    taken = [receipt.id for receipt in receipts if receipt.outcome == "conflict"]
    if taken:
        yield f"ids that stand for other words already: {_id_list(taken)}"


def _receipt_line(receipt: Receipt) -> str:
    return {
        "stored": f"stored as {receipt.id}",
        "duplicate": f"known already as {receipt.id}",
        "superseded": f"stored as {receipt.id} in place of {receipt.closed}",
        "forgotten": "refused: it was forgotten on purpose (`remember --again` keeps a fact all the same)",
        "conflict": f"refused: {receipt.id} stands for other words already",
        "ignored": "not kept: the session is incognito",
    }[receipt.outcome]


def _find_words(memory: eunoe.Memory, scope: str, words: str, exact: bool) -> list[str]:
    """Show what has the words and, apart, what is merely alike; return the ids of the first."""
    from eunoe.memory.pages import find_words, full_id  # loads the engine

    owner = Scope.of(scope)
    found, alike = find_words(memory, owner, words, exact=exact)
    for item in found:
        display.say(f"{item.id}  {item.scope}  {shorten(item.text)}")
    for hit in alike:
        display.say(f"merely alike, not forgotten: {hit.id}  {hit.scope}  {shorten(hit.text)}")
    return [full_id(item, owner) for item in found]


def _selection_text(scope: str, exact: bool, ids: list[str], person: str, mentions: bool) -> str:
    """What is to be forgotten, and that a user's scope means more than itself."""
    where = f"{scope} and everything within" if "user" in Scope.parse(scope) and not exact else scope
    if ids:
        return f"{quantity(len(ids), 'memory')} in {where} and all that rests on them"
    if person:
        said = "said, is noted about them or mentions them" if mentions else "said or is noted about them"
        return f"what {person} {said} in {where}"
    return f"everything in {where}"


def _forget_lines(report: ForgetReport, scope: str, person: str) -> Iterator[str]:
    counts = {"message": len(report.messages), "memory": len(report.atoms), "vector": report.vectors}
    yield f"forgotten: {', '.join(quantity(count, noun) for noun, count in counts.items())}"
    if report.mentions:
        verb = "mentions" if len(report.mentions) == 1 else "mention"
        yield f"{quantity(len(report.mentions), 'other')} still {verb} the name: {_id_list(report.mentions)}"
    yield from (f"the summary of {each} still mentions the name" for each in report.summaries)
    if report.mentions or report.summaries:
        yield f"to remove that too: eunoe forget {shlex.join([scope, '--person', person, '--mentions'])}"
    if report.verified is False and (report.mentions or report.summaries) and not (report.traces or report.held_by):
        yield "verified: what was forgotten left no trace, but the name is still there"
    for each, ids in report.held_by.items():
        yield f"{_id_list(ids)} in {each} {'stays and still says it' if len(ids) == 1 else 'stay and still say it'}"
        yield f"to forget that too: eunoe forget {shlex.join([str(each), *ids])}"
    if report.verified:
        yield "verified: no table, file, index or cache holds a trace"
    yield from (f"not gone: {trace}" for trace in report.traces)
    yield from (f"not searched: {place}" for place in report.unsearched)


def _id_list(ids: Sequence[str]) -> str:
    return ", ".join(ids[:_MAX_IDS_SHOWN]) + (" …" if len(ids) > _MAX_IDS_SHOWN else "")
