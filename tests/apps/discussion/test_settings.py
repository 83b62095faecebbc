"""Settings of a discussion."""

import pytest

import eunoe
from eunoe.apps.discussion import Discussion, DiscussionSettings
from eunoe.errors import InputError


def test_a_kind_that_nothing_makes_is_refused_before_anything_is_kept() -> None:
    with eunoe.open(":memory:", embedder="none", llm="none") as memory:
        trip = Discussion(memory, "trip")
        with pytest.raises(InputError, match=r"no creator for .zzz.: choose from .*chunk_memory"):
            trip.update([{"role": "user", "content": "Hi!"}], DiscussionSettings(memory_kinds=("zzz",)))
        assert memory.scopes() == []
