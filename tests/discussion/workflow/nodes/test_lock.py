"""Locks of workflows."""

from datetime import timedelta
from typing import Any

import pytest
from tests.discussion.workflow.conftest import Write

import eunoe
from eunoe.discussion.workflow import Environment, Workflow, run_workflow
from eunoe.errors import WorkflowError
from eunoe.model.time import utc_now

LOCK = {"type": "WorkflowLock", "workflowLockId": "memories"}


def say(text: str, **fields: Any) -> dict[str, Any]:
    return {"type": "StaticResponse", "content": text, **fields}


NODES = [say("reply", returnToUser=True), LOCK, say("after")]


def test_the_lock_is_held_until_the_workflow_ends(memory: eunoe.Memory) -> None:
    for _ in range(2):
        result = run_workflow(Workflow.of(NODES), memory=memory)
        assert (result.text, len(result.trace)) == ("reply", 3)
    assert memory.leases.list("user=default") == []


def test_while_somebody_holds_it_the_workflow_ends_there(memory: eunoe.Memory) -> None:
    lease = memory.leases.acquire("user=default", "workflow_lock:memories", seconds=600)
    assert lease
    result = run_workflow(Workflow.of(NODES), memory=memory)
    assert (result.text, [trace.type for trace in result.trace]) == ("reply", ["StaticResponse", "WorkflowLock"])
    assert "is held" in result.notes[0]
    assert len(run_workflow(Workflow.of(NODES), memory=memory, user="berta").trace) == 3
    memory.leases.release("user=default", lease)
    assert len(run_workflow(Workflow.of(NODES), memory=memory).trace) == 3


def test_it_holds_for_ten_minutes(memory: eunoe.Memory, write: Write) -> None:
    leases = []

    def look(_: Any) -> None:
        leases.extend(memory.leases.list("user=default"))

    run_workflow(Workflow.of([LOCK, say("x")]), memory=memory, environment=Environment(progress=look))
    assert [lease.name for lease in leases] == ["workflow_lock:memories"] * 2
    assert leases[0].is_held
    assert timedelta(minutes=9) < leases[0].until - utc_now() <= timedelta(minutes=10)


def test_it_is_released_when_the_workflow_fails(memory: eunoe.Memory) -> None:
    with pytest.raises(WorkflowError):
        run_workflow(Workflow.of([LOCK, say("{unknown}")]), memory=memory)
    assert memory.leases.list("user=default") == []


def test_a_called_workflow_ends_alone(memory: eunoe.Memory, write: Write) -> None:
    write("sub", [say("s"), LOCK, say("never")])
    main = write("main", [LOCK, {"type": "CustomWorkflow", "workflowName": "sub"}, say("goes on")])
    result = run_workflow(main, memory=memory)
    assert [trace.output for trace in result.trace] == ["", "s", "", "", "goes on"]


def test_without_a_store_there_is_nothing_to_share() -> None:
    result = run_workflow(Workflow.of(NODES))
    assert (len(result.trace), "no store" in result.notes[0]) == (3, True)
