"""The folder of all runs: their states and logs, kept after every step, so that a killed run goes on where it stood."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from eunoe.apps.tickets.director import memory_lines
from eunoe.apps.tickets.state import DirectorUsage, RunOutcome, RunState, Step
from eunoe.errors import ConflictError, InputError, NotFoundError
from eunoe.files import locked, write_file
from eunoe.text.normalize import fingerprint

_BACKTICKS: Final = re.compile(r"`{3,}")
_NO_LIMIT_TOKENS: Final = 10**9


def render_log(state: RunState) -> str:
    """Return the whole page."""
    steps = (line for number, step in enumerate(state.steps, 1) for line in _step_lines(number, step))
    return "\n".join([*_head_lines(state), *steps, *_end_lines(state)]) + "\n"


def _head_lines(state: RunState) -> Iterator[str]:
    ticket = state.ticket
    yield f"# {ticket.title}\n"
    yield f"- ticket: {ticket.id}, run {state.run}"
    yield f"- project: {ticket.project}"
    yield f"- worker: {state.worker}"
    yield f"- director: {state.model}"
    yield f"- began: {state.began}"
    yield f"- outcome: {state.outcome}" + (f": {_join_lines(state.reason)}" if state.reason else "")
    yield from (f"- note: {_join_lines(note)}" for note in state.notes)
    if ticket.description:
        yield f"\n{_fence(ticket.description)}"


def _step_lines(number: int, step: Step) -> Iterator[str]:
    yield f"\n## Turn {number}, {step.began}\n"
    memories = "\n".join(memory_lines(step.recalled, _NO_LIMIT_TOKENS, _NO_LIMIT_TOKENS))
    yield f"Memories invoked:\n\n{_fence(memories)}\n" if memories else "Memories invoked: none\n"
    if step.decided:
        yield f"**Director**: {'complete' if step.complete else 'goes on'}. {_join_lines(step.summary)}\n"
    yield from (f"> {_join_lines(note)}\n" for note in step.notes)
    if step.prompt:
        yield f"**Prompt**\n\n{_fence(step.prompt)}\n"
    if step.check:
        yield f"**Check**\n\n{_fence(step.check)}\n"
    if step.answer is not None:
        cost = f", cost {step.worker_cost:.4f}" if step.worker_cost else ""
        heading = f"**{'Failure' if step.failed else 'Answer'}** ({step.seconds:.1f} s{cost})"
        yield f"{heading}\n\n{_fence(step.answer)}\n"
    if step.result:
        yield f"**Found in the folder**\n\n{_fence(step.result)}\n"
    yield f"Director: {_usage_text(step.usage)}"


def _end_lines(state: RunState) -> Iterator[str]:
    if state.outcome == "running":
        return
    yield f"\n## {state.outcome.capitalize()}, {state.ended}\n"
    yield from filter(None, (state.reason, state.summary, state.evidence))
    worker_cost = sum(step.worker_cost for step in state.steps)
    cost = f"; worker: cost {worker_cost:.4f}" if worker_cost else ""
    yield f"\n{len(state.turns)} turns; director: {_usage_text(state.usage)}{cost}"
    yield f"\nRemembered as: {', '.join(state.memories) or 'nothing'}"
    if state.memory_failures:
        yield f"\nMemory failed {state.memory_failures} times."


def _usage_text(usage: DirectorUsage) -> str:
    tokens = f"{usage.input_tokens:,} tokens read, {usage.output_tokens:,} written"
    return f"{usage.calls} calls, {tokens}, {usage.seconds:.1f} s, cost {usage.cost:.4f}"


def _fence(text: str) -> str:
    longest = max(map(len, _BACKTICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def _join_lines(text: str) -> str:
    return " ".join(text.split())


_STATE_FILE: Final = "state.json"
_DAMAGED_FILE: Final = "state.damaged.json"
_LOCK_FILE: Final = ".lock"
_LOCK_SECONDS: Final = 0.05
_SAFE_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}")
_LOG_FILE: Final = re.compile(r"run-(\d{1,9})\.md")
_OWN_FILE: Final = re.compile(r"state(?:\.damaged)?\.json|run-\d{1,9}\.md|\.(?:state\.json|run-\d{1,9}\.md)\..*")
_UNSAFE_CHARACTERS: Final = re.compile(r"[^a-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class DamagedRun:
    """A ticket whose state cannot be read, by the names of its folders."""

    project: str
    ticket: str
    reason: str


class RunFolder:
    """One folder for each ticket of each project, with the state of its last run and a log of each run."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).expanduser()

    def ticket_folder(self, project: str, ticket: str) -> Path:
        return self.path / folder_name(project) / folder_name(ticket)

    def has(self, project: str, ticket: str) -> bool:
        """Whether a ticket was ever begun."""
        return (self.ticket_folder(project, ticket) / _STATE_FILE).exists()

    def load(self, project: str, ticket: str) -> RunState | None:
        """Return the last run of a ticket; None if it was never begun."""
        path = self.ticket_folder(project, ticket) / _STATE_FILE
        return _load(path) if path.exists() else None

    def load_or_set_aside(self, project: str, ticket: str) -> RunState | None:
        """Return the last run of a ticket; rename a state that cannot be read, so that the ticket can be run again."""
        try:
            return self.load(project, ticket)
        except InputError:
            path = self.ticket_folder(project, ticket) / _STATE_FILE
            os.replace(path, path.with_name(_DAMAGED_FILE))
            return None

    def next_run(self, project: str, ticket: str) -> int:
        """Return the number of a new run: one more than that of the last log."""
        logs = self.ticket_folder(project, ticket).glob("run-*.md")
        return 1 + max((int(match[1]) for log in logs if (match := _LOG_FILE.fullmatch(log.name))), default=0)

    def get(self, project: str, ticket: str) -> RunState:
        """Return the last run of a ticket, or raise NotFoundError."""
        state = self.load(project, ticket)
        if state is None:
            raise NotFoundError(f"there is no ticket {ticket} in project {project}: `eunoe ticket list` shows them")
        return state

    def save(self, state: RunState) -> None:
        """Write the state and the log, each whole or not at all: after a kill the old or the new ones are there."""
        folder = self.ticket_folder(state.ticket.project, state.ticket.id)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        log = folder / f"run-{state.run:03}.md"
        state.log = str(log)
        write_file(folder / _STATE_FILE, json.dumps(asdict(state), indent=1).encode())
        write_file(log, render_log(state).encode("utf-8", "replace"))

    def rewrite(self, path: Path, text: str) -> None:
        """Write one file of a ticket anew, whole or not at all. A draft that a killed process left is removed."""
        with _lock(path.parent, path.parent.name):  # which removes drafts
            if path.exists():
                write_file(path, text.encode("utf-8", "replace"))

    def files(self, project: str = "") -> list[Path]:
        """Return the states and logs of all tickets, or of those of a project, and drafts of them."""
        places = f"{folder_name(project) if project else '*'}/*"
        return sorted(path for path in self.path.glob(f"{places}/*") if _OWN_FILE.fullmatch(path.name))

    def all(self, project: str = "") -> Iterator[RunState | DamagedRun]:
        """Return the last run of every ticket, or of those of a project."""
        projects = folder_name(project) if project else "*"
        for path in sorted(self.path.glob(f"{projects}/*/{_STATE_FILE}")):
            try:
                yield _load(path)
            except (InputError, OSError) as error:
                yield DamagedRun(path.parent.parent.name, path.parent.name, str(error))

    def outcome(self, state: RunState) -> RunOutcome:
        """Return how a run ended; one that did not and that no process works on was interrupted."""
        if state.outcome != "running":
            return state.outcome
        lock = self.ticket_folder(state.ticket.project, state.ticket.id) / _LOCK_FILE
        if not lock.exists():
            return "interrupted"
        try:
            with locked(lock, shared=True):
                return "interrupted"
        except ConflictError:
            return "running"

    def outcome_of(self, project: str, ticket: str) -> str:
        """Return how the last run of a ticket ended; nothing if there is none, or its state is damaged."""
        try:
            state = self.load(project, ticket)
        except InputError:
            return ""
        return self.outcome(state) if state else ""

    @contextmanager
    def lock(self, project: str, ticket: str) -> Iterator[None]:
        """Hold a ticket, so that no other process drives it meanwhile. The end of this process releases it."""
        folder = self.ticket_folder(project, ticket)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _lock(folder, ticket):
            yield


def folder_name(name: str) -> str:
    """Return a safe name as it is, and any other changed so that it stays in its place and stays distinct.

    >>> folder_name("web-shop"), folder_name("../Web Shop")
    ('web-shop', 'web-shop~b54c8806bbf3')
    """
    if _SAFE_NAME.fullmatch(name):
        return name
    if not name.strip():
        raise InputError("a project and a ticket need a name")
    return f"{_UNSAFE_CHARACTERS.sub('-', name.lower()).strip('-')[:40]}~{fingerprint(name).hex()[:12]}"


@contextmanager
def _lock(folder: Path, ticket: str) -> Iterator[None]:
    with ExitStack() as stack:
        try:  # whoever only looks whether a ticket is locked holds the lock for a moment, too
            stack.enter_context(locked(folder / _LOCK_FILE, timeout=_LOCK_SECONDS))
        except ConflictError:
            raise ConflictError(f"the ticket {ticket} is being worked on by another process") from None
        for draft in (*folder.glob(f".{_STATE_FILE}.*"), *folder.glob(".run-*")):  # what a killed process was writing
            draft.unlink(missing_ok=True)
        yield


def _load(path: Path) -> RunState:
    try:
        state = RunState.from_dict(json.loads(path.read_text(encoding="utf-8")))
        names = folder_name(state.ticket.project), folder_name(state.ticket.id)
        if state.run < 1 or names != (path.parent.parent.name, path.parent.name):
            raise ValueError("it is of another ticket, or of no run")
        return state
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, IsADirectoryError, InputError) as error:
        raise InputError(
            f"{path} is not the state of a ticket ({type(error).__name__}): `eunoe ticket revert` sets it aside"
        ) from None
