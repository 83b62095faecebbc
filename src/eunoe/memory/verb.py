"""A verb is declared once: by its method on `Memory` or on one of its groups, and by `verb` above it.

The method has the signature, the types, the documentation and the check of its arguments. `verb` says which right it
takes and where a server answers it. The rest follows: the awaited and the bound memories (`make faces` writes them),
the remote memory, the server's routes and its OpenAPI document, the arguments of tools and commands, the audit log.
"""

from __future__ import annotations

import inspect
import textwrap
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from inspect import Parameter
from typing import Any, Final, Literal, TypeVar, Union, Unpack, get_args, get_origin, get_type_hints

from eunoe.model.arguments import RecipeName, Right, TimeLike
from eunoe.model.message import MessageLike
from eunoe.model.result import Lease
from eunoe.model.scope import ScopeLike, Scopes

F = TypeVar("F", bound=Callable[..., Any])

VERBS: dict[str, Verb] = {}
"""All of them, by their names: "expire", "streams.configure". In the order in which they are declared."""
STEPS: dict[str, Verb] = {}
"""The same by the names of their steps, as the engine has them: "expire", "streams_configure"."""
REQUIRED: Final = Parameter.empty
"""The default of an argument that must be given."""

# fmt: off
ArgumentKind = Literal[
    "scope", "scopes", "time", "text", "texts", "flag", "count", "number", "choice", "choices", "messages", "items",
    "mapping", "recipe", "vector", "vectors", "lease", "other",
]
# fmt: on
"""In which form an argument is given: what a command line or a JSON Schema has to know of it."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a verb."""

    name: str
    kind: ArgumentKind
    default: Any = REQUIRED
    may_be_none: bool = False
    choices: tuple[str, ...] = ()
    """Of the kinds "choice" and "choices"."""
    is_positional: bool = False
    """Whether it may be given without its name."""
    help: str = ""

    @property
    def is_required(self) -> bool:
        return self.default is REQUIRED


@dataclass(frozen=True, kw_only=True, eq=False)
class Verb:
    """What a verb is called, may do and takes, for whoever offers it in another form."""

    name: str
    function: Callable[..., Any]
    right: Right
    route: str = ""
    """The method and the path of the server's answer; empty if it has none, or one that is written by hand."""
    answer: str = ""
    """The field of that answer with what the verb returns; empty if that is the whole answer."""
    settings: bool = False
    """Whether its further keywords stand in a field `settings` there."""
    paged: bool = False
    """Whether its list comes in pages there."""
    repeatable: bool = False
    """Whether a request that was lost may be sent again: because it only reads."""
    keyed: bool = False
    """Whether it may be sent again because it carries an Idempotency-Key."""
    slow: bool = False
    """Whether it may wait for a language model, or for the whole store."""
    changes: bool = True
    """Whether it changes what is remembered, so that a watched memory tells of it."""
    whole: bool = False
    """Whether it is about the whole store, which a restricted memory may not touch."""

    @property
    def group(self) -> str:
        """Such as "streams"; empty for the everyday verbs."""
        return self.name.rpartition(".")[0]

    @property
    def step(self) -> str:
        """The name under which the engine has its steps."""
        return self.name.replace(".", "_")

    @property
    def is_scoped(self) -> bool:
        return "scope" in self.function.__annotations__

    @cached_property
    def summary(self) -> str:
        """What it does, in one sentence or two."""
        return " ".join((inspect.getdoc(self.function) or "").partition("\n\n")[0].split())

    @cached_property
    def about(self) -> str:
        """What else its documentation says, without the arguments and the examples."""
        paragraphs = (inspect.getdoc(self.function) or "").split("\n\n")[1:]
        return "\n\n".join(each for each in paragraphs if not each.startswith(("Args:", ">>>", "    ")))

    @cached_property
    def returns(self) -> Any:
        """The type of what it returns."""
        return self._types["return"]

    @cached_property
    def keywords(self) -> str:
        """The name under which it takes further keywords of any name; empty if it takes none."""
        return next((each.name for each in self._parameters if _is_open(each, self._types[each.name])), "")

    @cached_property
    def arguments(self) -> Mapping[str, Argument]:
        """What it takes, by name. What only a caller in this process can give is left out: functions, open files."""
        return {each.name: each for each in self._arguments()}

    def _arguments(self) -> Iterator[Argument]:
        help = {**_HELP, **_read_help(inspect.getdoc(self.function) or "")}
        for parameter in self._parameters:
            kind, name = self._types[parameter.name], parameter.name
            if get_origin(kind) is Unpack:
                (fields,) = get_args(kind)
                for field, hint in get_type_hints(fields).items():
                    yield _argument(field, hint, None, False, help.get(field, ""))
            elif name != "progress" and not _is_open(parameter, kind):
                positional = parameter.kind is not Parameter.KEYWORD_ONLY
                yield _argument(name, kind, parameter.default, positional, help.get(name, ""))

    @cached_property
    def _parameters(self) -> list[Parameter]:
        return list(inspect.signature(self.function).parameters.values())[1:]  # the first is the memory itself

    @cached_property
    def _types(self) -> dict[str, Any]:
        return get_type_hints(self.function, localns=_late_types())


def verb(right: Right, route: str = "", **how: Any) -> Callable[[F], F]:
    """Declare a method of a memory as a verb. The method stays as it is; `how` are the other fields of `Verb`."""

    def declare(function: F) -> F:
        owner, _, name = function.__qualname__.rpartition(".")
        group = "" if owner == "Memory" else f"{owner.lower()}."
        declared = Verb(
            name=group + name.rstrip("_"),
            function=function,
            right=right,
            route=route,
            **{"changes": right != "read", "repeatable": right == "read", **how},
        )
        VERBS[declared.name] = STEPS[declared.step] = declared
        return function

    return declare


def verb_of(function: Callable[..., Any]) -> Verb:
    """The verb that a method was declared as."""
    return next(each for each in VERBS.values() if each.function is function)


def _is_open(parameter: Parameter, kind: Any) -> bool:
    return parameter.kind is Parameter.VAR_KEYWORD and get_origin(kind) is not Unpack


def _argument(name: str, type: Any, default: Any, positional: bool, help: str) -> Argument:
    parts = _parts(type)
    wanted = parts - {types.NoneType}
    choices = next((words for part in wanted if (words := _words(part))), ())
    kind = _kinds().get(wanted)
    if kind is None and choices:
        kind = "choice" if any(get_origin(part) is Literal for part in wanted) else "choices"
    return Argument(name, kind or "other", default, parts != wanted, choices, positional, help)


def _parts(type: Any) -> frozenset[Any]:
    """The types of a union, else the one type."""
    return frozenset(get_args(type) if get_origin(type) in (Union, types.UnionType) else (type,))


def _words(type: Any) -> tuple[str, ...]:
    """Those of a Literal, or of a list of one."""
    inner = get_args(type)
    return inner if get_origin(type) is Literal else _words(inner[0]) if len(inner) == 1 else ()


@cache
def _kinds() -> Mapping[frozenset[Any], ArgumentKind]:
    """By the types of a union, without None. What has words to choose from is "choice" or "choices"."""
    late = _late_types()
    known: tuple[tuple[Any, ArgumentKind], ...] = (
        (ScopeLike, "scope"),
        (Scopes, "scopes"),
        (TimeLike, "time"),
        (str, "text"),
        (Iterable[str], "texts"),
        (str | Iterable[str], "texts"),
        (bool, "flag"),
        (int, "count"),
        (float, "number"),
        (MessageLike | Iterable[MessageLike], "messages"),
        (Iterable[str | Mapping[str, Any]], "items"),
        (Mapping[str, Any], "mapping"),
        (late["Where"], "mapping"),
        (RecipeName | late["Recipe"] | int, "recipe"),
        (late["VectorLike"], "vector"),
        (late["VectorsLike"], "vectors"),
        (Lease, "lease"),
    )
    return {_parts(type): kind for type, kind in known}


@cache
def _late_types() -> dict[str, Any]:
    """Types of arguments whose modules a memory loads when it first recalls."""
    from eunoe.recall.recipes import Recipe
    from eunoe.recall.request import VectorLike, VectorsLike, Where

    return {"Where": Where, "Recipe": Recipe, "VectorLike": VectorLike, "VectorsLike": VectorsLike}


def _read_help(documentation: str) -> dict[str, str]:
    """What the section `Args` says of each argument."""
    _, _, section = documentation.partition("\nArgs:\n")
    lines = textwrap.dedent(section.partition("\n\n")[0]).splitlines()
    found: dict[str, str] = {}
    name = ""
    for line in lines:
        if not line.startswith(" "):
            name, _, line = line.partition(":")
        for each in name.split(", "):
            found[each] = f"{found.get(each, '')} {line.strip()}".strip()
    return {name: said[:1].upper() + said[1:] for name, said in found.items()}


_HELP: Final[Mapping[str, str]] = {
    "scope": "Whose memory is meant.",
    "exact": "The one scope that is named, where a user's would mean everything within.",
    "id": "An id, as a receipt or a hit gives it.",
    "ids": "Ids, as receipts and hits give them.",
    "query": "The question.",
    "limit": "At most so many.",
    "after": "The `next` of the page before.",
    "kinds": "Only these kinds.",
    "labels": "Only what has one of these labels.",
    "files": "Files, or folders, that it is about.",
    "pages": "Pages that it is about.",
    "people": "People whom it is about.",
    "sessions": "Only what was said in these sessions.",
    "speakers": "Only what these people said.",
    "since": "What was said or happened at that time or later.",
    "until": "What was said or happened before that time.",
    "kind": "A fact is kept and searched; an observation waits to be consolidated.",
    "label": "Such as `preference`.",
    "source": "Ids of the messages it rests on.",
    "source_scopes": "Other scopes that its sources are in.",
    "time": "When it happened.",
    "valid_from": "Since when it is true.",
    "valid_to": "Until when it is true.",
    "pinned": "Whether no clean-up may take it.",
    "metadata": "Whatever else is known of it.",
    "again": "Keep it even if it was forgotten before.",
    "replace": "An id that is there already names the new version from now on.",
    "force": "Now, whether or not enough waits.",
    "now": "The moment that counts as the present.",
    "dry_run": "Only say what would be done.",
}
"""What an argument of this name means, wherever a verb does not say more of it."""
