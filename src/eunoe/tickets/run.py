"""One ticket from its plan to its end: the director decides, the worker acts, and what was learned is remembered."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from eunoe.errors import EunoeError, InputError, LlmError, NotFoundError
from eunoe.model.scope import Scope
from eunoe.text.normalize import replace_surrogates
from eunoe.tickets import log
from eunoe.tickets.director import Decision, Director, quoted
from eunoe.tickets.leak import Guard
from eunoe.tickets.recollection import Recollection, memories_of
from eunoe.tickets.state import (
    CANCELLED,
    COMPLETED,
    FAILED,
    REVERTED,
    RUNNING,
    Progress,
    Recalled,
    Shelf,
    Step,
    moment,
)
from eunoe.tickets.ticket import Ticket
from eunoe.tickets.worker import Worker, clipped

_LONGEST = 200_000
_SHOWN = 600
_WITHHELD = "[not sent: the prompt said nothing but what was recalled; the worker has not seen it]"
_log = logging.getLogger(__name__)


class Run:
    """Drives a ticket. A run that was killed goes on where it stood; a ticket that is complete stays so.

    Args:
        recollection: what the director remembers; without it the ticket runs without memory, and says so.
        again: run a completed ticket once more.
        say: is told, line by line, what happens.
    """

    def __init__(
        self,
        ticket: Ticket,
        director: Director,
        worker: Worker,
        shelf: Shelf,
        recollection: Recollection | None = None,
        *,
        again: bool = False,
        say: Callable[[str], None] = _log.info,
    ) -> None:
        if not ticket.project.strip():
            raise InputError("the ticket belongs to no project: name one")
        Scope(project=ticket.project)
        self.ticket = ticket
        self._director = director
        self._worker = worker
        self._shelf = shelf
        self._memory = recollection or Recollection(None, ticket.project)
        self._again = again
        self._say = say
        self._cancelled = threading.Event()

    def cancel(self) -> None:
        """Ends the run when the turn it is in has ended; may be called from any thread."""
        self._cancelled.set()

    def finish(self) -> Progress:
        """Works until the ticket is complete, has failed or was cancelled; says which.

        LlmError if the director's model fails: then the ticket is not over, and the next run goes on from there.
        """
        with self._shelf.claimed(self.ticket.project, self.ticket.id):
            progress = self._taken_up()
            if progress.outcome == RUNNING:
                self._drive(progress)
            self._remember(progress)
            return progress

    def _taken_up(self) -> Progress:
        known = self._shelf.load(self.ticket.project, self.ticket.id)
        if known is None:
            return self._begun(1)
        _check_same_file(known.ticket, self.ticket)
        if known.outcome == RUNNING and known.ticket.words == self.ticket.words:
            return self._resumed(known)
        if known.outcome == COMPLETED and not self._again:
            self._say(f"the ticket {self.ticket.id} was completed in run {known.run} ({known.ended})")
            return known
        self._remember(known)
        return self._begun(known.run + 1)

    def _begun(self, number: int) -> Progress:
        progress = Progress(self.ticket, number)
        progress.worker = _name(self._worker)
        progress.model = self._director.name
        progress.session = _session(self._worker)
        if not self._memory:
            self._say("no memory: the ticket runs without, and leaves none")
            progress.notes.append("no memory: the ticket runs without, and leaves none")
        self._save(progress)
        return progress

    def _resumed(self, progress: Progress) -> Progress:
        if progress.session and progress.worker == _name(self._worker) and hasattr(self._worker, "session"):
            self._worker.session = progress.session
        progress.worker, progress.model = _name(self._worker), self._director.name
        said = f"taken up again after {_turns(len(progress.turns))}"
        self._say(said)
        progress.notes.append(f"{moment()}: {said}")
        return progress

    def _drive(self, progress: Progress) -> None:
        try:
            while progress.outcome == RUNNING:
                self._step(progress)
        except KeyboardInterrupt:
            _close_step(progress)
            self._end(progress, CANCELLED, "interrupted")
        except EunoeError as error:
            progress.notes.append(f"{moment()}: stopped: {error}")
            self._save(progress)
            raise

    def _step(self, progress: Progress) -> None:
        if self._cancelled.is_set():
            self._end(progress, CANCELLED, "cancelled")
            return
        step = _open_step(progress)
        if not step.decided:
            self._decide(progress, step)
        if step.complete:
            self._end(progress, COMPLETED)
        elif len(progress.turns) >= self._director.limits.turns:
            self._end(progress, FAILED, f"not complete after {_turns(len(progress.turns))}.")
        elif not self._cancelled.is_set():
            self._send(progress, step)

    def _decide(self, progress: Progress, step: Step) -> None:
        before = progress.steps[:-1]
        step.recalled = self._recalled(progress, before)
        try:
            decision = self._decision(before, step)
            step.prompt = decision.next_prompt and self._guarded(progress, step, decision.next_prompt)
        finally:
            step.usage += self._director.usage()
        step.complete, step.summary, step.decided = decision.complete, decision.summary, True
        self._save(progress)
        self._say(f"director: {_brief(step.summary or step.prompt)}")

    def _decision(self, before: list[Step], step: Step) -> Decision:
        if not before:
            return self._director.plan(self.ticket, step.recalled)
        return self._director.judge(self.ticket, before, step.recalled)

    def _recalled(self, progress: Progress, before: list[Step]) -> list[Recalled]:
        if not before:
            found = self._memory.at_start(self.ticket)
        else:
            found = self._memory.at_turn(before[-1].prompt, before[-1].answer or "")
        self._note_failures(progress, progress.steps[-1].notes)
        return found

    def _guarded(self, progress: Progress, step: Step, prompt: str) -> str:
        """The prompt without recalled text: in the director's other words, else with those parts cut out."""
        guard = Guard(_forms(one.text for one in progress.recalled), _said(self.ticket, progress.steps))
        passages = guard.passages(prompt)
        if not passages:
            return prompt
        step.notes.append(f"the prompt carried recalled text in {len(passages)} places and was written again")
        written = self._rewritten(progress, prompt, [passage.text for passage in passages])
        if guard.passages(written):
            step.notes.append("it still carried recalled text, which was cut out")
            written = guard.cut(written)
        return written

    def _rewritten(self, progress: Progress, prompt: str, passages: list[str]) -> str:
        try:
            return self._director.rewrite(self.ticket, progress.steps[:-1], prompt, passages)
        except LlmError as error:
            _log.warning("the director could not write the prompt again: %s", error)
            return prompt

    def _send(self, progress: Progress, step: Step) -> None:
        if not step.prompt:
            step.answer, step.failed = _WITHHELD, True
        else:
            if step.sent:
                step.notes.append("the run ended before an answer came; the prompt is sent again")
            step.sent = True
            self._save(progress)
            self._answered(step)
        progress.session = _session(self._worker)
        self._save(progress)
        self._say(f"turn {len(progress.turns)}: {'failed: ' if step.failed else ''}{_brief(step.answer or '')}")
        self._give_up(progress)

    def _answered(self, step: Step) -> None:
        began, spent = time.perf_counter(), _cost(self._worker)
        try:
            step.answer, step.failed = str(self._worker.send(step.prompt)), False
        except Exception as error:
            known = isinstance(error, EunoeError)
            step.answer, step.failed = str(error) if known else f"{type(error).__name__}: {error}", True
        step.answer = clipped(replace_surrogates(step.answer), _LONGEST).strip() or "[no output]"
        step.seconds = round(time.perf_counter() - began, 3)
        step.worker_cost = max(0.0, _cost(self._worker) - spent)

    def _give_up(self, progress: Progress) -> None:
        most = self._director.limits.failures
        last = progress.steps[-most:]
        if len(last) == most and all(step.failed for step in last):
            said = clipped(last[-1].answer or "", _SHOWN, 0.0)
            self._end(progress, FAILED, f"the worker failed {most} times in a row, at last with: {said}")

    def _end(self, progress: Progress, outcome: str, reason: str = "") -> None:
        """Marks the end before anything is remembered: what a killed process did not remember is still due."""
        progress.outcome, progress.reason, progress.ended = outcome, reason, moment()
        progress.summary = next((step.summary for step in reversed(progress.steps) if step.summary), "")
        progress.due = self.ticket.document(_lesson(progress)) if self._memory else ""
        self._save(progress)

    def _remember(self, progress: Progress) -> None:
        if not progress.due or not self._memory:
            return
        ids = self._memory.keep(progress)
        self._note_failures(progress, progress.notes)
        if ids:
            progress.memories, progress.due = ids, ""
        self._save(progress)

    def _note_failures(self, progress: Progress, notes: list[str]) -> None:
        failures = self._memory.failures
        progress.memory_failures += len(failures)
        notes += failures
        failures.clear()

    def _save(self, progress: Progress) -> None:
        self._shelf.save(progress, log.markdown(progress))


def revert(shelf: Shelf, memory: Any, project: str, ticket: str) -> list[str]:
    """Takes back what a ticket left in a project memory, all of that and nothing else; gives the ids removed.

    The ticket can then be run again.
    """
    if shelf.load(project, ticket) is None and not memories_of(memory, project, ticket):
        raise NotFoundError(f"there is no ticket {ticket} in project {project}, and no memory of it")
    with shelf.claimed(project, ticket):
        known = shelf.load(project, ticket)
        ids = memories_of(memory, project, ticket)
        removed: list[str] = memory.delete(project, ids) if ids else []
        if known is not None and (removed or known.outcome != REVERTED):
            known.outcome, known.memories, known.due = REVERTED, [], ""
            known.notes.append(f"{moment()}: reverted, {len(removed)} memories removed")
            shelf.save(known, log.markdown(known))
        return removed


def _open_step(progress: Progress) -> Step:
    """The step that is not finished, else a new one."""
    if not progress.steps or progress.steps[-1].answer is not None:
        progress.steps.append(Step(moment()))
    return progress.steps[-1]


def _close_step(progress: Progress) -> None:
    if progress.steps and progress.steps[-1].sent and progress.steps[-1].answer is None:
        progress.steps[-1].notes.append("the worker was stopped")


def _check_same_file(known: Ticket, ticket: Ticket) -> None:
    """Two files are two tickets, and need two ids; a file that was moved is still the same."""
    if known.file and ticket.file and known.file != ticket.file and Path(known.file).exists():
        raise InputError(
            f"the id {ticket.id} belongs to {known.file}: give {ticket.file} another, as 'id' in its front matter"
        )


def _said(ticket: Ticket, steps: Iterable[Step]) -> list[str]:
    """What the worker may be told, since it is in the ticket or in the conversation."""
    own = [ticket.title, ticket.description, ticket.document("")]
    return own + [text for step in steps for text in (step.prompt, step.answer or "")]


def _forms(texts: Iterable[str]) -> list[str]:
    """What was recalled, also as it is quoted for the director where that differs."""
    many = list(texts)
    return many + [form for text in many if (form := quoted(text)) != f'"{text}"']


def _lesson(progress: Progress) -> str:
    if progress.outcome == COMPLETED:
        return progress.summary
    how = "This ticket failed" if progress.outcome == FAILED else "This ticket was cancelled"
    why = f": {progress.reason}" if progress.outcome == FAILED else f" after {_turns(len(progress.turns))}."
    stood = f" Where it stood: {progress.summary}" if progress.summary else ""
    return f"{how}{why}{stood}"


def _turns(count: int) -> str:
    return "1 turn" if count == 1 else f"{count} turns"


def _name(worker: Worker) -> str:
    return str(getattr(worker, "name", type(worker).__name__))


def _session(worker: Worker) -> str:
    return str(getattr(worker, "session", ""))


def _cost(worker: Worker) -> float:
    return float(getattr(worker, "cost", 0.0))


def _brief(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 120 else f"{line[:119]}…"
