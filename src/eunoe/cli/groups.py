"""Commands that stand under a name: streams, review, summaries; and corrections."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from difflib import unified_diff
from itertools import groupby
from typing import Annotated, Any, Final

import typer

import eunoe
from eunoe.cli import inputs
from eunoe.cli.command import Call, Given, MisuseError, Reply, command, verb_command
from eunoe.cli.display import Entries, Entry, Grid, Pairs, View, item_entries, quantity, shorten, when
from eunoe.cli.forming import revision_reply
from eunoe.cli.inputs import FullOption, ScopeArgument, argument
from eunoe.cli.read import more_notes
from eunoe.errors import InputError, NotFoundError
from eunoe.model.atom import Correction
from eunoe.model.scope import Scope
from eunoe.model.stream import Revision, Settings, Stream

_MAX_CELL_CHARACTERS: Final = 40
_TYPES: Final = {field.name: str(field.type) for field in fields(Settings)}
_BOOLEANS: Final = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}
_TYPE_NAMES: Final = {"bool": "true or false", "int": "a whole number", "float": "a number"}

_CHANGES_HELP: Final = "Settings; lists by comma, a long text from @FILE."
ChangesArgument = Annotated[list[str] | None, argument("[NAME=VALUE]...", _CHANGES_HELP)]


@command("eunoe streams list agent=cook")
def list_streams(
    call: Call, keys: Annotated[list[str] | None, argument("[KEY=VALUE]...", "Only with these keys.")] = None
) -> Reply:
    """List the streams: preset, what each holds, what waits."""
    streams = call.open().streams.list(**Scope.parse("/".join(keys)) if keys else {})
    rows = [
        (
            str(each.scope),
            (each.preset or "none") + ("" if each.settings.is_active else ", not active"),
            *(f"{each.facts:,}", f"{each.observations:,}", f"revision {each.revision}" if each.revision else ""),
        )
        for each in streams
    ]
    return Reply(streams, Grid(("stream", "preset", "facts", "waiting", "summary"), rows))


@command("eunoe streams show agent=cook/user=anna")
def show_stream(call: Call, scope: ScopeArgument) -> Reply:
    """Show the settings and the summary of a stream.

    What differs from its preset is marked.
    """
    memory, wanted = call.open(), Scope.parse(scope)
    stream = next((stream for stream in memory.streams.list(**wanted) if stream.scope == wanted), None)
    if stream is None:
        raise NotFoundError(f"there is no stream {wanted}: `eunoe streams` lists them, `eunoe streams set` makes one")
    return _stream_reply(stream, memory.streams.presets())


@command("eunoe streams set agent=cook/shard=recipes extraction_prompt=@recipes.txt")
def set_(
    call: Call,
    scope: ScopeArgument,
    changes: ChangesArgument = None,
    preset: Annotated[str, typer.Option("--preset", metavar="NAME", help="The preset it starts from.")] = "",
) -> Reply:
    """Change the settings of a stream, or make a new one."""
    settings = parse_settings(changes or ())
    if not settings and not preset:
        raise MisuseError("say what changes: NAME=VALUE or --preset NAME")
    memory = call.open(create=True)
    return _stream_reply(memory.streams.configure(scope, preset, **settings), memory.streams.presets())


@command("eunoe streams presets user")
def presets(call: Call, name: Annotated[str, argument("[NAME]", "One preset, with its prompts.")] = "") -> Reply:
    """Show the presets, or all settings of one."""
    known = call.open_to_look().streams.presets()
    if not name:
        names = [each for each in _TYPES if not each.endswith("_prompt")]
        rows = [(each, *(_short_text(getattr(preset, each)) for preset in known.values())) for each in names]
        hint = "with its prompts: eunoe streams presets NAME"
        return Reply(known, Grid(("", *known), rows, has_equal_columns=True), notes=[] if call.json else [hint])
    if name not in known:
        raise NotFoundError(
            f"there is no preset {name}: there are {', '.join(known)}; `eunoe streams set-preset` makes one"
        )
    return Reply(known[name], Pairs(_setting_texts(known[name])))


@command("eunoe streams set-preset team --like user owner=team consolidated_max_words=200")
def set_preset(
    call: Call,
    name: Annotated[str, argument("NAME", "A preset.")],
    changes: ChangesArgument = None,
    like: Annotated[str, typer.Option("--like", metavar="PRESET", help="Start a new one from this one.")] = "",
) -> Reply:
    """Change a preset, or make a new one."""
    changed = parse_settings(changes or ())
    if not changed and not like:
        raise MisuseError("say what changes: NAME=VALUE or --like PRESET")
    settings = call.open(create=True).streams.set_preset(name, like, **changed)
    return Reply(settings, Pairs(_setting_texts(settings)))


def parse_settings(pairs: Sequence[str]) -> dict[str, Any]:
    """Settings out of `name=value`, each read as its type asks."""
    settings: dict[str, Any] = {}
    for pair in pairs:
        name, sign, text = pair.partition("=")
        if not sign:
            raise MisuseError(f"cannot read {pair!r}: write NAME=VALUE, such as consolidation_trigger=5")
        if name not in _TYPES:
            raise InputError(f"there is no setting {name}: the settings are {', '.join(_TYPES)}")
        settings[name] = _parse_setting(name, text)
    return settings


def _parse_setting(name: str, text: str) -> str | int | float | bool | list[str]:
    kind = _TYPES[name]
    if kind == "str" and text.startswith("@"):
        with inputs.open_text(text[1:]) as file:
            return file.read().strip()
    if kind == "str":
        return text
    if kind.startswith("tuple"):
        return [part.strip() for part in text.split(",") if part.strip()]
    try:
        if kind == "bool":
            return _BOOLEANS[text.strip().lower()]
        return int(text) if kind == "int" else float(text)
    except (KeyError, ValueError):
        raise InputError(f"{name} cannot be {text!r}: it is {_TYPE_NAMES[kind]}") from None


def _stream_reply(stream: Stream, presets: dict[str, Settings]) -> Reply:
    state = {
        "stream": str(stream.scope),
        "preset": stream.preset or "none",
        "facts": f"{stream.facts:,}",
        "waiting": quantity(stream.observations, "observation"),
        "summary": f"revision {stream.revision}: {stream.summary}" if stream.revision else "none",
    }
    return Reply(stream, Pairs(state | _setting_texts(stream.settings, presets.get(stream.preset))))


def _setting_texts(settings: Settings, preset: Settings | None = None) -> dict[str, str]:
    texts = {name: _setting_text(getattr(settings, name)) for name in _TYPES}
    changed = [name for name in _TYPES if preset and getattr(settings, name) != getattr(preset, name)]
    marks = {name: f"{texts[name]}  (preset: {_short_text(getattr(preset, name))})" for name in changed}
    return texts | marks


def _setting_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ", ".join(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _short_text(value: object) -> str:
    return shorten(_setting_text(value), _MAX_CELL_CHARACTERS)


@command("eunoe review list user=anna", verb="recent", without=("within", "in_review"))
def list_review(
    call: Call,
    given: Given,
    keys: Annotated[str, argument("[SCOPE]", "Whose memory; all if none is named.")] = "",
    full: FullOption = False,
) -> Reply:
    """Show the memories that wait for review, the latest first."""
    page = call.ask(given, in_review=True, within=keys or None)
    views: list[View] = []
    for scope, items in groupby(page.items, lambda item: str(item.scope)):
        views += [f"{scope}:", item_entries(items, full=full)]
    return Reply(page, *views, notes=(*page.notes, *more_notes(page.next)), empty="nothing waits for review")


@command("eunoe review keep user=anna ID", verb="review")
def keep(
    call: Call,
    given: Given,
    undo: Annotated[bool, typer.Option("--undo", help="Let them wait again.")] = False,
) -> Reply:
    """Keep memories that wait for review.

    From then on they are recalled. `eunoe update` corrects one and keeps it, `eunoe forget` rejects it.
    """
    receipts = call.ask(given, keep=not undo)
    changed = sum(receipt.outcome != "duplicate" for receipt in receipts)
    return Reply(receipts, f"{quantity(changed, 'memory')} {'in review again' if undo else 'kept'}")


_MAX_ROW_CHARACTERS: Final = 60
_SENTENCE_END: Final = re.compile(r"(?<=[.!?…。])\s+")

OptionalNumberArgument = Annotated[int | None, argument("[N]", "The number of a revision; else the current one.")]


def _show_revisions(revisions: list[Revision], _: Given) -> Reply:
    names = ("revision", "from", "absorbed", "written", "by", "text")
    rows = [
        (
            f"{each.number} (current)" if each.current else str(each.number),
            str(each.parent) if each.parent else "",
            *(str(len(each.absorbed)), when(each.recorded), each.author, shorten(each.text, _MAX_ROW_CHARACTERS)),
        )
        for each in revisions
    ]
    return Reply(revisions, Grid(names, rows))


def _show_revision(revision: Revision, _: Given) -> Reply:
    return revision_reply(revision)


list_summaries = verb_command(
    "eunoe summaries list user=anna",
    "summaries.revisions",
    "List every revision of a summary, oldest first.",
    _show_revisions,
)


@command("eunoe summaries show user=anna 2")
def show_summary(call: Call, scope: ScopeArgument, number: OptionalNumberArgument = None) -> Reply:
    """Print the text of one revision."""
    revision = _find(_revisions(call.open(), scope), scope, number)
    return Reply(revision, revision.text)


@command("eunoe summaries diff user=anna 1 2")
def diff(
    call: Call,
    scope: ScopeArgument,
    old: Annotated[int, argument("A", "The number of a revision.")],
    new: Annotated[int, argument("B", "The number of another one.")],
) -> Reply:
    """Show what changed between two revisions, sentence by sentence."""
    revisions = _revisions(call.open(), scope)
    texts = [_find(revisions, scope, number).text.splitlines() for number in (old, new)]
    # Summaries are few long lines: a sentence is what changes.
    before, after = ([sentence for line in text for sentence in _SENTENCE_END.split(line)] for text in texts)
    lines = list(unified_diff(before, after, f"revision {old}", f"revision {new}", lineterm=""))
    return Reply(lines, "\n".join(lines), empty="they say the same")


@command("eunoe summaries lineage user=anna 2")
def lineage(call: Call, scope: ScopeArgument, number: OptionalNumberArgument = None, full: FullOption = False) -> Reply:
    """Show the memories that a revision absorbed, itself or through those it was written from."""
    memory = call.open()
    revisions = _revisions(memory, scope)
    line = _ancestors(revisions, _find(revisions, scope, number))
    items = memory.get_many(scope, [id for revision in line for id in revision.absorbed])
    document = [{"revision": revision.number, "absorbed": revision.absorbed} for revision in line]
    return Reply(document, item_entries(items, full=full))


restore = verb_command(
    "eunoe summaries restore user=anna 1",
    "summaries.restore",
    "Make an earlier revision the current one.\n\nIt becomes a new revision. What later ones absorbed waits again.",
    _show_revision,
)
write = verb_command(
    'eunoe summaries write user=anna "Anna is a cook."',
    "summaries.write",
    "Write a summary by hand, as a new revision.",
    _show_revision,
    create=True,
)


def _revisions(memory: eunoe.Memory, scope: str) -> dict[int, Revision]:
    return {revision.number: revision for revision in memory.summaries.revisions(scope)}


def _find(revisions: Mapping[int, Revision], scope: str, number: int | None) -> Revision:
    if number is None:
        number = next((revision.number for revision in revisions.values() if revision.current), 0)
    if number in revisions:
        return revisions[number]
    known = f"it has {', '.join(map(str, revisions))}" if revisions else "it has none yet"
    raise NotFoundError(f"{scope} has no {f'revision {number}' if number else 'current revision'}: {known}")


def _ancestors(revisions: Mapping[int, Revision], revision: Revision) -> list[Revision]:
    """A revision and those it was written from, oldest first."""
    line = [revision]
    while (parent := revisions.get(line[-1].parent)) is not None and parent not in line:
        line.append(parent)
    return line[::-1]


def _show_correction(made: Correction, _: Given) -> Reply:
    changed = f"{quantity(len(made.changed), 'memory')} changed; it counts in {made.scope} from now on"
    return Reply(made, _entries([made]), changed)


correct = verb_command(
    "eunoe correct user=anna ID drop",
    "corrections.add",
    "Say that a memory or message is worth keeping, is not, or is of another kind.\n\n"
    "It acts at once. From then on sentences that are like it are read so, in all conversations of the same user.",
    _show_correction,
)


@command("eunoe corrections agent=cook/user=anna")
def corrections(
    call: Call,
    scope: ScopeArgument,
    remove: Annotated[str, typer.Option("--remove", metavar="ID", help="Let this one count no more.")] = "",
) -> Reply:
    """Show the corrections of a scope, or remove one.

    Those of what a user said are kept in the stream of that user.
    """
    if remove:
        call.open().corrections.remove(scope, remove)
        return Reply({"removed": remove}, f"{remove} counts no more")
    found = call.open().corrections.list(scope)
    return Reply({"corrections": found}, _entries(found), empty="there are no corrections in this scope")


def _entries(found: list[Correction]) -> Entries:
    rows = [Entry((each.verdict, when(each.recorded)), " ".join(each.sentences), each.id) for each in found]
    return Entries(("verdict", "when"), rows)
