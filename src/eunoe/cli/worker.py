"""`eunoe worker`: forms conversations that have gone quiet, round after round, until it is stopped."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Annotated, Final

import typer

from eunoe.cli.command import Call, MisuseError, command
from eunoe.cli.display import output
from eunoe.cli.forming import failure_lines, form_summary
from eunoe.model.arguments import utc_now
from eunoe.model.json import json_value
from eunoe.model.result import FormReport

Handler = Callable[[int, FrameType | None], object]

_MAX_SESSIONS: Final = 1000
"""Of one round; the rest is for the next one."""
_SESSIONS_PER_THREAD: Final = 4
"""Taken at once, so that a stop has not long to wait."""


@command("eunoe worker --every 600 --concurrency 3", asks_llm=True)
def worker(
    call: Call,
    every: Annotated[float, typer.Option("--every", help="Seconds from round to round.")] = 600,
    idle: Annotated[float, typer.Option("--idle", min=0, help="Seconds a conversation has been quiet.")] = 600,
    minimum: Annotated[int, typer.Option("--minimum", min=1, help="Messages that must wait in it.")] = 4,
    concurrency: Annotated[int, typer.Option("--concurrency", min=1, help="Conversations formed at a time.")] = 3,
    once: Annotated[bool, typer.Option("--once", help="One round, and leave.")] = False,
) -> None:
    """Form conversations that have gone quiet, until Ctrl-C or SIGTERM."""
    if not 0 < every <= threading.TIMEOUT_MAX:
        raise MisuseError("--every must be more than 0 seconds, and a number of them")
    stop = Stop()
    call.stack.enter_context(signal_handlers(stop, stop))
    memory = call.open(create=True, needs_llm=True)
    size = _SESSIONS_PER_THREAD * concurrency
    while True:
        report = FormReport()
        try:
            for _ in range(0, _MAX_SESSIONS, size):
                part = memory.admin.process_cold_sessions(
                    idle=idle, minimum=minimum, limit=size, concurrency=concurrency
                )
                report += part
                if stop.is_set or part == FormReport():
                    break
        except Exception as error:  # the next round may go well
            report += FormReport(failed=(f"{type(error).__name__}: {error}",))
        _show(call, report)
        if once or stop.wait(every):
            break
    if once and report.failed:
        raise typer.Exit(1)


class Stop:
    """Set by a signal, which also ends a wait. A second Ctrl-C interrupts what is under way."""

    def __init__(self) -> None:
        # A signal may come while its own thread is inside a wait: an Event can lock up then, this queue cannot.
        self._signals: SimpleQueue[int] = SimpleQueue()
        self.is_set = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.is_set and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.is_set = True
        self._signals.put(number)

    def wait(self, seconds: float) -> bool:
        if self.is_set:
            return True
        try:
            self._signals.get(timeout=seconds)
        except Empty:
            return False
        return True


@contextmanager
def signal_handlers(interrupt: Handler, terminate: Handler) -> Iterator[None]:
    """Handle Ctrl-C and SIGTERM, and leave them afterwards as they were."""
    handlers = {signal.SIGINT: interrupt, signal.SIGTERM: terminate}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _show(call: Call, report: FormReport) -> None:
    now = utc_now().replace(microsecond=0)
    if call.json:
        output.write_json({"time": now, **json_value(report)}, indent=None)
        return
    output.say(f"{now:%Y-%m-%d %H:%M:%S} {form_summary(report)}")
    output.say_notes(failure_lines(report.failed))
