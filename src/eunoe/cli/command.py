"""The core of the command line: how a command is declared, what it is given, and how its reply is shown.

A command is a function that takes a `Call`, then its own arguments and options, and returns a `Reply`. What it takes
for its verb is declared by the verb alone, and comes as `given`:

    @command("eunoe history user=anna ID", verb="history")
    def history(call: Call, given: Given, full: FullOption = False) -> Reply:
        versions = call.ask(given)
        return Reply(versions, item_entries(versions, full=full))

Its name is the one in the example, its help the docstring. `app.py` lists all commands.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from dataclasses import astuple, dataclass, fields, is_dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, NamedTuple, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

import eunoe
from eunoe.cli import display, inputs
from eunoe.cli.display import View
from eunoe.errors import EunoeError, MissingStoreError, NotFoundError, ScopeError

if TYPE_CHECKING:
    from eunoe.memory.verb import Argument

IN_MEMORY = ":memory:"  # that of `eunoe.memory`, which loads the engine
_STORE_HELP = "Path or URL of the store; else EUNOE_STORE, else your own file."
_EMBEDDER_HELP = "none, eunoe, static, minilm, folder:PATH or openai:MODEL; else the store's own."
_LLM_HELP = "none, openai:MODEL, anthropic:MODEL, http://...; else EUNOE_LLM."
_FAST_LLM_HELP = "A quicker one to write queries; else EUNOE_LLM_FAST, else --llm."

StoreOption = Annotated[str | None, typer.Option("--store", "-s", metavar="TARGET", help=_STORE_HELP)]
EmbedderOption = Annotated[str | None, typer.Option("--embedder", metavar="NAME", help=_EMBEDDER_HELP)]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on standard output.")]
LlmOption = Annotated[str | None, typer.Option("--llm", metavar="NAME", help=_LLM_HELP)]
FastLlmOption = Annotated[str | None, typer.Option("--fast-llm", metavar="NAME", help=_FAST_LLM_HELP)]


class MisuseError(Exception):
    """The command line makes no sense; nothing was done."""


def confirm(question: str) -> bool:
    """Ask whether something is to be removed for good."""
    if not sys.stdin.isatty():
        raise MisuseError("there is nobody to ask: pass --yes to go on without a question")
    return display.agrees(f"{question}, for good?")


@dataclass(frozen=True, slots=True)
class Options:
    """The options of every command. They may stand before or after its name; what stands after it counts."""

    store: StoreOption = None
    embedder: EmbedderOption = None
    json: JsonOption = False
    llm: LlmOption = None
    fast_llm: FastLlmOption = None

    @classmethod
    def before(cls, ctx: typer.Context) -> Options:
        """Those that stand before the command's name."""
        return ctx.obj if isinstance(ctx.obj, Options) else cls()

    def over(self, outer: Options) -> Options:
        return Options(*(mine or theirs for mine, theirs in zip(astuple(self), astuple(outer), strict=True)))


_UNSAID: Final = frozenset({"vector", "vectors", "lease", "other", "messages", "items"})
"""Kinds of arguments that no word of a command line stands for."""
_TYPES: Final[dict[str, Any]] = {"flag": bool, "count": int, "number": float}
_MODEL_OPTIONS = ("llm", "fast_llm")
"""Only of commands that ask a language model."""


class Reply:
    """What a command found or did: a document for `--json`, views for people, and notes for both."""

    def __init__(
        self,
        document: object,
        *views: View,
        notes: Iterable[str] = (),
        empty: str = "nothing found",
        is_empty: bool = False,
        code: int = 0,
    ) -> None:
        self.document = document
        self.views = [view for view in views if view]
        self.notes = notes
        self.empty = empty
        """What is said where there is nothing to view."""
        self.is_empty = is_empty or not self.views
        """Whether nothing was found or done: a scope that holds nothing may be why."""
        self.code = code


class Call:
    """One call of a command: its options, and the memory that it works on."""

    def __init__(
        self, options: Options, scopes: list[str], stack: ExitStack, exact: bool | None = None, verb: str = ""
    ) -> None:
        self.options = options
        self.json = options.json
        self.stack = stack
        self._scopes = scopes
        self._exact = exact
        """As `--exact` says; None for a command that is about one scope anyway."""
        self._verb = verb
        self._memory: eunoe.Memory | None = None

    def ask(self, given: Given, *, create: bool = False, **more: Any) -> Any:
        """Call the verb of the command with what was given, and more."""
        from eunoe.memory.verb import VERBS

        verb, memory = VERBS[self._verb], self._memory or self.open(create=create)
        return getattr(getattr(memory, verb.group) if verb.group else memory, verb.function.__name__)(**given, **more)

    def open(
        self,
        *,
        create: bool = False,
        form: bool | Literal["due"] = False,
        needs_llm: bool = False,
        embedder: str | None = None,
        store: str | None = None,
    ) -> eunoe.Memory:
        """Open the memory; it is closed when the command has ended.

        Only a command that stores something may create it or form in the background. For one that needs the language
        model, a model that cannot be loaded is an error before anything is done. `embedder` stands for the option, and
        `store` counts where there is none.
        """
        named, chosen, _, llm, fast_llm = astuple(self.options)
        models = {"embedder": embedder or chosen or "auto", "llm": llm or "auto", "fast_llm": fast_llm}
        self._memory = self.stack.enter_context(eunoe.open(named or store, **models, form=form, create=create))
        if needs_llm:
            _ = self._memory.llm
        return self._memory

    def open_to_look(self, *, needs_llm: bool = False, store: str | None = None) -> eunoe.Memory:
        """Open the memory for a command that keeps nothing. Where there is none, it looks into an empty one."""
        try:
            return self.open(needs_llm=needs_llm, store=store)
        except MissingStoreError:
            self.options = replace(self.options, store=IN_MEMORY)
            return self.open(create=True, needs_llm=needs_llm)

    def show(self, reply: Reply) -> None:
        if self.json:
            display.write_json(reply.document)
        elif reply.views:
            from eunoe.cli.display import terminal  # with it comes rich, which nothing else needs

            terminal.show(reply.views)
        else:
            display.say(reply.empty)
        display.say_notes(dict.fromkeys((*reply.notes, *(self.scope_notes() if reply.is_empty else ()))))

    def scope_notes(self) -> list[str]:
        """A note for each scope of the call that holds nothing: near scopes that do, or how to find one."""
        notes: list[str] = []
        for scope in self._scopes:
            with suppress(EunoeError):
                how: Any = {"limit": 1, "retired": True, "exact": self._exact is not False}
                page = self._memory.list(scope, **how) if self._memory else None
                if page and not page.items:
                    found = page.notes or [f"{scope} holds nothing: `eunoe scopes` lists the scopes that do"]
                    notes += (
                        [note.removesuffix(f", or write {scope}/*") for note in found] if self._exact is None else found
                    )
        return notes


GROUPS: Final = frozenset({"streams", "review", "summaries", "migrate", "key", "discussion", "workflow", "ticket"})
"""Commands that stand under a name of their own."""


class Given(dict[str, Any]):
    """What a command line gave for the arguments of the command's verb, by their names."""


class Command(NamedTuple):
    """A function, made a command by its declaration."""

    function: Callable[..., Reply | None]
    example: str
    without: tuple[str, ...] = ()
    """The options of every command, and arguments of its verb, that this one does not take."""
    verb: str = ""
    """Whose arguments it takes, as `given`, beside those in the signature of the function."""

    @property
    def words(self) -> tuple[str, str]:
        """Its group, if it is in one, and its name, as its example has them."""
        program, first, second, *_ = [*self.example.removeprefix("python -m ").split(), ""]
        return (first, second) if program == "eunoe" and first in GROUPS else ("", first)

    def register(self, app: typer.Typer, panel: str | None = None) -> None:
        """Add it to others. Its options are read when it is called: those of a verb come with the whole memory."""

        def run() -> None: ...

        cls = type("LateCommand", (_LateCommand,), {"command": self})
        how: Any = {"epilog": f"Example: {self.example}", "rich_help_panel": panel, "help": self.function.__doc__}
        app.command(self.words[1], cls=cls, **how)(run)

    def typer_function(self) -> Callable[..., None]:
        """The function as Typer reads it: each argument of the verb and field of a dataclass is a parameter."""
        hints = get_type_hints(self.function, include_extras=True)
        signature = inspect.signature(self.function).parameters.values()
        own = {each.name: _keyword(each.name, hints[each.name], each.default) for each in [*signature][1:]}
        arguments = _find_arguments(self.verb) if self.verb else {}
        taken = {name: each for name, each in arguments.items() if name not in own and name not in self.without}
        groups = {name: hint for name, hint in hints.items() if isinstance(hint, type) and is_dataclass(hint)}
        groups["options"] = Options
        parameters = [_keyword("ctx", typer.Context)]
        for name in arguments:  # in the order of the verb: it is that of what stands without a name
            if name in own:
                parameters.append(own.pop(name))
            elif name in taken:
                parameters.append(_taken_parameter(taken[name]))
        parameters += [each for each in own.values() if each.name not in groups and each.annotation is not Given]
        for group in groups.values():
            kinds = get_type_hints(group, include_extras=True)
            parameters += [_keyword(field.name, kinds[field.name], field.default) for field in fields(group)]
        parameters = [each for each in parameters if each.name not in self.without]

        def run(ctx: typer.Context, **values: Any) -> None:
            for name, group in groups.items():
                names = [field.name for field in fields(group) if field.name in values]
                values[name] = group(**{field: values.pop(field) for field in names})
            outer = Options.before(ctx)
            if refused := [f"--{name.replace('_', '-')}" for name in self.without if getattr(outer, name, None)]:
                raise MisuseError(f"{self.words[1]} takes no {' or '.join(refused)}: leave that out")
            exact = values.get("exact")
            scopes = [values.get("scope"), values.get("scopes")]
            if self.verb:
                found = {name: values.pop(name) for name in taken}
                given = Given({name: value for name, value in found.items() if value not in (None, [], ())})
                for name in given:
                    if taken[name].kind == "mapping":
                        given[name] = inputs.parse_object(given[name], f"--{name}")
                values |= {"given": given}
            self._run(values.pop("options").over(outer), values, _flat(scopes), exact)

        run.__doc__ = self.function.__doc__
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    def _run(self, options: Options, values: dict[str, Any], scopes: list[str], exact: bool | None) -> None:
        with ExitStack() as stack:
            call = Call(options, scopes, stack, exact, self.verb)
            try:
                reply = self.function(call, **values)
            except (NotFoundError, ScopeError) as error:
                raise type(error)("; ".join([str(error), *call.scope_notes()])) from error
            if reply:
                call.show(reply)
        if reply and reply.code:
            raise typer.Exit(reply.code)


class _LateCommand(TyperCommand):
    """A command that is made when it is called, or asked for its own help."""

    command: ClassVar[Command]
    _params: list[Any] | None = None

    @property
    def params(self) -> list[Any]:
        if self._params is None:
            app = typer.Typer(add_completion=False)
            app.command()(self.command.typer_function())
            made = typer.main.get_command(app)
            self._params, self.callback = made.params, made.callback
        return self._params

    @params.setter
    def params(self, _: list[Any]) -> None:
        pass


def command(
    example: str, *, verb: str = "", asks_llm: bool = False, without: tuple[str, ...] = ()
) -> Callable[[Callable[..., Reply | None]], Command]:
    """Declare a function as a command, with an example of its use, and the verb whose arguments it takes."""
    left_out = without if asks_llm else (*without, *_MODEL_OPTIONS)
    return lambda function: Command(function, example, left_out, verb)


def verb_command(
    example: str, verb: str, help: str, show: Callable[[Any, Given], Reply], *, create: bool = False
) -> Command:
    """A command that does what a verb does, with the arguments of the verb and no others."""

    def run(call: Call, given: Given) -> Reply:
        return show(call.ask(given, create=create), given)

    run.__doc__ = help
    return Command(run, example, _MODEL_OPTIONS, verb)


class Group(NamedTuple):
    """The commands of a module whose examples begin with its name. `list` is meant where none is named."""

    name: str
    help: str
    example: str
    module: str

    def register(self, app: typer.Typer, panel: str | None = None) -> None:
        cls = type("LazyGroup", (_LazyGroup,), {"module": f"eunoe.cli.{self.module}", "group": self.name})
        group = typer.Typer(cls=cls, help=self.help, epilog=f"Example: {self.example}")
        app.add_typer(group, name=self.name, rich_help_panel=panel)


class _LazyGroup(TyperGroup):
    """A group whose module is imported when it is called. Its commands may also stand after options."""

    module: ClassVar[str]
    group: ClassVar[str]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        group = typer.Typer()
        for each in vars(import_module(self.module)).values():
            if isinstance(each, Command) and each.words[0] == self.group:
                each.register(group)
        self.commands = typer.main.get_group(group).commands
        place = next((place for place, arg in enumerate(args) if arg in self.commands), None)
        if place is not None:
            args = [args[place], *args[:place], *args[place + 1 :]]
        elif "list" not in self.commands:
            args = args or ["--help"]
        elif not set(args) & set(ctx.help_option_names):
            args = ["list", *args]
        return super().parse_args(ctx, args)


def _flat(scopes: Iterable[str | list[str] | None]) -> list[str]:
    return [scope for each in scopes for scope in ([each] if isinstance(each, str) else each or ()) if scope]


def _find_arguments(verb: str) -> dict[str, Argument]:
    """Those that can be said on a command line."""
    from eunoe.memory.verb import VERBS  # with it comes the whole memory

    found = VERBS[verb].arguments.values()
    return {each.name: each for each in found if each.kind not in _UNSAID and each.default is not True}


def _taken_parameter(argument: Argument) -> inspect.Parameter:
    """An argument of a verb, as a parameter that Typer reads. What is not given is left to the verb."""
    name, kind = argument.name, argument.kind
    is_list = kind in ("texts", "choices", "scopes")
    words = inputs.ARGUMENTS_HELP.get(name) or argument.help[:1].upper() + argument.help[1:]
    type: Any = _TYPES.get(kind, str)
    type = list[type] if is_list else type
    if argument.is_positional:
        metavar = name.removesuffix("s" if is_list else "").upper() + ("..." if is_list else "")
        if argument.is_required:
            return _keyword(name, Annotated[type, inputs.argument(metavar, words)])
        return _keyword(name, Annotated[type | None, inputs.argument(f"[{metavar}]", words)], None)
    flag = f"--{inputs.SINGULARS.get(name, name).replace('_', '-')}"
    if kind == "flag" and argument.default is False:
        return _keyword(name, Annotated[bool, typer.Option(flag, help=words)], False)
    how: dict[str, Any] = {"help": f"{words} May be repeated." if is_list else words}
    how |= {"metavar": inputs.METAVARS.get(kind)} if kind in inputs.METAVARS else {}
    how |= {"show_default": str(argument.default)} if kind in ("count", "number") and argument.default else {}
    how |= {"parser": inputs.parse_recipe} if kind == "recipe" else {}
    flags = [flag, "-n"] if name == "limit" else [f"{flag}/--not-{flag[2:]}"] if kind == "flag" else [flag]
    return _keyword(name, Annotated[type | None, typer.Option(*flags, **how)], None)


def _keyword(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
