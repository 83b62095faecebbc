"""A director that brings tickets to an end with a coding worker, and remembers what each of them taught."""

from eunoe.tickets.director import Decision, Director, Limits
from eunoe.tickets.memory import TicketMemory
from eunoe.tickets.run import Run, revert
from eunoe.tickets.run_folder import DamagedRun, RunFolder
from eunoe.tickets.state import RecalledMemory, RunState
from eunoe.tickets.ticket import Ticket, read_ticket
from eunoe.tickets.worker import ClaudeCodeWorker, CommandWorker, ScriptedWorker, Worker, WorkerError

__all__ = [
    "ClaudeCodeWorker",
    "CommandWorker",
    "DamagedRun",
    "Decision",
    "Director",
    "Limits",
    "RecalledMemory",
    "Run",
    "RunFolder",
    "RunState",
    "ScriptedWorker",
    "Ticket",
    "TicketMemory",
    "Worker",
    "WorkerError",
    "read_ticket",
    "revert",
]
