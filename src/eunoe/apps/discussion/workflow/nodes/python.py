"""The node that runs a Python module, where the user allows it."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

from eunoe.apps.discussion.workflow.environment import Environment
from eunoe.apps.discussion.workflow.node import node
from eunoe.apps.discussion.workflow.node_call import NodeCall, as_text
from eunoe.errors import WorkflowError
from eunoe.model.arguments import show


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
    arguments, keywords, path = call.texts("args"), _keywords(call), _module_path(call)
    with _importing_beside(path), redirect_stdout(sys.stderr):  # the result alone goes to standard output
        invoke = _load(path)
        try:
            result = invoke(*arguments, **keywords)
        except (Exception, SystemExit) as error:
            raise WorkflowError(f"Invoke raised {type(error).__name__}: {error}") from error
    return "" if result is None else str(result)


def _keywords(call: NodeCall) -> dict[str, str]:
    keywords = {name: call.render_text(as_text(each, name)) for name, each in call.node.get("kwargs", {}).items()}
    if keywords:
        call.trace.inputs["kwargs"] = json.dumps(keywords, ensure_ascii=False)
    return keywords


def _module_path(call: NodeCall) -> Path:
    """A path that is not absolute starts in the folder of the workflow."""
    own = call.run.workflow.path
    return (own.parent if own else Path()) / call.render("module_path").strip()


@contextmanager
def _importing_beside(path: Path) -> Iterator[None]:
    """Let a module import the files beside it, after all else: none of them takes the place of an installed one."""
    folder = str(path.resolve().parent)
    sys.path.append(folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def _load(path: Path) -> Callable[..., Any]:
    name = f"workflow_module_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise WorkflowError(f"there is no Python module {show(str(path))}")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)  # dataclasses look for their module there
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise WorkflowError(f"{path} cannot be loaded: {type(error).__name__}: {error}") from error
    invoke = getattr(module, "Invoke", None)
    if not callable(invoke):
        raise WorkflowError(f"{path} has no function Invoke")
    return invoke  # type: ignore[no-any-return]
