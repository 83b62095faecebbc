"""Commands that put something in: observe, remember, update, pin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eunoe.cli import inputs, output
from eunoe.cli.command import MisuseError, Settings, command
from eunoe.cli.options import IdArgument, ScopeArgument, many_option, moment_option
from eunoe.errors import InputError
from eunoe.model.message import Message
from eunoe.model.report import Receipt

if TYPE_CHECKING:
    from eunoe.memory import Memory

# Seconds of forming after which a user wants to know what is going on.
_PATIENCE = 2.0
ROLES = ("user", "assistant", "system", "tool")

Files = Annotated[list[str] | None, many_option("--file", "PATH", "A file it is about.")]
Pages = Annotated[list[str] | None, many_option("--page", "PAGE", "A page it is about.")]
People = Annotated[list[str] | None, many_option("--person", "NAME", "Somebody it is about.")]
Sources = Annotated[list[str] | None, many_option("--source", "ID", "A message it rests on.")]
Time = Annotated[str | None, moment_option("--time", "When it happened")]
ValidFrom = Annotated[str | None, moment_option("--valid-from", "Since when it is true")]
ValidTo = Annotated[str | None, moment_option("--valid-to", "Until when it is true")]
Metadata = Annotated[str | None, typer.Option("--metadata", metavar="JSON", help="A JSON object to keep with it.")]


def register(app: typer.Typer) -> None:
    command(app, "observe", "eunoe observe user=anna chat.jsonl", models=True)(observe)
    command(app, "remember", 'eunoe remember user=anna "Anna prefers tea." --label preference')(remember)
    command(app, "update", 'eunoe update user=anna ID "Anna prefers coffee."')(update)
    command(app, "pin", "eunoe pin user=anna ID")(pin)


def observe(
    settings: Settings,
    scope: ScopeArgument,
    file: Annotated[str, typer.Argument(metavar="[FILE]", help="A file, or - for standard input.")] = "",
    text: Annotated[str | None, typer.Option("--text", help="One message, instead of a file.")] = None,
    role: Annotated[str, typer.Option("--role", help="The role of messages that name none.")] = "user",
    speaker: Annotated[str, typer.Option("--speaker", help="The speaker of messages that name none.")] = "",
    session: Annotated[str, typer.Option("--session", help="The session of messages that name none.")] = "",
    time: Annotated[str | None, moment_option("--time", "The time of messages that name none")] = None,
    format: Annotated[str, typer.Option("--format", help=f"One of {', '.join(inputs.FORMATS)}.")] = "auto",
    speakers: Annotated[bool, typer.Option("--speakers", help="Plain lines read 'Name: text'.")] = False,
    form: Annotated[bool, typer.Option("--form/--no-form", help="Form memories if enough was said.")] = True,
) -> None:
    """Append messages to the log, word for word: JSON Lines, a JSON array, or plain text, one message a line."""
    if (text is None) == (not file):
        raise MisuseError("give either a FILE (or - for standard input) or --text")
    given = {"role": role, "speaker": speaker, "session": session, "time": time}
    defaults = {key: value for key, value in given.items() if value}
    with settings.memory(create=True, form=form) as memory:
        if text is not None:
            receipts = memory.observe(scope, [{**defaults, "text": text}])
        else:
            receipts = _observe_file(memory, scope, file, format, speakers, defaults)
        _form_due(memory)
        lacking = _lacking(memory, receipts)
    _report(settings, receipts, lacking, "message")


def remember(
    settings: Settings,
    scope: ScopeArgument,
    text: Annotated[str, typer.Argument(metavar="[TEXT]", help="What to keep.", show_default=False)] = "",
    from_: Annotated[str, typer.Option("--from", metavar="FILE", help="Many at once: JSON Lines, array, text.")] = "",
    kind: Annotated[str, typer.Option("--kind", help="fact or observation.")] = "fact",
    label: Annotated[str, typer.Option("--label", help="What sort of thing it is, such as preference.")] = "",
    file: Files = None,
    page: Pages = None,
    person: People = None,
    source: Sources = None,
    time: Time = None,
    valid_from: ValidFrom = None,
    valid_to: ValidTo = None,
    pinned: Annotated[bool, typer.Option("--pinned", help="No clean-up may take it.")] = False,
    metadata: Metadata = None,
    id: Annotated[str, typer.Option("--id", help="An id of your own.")] = "",
    again: Annotated[bool, typer.Option("--again", help="Keep it even if it was forgotten before.")] = False,
) -> None:
    """Keep a fact or an observation; says so if it was known already."""
    if bool(text) == bool(from_):
        raise MisuseError("give either TEXT or --from FILE")
    one: dict[str, Any] = {
        "kind": kind,
        "label": label,
        "files": file,
        "pages": page,
        "people": person,
        "source": source,
    }
    one |= {"time": time, "valid_from": valid_from, "valid_to": valid_to, "pinned": pinned, "id": id}
    one["metadata"] = inputs.json_object(metadata, "--metadata") if metadata else None
    given = {key: value for key, value in one.items() if value}
    with settings.memory(create=True) as memory:
        if from_:
            receipts = _remember_file(memory, scope, from_, given, again)
        else:
            receipts = memory.remember_many(scope, [{**given, "text": text}], again=again)
        lacking = _lacking(memory, receipts)
    _report(settings, receipts, lacking, "memory")
    if not from_ and not receipts[0]:
        raise typer.Exit(1)


def update(
    settings: Settings,
    scope: ScopeArgument,
    id: IdArgument,
    text: Annotated[str | None, typer.Argument(metavar="[TEXT]", help="What is true now.", show_default=False)] = None,
    kind: Annotated[str | None, typer.Option("--kind", help="fact or observation.")] = None,
    label: Annotated[str | None, typer.Option("--label", help="Its new label.")] = None,
    file: Files = None,
    page: Pages = None,
    person: People = None,
    source: Sources = None,
    time: Time = None,
    valid_from: ValidFrom = None,
    valid_to: ValidTo = None,
    pinned: Annotated[bool | None, typer.Option("--pinned/--not-pinned", help="No clean-up may take it.")] = None,
    metadata: Metadata = None,
) -> None:
    """Put a new memory in the place of an old one, which stays readable; what is not named stays as it was."""
    given: dict[str, Any] = {"kind": kind, "label": label, "files": file, "pages": page, "people": person}
    given |= {"source": source, "time": time, "valid_from": valid_from, "valid_to": valid_to, "pinned": pinned}
    given["metadata"] = inputs.json_object(metadata, "--metadata") if metadata else None
    changes = {key: value for key, value in given.items() if value is not None}
    if text is None and not changes:
        raise MisuseError("say what changes: a new TEXT or an option")
    with settings.memory() as memory:
        receipt = memory.update(scope, id, text, **changes)
        lacking = _lacking(memory, [receipt])
    _report(settings, [receipt], lacking, "memory")
    if not receipt:
        raise typer.Exit(1)


def pin(
    settings: Settings,
    scope: ScopeArgument,
    id: IdArgument,
    off: Annotated[bool, typer.Option("--off", help="Take the mark off again.")] = False,
) -> None:
    """Mark a memory as one that no clean-up may take."""
    with settings.memory() as memory:
        receipt = memory.pin(scope, id, not off)
    if settings.json:
        output.document(receipt)
        return
    state = "not pinned" if off else "pinned"
    typer.echo(f"{id} was {state} already" if receipt.outcome == "duplicate" else f"{id} is {state} now")


def _form_due(memory: Memory) -> None:
    """Waits for what forms behind our back; whoever does not want to wait leaves the rest for later."""
    if not memory.flush(_PATIENCE):
        output.say("stored; memories are being formed (Ctrl-C leaves the rest for later)")
        with suppress(KeyboardInterrupt):
            memory.flush()


def _observe_file(
    memory: Memory, scope: str, name: str, format: str, speakers: bool, defaults: dict[str, str]
) -> list[Receipt]:
    from eunoe.model.message import parse_message

    receipts: list[Receipt] = []
    with _counting(receipts), inputs.opened(name) as file, output.progress("observing") as advance:
        found = inputs.values(name, file, format)
        shaped = ((place, _message(value, speakers, defaults)) for place, value in found)
        for batch in _parts(inputs.checked(shaped, parse_message)):
            receipts += memory.observe(scope, batch)
            advance(len(receipts))
    return receipts


def _remember_file(memory: Memory, scope: str, name: str, defaults: dict[str, Any], again: bool) -> list[Receipt]:
    from eunoe.model.atom import parse_item

    def check(value: Any) -> Any:
        parse_item(value)
        return value

    receipts: list[Receipt] = []
    with _counting(receipts), inputs.opened(name) as file, output.progress("remembering") as advance:
        found = inputs.values(name, file, "auto")
        shaped = ((place, _item(value, defaults)) for place, value in found)
        for batch in inputs.batches(inputs.checked(shaped, check)):
            receipts += memory.remember_many(scope, batch, again=again)
            advance(len(receipts))
    return receipts


@contextmanager
def _counting(receipts: list[Receipt]) -> Iterator[None]:
    """Lets an error say how far the reading came."""
    try:
        yield
    except InputError as error:
        kept = f"the first {len(receipts):,} were stored" if receipts else "nothing was stored"
        raise InputError(f"{error}; {kept}") from None


def _message(value: Any, speakers: bool, defaults: dict[str, str]) -> Any:
    if isinstance(value, str):
        return {**defaults, **_spoken(value)} if speakers else {**defaults, "text": value}
    if not isinstance(value, dict):
        return value
    aliases = {"speaker": ("name",), "time": ("timestamp", "created_at")}
    missing = {
        key: default
        for key, default in defaults.items()
        if not any(value.get(name) for name in (key, *aliases.get(key, ())))
    }
    return {**value, **missing}


def _spoken(line: str) -> dict[str, str]:
    name, colon, text = line.partition(":")
    if not colon or not name.strip() or len(name) > 60:
        return {"text": line}
    who = {"role": name.strip().lower()} if name.strip().lower() in ROLES else {"speaker": name.strip()}
    return {**who, "text": text.strip()}


def _item(value: Any, defaults: dict[str, Any]) -> Any:
    if isinstance(value, str):
        return {**defaults, "text": value}
    return {**defaults, **value} if isinstance(value, dict) else value


def _parts(messages: Iterable[Message]) -> Iterator[list[Message]]:
    """Batches cut where no message loses its identity.

    Without an id a message is known again by its words and time, equal ones counted within a batch, so a batch does not
    end inside a moment. Without a time too, it is known by its place in the batch: from there on all stay together.
    """
    batch: list[Message] = []
    whole = False
    for message in messages:
        if len(batch) >= inputs.BATCH and not whole and (message.id or message.time != batch[-1].time):
            yield batch
            batch = []
        whole = whole or not (message.id or message.time)
        batch.append(message)
    if batch:
        yield batch


def _lacking(memory: Memory, receipts: list[Receipt]) -> int:
    """How many have no vector once those made behind the reply have had their time."""
    waiting = sum(not receipt.embedded for receipt in receipts)
    if not waiting:
        return 0
    memory.flush(_PATIENCE)
    return min(waiting, memory.status().unembedded)


def _report(settings: Settings, receipts: list[Receipt], waiting: int, noun: str) -> None:
    counts = Counter[str](receipt.outcome for receipt in receipts)
    if settings.json:
        names = {"stored": "stored", "duplicate": "duplicates", "superseded": "superseded"}
        names |= {"forgotten": "forgotten", "conflict": "conflicts", "ignored": "ignored"}
        totals = {name: counts[outcome] for outcome, name in names.items()}
        output.document({**totals, "unembedded": waiting, "receipts": receipts})
    else:
        for line in _words(receipts, counts, waiting, noun):
            typer.echo(line)
    if counts["conflict"]:
        raise typer.Exit(1)


def _words(receipts: list[Receipt], counts: Counter[str], waiting: int, noun: str) -> Iterator[str]:
    if len(receipts) == 1:
        yield _one(receipts[0])
    else:
        plural = "messages" if noun == "message" else "memories"
        yield f"{len(receipts):,} {plural}: {', '.join(_totals(counts)) or 'nothing to do'}"
        taken = [receipt.id for receipt in receipts if receipt.outcome == "conflict"]
        if taken:
            yield f"ids that stand for other words already: {', '.join(taken[:10])}{' …' if len(taken) > 10 else ''}"
    if waiting:
        yield f"{waiting:,} without a vector yet; found by their words until `eunoe re-embed` makes it"


def _totals(counts: Counter[str]) -> Iterable[str]:
    words = {
        "stored": "stored",
        "superseded": "put in place of others",
        "duplicate": "known already",
        "forgotten": "refused (forgotten before)",
        "conflict": "refused (id taken by other words)",
        "ignored": "not kept (incognito)",
    }
    return [f"{counts[outcome]:,} {said}" for outcome, said in words.items() if counts[outcome]]


def _one(receipt: Receipt) -> str:
    return {
        "stored": f"stored as {receipt.id}",
        "duplicate": f"known already as {receipt.id}",
        "superseded": f"stored as {receipt.id} in place of {receipt.closed}",
        "forgotten": "refused: it was forgotten on purpose (`remember --again` keeps a fact all the same)",
        "conflict": f"refused: {receipt.id} stands for other words already",
        "ignored": "not kept: the session is incognito",
    }[receipt.outcome]
