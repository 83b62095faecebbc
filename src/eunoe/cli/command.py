"""What every command has: a store, an embedder, a choice between JSON and tables, and for some a language model."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec, get_type_hints

import typer
from typer.core import TyperGroup

if TYPE_CHECKING:
    from eunoe.memory import Memory

P = ParamSpec("P")

StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store", "-s", metavar="TARGET", help="Path or URL of the store; else EUNOE_STORE, else your own file."
    ),
]
EmbedderOption = Annotated[
    str | None,
    typer.Option(
        "--embedder", metavar="NAME", help="none, eunoe, static, minilm or openai:MODEL; else the store's own."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on standard output.")]
LlmOption = Annotated[
    str | None,
    typer.Option("--llm", metavar="NAME", help="none, openai:MODEL, anthropic:MODEL, http://...; else EUNOE_LLM."),
]
FastLlmOption = Annotated[
    str | None,
    typer.Option("--fast-llm", metavar="NAME", help="A quicker one to write queries; else EUNOE_LLM_FAST, else --llm."),
]


class MisuseError(Exception):
    """The command line asks for something that makes no sense; nothing was done."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The options that may stand before or after a command's name; what stands after it counts."""

    store: str | None = None
    embedder: str | None = None
    json: bool = False
    llm: str | None = None
    fast_llm: str | None = None

    @classmethod
    def before(cls, ctx: typer.Context) -> Settings:
        """Those that stand before the command's name."""
        return ctx.obj if isinstance(ctx.obj, cls) else cls()

    def under(self, outer: Settings) -> Settings:
        store, embedder = self.store or outer.store, self.embedder or outer.embedder
        return Settings(store, embedder, self.json or outer.json, self.llm, self.fast_llm)

    @contextmanager
    def memory(self, create: bool = False, form: bool = False, asks: bool = False) -> Iterator[Memory]:
        """The memory to work on; only a command that puts something in may make a new one, or form behind its back.

        For a command that asks the language model, one that cannot be had is an error before anything is done.
        """
        import eunoe

        with eunoe.open(
            self.store,
            embedder=self.embedder or "auto",
            llm=self.llm or "auto",
            fast_llm=self.fast_llm,
            form=form,
            create=create,
        ) as memory:
            if asks:
                _ = memory.llm
            yield memory


class Listing(TyperGroup):
    """A group whose command `list` is meant where none is named, and whose commands may stand after options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        place = next((place for place, arg in enumerate(args) if arg in self.commands), None)
        if place is not None:
            args = [args[place], *args[:place], *args[place + 1 :]]
        elif not set(args) & set(ctx.help_option_names):
            args = ["list", *args]
        return super().parse_args(ctx, args)


def command(
    app: typer.Typer, name: str, example: str, *, models: bool = False
) -> Callable[[Callable[Concatenate[Settings, P], None]], Callable[Concatenate[Settings, P], None]]:
    """Registers a function as a command; it also takes the options of `Settings`, given as its first argument.

    Those that name language models only where `models` says so.
    """

    def register(function: Callable[Concatenate[Settings, P], None]) -> Callable[Concatenate[Settings, P], None]:
        app.command(name, epilog=f"Example: {example}")(_with_settings(function, models))
        return function

    return register


def _with_settings(function: Callable[Concatenate[Settings, P], None], models: bool) -> Callable[..., None]:
    shared = (*_SHARED, *(_MODELS if models else ()))

    @functools.wraps(function)
    def call(ctx: typer.Context, **given: Any) -> None:
        settings = Settings(**{name: given.pop(name) for name, _, _ in shared})
        function(settings.under(Settings.before(ctx)), **given)  # type: ignore[call-arg]

    hints = get_type_hints(function, include_extras=True)
    own = list(inspect.signature(function).parameters.values())[1:]
    parameters = [
        inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context),
        *(one.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[one.name]) for one in own),
        *(
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            for name, default, annotation in shared
        ),
    ]
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


_SHARED: tuple[tuple[str, Any, Any], ...] = (
    ("store", None, StoreOption),
    ("embedder", None, EmbedderOption),
    ("json", False, JsonOption),
)
_MODELS: tuple[tuple[str, Any, Any], ...] = (
    ("llm", None, LlmOption),
    ("fast_llm", None, FastLlmOption),
)
