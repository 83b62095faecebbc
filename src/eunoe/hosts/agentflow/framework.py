"""Agentflow's own names: from 10xgraph or, where that is not installed, from 10xscale-agentflow.

All of the adapter takes them from here, so that it never mixes the two.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from eunoe.errors import MissingPackageError

# 10xgraph has a module `agentflow` of its own, which warns: so `tenxgraph` is looked for first.
if TYPE_CHECKING or find_spec("tenxgraph"):
    from tenxgraph.core.authz import SCOPE_NONE, get_authz
    from tenxgraph.core.state import AgentState, Message
    from tenxgraph.runtime.adapters.llm.model_response_converter import ModelResponseConverter
    from tenxgraph.storage.store.base_store import BaseStore
    from tenxgraph.storage.store.store_schema import (
        DistanceMetric,
        MemoryRecord,
        MemorySearchResult,
        MemoryType,
        RetrievalStrategy,
    )
    from tenxgraph.utils.callbacks import (
        AfterInvokeCallback,
        BeforeInvokeCallback,
        CallbackContext,
        CallbackManager,
        GraphLifecycleContext,
        GraphLifecycleHook,
        InvocationType,
    )
    from tenxgraph.utils.command import Command
    from tenxgraph.utils.constants import DEFAULT_ANONYMOUS_USER_ID, END, START
else:
    try:
        from agentflow.core.authz import SCOPE_NONE, get_authz
        from agentflow.core.state import AgentState, Message
        from agentflow.runtime.adapters.llm.model_response_converter import ModelResponseConverter
        from agentflow.storage.store.base_store import BaseStore
        from agentflow.storage.store.store_schema import (
            DistanceMetric,
            MemoryRecord,
            MemorySearchResult,
            MemoryType,
            RetrievalStrategy,
        )
        from agentflow.utils.callbacks import (
            AfterInvokeCallback,
            BeforeInvokeCallback,
            CallbackContext,
            CallbackManager,
            GraphLifecycleContext,
            GraphLifecycleHook,
            InvocationType,
        )
        from agentflow.utils.command import Command
        from agentflow.utils.constants import DEFAULT_ANONYMOUS_USER_ID, END, START
    except ImportError as error:
        raise MissingPackageError(
            "eunoe.hosts.agentflow needs Agentflow on Python 3.12 or later: pip install 'eunoe[agentflow]'"
        ) from error

__all__ = [
    "DEFAULT_ANONYMOUS_USER_ID",
    "END",
    "SCOPE_NONE",
    "START",
    "AfterInvokeCallback",
    "AgentState",
    "BaseStore",
    "BeforeInvokeCallback",
    "CallbackContext",
    "CallbackManager",
    "Command",
    "DistanceMetric",
    "GraphLifecycleContext",
    "GraphLifecycleHook",
    "InvocationType",
    "MemoryRecord",
    "MemorySearchResult",
    "MemoryType",
    "Message",
    "ModelResponseConverter",
    "RetrievalStrategy",
    "get_authz",
]
