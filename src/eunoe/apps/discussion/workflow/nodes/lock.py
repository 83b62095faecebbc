"""The node that keeps a workflow from running twice at once."""

from typing import Final

from eunoe.apps.discussion.workflow.node import node
from eunoe.apps.discussion.workflow.node_call import NodeCall
from eunoe.errors import AccessError, WorkflowError
from eunoe.memory import Memory
from eunoe.model.arguments import show
from eunoe.model.scope import Scope

_LOCK_SECONDS: Final = 600


@node("WorkflowLock", required=["workflowLockId"])
def workflow_lock(call: NodeCall) -> str:
    """Hold a lock until the workflow ends, ten minutes at most. End the workflow if somebody else holds it."""
    run, id = call.run, call.render("workflowLockId").strip()
    if not id:
        raise WorkflowError("workflowLockId is empty")
    memory = run.make_store()
    if memory is None:
        call.note("there is no store to keep the lock in: the workflow goes on without it")
    elif id not in run.locks and not _acquire(call, memory, id):
        call.note(f"the lock {show(id)} is held: the workflow ends here")
        run.end()
    return ""


def _acquire(call: NodeCall, memory: Memory, id: str) -> bool:
    run, scope, name = call.run, Scope(user=call.run.user), f"workflow_lock:{id}"
    try:
        lease = memory.leases.acquire(scope, name, seconds=_LOCK_SECONDS)
    except AccessError:
        if run.scope is None:
            raise
        call.note("other discussions are out of reach: the lock is one of the discussion, and not of the user")
        scope = run.scope
        lease = memory.leases.acquire(scope, name, seconds=_LOCK_SECONDS)
    if lease is None:
        return False
    run.locks.add(id)
    run.stack.callback(memory.leases.release, scope, lease)
    run.stack.callback(run.locks.discard, id)
    return True
