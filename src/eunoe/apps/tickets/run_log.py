"""The log of a run, for people to read: one Markdown page, written anew from the state after every step."""

import re
from collections.abc import Iterator
from typing import Final

from eunoe.apps.tickets.director import memory_lines
from eunoe.apps.tickets.state import DirectorUsage, RunState, Step

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
