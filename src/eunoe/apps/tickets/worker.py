"""Who does the work of a ticket: a coding agent behind one small protocol."""

import os
import secrets
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from eunoe.apps.tickets.program import Program, check_arguments, split_command
from eunoe.errors import EunoeError

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
