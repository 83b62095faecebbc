"""The messages of a run on their way into the log of its discussion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from eunoe.apps.discussion.log.discussion_log import DiscussionLog
from eunoe.apps.discussion.workflow.chat import ChatMessage
from eunoe.memory import Memory
from eunoe.model.scope import Scope
from eunoe.text.dates import describe_age


@dataclass(slots=True)
class Intake:
    """Takes the messages in once, right before the first node that does more than read."""

    scope: Scope
    messages: Sequence[ChatMessage]
    is_done: bool = False
    _new: int = 0

    def take_in(self, memory: Memory) -> tuple[str, ...]:
        """Take the messages in, unless that is done. Return what a person should know."""
        if self.is_done:
            return ()
        report = DiscussionLog(memory, self.scope).take_in(self.messages)
        self.is_done, self._new = True, len(report.new)
        return report.notes

    def time_context(self, memory: Memory, now: datetime) -> str:
        """When the discussion began, and when something was last said in it before this run."""
        times = [each.time for each in DiscussionLog(memory, self.scope).messages() if each.time]
        earlier = times[: len(times) - self._new]
        if not earlier:
            return ""
        began, last = (describe_age(time, now.astimezone()) for time in (earlier[0], earlier[-1]))
        return f"This discussion began {began}. Before now something was last said in it {last}."
