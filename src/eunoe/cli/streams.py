"""`eunoe streams`: which memories there are, how each is formed, and the presets they start from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eunoe.cli import inputs, output
from eunoe.cli.command import Listing, MisuseError, command
from eunoe.cli.command import Settings as Options
from eunoe.cli.options import ScopeArgument
from eunoe.errors import InputError, NotFoundError
from eunoe.model.scope import Scope
from eunoe.model.settings import Settings
from eunoe.model.stream import Stream

if TYPE_CHECKING:
    from eunoe.memory import Memory

_TYPES = {field.name: str(field.type) for field in fields(Settings)}
_TRUTH = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}

Changes = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME=VALUE]...", help="Settings; lists by comma, a long text from @FILE."),
]


def register(app: typer.Typer) -> None:
    group = typer.Typer(
        cls=Listing,
        help="Show and change how each memory is formed; without a command they are listed.",
        epilog="Example: eunoe streams user=anna",
    )
    command(group, "list", "eunoe streams list agent=cook")(list_)
    command(group, "show", "eunoe streams show agent=cook/user=anna")(show)
    command(group, "set", "eunoe streams set agent=cook/shard=recipes extraction_prompt=@recipes.txt")(set_)
    command(group, "presets", "eunoe streams presets")(presets)
    command(group, "preset", "eunoe streams preset team --like user owner=team consolidated_max_words=200")(preset)
    app.add_typer(group, name="streams")


def list_(
    settings: Options,
    keys: Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Only with these keys.")] = None,
) -> None:
    """List the streams: preset, what each holds, what waits."""
    wanted = Scope.parse("/".join(keys)) if keys else {}
    with settings.memory() as memory:
        found = memory.streams.list(**wanted)
    if settings.json:
        output.document(found)
    elif not found:
        output.say("nothing found")
    else:
        from eunoe.cli import tables

        names = ("stream", "preset", "facts", "waiting", "summary")
        tables.console().print(tables.grid(names, [_row(stream) for stream in found]))


def show(settings: Options, scope: ScopeArgument) -> None:
    """Show one stream: its settings, its summary and what waits; what differs from its preset is marked."""
    with settings.memory() as memory:
        stream = _stream(memory, Scope.parse(scope))
        preset = memory.streams.presets().get(stream.preset)
    _show_stream(settings, stream, preset)


def set_(
    settings: Options,
    scope: ScopeArgument,
    changes: Changes = None,
    preset: Annotated[str, typer.Option("--preset", metavar="NAME", help="The preset it starts from.")] = "",
) -> None:
    """Change the settings of one stream; a new one is made, so an agent gets a shard."""
    given = changes_of(changes or ())
    if not given and not preset:
        raise MisuseError("say what changes: NAME=VALUE or --preset NAME")
    with settings.memory(create=True) as memory:
        stream = memory.streams.configure(scope, preset, **given)
        start = memory.streams.presets().get(stream.preset)
    _show_stream(settings, stream, start)


def presets(settings: Options) -> None:
    """Show the kinds of streams there are, and the settings each starts with."""
    with settings.memory(create=True) as memory:
        found = memory.streams.presets()
    if settings.json:
        output.document(found)
        return
    from eunoe.cli import tables

    names = [name for name in _TYPES if not name.endswith("_prompt")]
    rows = [(name, *(_brief(getattr(one, name)) for one in found.values())) for name in names]
    tables.console().print(tables.grid(("", *found), rows, even=True))
    output.say("with its prompts: eunoe streams preset NAME")


def preset(
    settings: Options,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A kind of stream.", show_default=False)],
    changes: Changes = None,
    like: Annotated[str, typer.Option("--like", metavar="PRESET", help="Start a new one from this one.")] = "",
) -> None:
    """Change a kind of stream, or make a new one; without changes it is shown."""
    given = changes_of(changes or ())
    with settings.memory(create=True) as memory:
        chosen = memory.streams.set_preset(name, like, **given) if given or like else _preset(memory, name)
    if settings.json:
        output.document(chosen)
    else:
        _print_pairs({name: _text(value) for name, value in output.plain(chosen).items()})


def changes_of(pairs: Sequence[str]) -> dict[str, Any]:
    """Settings out of `name=value`, each read as the setting's type asks."""
    given: dict[str, Any] = {}
    for pair in pairs:
        name, sign, text = pair.partition("=")
        if not sign:
            raise MisuseError(f"cannot read {pair!r}: write NAME=VALUE, such as consolidation_trigger=5")
        if name not in _TYPES:
            raise InputError(f"there is no setting {name}: the settings are {', '.join(_TYPES)}")
        given[name] = _value(name, text)
    return given


def _value(name: str, text: str) -> Any:
    kind = _TYPES[name]
    if kind == "str":
        return _from_file(text[1:]) if text.startswith("@") else text
    if kind.startswith("tuple"):
        return [one.strip() for one in text.split(",") if one.strip()]
    try:
        return _TRUTH[text.strip().lower()] if kind == "bool" else {"int": int, "float": float}[kind](text)
    except (KeyError, ValueError):
        expected = {"bool": "true or false", "int": "a whole number", "float": "a number"}[kind]
        raise InputError(f"{name} cannot be {text!r}: it is {expected}") from None


def _from_file(name: str) -> str:
    with inputs.opened(name) as file:
        return file.read().strip()


def _stream(memory: Memory, scope: Scope) -> Stream:
    for stream in memory.streams.list(**scope):
        if stream.scope == scope:
            return stream
    raise NotFoundError(f"there is no stream {scope}: `eunoe streams` lists them, `eunoe streams set` makes one")


def _preset(memory: Memory, name: str) -> Settings:
    found = memory.streams.presets()
    if name not in found:
        raise NotFoundError(f"there is no preset {name}: there are {', '.join(found)}; NAME=VALUE or --like makes one")
    return found[name]


def _show_stream(options: Options, stream: Stream, preset: Settings | None) -> None:
    if options.json:
        output.document(stream)
        return
    state = {"stream": str(stream.scope), "preset": stream.preset or "none"}
    state |= {"facts": f"{stream.facts:,}", "waiting": output.counted(stream.observations, "observation")}
    summary = {"summary": f"revision {stream.revision}: {stream.summary}" if stream.revision else "none"}
    _print_pairs(state | summary | _settings(stream.settings, preset))


def _settings(settings: Settings, preset: Settings | None) -> dict[str, str]:
    shown = {}
    for name in _TYPES:
        value = getattr(settings, name)
        own = preset is not None and value != getattr(preset, name)
        shown[name] = f"{_text(value)}  (preset: {_brief(getattr(preset, name))})" if own else _text(value)
    return shown


def _row(stream: Stream) -> tuple[str, ...]:
    preset = stream.preset or "none"
    name = preset if stream.settings.is_active else f"{preset}, not active"
    summary = f"revision {stream.revision}" if stream.revision else ""
    return str(stream.scope), name, f"{stream.facts:,}", f"{stream.observations:,}", summary


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ", ".join(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _brief(value: object) -> str:
    text = " ".join(_text(value).split())
    return text if len(text) <= 40 else f"{text[:39].rstrip()}…"


def _print_pairs(values: Mapping[str, str]) -> None:
    from eunoe.cli import tables

    tables.console().print(tables.pairs(values))
