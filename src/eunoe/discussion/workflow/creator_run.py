"""Creators that a workflow starts: at once, or behind the reply."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

from eunoe.discussion.report import UpdateReport
from eunoe.discussion.settings import DiscussionSettings
from eunoe.discussion.summary import new_since_summary
from eunoe.discussion.update import update_discussion
from eunoe.discussion.workflow.runner import Run
from eunoe.errors import WorkflowError


def update_memory(run: Run, force: bool = False) -> UpdateReport:
    """Take in the messages of a run, and make the memories that are due."""
    if run.memory is None or run.scope is None:
        raise WorkflowError("memories are made only where there is a discussion id")
    report = update_discussion(
        run.memory,
        run.scope,
        _settings(run),
        messages=run.messages,
        force=force,
        find_model=run.environment.models.find,
        run_workflow=run.call,
        files_dir=run.environment.files_dir,
    )
    tool = run.environment.user_settings.chat_summary_workflow
    least = run.environment.settings.summary.least_memories
    if tool and len(new_since_summary(run.memory, run.scope)) >= least:
        run.call(tool)
    return report


def queue_update(run: Run) -> None:
    """Let `update_memory` be done behind the reply."""
    queue = run.environment.queue
    if queue and run.memory and run.scope:
        later = replace(run, outputs={}, traces=[], notes=[], stack=ExitStack())
        queue.put((run.memory, run.scope), lambda: update_memory(later))


def _settings(run: Run) -> DiscussionSettings:
    """Those of the run. A workflow for the summary is run in place of its author."""
    settings = run.environment.settings
    if not run.environment.user_settings.chat_summary_workflow:
        return settings
    return replace(settings, summary=replace(settings.summary, is_on=False))
