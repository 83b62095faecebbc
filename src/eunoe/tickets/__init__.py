"""A director that brings tickets to an end with a coding worker, and remembers what each of them taught."""

from eunoe.tickets.agents import ClaudeCodeWorker, CodexWorker, load_worker
from eunoe.tickets.check import Check
from eunoe.tickets.cleaning import Cleaning, redact_lessons, redact_runs
from eunoe.tickets.director import Decision, Director, Limits
from eunoe.tickets.lessons import Lesson, find_lessons, revert
from eunoe.tickets.memory import TicketMemory
from eunoe.tickets.redaction import redact
from eunoe.tickets.run import Run
from eunoe.tickets.run_folder import DamagedRun, RunFolder
from eunoe.tickets.state import RecalledMemory, RunState
from eunoe.tickets.ticket import Ticket, read_ticket
from eunoe.tickets.work_folder import WorkFolder
from eunoe.tickets.worker import CommandWorker, ScriptedWorker, Worker, WorkerError

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
