"""One ticket from its plan to its end: the director decides, the worker acts, and what was learned is remembered."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from eunoe.apps.tickets.director import UNEXPLAINED, Decision, Director
from eunoe.apps.tickets.leak_guard import LeakGuard
from eunoe.apps.tickets.memory import TicketMemory
from eunoe.apps.tickets.redaction import clip, clip_redacted, last_lines, redact
from eunoe.apps.tickets.run_folder import RunFolder
from eunoe.apps.tickets.state import RunOutcome, RunState, Step, timestamp
from eunoe.apps.tickets.ticket import Ticket, as_sentence
from eunoe.apps.tickets.work import NOTHING, Changes, Work, WorkFolder
from eunoe.apps.tickets.worker import NO_OUTPUT, Check, Worker, summarize_failure
from eunoe.errors import EunoeError, InputError, LlmError
from eunoe.model.scope import Scope
from eunoe.text.normalize import one_line, replace_surrogates

_MAX_ANSWER_CHARACTERS: Final = 200_000
_MAX_REASON_CHARACTERS: Final = 600
_MAX_LINE_CHARACTERS: Final = 120
_MAX_FAILURE_LINES: Final = 6
_NO_MEMORY: Final = "no memory: the ticket runs without, and leaves none"
_NOT_SENT: Final = "[not sent: the prompt said nothing but what was recalled; the worker has not seen it]"
_SECRET_IN_TICKET: Final = (
    "the ticket holds a secret, which is shown to nobody: name the file or the variable that holds it instead"
)
_NOTHING_LEFT: Final = "Nothing is left of what changed in the worker's turns, or others have changed it since."
_NOTHING_TO_CHANGE: Final = "the director says that there was nothing to change."
_ONLY_FAILED: Final = "The worker ended every turn with a failure."
_NOBODY_LOOKED: Final = "Nobody looked at the result."
_log = logging.getLogger(__name__)


class Run:
    """Drives a ticket. A run that was killed goes on where it stood; a ticket that is complete stays so.

    Secrets are taken out of all that comes in: the ticket, the answers, the decisions, the memories.

    Args:
        memory: what the director remembers; without it the ticket runs without memory, and says so.
        folder: where states and logs are kept.
        work_folder: where the worker works, else what the worker says of it. It is looked at after every turn.
        check: decides with the director whether the ticket is complete.
        again: run a completed ticket once more.
        say: is called with a line for each thing that happens.
    """

    def __init__(
        self,
        ticket: Ticket,
        director: Director,
        worker: Worker,
        folder: RunFolder,
        memory: TicketMemory | None = None,
        *,
        work_folder: WorkFolder | None = None,
        check: Check | None = None,
        again: bool = False,
        say: Callable[[str], None] = _log.info,
    ) -> None:
        if not ticket.project.strip():
            raise InputError("the ticket belongs to no project: name one")
        Scope(project=ticket.project)
        self.ticket = replace(ticket, title=redact(ticket.title), description=redact(ticket.description))
        self._holds_secret = self.ticket.words != ticket.words
        self._director = director
        self._worker = worker
        self._worker_name = str(getattr(worker, "name", type(worker).__name__))
        self._folder = folder
        self._memory = memory or TicketMemory(None, ticket.project)
        if self._memory.project != ticket.project:
            raise InputError(f"the memory is of project {self._memory.project}, the ticket of {ticket.project}")
        directory = getattr(worker, "directory", None)
        self._work_folder = work_folder or (WorkFolder(directory, [folder.path]) if directory else None)
        self._check = check
        self._again = again
        self._say = say
        self._is_cancelled = threading.Event()

    def cancel(self) -> None:
        """End the run when the turn it is in has ended; may be called from any thread."""
        self._is_cancelled.set()

    def finish(self) -> RunState:
        """Work until the ticket is complete, has failed or was cancelled.

        Raise LlmError if the director's LLM fails: then the ticket is not over, and the next run goes on from there.
        """
        with self._folder.lock(self.ticket.project, self.ticket.id):
            state = self._begin_or_resume()
            if state.outcome == "running":
                self._drive(state)
            self._remember(state)
            return state

    def _begin_or_resume(self) -> RunState:
        last = self._folder.load(self.ticket.project, self.ticket.id)
        if last is None:
            return self._begin()
        _check_same_file(last.ticket, self.ticket)
        if last.outcome == "running" and redact(last.ticket.words) == self.ticket.words:
            return self._resume(last)
        if last.outcome == "completed" and not self._again:
            self._say(f"the ticket {self.ticket.id} was completed in run {last.run} ({last.ended})")
            return last
        self._remember(last)
        return self._begin()

    def _begin(self) -> RunState:
        number = self._folder.next_run(self.ticket.project, self.ticket.id)
        state = RunState(self.ticket, number, session=self._session(), worker=self._worker_name)
        state.model = self._director.name
        for note in (_NO_MEMORY if not self._memory else "", _SECRET_IN_TICKET if self._holds_secret else ""):
            if note:
                self._say(note)
                state.notes.append(note)
        self._begin_work(state)
        self._folder.save(state)
        return state

    def _resume(self, state: RunState) -> RunState:
        if state.session and state.worker == self._worker_name and hasattr(self._worker, "session"):
            self._worker.session = state.session
        state.ticket, state.worker, state.model = self.ticket, self._worker_name, self._director.name
        note = f"taken up again after {_turn_count(state)}"
        self._say(note)
        state.notes.append(f"{timestamp()}: {note}")
        self._begin_work(state)
        return state

    def _begin_work(self, state: RunState) -> None:
        folder, first = self._work_folder, state.work.first if state.work else None
        if folder and (first is None or (first.folder, first.is_plain) != (str(folder.path), folder.git is None)):
            if first is not None:
                state.notes.append("the folder is looked at in another way than before: what was done is not counted")
            state.work = Work(folder.look())

    def _session(self) -> str:
        return str(getattr(self._worker, "session", ""))

    def _drive(self, state: RunState) -> None:
        try:
            while state.outcome == "running":
                self._take_step(state)
        except KeyboardInterrupt:
            if state.steps and state.steps[-1].sent and state.steps[-1].answer is None:
                state.steps[-1].notes.append("the worker was stopped")
            self._end(state, "cancelled", "interrupted")
        except EunoeError as error:
            error.args = (redact(str(error)), *error.args[1:])
            state.notes.append(f"{timestamp()}: stopped: {error}")
            self._folder.save(state)
            self._say("the ticket is not over: run it again, and it goes on from here")
            raise

    def _take_step(self, state: RunState) -> None:
        if self._is_cancelled.is_set():
            self._end(state, "cancelled", "cancelled")
            return
        if not state.steps or state.steps[-1].answer is not None:
            state.steps.append(Step(timestamp()))
        step = state.steps[-1]
        if not step.decided:
            self._decide(state, step)
        if step.complete:
            self._end(state, "completed")
        elif len(state.turns) >= self._director.limits.turns:
            failed = f" {summarize_failure(step.check)}" if step.check else ""
            self._end(state, "failed", f"not complete after {_turn_count(state)}.{failed}")
        elif not self._is_cancelled.is_set():
            self._send(state, step)

    def _decide(self, state: RunState, step: Step) -> None:
        earlier = state.steps[:-1]
        if earlier:
            step.recalled = self._memory.recall_for_turn(earlier[-1].prompt, earlier[-1].answer or "")
        else:
            step.recalled = self._memory.recall_for_ticket(self.ticket)
        self._note_failures(state, step.notes)
        try:
            decision = self._judge(state, step) if earlier else self._director.plan(self.ticket, step.recalled)
            step.prompt = decision.next_prompt and self._without_leaks(state, step, redact(decision.next_prompt))
        finally:
            step.usage += self._director.usage()
        step.complete, step.summary, step.decided = decision.complete, redact(decision.summary), True
        if decision.warning:
            step.notes.append(decision.warning)
            self._say(decision.warning)
        self._folder.save(state)
        self._say(f"director: {one_line(step.summary or step.prompt or 'complete', _MAX_LINE_CHARACTERS)}")

    def _judge(self, state: RunState, step: Step) -> Decision:
        """What the director makes of the last answer. If it is complete, the check and the folder decide with it."""
        earlier = state.steps[:-1]
        decision = self._director.judge(self.ticket, earlier, step.recalled)
        if not decision.complete:
            return decision
        missing = self._run_check(step) or self._look_again(state, step)
        return self._director.go_on(self.ticket, earlier, step.recalled, missing) if missing else decision

    def _run_check(self, step: Step) -> str:
        """What the check wrote, if it failed."""
        if not self._check:
            return ""
        result = self._check.run()
        step.check = result.text
        if result.passed:
            self._say("check: passed")
            return ""
        self._say_failure("check", result.text)
        return result.text

    def _look_again(self, state: RunState, step: Step) -> str:
        """What is found in the folder, if nothing is left of what the worker did."""
        last = state.steps[-2]
        had_changed = last.changed
        self._look(state, last, Work.look_again)
        if not had_changed or last.changed is not False:
            return ""
        missing = f"{_NOTHING_LEFT}\n{last.result}"
        step.check = "\n".join(filter(None, (step.check, missing)))
        self._say_failure("result", missing)
        return missing

    def _look(self, state: RunState, step: Step, find: Callable[[Work, WorkFolder, list[str]], Changes]) -> None:
        """Note what the worker has changed in the folder."""
        if not self._work_folder or not state.work:
            return
        changes = find(state.work, self._work_folder, self._texts(state))
        step.result, step.changed = redact(changes.describe()), bool(changes)
        state.evidence = redact(changes.summarize())

    def _texts(self, state: RunState) -> list[str]:
        """What may name files that lie elsewhere."""
        return [self.ticket.words, *(text for step in state.steps for text in (step.prompt, step.answer or ""))]

    def _without_leaks(self, state: RunState, step: Step, prompt: str) -> str:
        """The prompt without recalled text: in the director's other words, else with those parts cut out."""
        own = [self.ticket.title, self.ticket.description, self.ticket.document("")]
        turns = [(turn.prompt if turn.sent else "", turn.answer or "") for turn in state.steps[:-1]]
        turns += [("", found) for turn in state.steps for found in (turn.result, turn.check)]
        guard = LeakGuard((memory.text for memory in state.recalled), own, turns)
        leaks = guard.find_leaks(prompt)
        if not leaks:
            return prompt
        step.notes.append(f"the prompt carried recalled text in {len(leaks)} places and was written again")
        try:
            passages = [leak.text for leak in leaks]
            prompt = redact(self._director.rewrite(self.ticket, state.steps[:-1], prompt, passages))
        except LlmError as error:
            _log.warning("the director could not write the prompt again: %s", redact(str(error)))
        if guard.find_leaks(prompt):
            step.notes.append("it still carried recalled text, which was cut out")
            prompt = guard.redact(prompt)
        return prompt

    def _send(self, state: RunState, step: Step) -> None:
        if not step.prompt:
            step.answer, step.failed = _NOT_SENT, True
        else:
            if step.sent:
                step.notes.append("the run ended before an answer came; the prompt is sent again")
            if self._work_folder and state.work:
                state.work.begin_turn(self._work_folder, self._texts(state))
            step.sent = True
            self._folder.save(state)
            self._ask_worker(state, step)
        state.session = self._session()
        self._folder.save(state)
        self._say_turn(state, step)
        limit = self._director.limits.failures
        last_steps = state.steps[-limit:]
        if len(last_steps) == limit and all(last.failed for last in last_steps):
            answer = clip(step.answer or "", _MAX_REASON_CHARACTERS, head=0.0)
            self._end(state, "failed", f"the worker failed {limit} times in a row, at last with: {answer}")

    def _ask_worker(self, state: RunState, step: Step) -> None:
        began, cost_before = time.perf_counter(), self._worker_cost()
        try:
            answer, step.failed = str(self._worker.send(step.prompt)), False
        except Exception as error:
            answer = str(error) if isinstance(error, EunoeError) else f"{type(error).__name__}: {error}"
            step.failed = True
        step.answer = clip_redacted(replace_surrogates(answer), _MAX_ANSWER_CHARACTERS).strip() or NO_OUTPUT
        step.seconds = round(time.perf_counter() - began, 3)
        step.worker_cost = max(0.0, self._worker_cost() - cost_before)
        self._look(state, step, Work.end_turn)

    def _worker_cost(self) -> float:
        return float(getattr(self._worker, "cost", 0.0))

    def _say_turn(self, state: RunState, step: Step) -> None:
        turn, answer = f"turn {len(state.turns)}", step.answer or ""
        if step.failed:
            self._say_failure(turn, answer)
        else:
            self._say(f"{turn}: {one_line(answer, _MAX_LINE_CHARACTERS)}")
        if step.result:
            self._say(f"  {step.result.splitlines()[0]}")

    def _say_failure(self, what: str, text: str) -> None:
        """Say why something failed: its last lines, where errors stand."""
        self._say(f"{what}: failed")
        for line in last_lines(text, _MAX_FAILURE_LINES):
            self._say(f"  {one_line(line, _MAX_LINE_CHARACTERS)}")

    def _end(self, state: RunState, outcome: RunOutcome, reason: str = "") -> None:
        """Mark the end before anything is remembered: what a killed process did not remember is still due."""
        state.outcome, state.reason, state.ended = outcome, reason, timestamp()
        state.summary = next((step.summary for step in reversed(state.steps) if step.summary), "")
        if outcome == "completed":
            state.summary = state.steps[-1].summary  # not the plan's, where it has none
            state.evidence = _evidence(state)
        state.due = self.ticket.document(_lesson(state)) if self._memory else ""
        self._folder.save(state)

    def _remember(self, state: RunState) -> None:
        if not state.due or not self._memory:
            return
        ids = self._memory.keep(state)
        self._note_failures(state, state.notes)
        if ids:
            state.memories, state.due = ids, ""
        self._folder.save(state)

    def _note_failures(self, state: RunState, notes: list[str]) -> None:
        state.memory_failures += len(self._memory.failures)
        notes += self._memory.failures
        self._memory.failures.clear()


def _check_same_file(last: Ticket, ticket: Ticket) -> None:
    """Refuse one id for two files. A file that was moved is still the same ticket."""
    if last.file and ticket.file and last.file != ticket.file and Path(last.file).exists():
        raise InputError(
            f"the id {ticket.id} belongs to {last.file}: give {ticket.file} another, as 'id' in its front matter"
        )


def _evidence(state: RunState) -> str:
    """What bears it out that a ticket is complete, and what does not."""
    found = state.evidence or _NOBODY_LOOKED
    if found == NOTHING:
        is_explained = not any(UNEXPLAINED in note for note in state.steps[-1].notes)
        found = f"{found[:-1]}: {_NOTHING_TO_CHANGE if is_explained else f'{UNEXPLAINED}.'}"
    failed = _ONLY_FAILED if all(step.failed for step in state.turns) else ""
    return " ".join(filter(None, (found, failed, *state.steps[-1].check.splitlines()[:1])))


def _lesson(state: RunState) -> str:
    if state.outcome == "completed":
        return f"{as_sentence(state.summary)} {state.evidence}".strip()
    failed, cancelled = f"failed: {as_sentence(state.reason)}", f"was cancelled after {_turn_count(state)}."
    summary = f"Where it stood: {as_sentence(state.summary)}" if state.summary else ""
    ending = failed if state.outcome == "failed" else cancelled
    return " ".join(filter(None, (f"This ticket {ending}", summary, state.evidence)))


def _turn_count(state: RunState) -> str:
    return "1 turn" if len(state.turns) == 1 else f"{len(state.turns)} turns"
