"""The log of a run, for people to read: one Markdown page, written again from the state after every step."""

from __future__ import annotations

import re
from collections.abc import Iterator

from eunoe.tickets.director import memory_lines
from eunoe.tickets.state import RUNNING, Progress, Step, Usage

_TICKS = re.compile(r"`{3,}")
_UNBOUNDED = 10**9


def markdown(progress: Progress) -> str:
    """The whole page."""
    return "\n".join([*_head(progress), *_turns(progress), *_end(progress)]) + "\n"


def _head(progress: Progress) -> Iterator[str]:
    ticket = progress.ticket
    yield f"# {ticket.title}\n"
    yield f"- ticket: {ticket.id}, run {progress.run}"
    yield f"- project: {ticket.project}"
    yield f"- worker: {progress.worker}"
    yield f"- director: {progress.model}"
    yield f"- began: {progress.began}"
    yield f"- outcome: {_outcome(progress)}"
    yield from (f"- note: {_line(note)}" for note in progress.notes)
    if ticket.description:
        yield f"\n{_fenced(ticket.description)}"


def _turns(progress: Progress) -> Iterator[str]:
    for number, step in enumerate(progress.steps, 1):
        yield f"\n## Turn {number}, {step.began}\n"
        yield from _memories(step)
        if step.decided:
            yield f"**Director**: {'complete' if step.complete else 'goes on'}. {_line(step.summary)}\n"
        yield from (f"> {_line(note)}\n" for note in step.notes)
        if step.prompt:
            yield f"**Prompt**\n\n{_fenced(step.prompt)}\n"
        if step.answer is not None:
            yield f"**{'Failure' if step.failed else 'Answer'}** ({_worker(step)})\n\n{_fenced(step.answer)}\n"
        yield f"Director: {_taken(step.usage)}"


def _memories(step: Step) -> Iterator[str]:
    if step.recalled:
        lines = "\n".join(memory_lines(step.recalled, _UNBOUNDED, _UNBOUNDED))
        yield f"Memories invoked:\n\n{_fenced(lines)}\n"
    else:
        yield "Memories invoked: none\n"


def _end(progress: Progress) -> Iterator[str]:
    if progress.outcome == RUNNING:
        return
    yield f"\n## {progress.outcome.capitalize()}, {progress.ended}\n"
    yield from filter(None, (progress.reason, progress.summary))
    worker = sum(step.worker_cost for step in progress.steps)
    cost = f"; worker: cost {worker:.4f}" if worker else ""
    yield f"\n{len(progress.turns)} turns; director: {_taken(progress.usage)}{cost}"
    yield f"\nRemembered as: {', '.join(progress.memories) or 'nothing'}"
    if progress.memory_failures:
        yield f"\nMemory failed {progress.memory_failures} times."


def _outcome(progress: Progress) -> str:
    return f"{progress.outcome}: {_line(progress.reason)}" if progress.reason else progress.outcome


def _worker(step: Step) -> str:
    return f"{step.seconds:.1f} s" + (f", cost {step.worker_cost:.4f}" if step.worker_cost else "")


def _taken(usage: Usage) -> str:
    read = f"{usage.input_tokens:,} tokens read, {usage.output_tokens:,} written"
    return f"{usage.calls} calls, {read}, {usage.seconds:.1f} s, cost {usage.cost:.4f}"


def _fenced(text: str) -> str:
    """A text as it is, between marks that do not stand in it."""
    longest = max((len(ticks) for ticks in _TICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def _line(text: str) -> str:
    return " ".join(text.split())
