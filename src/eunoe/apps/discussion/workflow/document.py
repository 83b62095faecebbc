"""Workflows as they are written: JSON files, and the folder in which their names are found."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from eunoe.errors import WorkflowError
from eunoe.model.arguments import show

_SUFFIX: Final = ".json"
_MAX_FILE_BYTES: Final = 10_000_000
"""No workflow is that long; something else was named."""


@dataclass(frozen=True, slots=True)
class Workflow:
    """Nodes that run one after the other, and variables for their prompts."""

    nodes: tuple[Mapping[str, Any], ...]
    variables: Mapping[str, Any] = field(default_factory=dict)
    path: Path | None = None
    """Its file; None if it was made in Python."""

    @property
    def name(self) -> str:
        """What it is called in chains of workflows."""
        return self.path.stem if self.path else "workflow"

    @property
    def title(self) -> str:
        """How errors name it."""
        return str(self.path) if self.path else "the workflow"

    @classmethod
    def of(cls, document: Any, path: Path | None = None) -> Workflow:
        """Read what a file holds: an object with `nodes`, whose other keys are variables, or a list of nodes.

        >>> Workflow.of({"nodes": [{"type": "StaticResponse", "content": "{name}"}], "name": "Anna"}).variables
        {'name': 'Anna'}
        """
        title = str(path) if path else "the workflow"
        variables: dict[str, Any] = {}
        if isinstance(document, Mapping):
            variables = {name: value for name, value in document.items() if name != "nodes"}
            document = document.get("nodes")
        if not isinstance(document, Sequence) or isinstance(document, str):
            raise WorkflowError(f'{title} is no workflow: it must be {{"nodes": [...]}} or a list of nodes')
        if not document:
            raise WorkflowError(f"{title} has no nodes")
        for number, each in enumerate(document, 1):
            if not isinstance(each, Mapping):
                raise WorkflowError(f"{title}: node {number} must be an object, not {show(each)}")
        return cls(tuple(document), variables, path)

    @classmethod
    def load(cls, path_or_name: str | Path, folder: str | Path | None = None) -> Workflow:
        """Read a workflow from a file, or by its name in a folder."""
        path = Path(path_or_name)
        if folder is not None and not path.is_file():
            path = WorkflowFolder(Path(folder)).find(str(path_or_name))
        return cls.of(_read_json(path), path)


class WorkflowFolder:
    """Where workflows are found by name. No name leads out of it."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()

    def find(self, name: str, folder: str = "", beside: Path | None = None) -> Path:
        """The file of a workflow: in the sub-folder that is named, else beside the one that asks, else at the top."""
        places = [self.path / folder] if folder else [*self._own_folder(beside), self.path]
        file = name.strip().removesuffix(_SUFFIX) + _SUFFIX
        for place in places:
            path = self._confine(place / file, name)
            if path.is_file():
                return path
        where = " and ".join(map(str, dict.fromkeys(places)))
        raise WorkflowError(f"there is no workflow {show(name)} in {where}")

    def _own_folder(self, beside: Path | None) -> list[Path]:
        parent = beside.resolve().parent if beside else self.path
        return [parent] if parent.is_relative_to(self.path) else []

    def _confine(self, path: Path, name: str) -> Path:
        try:
            resolved = path.resolve()
        except (OSError, ValueError, RuntimeError):
            raise WorkflowError(f"{show(name)} is no name of a workflow") from None
        if not resolved.is_relative_to(self.path):
            raise WorkflowError(f"the workflow {show(name)} lies outside of {self.path}")
        return resolved


def _read_json(path: Path) -> Any:
    try:
        if path.stat().st_size > _MAX_FILE_BYTES:
            raise WorkflowError(f"{path} is too long for a workflow")
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is nested too deeply"
        reason = f"not JSON: {error}" if isinstance(error, ValueError) else reason
        raise WorkflowError(f"cannot read the workflow {path}: {reason}") from error
