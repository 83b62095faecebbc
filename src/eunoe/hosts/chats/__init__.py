"""Chats that people have had elsewhere: read, shown and brought into the message log."""

from eunoe.hosts.chats.conversation import Conversation
from eunoe.hosts.chats.importing import ChatReport, ChatSummary, check_owners, import_chats, summarise_chats
from eunoe.hosts.chats.recognition import ChatFile, open_chats

__all__ = [
    "ChatFile",
    "ChatReport",
    "ChatSummary",
    "Conversation",
    "check_owners",
    "import_chats",
    "open_chats",
    "summarise_chats",
]
