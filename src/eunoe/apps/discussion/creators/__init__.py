"""Creators: they make memories from chunks of a discussion."""

from eunoe.apps.discussion.creators import chunk_memory, keyword_memory
from eunoe.apps.discussion.creators.registry import Creator, CreatorCall, creator, creator_kinds, find_creator

__all__ = ["Creator", "CreatorCall", "chunk_memory", "creator", "creator_kinds", "find_creator", "keyword_memory"]
