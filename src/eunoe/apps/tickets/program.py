"""A program that is run in a folder: a coding worker once a turn, or a check."""

import math
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Final, NamedTuple

from eunoe.apps.tickets.excerpt import MAX_SEARCHED_CHARACTERS, clip
from eunoe.errors import InputError
from eunoe.text.normalize import replace_surrogates

MAX_OUTPUT_CHARACTERS: Final = 2 * MAX_SEARCHED_CHARACTERS
"""What is cut out here is cut out again before secrets are looked for, with what stands beside it."""
NO_OUTPUT: Final = "[no output]"
_MAX_OUTPUT_BYTES: Final = 64 * 1024 * 1024
_HIDDEN_VARIABLES: Final = frozenset(
    ["MEMORY_SAVE_DIR", "EUNOE_STORE", "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR"]
)
"""Where the memory rests is not for a worker to know; what a git hook sets would lead it to another repository."""


class ProgramResult(NamedTuple):
    """What a program wrote, and what was wrong with it; nothing, if it ended well."""

    name: str
    output: str
    errors: str
    trouble: str = ""

    def describe(self) -> str:
        """Put together what it wrote, for somebody to read; what went wrong stands at the end."""
        parts = [clip(self.output, MAX_OUTPUT_CHARACTERS).strip()]
        if self.errors.strip() and (self.trouble or not parts[0]):
            parts.append(f"[standard error]\n{clip(self.errors, MAX_OUTPUT_CHARACTERS).strip()}")
        if self.trouble:
            parts.append(f"[{self.name} {self.trouble}]")
        return "\n".join(filter(None, parts)) or NO_OUTPUT


class Program:
    """Runs for so many seconds at most, never by a shell, and is not told where the memory rests.

    Its input and output are files, not pipes: neither a long input nor a child of it that lives on can block us.
    """

    def __init__(
        self, name: str, directory: str | os.PathLike[str], timeout: float, *, decoding: str = "replace"
    ) -> None:
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
        self._decoding = decoding

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
        text = file.read(_MAX_OUTPUT_BYTES).decode(errors=self._decoding)
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
