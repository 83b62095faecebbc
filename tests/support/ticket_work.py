"""A ticket worked off by a scripted director and a scripted worker, for tests of when it is complete."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eunoe.apps.tickets import Check, Director, Run, RunFolder, RunState, ScriptedWorker, Ticket, WorkFolder
from eunoe.errors import LlmError
from eunoe.llm.contract import ScriptedLlm as Model

TICKET = Ticket("login", "Fix the login", "Names with blanks are refused. See /var/log/login.", "shop")
PLAN = {"complete": False, "summary": "Find the check.", "next_prompt": "Trim names before the check."}
MORE = {"complete": False, "summary": "Not yet.", "next_prompt": "Now really do it."}
COMPLETE = {"complete": True, "summary": "Names are trimmed.", "next_prompt": "", "nothing_to_change": False}
NO_CHANGE = {"complete": True, "summary": "It is by design.", "next_prompt": "", "nothing_to_change": True}
NOTHING_DONE = "called the ticket complete 3 times, although nothing was changed$"


def python_check(shop: Path, code: str) -> Check:
    return Check(shlex.join([sys.executable, "-c", code]), directory=shop)


def work_off(folder: RunFolder, shop: Path, decisions: Any, answers: Any, **options: Any) -> RunState:
    """Run the ticket; a decision may be a function, which is called while the director thinks."""
    made = iter(decisions)

    def decide(prompt: object) -> Any:
        decision = next(made, COMPLETE)
        return decision() if callable(decision) else decision

    worker = ScriptedWorker(answers)
    work_folder = WorkFolder(shop, [folder.path])
    return Run(TICKET, Director(Model(decide)), worker, folder, work_folder=work_folder, **options).finish()


def while_deciding(action: Callable[[], object], decision: Any) -> Callable[[], Any]:
    def decide() -> Any:
        action()
        return decision

    return decide


def assert_refused(folder: RunFolder, shop: Path, answers: Any, *decisions: Any, **options: Any) -> None:
    with pytest.raises(LlmError, match=NOTHING_DONE):
        work_off(folder, shop, decisions or [PLAN], answers, **options)
    assert folder.get("shop", "login").outcome == "running"
