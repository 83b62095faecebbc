"""Memory in a container of Agentflow."""

from typing import Any

from injectq import InjectQ

from eunoe.errors import InputError
from eunoe.hosts.agentflow.framework import BaseStore
from eunoe.hosts.agentflow.manager import MemoryManager


def configure_memory(
    container: InjectQ,
    store: BaseStore | None,
    auto_retrieve: bool = True,
    auto_store: bool = True,
    relevance_threshold: float = 0.7,
    max_memories: int = 5,
    **options: Any,
) -> MemoryManager:
    """Bind a store and a manager in a container, and give the manager. `options` are those of `MemoryManager`.

    Use what this gives in nodes and callbacks. `Inject[MemoryManager]` finds the container that was activated last:
    with two graphs in a process, that is the other one's.
    """
    if container is None:
        raise InputError("container is None: pass an InjectQ, such as InjectQ.get_instance()")
    manager = MemoryManager(store, auto_retrieve, auto_store, relevance_threshold, max_memories, **options)
    if store is not None:
        container.bind_instance(BaseStore, store, allow_concrete=True)
    container.bind_instance(MemoryManager, manager, allow_concrete=True)
    return manager
