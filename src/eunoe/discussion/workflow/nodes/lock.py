"""The node that keeps a workflow from running twice at once."""

from typing import Final

from eunoe.discussion.workflow.node import node
from eunoe.discussion.workflow.node_call import NodeCall
from eunoe.errors import WorkflowError
from eunoe.model.scope import Scope
from eunoe.model.validation import show

_LOCK_SECONDS: Final = 600


@node("WorkflowLock", required=["workflowLockId"])
def workflow_lock(call: NodeCall) -> str:
    """Hold a lock until the workflow ends, ten minutes at most. End the workflow if somebody else holds it."""
    memory, id = call.run.memory, call.render("workflowLockId").strip()
    if not id:
        raise WorkflowError("workflowLockId is empty")
    if memory is None:
        call.note("there is no store to keep the lock in: the workflow goes on without it")
        return ""
    scope = Scope(user=call.run.user)
    lease = memory.leases.acquire(scope, f"workflow_lock:{id}", seconds=_LOCK_SECONDS)
    if lease is None:
        call.note(f"the lock {show(id)} is held: the workflow ends here")
        call.run.end()
        return ""
    call.run.stack.callback(memory.leases.release, scope, lease)
    return ""
