"""Creators that a workflow starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from eunoe.apps.discussion.documents.summary import new_since_summary
from eunoe.apps.discussion.report import UpdateReport
from eunoe.apps.discussion.settings import DiscussionSettings
from eunoe.apps.discussion.update import update_discussion
from eunoe.apps.discussion.workflow.chat import ChatMessage
from eunoe.apps.discussion.workflow.node_call import NodeCall
from eunoe.apps.discussion.workflow.runner import Run
from eunoe.errors import ConflictError, LlmError, WorkflowError
from eunoe.memory import Memory
from eunoe.model.arguments import show
from eunoe.model.scope import Scope


def make_memories(call: NodeCall, *, force: bool = False, is_whole: bool = False) -> None:
    """Take in the messages of a run, and make the memories that are due.

    What goes wrong is noted: it stays due, and no reply is lost for it.
    """
    try:
        report = _update(call.run, call.messages, force, is_whole)
    except (ConflictError, LlmError, WorkflowError) as error:
        call.note(f"{_title(call.run)}: {error}")
    else:
        _note_failures(call, report)


def _note_failures(call: NodeCall, report: UpdateReport) -> None:
    title = _title(call.run)
    for failure in report.failed:
        call.note(f"{title}: a chunk failed (attempt {failure.attempts}) and stays due: {failure.error}")
    for note in report.notes:
        call.note(f"{title}: {note}")


def _title(run: Run) -> str:
    return f"the discussion {show(run.discussion_id)} of {show(run.user)}"


def _update(run: Run, messages: Sequence[ChatMessage], force: bool = False, is_whole: bool = False) -> UpdateReport:
    memory, scope = _discussion(run)
    run = replace(run, intake=None)  # workflows that make memories take in nothing by themselves
    report = update_discussion(
        memory,
        scope,
        _settings(run),
        messages=messages,
        is_whole=is_whole,
        force=force,
        find_model=run.find_model,
        run_workflow=run.call,
        files_dir=run.environment.files_dir,
        layout=run.environment.layout,
        key=run.environment.key,
    )
    tool = run.environment.user_settings.chat_summary_workflow
    if tool and len(new_since_summary(memory, scope)) >= run.environment.settings.summary.least_memories:
        run.call(tool)
    return report


def _discussion(run: Run) -> tuple[Memory, Scope]:
    memory = run.make_store()
    if memory is None or run.scope is None:
        raise WorkflowError("memories are made only where there is a discussion id")
    return memory, run.scope


def _settings(run: Run) -> DiscussionSettings:
    """Those of the run. A workflow for the summary is run in place of its author."""
    settings = run.environment.settings
    if not run.environment.user_settings.chat_summary_workflow:
        return settings
    return replace(settings, summary=replace(settings.summary, is_on=False))
