"""Discussions: the memory of a long chat, made by slow creators and read by fast retrievers."""

from eunoe.apps.discussion.discussion import Discussion
from eunoe.apps.discussion.log.discussion_log import DiscussionLog, LogReport
from eunoe.apps.discussion.report import ChunkFailure, UpdateReport
from eunoe.apps.discussion.retrievers.reader import DiscussionReader
from eunoe.apps.discussion.retrievers.retrieval import Retrieval
from eunoe.apps.discussion.retrievers.service import MemoryService
from eunoe.apps.discussion.scope import discussion_ids, discussion_scope
from eunoe.apps.discussion.settings import DiscussionSettings
from eunoe.apps.discussion.settings_file import read_settings
from eunoe.apps.discussion.status import DiscussionStatus
from eunoe.apps.discussion.update import update_discussion

__all__ = [
    "ChunkFailure",
    "Discussion",
    "DiscussionLog",
    "DiscussionReader",
    "DiscussionSettings",
    "DiscussionStatus",
    "LogReport",
    "MemoryService",
    "Retrieval",
    "UpdateReport",
    "discussion_ids",
    "discussion_scope",
    "read_settings",
    "update_discussion",
]
