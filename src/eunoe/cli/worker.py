"""`eunoe worker`: forms conversations that have gone quiet, round after round, until it is told to stop."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from queue import Empty, SimpleQueue
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eunoe.cli import output
from eunoe.cli.command import MisuseError, Settings, command
from eunoe.cli.forming import words
from eunoe.model.report import FormReport

if TYPE_CHECKING:
    from eunoe.memory import Memory

# Sessions of one round, the rest is for the next one; and those taken at once by each of the workers.
_MOST = 1000
_EACH = 4


def register(app: typer.Typer) -> None:
    command(app, "worker", "eunoe worker --every 600 --concurrency 3", models=True)(worker)


def worker(
    settings: Settings,
    every: Annotated[float, typer.Option("--every", help="Seconds from round to round.")] = 600,
    idle: Annotated[float, typer.Option("--idle", min=0, help="Seconds a conversation has been quiet.")] = 600,
    minimum: Annotated[int, typer.Option("--minimum", min=1, help="Messages that must wait in it.")] = 4,
    concurrency: Annotated[int, typer.Option("--concurrency", min=1, help="Conversations formed at a time.")] = 3,
    once: Annotated[bool, typer.Option("--once", help="One round, and leave.")] = False,
) -> None:
    """Form conversations that have gone quiet, every ten minutes, until stopped by Ctrl-C or SIGTERM."""
    if every <= 0:
        raise MisuseError("--every must be more than 0 seconds")
    with stopped_by_signals() as stop, settings.memory(create=True, asks=True) as memory:
        rounds = Rounds(memory, stop, idle=idle, minimum=minimum, concurrency=concurrency)
        while True:
            report = rounds.work()
            _show(settings, report)
            if once or stop.wait(every):
                break
    if once and report.failed:
        raise typer.Exit(1)


class Stop:
    """Set by a signal; a wait for it ends at once. A second Ctrl-C interrupts what is under way."""

    def __init__(self) -> None:
        # A signal may come while its own thread is inside a wait: an Event can lock up then, this queue cannot.
        self._signals: SimpleQueue[int] = SimpleQueue()
        self.called = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.called and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.called = True
        self._signals.put(number)

    def wait(self, seconds: float) -> bool:
        if self.called:
            return True
        try:
            self._signals.get(timeout=seconds)
        except Empty:
            return False
        return True


class Rounds:
    """Rounds of work on one memory: a few conversations at a time, so that a stop has not long to wait."""

    def __init__(self, memory: Memory, stop: Stop, *, idle: float, minimum: int, concurrency: int) -> None:
        self._memory = memory
        self._stop = stop
        self._wanted: dict[str, Any] = {"idle": idle, "minimum": minimum, "concurrency": concurrency}

    def work(self) -> FormReport:
        """One round. Whatever goes wrong is part of its report."""
        total = FormReport()
        try:
            for part in self._parts():
                total += part
        except Exception as error:
            total += FormReport(failed=(f"{type(error).__name__}: {error}",))
        return total

    def _parts(self) -> Iterator[FormReport]:
        size = _EACH * int(self._wanted["concurrency"])
        for _ in range(0, _MOST, size):
            part = self._memory.admin.process_cold_sessions(limit=size, **self._wanted)
            yield part
            if self._stop.called or part == FormReport():
                return


@contextmanager
def stopped_by_signals() -> Iterator[Stop]:
    stop = Stop()
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _show(settings: Settings, report: FormReport) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    if settings.json:
        output.line({"time": now, **output.plain(report)})
        return
    output.say(f"{now:%Y-%m-%d %H:%M:%S} {words(report)}")
    for fault in report.failed:
        output.say(f"  failed, and still due: {output.one_line(fault)}")
