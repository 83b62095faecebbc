"""A director that brings tickets to an end with a coding worker, and remembers what each of them taught."""

from eunoe.apps.tickets.director import Decision, Director, Limits
from eunoe.apps.tickets.memory import Cleaning, Lesson, TicketMemory, find_lessons, redact_lessons, redact_runs, revert
from eunoe.apps.tickets.redaction import redact
from eunoe.apps.tickets.run import Run
from eunoe.apps.tickets.run_folder import DamagedRun, RunFolder
from eunoe.apps.tickets.state import RecalledMemory, RunState
from eunoe.apps.tickets.ticket import Ticket, read_ticket
from eunoe.apps.tickets.work import WorkFolder
from eunoe.apps.tickets.worker import (
    Check,
    ClaudeCodeWorker,
    CodexWorker,
    CommandWorker,
    ScriptedWorker,
    Worker,
    WorkerError,
    load_worker,
)

__all__ = [
    "Check",
    "ClaudeCodeWorker",
    "Cleaning",
    "CodexWorker",
    "CommandWorker",
    "DamagedRun",
    "Decision",
    "Director",
    "Lesson",
    "Limits",
    "RecalledMemory",
    "Run",
    "RunFolder",
    "RunState",
    "ScriptedWorker",
    "Ticket",
    "TicketMemory",
    "WorkFolder",
    "Worker",
    "WorkerError",
    "find_lessons",
    "load_worker",
    "read_ticket",
    "redact",
    "redact_lessons",
    "redact_runs",
    "revert",
]
