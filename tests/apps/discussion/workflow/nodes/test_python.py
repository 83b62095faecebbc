"""Python modules run only where they are allowed."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.apps.discussion.workflow.conftest import Write

from eunoe.apps.discussion.workflow import Environment, run_workflow
from eunoe.errors import WorkflowError

MODULE = """
print("loaded")
def Invoke(*args, **kwargs):
    print("called")
    return " ".join([*map(repr, args), *(f"{k}={v!r}" for k, v in kwargs.items())])
"""


@pytest.fixture
def run(write: Write, tmp_path: Path) -> Any:
    def run(module: str, allow_python: bool = True, **fields: Any) -> str:
        main = write("main", [{"type": "PythonModule", "module_path": "tool.py", **fields}])
        (tmp_path / "workflows" / "tool.py").write_text(module)
        return run_workflow(main, inputs=["in'put"], environment=Environment(allow_python=allow_python)).text

    return run


def test_it_gets_texts_and_says_nothing_on_standard_output(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(MODULE, args=["{agent1Input}", 3], kwargs={"limit": 5}) == "\"in'put\" '3' limit='5'"
    assert capsys.readouterr().out == ""


def test_it_is_not_even_loaded_unless_allowed(run: Any, tmp_path: Path) -> None:
    with pytest.raises(WorkflowError, match="--allow-python"):
        run(f"open({str(tmp_path / 'ran')!r}, 'w')\n{MODULE}", allow_python=False)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        ("def Invoke(): raise SystemExit(3)", "SystemExit"),
        ("def Invoke(): 1 / 0", "ZeroDivisionError"),
        ("import nothing_like_it", "ModuleNotFoundError"),
        ("x = 1", "no function Invoke"),
        ("def", "SyntaxError"),
    ],
)
def test_what_goes_wrong_is_an_error_of_the_node(run: Any, module: str, reason: str) -> None:
    with pytest.raises(WorkflowError, match=rf"node 1 \(PythonModule\): .*{reason}"):
        run(module)


def test_a_missing_module_or_wrong_arguments(run: Any) -> None:
    with pytest.raises(WorkflowError, match="no Python module"):
        run(MODULE, module_path="gone.py")
    with pytest.raises(WorkflowError, match="args must be a list"):
        run(MODULE, args="x")


DATACLASS = """
from __future__ import annotations
from dataclasses import dataclass
@dataclass
class Point:
    x: int
def Invoke(): return Point(3)
"""


def test_a_module_may_have_dataclasses(run: Any) -> None:
    assert run(DATACLASS) == "Point(x=3)"


def test_a_module_may_import_the_file_beside_it(run: Any, tmp_path: Path) -> None:
    (tmp_path / "workflows").mkdir()
    (tmp_path / "workflows" / "helper_of_tool.py").write_text("WORD = 'helped'")
    before = list(sys.path)
    assert run("from helper_of_tool import WORD\ndef Invoke(): return WORD") == "helped"
    assert run("def Invoke():\n    import helper_of_tool\n    return helper_of_tool.WORD") == "helped"
    assert sys.path == before


def test_a_module_that_returns_nothing_gives_nothing(run: Any) -> None:
    assert run("def Invoke(): pass") == ""


def test_the_trace_has_all_arguments(write: Write, tmp_path: Path) -> None:
    main = write("main", [{"type": "PythonModule", "module_path": "tool.py", "args": ["a"], "kwargs": {"b": "{x}"}}])
    (tmp_path / "workflows" / "tool.py").write_text(MODULE)
    main = replace(main, variables={"x": "c"})
    trace = run_workflow(main, environment=Environment(allow_python=True)).trace[0]
    assert (trace.inputs["args"], trace.inputs["kwargs"]) == ('["a"]', '{"b": "c"}')
