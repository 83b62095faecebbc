"""Settings of a discussion: what cannot be meant is refused by its name."""

from typing import Any

import pytest

import eunoe
from eunoe.apps.discussion import Discussion, DiscussionSettings
from eunoe.apps.discussion.settings import AuthorSettings, ChunkSettings, StateDocumentSettings, SummarySettings
from eunoe.errors import InputError


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        (DiscussionSettings, "lookback", "3"),
        (DiscussionSettings, "lookback", 1.5),
        (DiscussionSettings, "lookback", True),
        (DiscussionSettings, "lookback", None),
        (DiscussionSettings, "memory_kinds", "chunk_memory"),
        (DiscussionSettings, "memory_kinds", (["chunk_memory"],)),
        (DiscussionSettings, "summary", {"is_on": False}),
        (DiscussionSettings, "token_factor", "high"),
        (ChunkSettings, "messages", "5"),
        (SummarySettings, "is_on", "no"),
        (StateDocumentSettings, "least_share", "half"),
        (AuthorSettings, "workflow", None),
    ],
)
def test_a_value_of_a_wrong_type_is_refused_by_name(kind: Any, name: str, value: Any) -> None:
    with pytest.raises(InputError, match=rf"{kind.__name__}\.{name} is"):
        kind(**{name: value})


def test_a_number_may_be_whole_where_any_is_meant() -> None:
    assert DiscussionSettings(token_factor=2).token_factor == 2


def test_a_kind_that_nothing_makes_is_refused_before_anything_is_kept() -> None:
    with eunoe.open(":memory:", embedder="none", llm="none") as memory:
        trip = Discussion(memory, "trip")
        with pytest.raises(InputError, match=r"no creator for .zzz.: choose from .*chunk_memory"):
            trip.update([{"role": "user", "content": "Hi!"}], DiscussionSettings(memory_kinds=("zzz",)))
        assert memory.scopes() == []
