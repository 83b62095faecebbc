"""All node types."""

from eunoe.discussion.workflow.nodes import files as files
from eunoe.discussion.workflow.nodes import flow as flow
from eunoe.discussion.workflow.nodes import lock as lock
from eunoe.discussion.workflow.nodes import memory_creators as memory_creators
from eunoe.discussion.workflow.nodes import memory_rag as memory_rag
from eunoe.discussion.workflow.nodes import memory_retrievers as memory_retrievers
from eunoe.discussion.workflow.nodes import memory_searches as memory_searches
from eunoe.discussion.workflow.nodes import python as python
from eunoe.discussion.workflow.nodes import standard as standard
from eunoe.discussion.workflow.nodes import text as text
