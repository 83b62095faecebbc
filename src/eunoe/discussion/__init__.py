"""Discussions: the memory of a long chat, made by slow creators and read by fast retrievers."""

from eunoe.discussion.discussion import Discussion
from eunoe.discussion.log.discussion_log import DiscussionLog, LogReport
from eunoe.discussion.report import ChunkFailure, UpdateReport
from eunoe.discussion.retrievers.reader import DiscussionReader
from eunoe.discussion.retrievers.retrieval import Retrieval
from eunoe.discussion.retrievers.service import MemoryService
from eunoe.discussion.scope import discussion_ids, discussion_scope
from eunoe.discussion.settings import DiscussionSettings
from eunoe.discussion.settings_file import read_settings
from eunoe.discussion.status import DiscussionStatus
from eunoe.discussion.update import update_discussion

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
