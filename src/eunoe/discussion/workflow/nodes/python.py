"""The node that runs a Python module, where the user allows it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from eunoe.discussion.workflow.environment import Environment
from eunoe.discussion.workflow.node import node
from eunoe.discussion.workflow.node_call import NodeCall, as_text
from eunoe.errors import WorkflowError
from eunoe.model.validation import show


def _check(fields: Mapping[str, Any], environment: Environment) -> Iterator[str]:
    if not environment.allow_python:
        yield "Python modules are not allowed to run: --allow-python allows them"
    if not isinstance(fields.get("args", []), list):
        yield "args must be a list"
    if not isinstance(fields.get("kwargs", {}), Mapping):
        yield "kwargs must be an object"


@node("PythonModule", required=["module_path"], keys=["args", "kwargs"], takes_in=True, check=_check)
def python_module(call: NodeCall) -> str:
    """Call the function `Invoke` of a module. All arguments are texts."""
    for problem in _check(call.node, call.run.environment):
        raise WorkflowError(problem)
    keywords = {name: call.render_text(as_text(each, name)) for name, each in call.node.get("kwargs", {}).items()}
    arguments = call.texts("args")
    invoke = _load(_module_path(call))
    try:
        with redirect_stdout(sys.stderr):  # the result alone goes to standard output
            result = invoke(*arguments, **keywords)
    except (Exception, SystemExit) as error:
        raise WorkflowError(f"Invoke raised {type(error).__name__}: {error}") from error
    return result if isinstance(result, str) else str(result)


def _module_path(call: NodeCall) -> Path:
    """A path that is not absolute starts in the folder of the workflow."""
    own = call.run.workflow.path
    return (own.parent if own else Path()) / call.render("module_path").strip()


def _load(path: Path) -> Callable[..., Any]:
    spec = importlib.util.spec_from_file_location(f"workflow_module_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise WorkflowError(f"there is no Python module {show(str(path))}")
    module = importlib.util.module_from_spec(spec)
    try:
        with redirect_stdout(sys.stderr):
            spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise WorkflowError(f"{path} cannot be loaded: {type(error).__name__}: {error}") from error
    invoke = getattr(module, "Invoke", None)
    if not callable(invoke):
        raise WorkflowError(f"{path} has no function Invoke")
    return invoke  # type: ignore[no-any-return]
