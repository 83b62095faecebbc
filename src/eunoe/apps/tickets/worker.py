"""Who does the work of a ticket: a coding agent behind one small protocol."""

import json
import math
import os
import re
import secrets
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, ClassVar, Final, NamedTuple, NoReturn, Protocol

from eunoe.apps.git import OTHER_REPOSITORY
from eunoe.apps.tickets.redaction import clip_redacted, last_lines, redact
from eunoe.errors import EunoeError, InputError
from eunoe.text.normalize import one_line, replace_surrogates

NO_OUTPUT: Final = "[no output]"
_MAX_OUTPUT_BYTES: Final = 64 * 1024 * 1024
_HIDDEN_VARIABLES: Final = frozenset(["MEMORY_SAVE_DIR", "EUNOE_STORE", *OTHER_REPOSITORY])
"""Where the memory rests is not for a worker to know; what a git hook sets would lead it to another repository."""


class ProgramResult(NamedTuple):
    """What a program wrote, and what was wrong with it; nothing, if it ended well."""

    name: str
    output: str
    errors: str
    trouble: str = ""

    def describe(self) -> str:
        """Put together what it wrote, for somebody to read; what went wrong stands at the end."""
        parts = [self.output.strip()]
        if self.errors.strip() and (self.trouble or not parts[0]):
            parts.append(f"[standard error]\n{self.errors.strip()}")
        if self.trouble:
            parts.append(f"[{self.name} {self.trouble}]")
        return "\n".join(filter(None, parts)) or NO_OUTPUT


class Program:
    """Runs for so many seconds at most, never by a shell, and is not told where the memory rests.

    Its input and output are files, not pipes: neither a long input nor a child of it that lives on can block us.
    """

    def __init__(self, name: str, directory: str | os.PathLike[str], timeout: float) -> None:
        path = shutil.which(name)
        if path is None:
            raise InputError(f"there is no program {name!r}: install it, or name another")
        if not math.isfinite(timeout) or timeout <= 0:
            raise InputError(f"the time limit of {name} is {timeout!r}: it must be a number of seconds")
        if not Path(directory).is_dir():
            raise InputError(f"{name} cannot be run in {directory}: there is no such folder")
        self.name = os.path.basename(name)
        self.directory = directory
        self._path = os.path.abspath(path)
        self._timeout = timeout

    def run(self, arguments: Sequence[str], text: str = "", **variables: str) -> ProgramResult:
        """Run it once, with a text as its input."""
        environment = {name: value for name, value in os.environ.items() if name not in _HIDDEN_VARIABLES}
        with TemporaryFile() as stdin, TemporaryFile() as output, TemporaryFile() as errors:
            stdin.write(replace_surrogates(text).encode())
            stdin.seek(0)
            try:
                process = subprocess.Popen(
                    [self._path, *arguments],
                    stdin=stdin,
                    stdout=output,
                    stderr=errors,
                    cwd=self.directory,
                    env=environment | variables,
                    start_new_session=True,
                )
            except OSError as error:
                return ProgramResult(self.name, "", "", f"cannot be run: {error.strerror or error}")
            trouble = self._wait(process)
            return ProgramResult(self.name, self._read_end(output), self._read_end(errors), trouble)

    def _wait(self, process: subprocess.Popen[bytes]) -> str:
        try:
            exit_code = process.wait(self._timeout)
        except subprocess.TimeoutExpired:
            _kill(process)
            return f"was stopped: no answer within {self._timeout:g} seconds"
        except BaseException:
            _kill(process)
            raise
        return f"ended with exit code {exit_code}" if exit_code else ""

    def _read_end(self, file: IO[bytes]) -> str:
        """What a file holds; of one that is too large the last lines."""
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _MAX_OUTPUT_BYTES))
        text = file.read(_MAX_OUTPUT_BYTES).decode(errors="replace")
        return text.partition("\n")[2] or text if size > _MAX_OUTPUT_BYTES else text


def split_command(text: str, shown: str) -> list[str]:
    """Split a command line into its words, as a shell does, and nothing else that a shell does."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InputError(f"cannot read {shown!r} as a command: {error}") from None


def check_arguments(arguments: Sequence[str], given: str | Sequence[str]) -> None:
    """Raise InputError for a command line that has no program, or cannot be given to one."""
    are_texts = all(isinstance(argument, str) and "\0" not in argument for argument in arguments)
    if not arguments or not are_texts or not arguments[0].strip():
        raise InputError(f"{given!r} is not a command: name a program and its arguments")


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()


DEFAULT_TIMEOUT_SECONDS: Final = 3600.0


class WorkerError(EunoeError):
    """A worker did not do its part. The message has what it said: the director reads it like an answer."""


class Worker(Protocol):
    """One that is sent a prompt and answers it, and knows what was said before.

    It raises WorkerError when it fails. One that also has `session`, a text, is given the session it had when a ticket
    is taken up again; one that has `cost` says what it has cost so far; one that has `directory` says where it works.
    """

    def send(self, prompt: str) -> str: ...


class ScriptedWorker:
    """Answers from a list in turn, or from a function of the prompt; keeps the prompts it was sent.

    >>> worker = ScriptedWorker(["Done.", WorkerError("no disk")])
    >>> worker.send("Write the tests."), worker.prompts
    ('Done.', ['Write the tests.'])
    """

    name = "scripted"

    def __init__(self, answers: Iterable[str | Exception] | Callable[[str], str] = ()) -> None:
        self.prompts: list[str] = []
        self.session = ""
        self._function = answers if callable(answers) else None
        self._answers = iter(() if callable(answers) else answers)

    def send(self, prompt: str) -> str:
        self.prompts.append(prompt)
        if self._function:
            return self._function(prompt)
        answer = next(self._answers, WorkerError("the script has no answer left"))
        if isinstance(answer, Exception):
            raise answer
        return answer


class CommandWorker:
    """Any command: it reads the prompt on standard input and answers on standard output.

    It is run once a turn, never by a shell. `EUNOE_SESSION` is the same in all turns of a ticket, so that it can keep
    what it needs under that name.
    """

    def __init__(
        self,
        arguments: str | Sequence[str],
        *,
        directory: str | os.PathLike[str] = ".",
        timeout: float = DEFAULT_TIMEOUT_SECONDS,
    ) -> None:
        self.arguments = split_command(arguments, arguments) if isinstance(arguments, str) else list(arguments)
        check_arguments(self.arguments, arguments)
        self.session = secrets.token_hex(8)
        self.directory = directory
        self._program = Program(self.arguments[0], directory, timeout)
        self.name = self._program.name

    def send(self, prompt: str) -> str:
        result = self._program.run(self.arguments[1:], prompt, EUNOE_SESSION=self.session)
        if result.trouble:
            raise WorkerError(result.describe())
        return result.describe()


_SESSION_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,199}")


class AgentWorker:
    """What the agents have in common: their options, their session, and how they fail."""

    name: ClassVar[str]
    fixed_options: ClassVar[frozenset[str]]
    """Those that are set for every turn."""
    lost_session: ClassVar[tuple[str, ...]]
    """What it says when it does not know the session that it is to go on with."""

    def __init__(
        self,
        options: Sequence[str] = (),
        *,
        directory: str | os.PathLike[str] = ".",
        timeout: float = DEFAULT_TIMEOUT_SECONDS,
        program: str = "",
    ) -> None:
        self.options = list(options)
        check_arguments([self.name, *self.options], options)
        if fixed := [option for option in self.options if option.partition("=")[0] in self.fixed_options]:
            raise InputError(f"the option {fixed[0]} of {self.name} is set for every turn: leave it out")
        self.session = ""
        self.directory = directory
        self._program = Program(program or self.name, directory, timeout)

    def _checked_session(self, session: Any) -> str:
        """The id of a session. It becomes an argument, and must not be taken for an option."""
        if session and (not isinstance(session, str) or not _SESSION_ID.fullmatch(session)):
            raise WorkerError(f"{self.name} gave a session that cannot be one")
        return str(session or "")

    def _fail(self, result: ProgramResult, *said: str) -> NoReturn:
        text = "\n".join(filter(None, (*said, result.errors.strip(), f"[{self.name} {result.trouble or 'failed'}]")))
        if self.session and any(words in text for words in self.lost_session):
            self.session = ""
            text += "\n[the session is lost: the worker has forgotten all that was said, and begins a new one]"
        raise WorkerError(replace_surrogates(text))

    def _finish(self, result: ProgramResult, text: str, remarks: Sequence[str]) -> str:
        if not text:
            self._fail(result, *remarks, f"{self.name} gave an empty answer")
        return replace_surrogates("\n".join([text, *remarks]))


class ClaudeCodeWorker(AgentWorker):
    """The Claude Code CLI: `claude -p --output-format json [--resume SESSION] OPTIONS`."""

    name = "claude"
    fixed_options = frozenset([
        "-p", "--print", "--output-format", "--input-format", "-r", "--resume", "-c", "--continue", "--session-id",
        "--fork-session", "--no-session-persistence",
    ])  # fmt: skip
    lost_session = ("No conversation found",)
    cost = 0.0

    def send(self, prompt: str) -> str:
        resume = ["--resume", self._checked_session(self.session)] if self.session else []
        result = self._program.run(["-p", "--output-format", "json", *resume, *self.options], prompt)
        answers = [event for event in read_events(result.output) if event.get("type", "result") == "result"]
        if not answers:
            self._fail(result, result.output.strip(), "" if result.trouble else "this is not an answer")
        answer = answers[-1]
        cost = answer.get("total_cost_usd")
        self.cost += float(cost) if isinstance(cost, int | float) and math.isfinite(cost) and cost > 0 else 0.0
        text, kind = _text(answer.get("result")), _text(answer.get("subtype"))
        errors = [kind, *map(_text, _items(answer.get("errors")))] if kind.startswith("error") else []
        if not any(words in error for error in errors for words in self.lost_session):  # then it names one of its own
            self.session = self._checked_session(answer.get("session_id") or self.session)
        if result.trouble or errors or answer.get("is_error"):
            self._fail(result, text, *errors)
        denied = [_text(denial.get("tool_name")) for denial in _mappings(answer.get("permission_denials"))]
        tools = [tool for tool in dict.fromkeys(denied) if tool and tool.isprintable()]
        remarks = [f"[the worker was not allowed to use: {', '.join(tools)}]"] if tools else []
        return self._finish(result, text, remarks)


class CodexWorker(AgentWorker):
    """The Codex CLI: `codex exec --json OPTIONS [resume SESSION] -`. Options stand before `resume`, which takes few."""

    name = "codex"
    fixed_options = frozenset(["--json", "--experimental-json", "resume", "review", "--ephemeral", "-C", "--cd", "-"])
    lost_session = ("no rollout found", "No saved session found")

    def send(self, prompt: str) -> str:
        resume = ["resume", self._checked_session(self.session)] if self.session else []
        result = self._program.run(["exec", "--json", *self.options, *resume, "-"], prompt)
        events = list(read_events(result.output))
        started = [event.get("thread_id") for event in events if event.get("type") == "thread.started"]
        self.session = self._checked_session(started[-1] if started else self.session)
        messages = [text for item in _codex_items(events, "agent_message") if (text := _text(item.get("text")))]
        text, errors = messages[-1] if messages else "", _codex_errors(events)
        if result.trouble or errors or not events:
            self._fail(result, text or ("" if events else result.output.strip()), *errors)
        declined = [item for item in _codex_items(events, "command_execution") if item.get("status") == "declined"]
        commands = list(dict.fromkeys(filter(None, (_text(item.get("command")) for item in declined))))
        remarks = [f"[the worker was not allowed to run: {'; '.join(commands)}]"] if commands else []
        return self._finish(result, text, remarks)


def load_worker(
    spec: str, *, directory: str | os.PathLike[str] = ".", timeout: float = DEFAULT_TIMEOUT_SECONDS
) -> Worker:
    """Return the worker that a setting names: `claude`, `codex`, either with `:OPTIONS`, or `command:COMMAND`."""
    kind, _, rest = spec.partition(":")
    for agent in (ClaudeCodeWorker, CodexWorker):
        if kind == agent.name:
            return agent(split_command(rest, spec), directory=directory, timeout=timeout)
    if kind == "command" and rest.strip():
        return CommandWorker(rest, directory=directory, timeout=timeout)
    raise InputError(
        f'{spec!r} is not a worker; choose one of: claude, claude:"--model sonnet", codex, '
        'codex:"--sandbox workspace-write", command:"my-agent --quiet"'
    )


def read_events(output: str) -> Iterator[dict[str, Any]]:
    """Return the JSON objects that were printed: one, a list, or one a line; everything else is passed over.

    >>> list(read_events('warning\\n{"type": "a"}\\n[{"type": "b"}, 3]'))
    [{'type': 'a'}, {'type': 'b'}]
    """
    for text in (output, *output.splitlines()):
        with suppress(ValueError, RecursionError):
            value = json.loads(text)
            yield from _mappings(value if isinstance(value, list) else [value])
            if text is output:
                return


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _mappings(value: Any) -> list[dict[str, Any]]:
    return [item for item in _items(value) if isinstance(item, dict)]


def _codex_items(events: Iterable[Mapping[str, Any]], kind: str) -> list[Mapping[str, Any]]:
    items = _mappings([event.get("item") for event in events if event.get("type") == "item.completed"])
    return [item for item in items if item.get("type") == kind]


def _codex_errors(events: Iterable[Mapping[str, Any]]) -> list[str]:
    """Why the turn failed. An error after which it was completed all the same is none."""
    ends = [
        event for event in events if event.get("type") in ("turn.started", "turn.completed", "turn.failed", "error")
    ]
    if ends and ends[-1]["type"] == "turn.completed":
        return []
    details = [error if isinstance(error := event.get("error"), Mapping) else event for event in ends]
    has_failed = bool(ends) and ends[-1]["type"] != "turn.started"
    default = "the turn failed" if has_failed else "the events break off before the turn was completed"
    return list(dict.fromkeys(filter(None, (_text(each.get("message")) for each in details)))) or [default]


_MAX_CHARACTERS: Final = 4_000
_MAX_LINES: Final = 4
_MAX_LINE_CHARACTERS: Final = 200


class CheckResult(NamedTuple):
    """How it ended, and what it wrote."""

    passed: bool
    text: str


class Check:
    """Passes if the command ends with exit code 0. No shell runs it: for one, name it (`sh -c "..."`)."""

    def __init__(
        self, command: str, *, directory: str | os.PathLike[str] = ".", timeout: float = DEFAULT_TIMEOUT_SECONDS
    ) -> None:
        self.name = redact(command)
        self._arguments = split_command(command, command)
        check_arguments(self._arguments, command)
        self._program = Program(self._arguments[0], directory, timeout)

    def run(self) -> CheckResult:
        """Run it once; what it wrote is redacted and shortened."""
        result = self._program.run(self._arguments[1:])
        ending = f"The check `{self.name}` {result.trouble or 'passed: exit code 0'}."
        return CheckResult(not result.trouble, f"{ending}\n{clip_redacted(result.describe(), _MAX_CHARACTERS)}")


def summarize_failure(text: str) -> str:
    """Say on one line what failed, and the last lines of what was written, where errors stand.

    >>> summarize_failure("The check `make` ended with exit code 2.\\nmake: no rule\\n[make ended with exit code 2]")
    'The check `make` ended with exit code 2. Last lines: make: no rule'
    """
    first, *rest = text.splitlines()
    lines = [line for line in rest if not (line.startswith("[") and line.endswith("]"))]
    shown = " / ".join(one_line(line, _MAX_LINE_CHARACTERS) for line in last_lines("\n".join(lines), _MAX_LINES))
    return f"{first} Last lines: {shown}" if shown else first
