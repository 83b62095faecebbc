"""A command that says whether the work is done, such as the tests of a project."""

import os
from typing import Final, NamedTuple

from eunoe.apps.tickets.excerpt import clip_redacted, last_lines
from eunoe.apps.tickets.program import Program, check_arguments, split_command
from eunoe.apps.tickets.redaction import redact
from eunoe.apps.tickets.worker import DEFAULT_TIMEOUT_SECONDS
from eunoe.text.normalize import one_line

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
