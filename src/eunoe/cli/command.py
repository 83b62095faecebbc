"""What every command has: a store, an embedder, and a choice between JSON and tables."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec, get_type_hints

import typer

if TYPE_CHECKING:
    from eunoe.sync import SyncMemory

P = ParamSpec("P")

StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store", "-s", metavar="TARGET", help="Path or URL of the store; else EUNOE_STORE, else your own file."
    ),
]
EmbedderOption = Annotated[
    str | None,
    typer.Option("--embedder", metavar="NAME", help="none, static, minilm or openai:MODEL; else the store's own."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on standard output.")]


class MisuseError(Exception):
    """The command line asks for something that makes no sense; nothing was done."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The options that may stand before or after a command's name; what stands after it counts."""

    store: str | None = None
    embedder: str | None = None
    json: bool = False

    @classmethod
    def before(cls, ctx: typer.Context) -> Settings:
        """Those that stand before the command's name."""
        return ctx.obj if isinstance(ctx.obj, cls) else cls()

    def under(self, outer: Settings) -> Settings:
        return Settings(self.store or outer.store, self.embedder or outer.embedder, self.json or outer.json)

    @contextmanager
    def memory(self, create: bool = False) -> Iterator[SyncMemory]:
        """The memory to work on; only a command that puts something in may make a new one."""
        import eunoe

        with eunoe.open(self.store, embedder=self.embedder or "auto", create=create) as memory:
            yield memory


def command(
    app: typer.Typer, name: str, example: str
) -> Callable[[Callable[Concatenate[Settings, P], None]], Callable[Concatenate[Settings, P], None]]:
    """Registers a function as a command; it also takes the options of `Settings`, given as its first argument."""

    def register(function: Callable[Concatenate[Settings, P], None]) -> Callable[Concatenate[Settings, P], None]:
        app.command(name, epilog=f"Example: {example}")(_with_settings(function))
        return function

    return register


def _with_settings(function: Callable[Concatenate[Settings, P], None]) -> Callable[..., None]:
    @functools.wraps(function)
    def call(ctx: typer.Context, store: str | None, embedder: str | None, json: bool, **rest: Any) -> None:
        settings = Settings(store, embedder, json).under(Settings.before(ctx))
        function(settings, **rest)  # type: ignore[call-arg]

    hints = get_type_hints(function, include_extras=True)
    own = list(inspect.signature(function).parameters.values())[1:]
    parameters = [
        inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context),
        *(one.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[one.name]) for one in own),
        *(
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            for name, default, annotation in _SHARED
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
