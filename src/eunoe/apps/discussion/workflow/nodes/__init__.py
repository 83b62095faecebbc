"""All node types."""

from eunoe.apps.discussion.workflow.nodes import files as files
from eunoe.apps.discussion.workflow.nodes import flow as flow
from eunoe.apps.discussion.workflow.nodes import lock as lock
from eunoe.apps.discussion.workflow.nodes import memory_creators as memory_creators
from eunoe.apps.discussion.workflow.nodes import memory_rag as memory_rag
from eunoe.apps.discussion.workflow.nodes import memory_retrievers as memory_retrievers
from eunoe.apps.discussion.workflow.nodes import memory_searches as memory_searches
from eunoe.apps.discussion.workflow.nodes import python as python
from eunoe.apps.discussion.workflow.nodes import standard as standard
from eunoe.apps.discussion.workflow.nodes import text as text
