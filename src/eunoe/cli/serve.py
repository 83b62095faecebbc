"""What runs on: the server, MCP, the worker; what assistants run, and the doctor."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Final

import typer

from eunoe.assistants.hook import start_intake
from eunoe.assistants.store_file import store_file
from eunoe.cli import display
from eunoe.cli.command import Call, MisuseError, Options, Reply, command
from eunoe.cli.display import Grid, quantity
from eunoe.cli.forming import failure_lines, form_summary
from eunoe.cli.inputs import YesOption, argument, repeatable_option
from eunoe.errors import EunoeError, InputError
from eunoe.model.arguments import utc_now
from eunoe.model.json import json_value
from eunoe.model.result import FormReport
from eunoe.model.scope import Scope
from eunoe.net.local_server import default_scope

if TYPE_CHECKING:
    from eunoe.server.mcp.backend import Backend
    from eunoe.server.services import Services

_LINK_HELP: Final = "Print the link with the token even where output is no terminal."
PrintLinkOption = Annotated[bool, typer.Option("--print-link", help=_LINK_HELP)]
_NAMES: Final = "claude-desktop, claude-code, cursor, vscode, zed, windsurf, codex or gemini"


@dataclass(frozen=True, slots=True)
class InstallationOptions:
    """Where to install it, or where to take it out."""

    install: Annotated[str | None, typer.Option("--install", metavar="NAME", help=f"Install it in {_NAMES}.")] = None
    uninstall: Annotated[str | None, typer.Option("--uninstall", metavar="NAME", help="Take it out again.")] = None
    hooks: Annotated[bool, typer.Option("--hooks", help="With --install: also capture and recall by hooks.")] = False
    yes: YesOption = False
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be written, and leave.")] = False

    @property
    def is_wanted(self) -> bool:
        return bool(self.install or self.uninstall)

    def carry_out(self, call: Call, scope: str, arguments: tuple[str, ...]) -> None:
        """Show what would be written, ask, and write it."""
        from eunoe.assistants.installation import carry_out, install, make_options, uninstall

        if self.install and self.uninstall:
            raise MisuseError("choose --install or --uninstall, not both")
        if self.install:
            options = make_options(call.options.store, scope=scope, hooks=self.hooks, arguments=arguments)
            plan = install(self.install, options)
        else:
            plan = uninstall(self.uninstall or "")
        carry_out(plan, display.write_text, display.say, self._agrees)

    def _agrees(self) -> bool:
        return not self.dry_run and (self.yes or typer.confirm("Write this?", err=True))


def take_in_events(store: str | None) -> None:
    """Have what hooks left in the spool taken in, by a process of its own."""
    with suppress(EunoeError):  # of a store that is no file there are no hooks
        start_intake(str(store_file(store)))


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """How the server is set up; named as the fields of its configuration."""

    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1"
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 takes a free one.")] = 8765
    public_url: Annotated[str, typer.Option("--public-url", help="How others reach it; turns on OAuth.")] = ""
    allowed_hosts: Annotated[
        list[str] | None, repeatable_option("--allowed-host", "NAME", "A further name that requests may call it by.")
    ] = None
    origins: Annotated[
        list[str] | None, repeatable_option("--origin", "URL", "A foreign origin whose pages may call it.")
    ] = None
    workflows: Annotated[
        Path | None,
        typer.Option("--workflows", metavar="DIR", help="Workflows that a chat may name as its model: workflow:NAME."),
    ] = None
    requests_per_minute: Annotated[
        int | None, typer.Option("--requests-per-minute", min=0, help="For each key; 0 is no limit.")
    ] = None
    failures_per_minute: Annotated[
        int | None, typer.Option("--failures-per-minute", min=0, help="Wrong keys from one address; 0 is no limit.")
    ] = None
    audit_days: Annotated[
        int | None, typer.Option("--audit-days", min=1, max=36500, help="How long the audit log is kept.")
    ] = None
    processes: Annotated[
        int, typer.Option("--processes", min=1, max=64, help="Processes that answer requests, one a core.")
    ] = 1
    worker: Annotated[bool, typer.Option("--worker/--no-worker", help="Do jobs in this process.")] = True
    log_format: Annotated[str, typer.Option("--log-format", help="text or json.")] = "text"
    log_level: Annotated[str, typer.Option("--log-level", help="debug, info, warning or error.")] = "info"
    tracing: Annotated[bool, typer.Option("--tracing", help="Send OpenTelemetry spans; see OTEL_ variables.")] = False


@command("eunoe serve --port 8765", asks_llm=True)
def serve(
    call: Call,
    server: ServerOptions,
    print_link: PrintLinkOption = False,
) -> None:
    """Serve this memory: HTTP, MCP and the inspector."""
    gc.disable()  # the server's modules make thousands of classes to begin with, and no garbage
    from eunoe.apps.projects import SAVE_DIR_VARIABLE, ProjectSettings
    from eunoe.server.process import configure
    from eunoe.server.process import serve as run

    gc.freeze()
    gc.enable()
    options = call.options
    settings, store = ProjectSettings.from_environment(), options.store
    if settings.save_dir and not store:
        store = str(settings.target(create=True))
        display.say(f"The store is that of {SAVE_DIR_VARIABLE}: {store}")
    take_in_events(store)
    models = {"embedder": options.embedder, "llm": options.llm, "fast_llm": options.fast_llm}
    given = {name: value for name, value in models.items() if value}
    how = {name: value for name, value in asdict(server).items() if value is not None}
    try:
        config = configure(target=store, **given, **how)
    except InputError as error:
        raise MisuseError(str(error)) from None
    run(config, partial(_announce, with_token=print_link or sys.stderr.isatty()))


def _announce(url: str, services: Services, with_token: bool) -> None:
    """Say where it listens. What is no terminal may be a log, and a log must not hold the token."""
    display.say(f"Eunoe listens on {url}  (HTTP under /v1, MCP under /mcp; Ctrl-C stops it)")
    if services.config.public_url:
        display.say(f"Others reach it at {services.config.public_url}, with a key or by OAuth")
    if with_token:
        display.say(f"Open the inspector: {url}/#token={services.owner_token}")
    else:
        display.say(f"Open the inspector: {url}/  The token to sign in is in {services.files.token}")


_PROFILE_HELP: Final = "Which tools: default, read, reference, chatgpt or discussion."
_SCOPE_HELP: Final = "Whose memory, if a call names none; else EUNOE_SCOPE, else yours."
_WITHIN_HELP: Final = "Calls may name scopes with these keys; else --scope."
_HOOK_SCOPE_HELP: Final = "Whose memory; else EUNOE_SCOPE, or you."
_IMPORT_HELP: Final = "Read the file of the reference memory server, and leave."


@command("eunoe mcp --scope user=anna", asks_llm=True, without=("json",))
def mcp(
    call: Call,
    installation: InstallationOptions,
    profile: Annotated[str, typer.Option("--profile", metavar="NAME", help=_PROFILE_HELP)] = "default",
    scope: Annotated[str | None, typer.Option("--scope", metavar="SCOPE", help=_SCOPE_HELP)] = None,
    within: Annotated[
        str | None,
        typer.Option("--within", metavar="SCOPE", help=_WITHIN_HELP),
    ] = None,
    any_scope: Annotated[bool, typer.Option("--any-scope", help="Calls may name every scope.")] = False,
    import_: Annotated[Path | None, typer.Option("--import", metavar="FILE", help=_IMPORT_HELP)] = None,
) -> None:
    """Serve an assistant over standard input and output (Model Context Protocol), or install that in one."""
    parent = os.getppid()  # before all that takes time: it may be gone by then
    if within and any_scope:
        raise MisuseError("choose --within or --any-scope, not both")
    default = Scope.parse(scope) if scope else default_scope()
    if import_:
        _import(call.options, default, import_)
        return
    if installation.is_wanted:
        installation.carry_out(call, default.text, _arguments(call.options, profile, within, any_scope))
        return
    take_in_events(call.options.store)
    reach = Scope.parse(within) if within else default
    gc.disable()  # the SDK makes a thousand classes to begin with, and no garbage
    try:
        from eunoe.server.mcp.stdio import serve_stdio
    except ModuleNotFoundError as error:
        raise MisuseError(f"eunoe mcp needs {error.name}: pip install 'eunoe[server]'") from None
    finally:
        gc.freeze()
        gc.enable()
    serve_stdio(_backend(call.options), default, None if any_scope else reach, profile, parent)


def _arguments(options: Options, profile: str, within: str | None, any_scope: bool) -> tuple[str, ...]:
    """The arguments with which an assistant starts it, beside the store and the scope."""
    from eunoe.embed import absolute_spec

    values = {
        "--embedder": absolute_spec(options.embedder or ""),
        "--llm": options.llm,
        "--fast-llm": options.fast_llm,
        "--profile": profile if profile != "default" else None,
        "--within": within,
    }
    given = [word for name, value in values.items() if value for word in (name, value)]
    return (*given, *(["--any-scope"] if any_scope else []))


def _backend(options: Options) -> Backend:
    from eunoe.server.mcp.backend import Backend

    models = {"embedder": options.embedder or "auto", "llm": options.llm or "auto", "fast_llm": options.fast_llm}
    return Backend(options.store, **models)


def _import(options: Options, scope: Scope, path: Path) -> None:
    from eunoe.server.mcp.reference import import_graph

    backend = _backend(options)
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            report = import_graph(backend.find_memory(), scope, lines)
    finally:
        backend.close()
    display.say(
        f"{scope}: {report.entities} entities, {report.relations} relations and {report.observations} observations are "
        f"new, {report.known} were there already"
    )
    if report.skipped:
        display.say_notes([f"skipped lines that hold no entity and no relation: {', '.join(map(str, report.skipped))}"])


Handler = Callable[[int, FrameType | None], object]

_MAX_SESSIONS: Final = 1000
"""Of one round; the rest is for the next one."""
_SESSIONS_PER_THREAD: Final = 4
"""Taken at once, so that a stop has not long to wait."""


@command("eunoe worker --every 600 --concurrency 3", asks_llm=True)
def worker(
    call: Call,
    every: Annotated[float, typer.Option("--every", help="Seconds from round to round.")] = 600,
    idle: Annotated[float, typer.Option("--idle", min=0, help="Seconds a conversation has been quiet.")] = 600,
    minimum: Annotated[int, typer.Option("--minimum", min=1, help="Messages that must wait in it.")] = 4,
    concurrency: Annotated[int, typer.Option("--concurrency", min=1, help="Conversations formed at a time.")] = 3,
    once: Annotated[bool, typer.Option("--once", help="One round, and leave.")] = False,
) -> None:
    """Form conversations that have gone quiet, until Ctrl-C or SIGTERM."""
    if not 0 < every <= threading.TIMEOUT_MAX:
        raise MisuseError("--every must be more than 0 seconds, and a number of them")
    stop = Stop()
    call.stack.enter_context(signal_handlers(stop, stop))
    memory = call.open(create=True, needs_llm=True)
    size = _SESSIONS_PER_THREAD * concurrency
    while True:
        report = FormReport()
        try:
            for _ in range(0, _MAX_SESSIONS, size):
                part = memory.admin.process_cold_sessions(
                    idle=idle, minimum=minimum, limit=size, concurrency=concurrency
                )
                report += part
                if stop.is_set or part == FormReport():
                    break
        except Exception as error:  # the next round may go well
            report += FormReport(failed=(f"{type(error).__name__}: {error}",))
        now = utc_now().replace(microsecond=0)
        if call.json:
            display.write_json({"time": now, **json_value(report)}, indent=None)
        else:
            display.say(f"{now:%Y-%m-%d %H:%M:%S} {form_summary(report)}")
            display.say_notes(failure_lines(report.failed))
        if once or stop.wait(every):
            break
    if once and report.failed:
        raise typer.Exit(1)


class Stop:
    """Set by a signal, which also ends a wait. A second Ctrl-C interrupts what is under way."""

    def __init__(self) -> None:
        # A signal may come while its own thread is inside a wait: an Event can lock up then, this queue cannot.
        self._signals: SimpleQueue[int] = SimpleQueue()
        self.is_set = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.is_set and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.is_set = True
        self._signals.put(number)

    def wait(self, seconds: float) -> bool:
        if self.is_set:
            return True
        try:
            self._signals.get(timeout=seconds)
        except Empty:
            return False
        return True


@contextmanager
def signal_handlers(interrupt: Handler, terminate: Handler) -> Iterator[None]:
    """Handle Ctrl-C and SIGTERM, and leave them afterwards as they were."""
    handlers = {signal.SIGINT: interrupt, signal.SIGTERM: terminate}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@command("eunoe hook start --assistant claude-code < event.json", without=("embedder", "json"))
def hook(
    call: Call,
    event: Annotated[str, argument("EVENT", "start, prompt, answer, compaction or end.")],
    assistant: Annotated[str, typer.Option("--assistant", metavar="NAME", help="Whose hook it is.")],
    scope: Annotated[str, typer.Option("--scope", metavar="SCOPE", help=_HOOK_SCOPE_HELP)] = "",
) -> None:
    """Do what an assistant's hook does, with the JSON that it gives on standard input.

    It always leaves with 0. Installed hooks do the same within 300 ms, since they do not load the command line.
    """
    from eunoe.assistants import hook as hook_module
    from eunoe.assistants.installation import find_assistant, make_options

    if event not in hook_module.EVENTS:
        raise MisuseError(f"no event {event!r}: there are {', '.join(hook_module.EVENTS)}")
    options = make_options(call.options.store, scope=scope)
    name = find_assistant(assistant).name
    hook_module.main([event, "--assistant", name, "--store", str(options.store), "--scope", options.scope])


@command("eunoe doctor", without=("embedder",))
def doctor(call: Call) -> Reply:
    """Say what is wrong with any of it, and what to do. Nothing is changed.

    It leaves with 1 if there is a problem. Warnings are no problems.
    """
    from eunoe.assistants.doctor import check_assistants, check_llm, check_mcp, check_server, check_store
    from eunoe.assistants.store_file import store_file

    store = store_file(call.options.store)
    findings = [*check_store(store), *check_llm(), *check_server(store), *check_mcp(), *check_assistants(store)]
    rows = [(each.state, each.subject, each.text, each.advice) for each in findings]
    counts = Counter(each.state for each in findings)
    summary = f"{quantity(counts['problem'], 'problem')}, {quantity(counts['warning'], 'warning')}"
    return Reply(
        [each._asdict() for each in findings],
        Grid(("state", "what", "how it stands", "what to do"), rows),
        notes=[summary],
        code=1 if counts["problem"] else 0,
    )
