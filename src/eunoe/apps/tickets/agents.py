"""Coding agents with a command line of their own: Claude Code and Codex CLI, and the worker that a setting names.

Each is run once a turn and prints JSON; from the second turn on it is told to go on in its session. The prompt goes in
on standard input: as an argument it could be taken for an option, and be too long.
"""

import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Final, NoReturn

from eunoe.apps.tickets.program import Program, ProgramResult, check_arguments, split_command
from eunoe.apps.tickets.worker import DEFAULT_TIMEOUT_SECONDS, CommandWorker, Worker, WorkerError
from eunoe.errors import InputError
from eunoe.text.normalize import replace_surrogates

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
        if fixed := [option for option in self.options if self._is_fixed(option)]:
            raise InputError(f"the option {fixed[0]} of {self.name} is set for every turn: leave it out")
        self.session = ""
        self.directory = directory
        self._program = Program(program or self.name, directory, timeout)

    def _is_fixed(self, option: str) -> bool:
        """Whether an option is set already, also if it is cut short or its value is put right behind it."""
        name = option.partition("=")[0]
        if name.startswith("--"):
            return any(fixed.startswith(name) for fixed in self.fixed_options)
        return name in self.fixed_options or (name[:1] == "-" and name[:2] in self.fixed_options - {"-"})

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

    def _finish(self, result: ProgramResult, text: str, remarks: Iterable[str]) -> str:
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
        self.cost += _cost(answer)
        text, kind = _text(answer.get("result")), _text(answer.get("subtype"))
        errors = [kind, *map(_text, _items(answer.get("errors")))] if kind.startswith("error") else []
        if not any(words in error for error in errors for words in self.lost_session):  # then it names one of its own
            self.session = self._checked_session(answer.get("session_id") or self.session)
        if result.trouble or errors or answer.get("is_error"):
            self._fail(result, text, *errors)
        return self._finish(result, text, _denied_tools(answer))


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
        return self._finish(result, text, _codex_remarks(events))


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
    whole = _parse_events(output)
    yield from (
        (event for line in output.splitlines() for event in _parse_events(line) or ()) if whole is None else whole
    )


def _parse_events(text: str) -> list[dict[str, Any]] | None:
    with suppress(ValueError, RecursionError):
        value = json.loads(text)
        return [event for event in (value if isinstance(value, list) else [value]) if isinstance(event, dict)]
    return None


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in _items(value) if isinstance(item, Mapping)]


def _denied_tools(answer: Mapping[str, Any]) -> Iterator[str]:
    tools = [_text(denial.get("tool_name")) for denial in _mappings(answer.get("permission_denials"))]
    if names := [tool for tool in dict.fromkeys(tools) if tool and tool.isprintable()]:
        yield f"[the worker was not allowed to use: {', '.join(names)}]"


def _cost(answer: Mapping[str, Any]) -> float:
    cost = answer.get("total_cost_usd", 0.0)
    return float(cost) if isinstance(cost, int | float) and math.isfinite(cost) and cost > 0 else 0.0


def _codex_items(events: Iterable[Mapping[str, Any]], kind: str) -> list[Mapping[str, Any]]:
    items = _mappings([event.get("item") for event in events if event.get("type") == "item.completed"])
    return [item for item in items if item.get("type") == kind]


def _codex_errors(events: Iterable[Mapping[str, Any]]) -> list[str]:
    """Why the turn failed. An error after which it was completed all the same is none."""
    kinds = ("turn.started", "turn.completed", "turn.failed", "error")
    ends = [event for event in events if event.get("type") in kinds]
    last = ends[-1]["type"] if ends else ""
    if last == "turn.completed":
        return []
    details = [event.get("error") for event in ends]
    texts = [
        _text(error.get("message") if isinstance(error, Mapping) else event.get("message"))
        for event, error in zip(ends, details, strict=True)
    ]
    return list(dict.fromkeys(filter(None, texts))) or [
        "the turn failed" if last in ("turn.failed", "error") else "the events break off before the turn was completed"
    ]


def _codex_remarks(events: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    changes = [change for item in _codex_items(events, "file_change") for change in _mappings(item.get("changes"))]
    if paths := [path for path in dict.fromkeys(_text(change.get("path")) for change in changes) if path]:
        yield f"[files it says it changed: {', '.join(paths)}]"
    if errors := list(
        dict.fromkeys(filter(None, (_text(item.get("message")) for item in _codex_items(events, "error"))))
    ):
        yield f"[errors on the way: {'; '.join(errors)}]"
    declined = [item for item in _codex_items(events, "command_execution") if item.get("status") == "declined"]
    if commands := list(dict.fromkeys(_text(item.get("command")) for item in declined)):
        yield f"[the worker was not allowed to run: {'; '.join(commands)}]"
