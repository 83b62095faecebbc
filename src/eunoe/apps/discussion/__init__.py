"""Discussions: the memory of a long chat, made by slow creators and read by fast retrievers."""

from eunoe.apps.discussion.log import DiscussionLog, LogReport
from eunoe.apps.discussion.model import discussion_ids, discussion_scope
from eunoe.apps.discussion.retrievers import DiscussionReader, MemoryService
from eunoe.apps.discussion.settings import DiscussionSettings, read_settings
from eunoe.apps.discussion.texts import Retrieval
from eunoe.apps.discussion.update import ChunkFailure, Discussion, DiscussionStatus, UpdateReport, update_discussion

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
