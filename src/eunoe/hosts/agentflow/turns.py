"""What tells an interaction from others: the turn it belongs to, and ids that are the same in every process."""

from typing import Final, NamedTuple
from uuid import UUID, uuid5

from eunoe.hosts.agentflow.framework import MemorySearchResult
from eunoe.hosts.agentflow.summarizers import interaction_text

_IDS: Final = UUID("6f2d8f0e-53a5-4f0b-9c55-0c1f7d3f6a11")
"""The namespace of the ids of interactions, facts and summaries."""


class Turn(NamedTuple):
    """One thing that a user said. Some clients number the messages of every request from 0, so its words count too."""

    user: str
    scope: str
    session: str
    user_message_id: str
    question: str

    @property
    def id(self) -> str:
        return id_of(*self)

    @property
    def filters(self) -> dict[str, str]:
        return {"session": self.session, "user_message_id": self.user_message_id}

    def is_of(self, memory: MemorySearchResult) -> bool:
        """Whether a memory is of this turn."""
        is_named = self.filters.items() <= memory.metadata.items()
        return is_named and memory.content.startswith(interaction_text(self.question, ""))


def id_of(*parts: str) -> str:
    """The id of what has these parts: always the same, so that all who store it at once write to one memory."""
    return str(uuid5(_IDS, "\0".join(parts)))
