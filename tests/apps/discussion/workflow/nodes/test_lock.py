"""Locks of workflows."""

from datetime import timedelta
from typing import Any

import pytest
from tests.apps.discussion.workflow.conftest import Write

import eunoe
from eunoe.apps.discussion.model import discussion_scope
from eunoe.apps.discussion.workflow import Environment, Workflow, run_workflow
from eunoe.errors import WorkflowError
from eunoe.model.arguments import utc_now

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
    memory.leases.acquire("user=default", "workflow_lock:memories", seconds=600)
    write("sub", [say("s"), LOCK, say("never")])
    main = write("main", [{"type": "CustomWorkflow", "workflowName": "sub"}, say("goes on")])
    result = run_workflow(main, memory=memory)
    assert [trace.output for trace in result.trace] == ["s", "", "s", "goes on"]


def test_without_a_responder_the_result_is_what_stands_before_the_lock(memory: eunoe.Memory) -> None:
    memory.leases.acquire("user=default", "workflow_lock:memories", seconds=600)
    assert run_workflow(Workflow.of([say("a"), say("b"), LOCK, say("c")]), memory=memory).text == "b"
    assert run_workflow(Workflow.of([LOCK, say("c")]), memory=memory).text == ""


def test_a_run_does_not_lock_itself_out(memory: eunoe.Memory, write: Write) -> None:
    write("sub", [LOCK, say("s")])
    main = write("main", [LOCK, LOCK, {"type": "CustomWorkflow", "workflowName": "sub"}, LOCK, say("end")])
    held = []
    environment = Environment(progress=lambda trace: held.append(len(memory.leases.list("user=default"))))
    result = run_workflow(main, memory=memory, environment=environment)
    assert ([trace.output for trace in result.trace], result.notes) == (["", "", "", "s", "s", "", "end"], ())
    assert held == [1] * 7
    assert memory.leases.list("user=default") == []


def test_a_lock_of_a_called_workflow_ends_with_it(memory: eunoe.Memory, write: Write) -> None:
    write("sub", [LOCK, say("s")])
    main = write("main", [{"type": "CustomWorkflow", "workflowName": "sub"}, say("after"), LOCK, say("end")])
    held = []
    environment = Environment(progress=lambda trace: held.append(len(memory.leases.list("user=default"))))
    assert run_workflow(main, memory=memory, environment=environment).text == "end"
    assert held == [1, 1, 0, 0, 1, 1]


def test_where_the_user_is_out_of_reach_the_lock_is_that_of_the_discussion(memory: eunoe.Memory) -> None:
    scope = discussion_scope("trip")
    narrow = memory.restricted(scopes=[scope])
    result = run_workflow(Workflow.of(NODES), memory=narrow, discussion_id="trip")
    assert (len(result.trace), "of the discussion" in result.notes[0]) == (3, True)
    memory.leases.acquire(scope, "workflow_lock:memories", seconds=600)
    assert len(run_workflow(Workflow.of(NODES), memory=narrow, discussion_id="trip").trace) == 2


def test_without_a_store_there_is_nothing_to_share() -> None:
    result = run_workflow(Workflow.of(NODES))
    assert (len(result.trace), "no store" in result.notes[0]) == (3, True)
