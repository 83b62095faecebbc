"""What was read for an answer, so that one made from something forgotten meanwhile can be told."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Self

from eunoe.model.scope import Scope
from eunoe.records.revisions import load_revision, load_summary
from eunoe.store.contract import Store


class Reading(NamedTuple):
    """How streams stood when their records and summaries were read."""

    states: Mapping[Scope, tuple[int, int]]
    """The version and the current revision of each stream; zeros for one that was not there."""

    @classmethod
    def of(cls, store: Store, scopes: Iterable[Scope]) -> Self:
        """Note how these streams stand, in the snapshot in which they are read."""
        streams = {scope: store.stream(scope) for scope in scopes}
        return cls({
            scope: (stream.version, load_summary(store, stream).revision) if stream else (0, 0)
            for scope, stream in streams.items()
        })  # fmt: skip

    def is_forgotten(self, store: Store) -> bool:
        """Whether anything that these streams held then, a summary among it, was forgotten since."""
        for scope, (version, revision) in self.states.items():
            stream = store.stream(scope)
            if stream is None:
                if version:
                    return True
            elif store.removed(stream.id, version) or (revision and not load_revision(store, stream, revision)):
                return True
        return False
