"""A director that brings tickets to an end with a coding worker, and remembers what each of them taught."""

from __future__ import annotations

from eunoe.tickets.director import Decision, Director, Limits
from eunoe.tickets.recollection import Recollection
from eunoe.tickets.run import Run, revert
from eunoe.tickets.state import Damaged, Progress, Recalled, Shelf
from eunoe.tickets.ticket import Ticket, read
from eunoe.tickets.worker import ClaudeCode, Command, Scripted, Worker, WorkerError

__all__ = [
    "ClaudeCode",
    "Command",
    "Damaged",
    "Decision",
    "Director",
    "Limits",
    "Progress",
    "Recalled",
    "Recollection",
    "Run",
    "Scripted",
    "Shelf",
    "Ticket",
    "Worker",
    "WorkerError",
    "read",
    "revert",
]
