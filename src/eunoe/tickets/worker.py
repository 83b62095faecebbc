"""Who does the work of a ticket: a coding agent behind one small protocol."""

from __future__ import annotations

import json
import math
import os
import re
import secrets
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Final, NamedTuple, Protocol

from eunoe.errors import EunoeError, InputError
from eunoe.text.normalize import replace_surrogates

DEFAULT_TIMEOUT_SECONDS: Final = 3600.0
MAX_ANSWER_CHARACTERS: Final = 200_000
_MAX_OUTPUT_BYTES: Final = 64 * 1024 * 1024
_SESSION_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,199}")
_MEMORY_VARIABLES: Final = ("MEMORY_SAVE_DIR", "EUNOE_STORE")
"""Where the memory rests is not for a worker to know."""
_SESSION_LOST: Final = "No conversation found"
_FIXED_OPTIONS: Final = frozenset(
    ["-p", "--print", "--output-format", "--input-format", "-r", "--resume", "-c", "--continue", "--session-id"]
)


class WorkerError(EunoeError):
    """A worker did not do its part. The message has what it said: the director reads it like an answer."""


class Worker(Protocol):
    """One that is sent a prompt and answers it, and knows what was said before.

    It raises WorkerError when it fails. One that also has `session`, a text, is given the session it had when a ticket
    is taken up again; one that has `cost` says what it has cost so far.
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
        self.arguments = _split_command(arguments, arguments) if isinstance(arguments, str) else list(arguments)
        _check_arguments(self.arguments, arguments)
        self.name = os.path.basename(self.arguments[0])
        self.session = secrets.token_hex(8)
        self._program = _Program(self.arguments[0], directory, timeout)

    def send(self, prompt: str) -> str:
        result = self._program.run(self.arguments[1:], prompt, EUNOE_SESSION=self.session)
        if result.exit_code:
            raise WorkerError(result.describe(self.name))
        return result.describe(self.name)


class ClaudeCodeWorker:
    """The Claude Code CLI, which keeps the session between turns.

    The prompt goes in on standard input: as an argument it could be taken for an option, and be too long.
    """

    name = "claude"

    def __init__(
        self,
        options: Sequence[str] = (),
        *,
        directory: str | os.PathLike[str] = ".",
        timeout: float = DEFAULT_TIMEOUT_SECONDS,
        program: str = "claude",
    ) -> None:
        self.options = list(options)
        _check_arguments([program, *self.options], options)
        if fixed := [option for option in self.options if option.partition("=")[0] in _FIXED_OPTIONS]:
            raise InputError(f"the option {fixed[0]} of claude is set for every turn: leave it out")
        self.session = ""
        self.cost = 0.0
        self._program = _Program(program, directory, timeout)

    def send(self, prompt: str) -> str:
        resume = ["--resume", _check_session(self.session)] if self.session else []
        result = self._program.run(["-p", "--output-format", "json", *resume, *self.options], prompt)
        answer = _last_result(result.output)
        if answer is None:
            raise WorkerError(self._describe_failure(result))
        self.session = _check_session(answer.get("session_id") or self.session)
        self.cost += _cost(answer)
        subtype = str(answer.get("subtype") or "")
        text = replace_surrogates(str(answer.get("result") or subtype)).strip()
        if result.exit_code or answer.get("is_error") or subtype.startswith("error"):
            text = f"{clip(text, MAX_ANSWER_CHARACTERS)}\n[{self.name} failed, exit code {result.exit_code}]"
            raise WorkerError(text.strip())
        if not text:
            raise WorkerError(f"{self.name} gave an empty answer")
        return clip(text, MAX_ANSWER_CHARACTERS) + _denied_tools(answer)

    def _describe_failure(self, result: _Result) -> str:
        text = result.describe(self.name)
        if self.session and _SESSION_LOST in text:
            self.session = ""
            return f"{text}\n[the session is lost: the worker has forgotten all that was said, and begins a new one]"
        return text if result.exit_code else f"{self.name} gave something that is not an answer:\n{text}"


def load_worker(
    spec: str, *, directory: str | os.PathLike[str] = ".", timeout: float = DEFAULT_TIMEOUT_SECONDS
) -> Worker:
    """Return the worker that a setting names: `claude`, `claude:OPTIONS` or `command:COMMAND`."""
    kind, _, rest = spec.partition(":")
    if kind == "claude":
        return ClaudeCodeWorker(_split_command(rest, spec), directory=directory, timeout=timeout)
    if kind == "command" and rest.strip():
        return CommandWorker(rest, directory=directory, timeout=timeout)
    raise InputError(
        f'{spec!r} is not a worker; choose one of: claude, claude:"--model sonnet", command:"my-agent --quiet"'
    )


def clip(text: str, max_characters: int, head: float = 0.25) -> str:
    """Cut out the middle of a text, and say how many characters are left out. The end, where errors stand, is longer.

    >>> clip("a" * 10 + "b" * 100, 40)
    'aaaaaaaaaa\\n[... 70 characters left out ...]\\nbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb'
    """
    left_out = len(text) - max_characters
    if left_out <= 0:
        return text
    first = int(max_characters * head)
    return f"{text[:first]}\n[... {left_out:,} characters left out ...]\n{text[first + left_out :]}"


class _Result(NamedTuple):
    exit_code: int
    output: str
    errors: str

    def describe(self, name: str) -> str:
        """Put together what it wrote, for somebody to read; what went wrong stands at the end."""
        parts = [clip(self.output, MAX_ANSWER_CHARACTERS).strip()]
        if self.errors.strip() and (self.exit_code or not parts[0]):
            parts.append(f"[standard error]\n{clip(self.errors, MAX_ANSWER_CHARACTERS).strip()}")
        if self.exit_code:
            parts.append(f"[{name} ended with exit code {self.exit_code}]")
        return "\n".join(filter(None, parts)) or "[no output]"


class _Program:
    """A program that is run once a turn, in a folder, for so many seconds at most.

    Its input and output are files, not pipes: neither a long prompt nor a child of it that lives on can block us.
    """

    def __init__(self, program: str, directory: str | os.PathLike[str], timeout: float) -> None:
        path = shutil.which(program)
        if path is None:
            raise InputError(f"there is no program {program!r} to do the work: install it, or name another worker")
        if not math.isfinite(timeout) or timeout <= 0:
            raise InputError(f"the time limit of a worker is {timeout!r}: it must be a number of seconds")
        if not Path(directory).is_dir():
            raise InputError(f"the worker cannot work in {directory}: there is no such folder")
        self._path = os.path.abspath(path)
        self._directory = directory
        self._timeout = timeout

    def run(self, arguments: Sequence[str], prompt: str, **variables: str) -> _Result:
        environment = {name: value for name, value in os.environ.items() if name not in _MEMORY_VARIABLES}
        with TemporaryFile() as stdin, TemporaryFile() as output, TemporaryFile() as errors:
            stdin.write(replace_surrogates(prompt).encode())
            stdin.seek(0)
            try:
                process = subprocess.Popen(
                    [self._path, *arguments],
                    stdin=stdin,
                    stdout=output,
                    stderr=errors,
                    cwd=self._directory,
                    env=environment | variables,
                    start_new_session=True,
                )
            except OSError as error:
                raise WorkerError(f"{self._path} cannot be run: {error.strerror or error}") from None
            try:
                exit_code = process.wait(self._timeout)
            except subprocess.TimeoutExpired:
                _kill(process)
                text = _Result(0, _read_end(output), _read_end(errors)).describe(self._path)
                raise WorkerError(f"{text}\n[stopped: no answer within {self._timeout:g} seconds]") from None
            except BaseException:
                _kill(process)
                raise
            return _Result(exit_code, _read_end(output), _read_end(errors))


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()


def _read_end(file: IO[bytes]) -> str:
    """What a file holds; of one that is too large the end."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _MAX_OUTPUT_BYTES))
    return file.read(_MAX_OUTPUT_BYTES).decode(errors="replace")


def _split_command(text: str, shown: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InputError(f"cannot read {shown!r} as a command: {error}") from None


def _check_arguments(arguments: Sequence[str], given: str | Sequence[str]) -> None:
    are_texts = all(isinstance(argument, str) and "\0" not in argument for argument in arguments)
    if not arguments or not are_texts or not arguments[0].strip():
        raise InputError(f"{given!r} is not a command: name a program and its arguments")


def _check_session(session: Any) -> str:
    if session and (not isinstance(session, str) or not _SESSION_ID.fullmatch(session)):
        raise WorkerError("claude gave a session that cannot be one")
    return str(session or "")


def _last_result(output: str) -> dict[str, Any] | None:
    """The result in what was printed: one object, or the last of a list or of lines that says it is one."""
    for text in (output, *reversed(output.splitlines())):
        with suppress(ValueError, RecursionError):
            value = json.loads(text)
            for event in reversed(value if isinstance(value, list) else [value]):
                if isinstance(event, dict) and event.get("type", "result") == "result":
                    return event
    return None


def _denied_tools(answer: Mapping[str, Any]) -> str:
    denials = answer.get("permission_denials")
    events = [event for event in denials if isinstance(event, dict)] if isinstance(denials, list) else []
    tools = [event.get("tool_name") for event in events]
    names = dict.fromkeys(tool for tool in tools if isinstance(tool, str) and tool.isprintable())
    return f"\n[the worker was not allowed to use: {', '.join(names)}]" if names else ""


def _cost(answer: Mapping[str, Any]) -> float:
    cost = answer.get("total_cost_usd", 0.0)
    return float(cost) if isinstance(cost, int | float) and math.isfinite(cost) and cost > 0 else 0.0
