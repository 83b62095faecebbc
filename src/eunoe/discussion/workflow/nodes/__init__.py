"""All node types."""

from eunoe.discussion.workflow.nodes import standard as standard
from eunoe.discussion.workflow.nodes import text as text
