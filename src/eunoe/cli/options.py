"""Arguments and options that several commands share."""

import re
from dataclasses import dataclass, fields
from typing import Annotated, Any, Final

import typer

from eunoe.cli import inputs
from eunoe.model.arguments import AtomKind, RecipeName

_JSON_FIELDS: Final = ("metadata", "where")
_RECIPE_HELP: Final = (
    "How to rank: default, thorough (slower, finds more), documents, associative, lexical, dense or rrf; or for how "
    "many milliseconds thorough may read."
)
_WHERE_HELP: Final = 'Only with this metadata: {"team": "red", "size": {"gte": 3}}.'


def argument(metavar: str, help: str) -> object:
    return typer.Argument(metavar=metavar, help=help, show_default=False)


def time_option(name: str, help: str) -> object:
    return typer.Option(name, metavar="TIME", help=f"{help} (ISO 8601)")


def repeatable_option(name: str, metavar: str, help: str) -> object:
    return typer.Option(name, metavar=metavar, help=f"{help} May be repeated.")


def choice_option(name: str, help: str) -> object:
    """A closed choice that the memory checks, as it does for every caller."""
    return typer.Option(name, metavar=name.strip("-").upper(), parser=str, help=help)


def _parse_recipe(value: str | int) -> str | int:
    """A number is a time; anything else the memory checks. (Typer knows no type that is either.)"""
    return int(value) if re.fullmatch("[0-9]{1,9}", str(value)) else value


ScopeArgument = Annotated[str, argument("SCOPE", "Whose memory: key=value, several joined by /.")]
IdArgument = Annotated[str, argument("ID", "The id of a memory.")]
ExactOption = Annotated[bool, typer.Option("--exact", help="Only the scope itself, not what lies within a user's.")]
FullOption = Annotated[bool, typer.Option("--full", help="Show every text whole.")]
OffOption = Annotated[bool, typer.Option("--off", help="Take the mark off again.")]
KindsOption = Annotated[list[str] | None, repeatable_option("--kind", "KIND", "Only message, fact or observation.")]
LabelsOption = Annotated[list[str] | None, repeatable_option("--label", "LABEL", "Only with this label.")]
RecipeOption = Annotated[
    RecipeName, typer.Option("--recipe", metavar="RECIPE", parser=_parse_recipe, help=_RECIPE_HELP)
]


@dataclass(frozen=True, slots=True)
class OptionGroup:
    """Options named as the arguments of the verb that they are for."""

    def as_arguments(self) -> dict[str, Any]:
        """Those that were given, as the verb takes them."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        given = {name: value for name, value in values.items() if value is not None}
        return given | {name: inputs.parse_object(given[name], f"--{name}") for name in _JSON_FIELDS if name in given}


@dataclass(frozen=True, slots=True)
class AtomOptions(OptionGroup):
    """What can be said about an atom beside its text."""

    kind: Annotated[AtomKind | None, choice_option("--kind", "fact or observation.")] = None
    label: Annotated[str | None, typer.Option("--label", help="What it states, such as preference.")] = None
    files: Annotated[list[str] | None, repeatable_option("--file", "PATH", "A file it is about.")] = None
    pages: Annotated[list[str] | None, repeatable_option("--page", "PAGE", "A page it is about.")] = None
    people: Annotated[list[str] | None, repeatable_option("--person", "NAME", "Somebody it is about.")] = None
    source: Annotated[list[str] | None, repeatable_option("--source", "ID", "A message it rests on.")] = None
    source_scopes: Annotated[
        list[str] | None, repeatable_option("--source-scope", "SCOPE", "Another scope that --source names.")
    ] = None
    time: Annotated[str | None, time_option("--time", "When it happened")] = None
    valid_from: Annotated[str | None, time_option("--valid-from", "Since when it is true")] = None
    valid_to: Annotated[str | None, time_option("--valid-to", "Until when it is true")] = None
    pinned: Annotated[bool | None, typer.Option("--pinned/--not-pinned", help="Never archive it.")] = None
    metadata: Annotated[str | None, typer.Option("--metadata", metavar="JSON", help="To keep with it.")] = None


@dataclass(frozen=True, slots=True)
class FilterOptions(OptionGroup):
    """What may be recalled at all."""

    kinds: KindsOption = None
    labels: LabelsOption = None
    since: Annotated[str | None, time_option("--since", "From this moment on")] = None
    until: Annotated[str | None, time_option("--until", "Before this moment, itself not included")] = None
    files: Annotated[list[str] | None, repeatable_option("--file", "PATH", "Only about this file.")] = None
    people: Annotated[list[str] | None, repeatable_option("--person", "NAME", "Only about this person.")] = None
    sessions: Annotated[list[str] | None, repeatable_option("--session", "ID", "Only from this session.")] = None
    speakers: Annotated[list[str] | None, repeatable_option("--speaker", "NAME", "Only said by this one.")] = None
    where: Annotated[str | None, typer.Option("--where", metavar="JSON", help=_WHERE_HELP)] = None
    as_of: Annotated[str | None, time_option("--as-of", "What was true then")] = None
    known_at: Annotated[str | None, time_option("--known-at", "What the store knew then")] = None
