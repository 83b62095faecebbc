"""`eunoe streams`: which memories there are, how each is formed, and the presets they start from."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Annotated, Any, Final

import typer

from eunoe.cli import inputs
from eunoe.cli.command import Call, MisuseError, Reply, command
from eunoe.cli.display.output import quantity, shorten
from eunoe.cli.display.views import Grid, Pairs
from eunoe.cli.options import ScopeArgument, argument
from eunoe.errors import InputError, NotFoundError
from eunoe.model.scope import Scope
from eunoe.model.stream import Settings, Stream

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
def list_(
    call: Call, keys: Annotated[list[str] | None, argument("[KEY=VALUE]...", "Only with these keys.")] = None
) -> Reply:
    """List the streams: preset, what each holds, what waits."""
    streams = call.open().streams.list(**Scope.parse("/".join(keys)) if keys else {})
    return Reply(streams, Grid(("stream", "preset", "facts", "waiting", "summary"), [_row(each) for each in streams]))


@command("eunoe streams show agent=cook/user=anna")
def show(call: Call, scope: ScopeArgument) -> Reply:
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


def _row(stream: Stream) -> tuple[str, ...]:
    preset = stream.preset or "none"
    name = preset if stream.settings.is_active else f"{preset}, not active"
    summary = f"revision {stream.revision}" if stream.revision else ""
    return str(stream.scope), name, f"{stream.facts:,}", f"{stream.observations:,}", summary


def _setting_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ", ".join(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _short_text(value: object) -> str:
    return shorten(_setting_text(value), _MAX_CELL_CHARACTERS)
