"""Authors for the creators of a discussion, outside of a run: the models of a map, and workflows by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from eunoe.apps.discussion.authors import AuthorSources
from eunoe.apps.discussion.workflow.document import Workflow
from eunoe.apps.discussion.workflow.environment import Environment
from eunoe.apps.discussion.workflow.runner import run_workflow
from eunoe.memory import Memory
from eunoe.model.scope import Scope


def check_workflows(environment: Environment) -> None:
    """Raise an error for a workflow that the settings name and that is not there or cannot be read."""
    for author in environment.settings.authors:
        if author.workflow:
            Workflow.load(author.workflow, environment.workflows or Path())


def author_sources(memory: Memory, scope: Scope, environment: Environment) -> AuthorSources:
    """Where the authors that the settings name come from."""

    def run(name: str, inputs: Mapping[str, str]) -> str:
        return run_workflow(
            Workflow.load(name, environment.workflows or Path()),
            memory=memory,
            discussion_id=scope.pairs["discussion"],
            user=scope.pairs["user"],
            inputs=inputs,
            environment=environment,
        ).text

    return AuthorSources(environment.models.find, run)
