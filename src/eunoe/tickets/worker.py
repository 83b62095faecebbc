"""Who does the work of a ticket: a coding agent behind one small protocol."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import secrets
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

from eunoe.errors import EunoeError, InputError
from eunoe.text.normalize import replace_surrogates

TIMEOUT = 3600.0

_LONGEST = 200_000
_LARGEST = 64 * 1024 * 1024
_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,199}")
_PRIVATE = ("MEMORY_SAVE_DIR", "EUNOE_STORE")
_LOST = "No conversation found"
_OURS = ("-p", "--print", "--output-format", "--input-format", "-r", "--resume", "-c", "--continue", "--session-id")


class WorkerError(EunoeError):
    """A worker did not do its part. What it said is in the message: the director reads it like an answer."""


class Worker(Protocol):
    """One that is sent a prompt and answers it, and knows what was said before.

    It raises WorkerError when it fails. One that also has `session`, a text, is given the session it had when a ticket
    is taken up again; one that has `cost` says what it has cost so far.
    """

    def send(self, prompt: str) -> str: ...


class Scripted:
    """Answers from a list in turn, or from a function of the prompt; keeps the prompts it was sent.

    >>> worker = Scripted(["Done.", WorkerError("no disk")])
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


class Command:
    """Any command: it reads the prompt on standard input and answers on standard output.

    It is run once a turn, never by a shell. `EUNOE_SESSION` is the same in all turns of a ticket, so that it can keep
    what it needs under that name.
    """

    def __init__(
        self, arguments: str | Sequence[str], *, directory: str | os.PathLike[str] = ".", timeout: float = TIMEOUT
    ) -> None:
        self.arguments = _arguments(arguments)
        self.name = os.path.basename(self.arguments[0])
        self.session = secrets.token_hex(8)
        self._program = _Program(_found(self.arguments[0]), directory, timeout)

    def send(self, prompt: str) -> str:
        result = self._program.run(self.arguments[1:], prompt, {"EUNOE_SESSION": self.session})
        said = result.said(self.name)
        if result.code:
            raise WorkerError(said)
        return said


class ClaudeCode:
    """The Claude Code CLI, which keeps the session between turns.

    The prompt goes in on standard input: as an argument it could be taken for an option, and be too long.
    """

    name = "claude"

    def __init__(
        self,
        options: Sequence[str] = (),
        *,
        directory: str | os.PathLike[str] = ".",
        timeout: float = TIMEOUT,
        program: str = "claude",
    ) -> None:
        self.options = _options(options)
        self.session = ""
        self.cost = 0.0
        self._program = _Program(_found(program), directory, timeout)

    def send(self, prompt: str) -> str:
        going_on = ["--resume", _session(self.session)] if self.session else []
        result = self._program.run(["-p", "--output-format", "json", *going_on, *self.options], prompt)
        return self._answer(result)

    def _answer(self, result: _Result) -> str:
        answer = _last_result(result.output)
        if answer is None:
            raise WorkerError(self._trouble(result))
        self.session = _session(answer.get("session_id") or self.session)
        self.cost += _cost(answer)
        kind = str(answer.get("subtype") or "")
        said = replace_surrogates(str(answer.get("result") or kind)).strip()
        if result.code or answer.get("is_error") or kind.startswith("error"):
            raise WorkerError(f"{_short(said)}\n[{self.name} failed, exit code {result.code}]".strip())
        if not said:
            raise WorkerError(f"{self.name} gave an empty answer")
        return _short(said) + _denied(answer)

    def _trouble(self, result: _Result) -> str:
        said = result.said(self.name)
        if self.session and _LOST in said:
            self.session = ""
            return f"{said}\n[the session is lost: the worker has forgotten all that was said, and begins a new one]"
        return said if result.code else f"{self.name} gave something that is not an answer:\n{said}"


def load(spec: str, *, directory: str | os.PathLike[str] = ".", timeout: float = TIMEOUT) -> Worker:
    """The worker a setting names: `claude`, `claude:OPTIONS` or `command:COMMAND`."""
    kind, _, rest = spec.partition(":")
    if kind == "claude":
        return ClaudeCode(_split(rest, spec), directory=directory, timeout=timeout)
    if kind == "command" and rest.strip():
        return Command(rest, directory=directory, timeout=timeout)
    raise InputError(
        f'{spec!r} is not a worker; choose one of: claude, claude:"--model sonnet", command:"my-agent --quiet"'
    )


def clipped(text: str, longest: int, head: float = 0.25) -> str:
    """A text of at most so many characters, apart from the words that say how many are left out.

    Most of what is kept is the end, where errors stand.

    >>> clipped("a" * 10 + "b" * 100, 40)
    'aaaaaaaaaa\\n[... 70 characters left out ...]\\nbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb'
    """
    if len(text) <= longest:
        return text
    first = int(longest * head)
    last = longest - first
    return f"{text[:first]}\n[... {len(text) - longest:,} characters left out ...]\n{text[len(text) - last :]}"


class _Result(NamedTuple):
    """What a program that has ended left behind."""

    code: int
    output: str
    errors: str

    def said(self, name: str) -> str:
        """What it said, for somebody to read; what went wrong stands at the end."""
        parts = [_short(self.output).strip()]
        if self.errors.strip() and (self.code or not parts[0]):
            parts.append(f"[standard error]\n{_short(self.errors).strip()}")
        if self.code:
            parts.append(f"[{name} ended with exit code {self.code}]")
        return "\n".join(part for part in parts if part) or "[no output]"


class _Program:
    """A program that is run once a turn, in a folder, for so many seconds at most.

    Its input and output are files, not pipes: neither a long prompt nor a child of it that lives on can block us.
    """

    def __init__(self, path: str, directory: str | os.PathLike[str], timeout: float) -> None:
        if not math.isfinite(timeout) or timeout <= 0:
            raise InputError(f"the time limit of a worker is {timeout!r}: it must be a number of seconds")
        if not Path(directory).is_dir():
            raise InputError(f"the worker cannot work in {directory}: there is no such folder")
        self._path = path
        self._directory = directory
        self._timeout = timeout

    def run(self, arguments: Sequence[str], prompt: str, variables: Mapping[str, str] | None = None) -> _Result:
        with _file() as given, _file() as output, _file() as errors:
            given.write(replace_surrogates(prompt).encode())
            given.seek(0)
            code = self._ended(self._started(arguments, variables, given, output, errors), output, errors)
            return _Result(code, _read(output), _read(errors))

    def _started(
        self, arguments: Sequence[str], variables: Mapping[str, str] | None, *files: IO[bytes]
    ) -> subprocess.Popen[bytes]:
        given, output, errors = files
        try:
            return subprocess.Popen(
                [self._path, *arguments],
                stdin=given,
                stdout=output,
                stderr=errors,
                cwd=self._directory,
                env={**_environment(), **(variables or {})},
                start_new_session=True,
            )
        except OSError as error:
            raise WorkerError(f"{self._path} cannot be run: {error.strerror or error}") from None

    def _ended(self, process: subprocess.Popen[bytes], output: IO[bytes], errors: IO[bytes]) -> int:
        try:
            return process.wait(self._timeout)
        except subprocess.TimeoutExpired:
            _stop(process)
            said = _Result(0, _read(output), _read(errors)).said(self._path)
            raise WorkerError(f"{said}\n[stopped: no answer within {self._timeout:g} seconds]") from None
        except BaseException:
            _stop(process)
            raise


def _environment() -> dict[str, str]:
    """What a worker may know of ours: all but where the memory rests, which is not for it."""
    return {name: value for name, value in os.environ.items() if name not in _PRIVATE}


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ends a program and what it has started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()


def _file() -> IO[bytes]:
    return tempfile.TemporaryFile(prefix="eunoe-")


def _read(file: IO[bytes]) -> str:
    """What a file holds; of one that is too large the end."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _LARGEST))
    return file.read(_LARGEST).decode(errors="replace")


def _short(text: str) -> str:
    return clipped(text, _LONGEST)


def _arguments(given: str | Sequence[str]) -> list[str]:
    arguments = _split(given, given) if isinstance(given, str) else list(given)
    if not arguments or any(not isinstance(one, str) or "\0" in one for one in arguments) or not arguments[0].strip():
        raise InputError(f"{given!r} is not a command: name a program and its arguments")
    return arguments


def _split(text: str, shown: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InputError(f"cannot read {shown!r} as a command: {error}") from None


def _found(program: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise InputError(f"there is no program {program!r} to do the work: install it, or name another worker")
    return os.path.abspath(path)


def _options(options: Sequence[str]) -> list[str]:
    given = _arguments(["claude", *options])[1:]
    taken = [one for one in given if one.partition("=")[0] in _OURS]
    if taken:
        raise InputError(f"the option {taken[0]} of claude is set for every turn: leave it out")
    return given


def _session(session: Any) -> str:
    if not session:
        return ""
    if not isinstance(session, str) or not _SESSION.fullmatch(session):
        raise WorkerError("claude gave a session that cannot be one")
    return session


def _last_result(output: str) -> dict[str, Any] | None:
    """The result in what was printed: one object, or the last of a list or of lines that says it is one."""
    for text in (output, *reversed(output.splitlines())):
        with contextlib.suppress(ValueError, RecursionError):
            value = json.loads(text)
            for one in reversed(value if isinstance(value, list) else [value]):
                if isinstance(one, dict) and one.get("type", "result") == "result":
                    return one
    return None


def _denied(answer: Mapping[str, Any]) -> str:
    """Which tools the worker was not allowed to use, if that is said."""
    denials = answer.get("permission_denials")
    found = [one.get("tool_name") for one in denials if isinstance(one, dict)] if isinstance(denials, list) else []
    names = dict.fromkeys(name for name in found if isinstance(name, str) and name.isprintable())
    return f"\n[the worker was not allowed to use: {', '.join(names)}]" if names else ""


def _cost(answer: Mapping[str, Any]) -> float:
    cost = answer.get("total_cost_usd", 0.0)
    return float(cost) if isinstance(cost, int | float) and math.isfinite(cost) and cost > 0 else 0.0
