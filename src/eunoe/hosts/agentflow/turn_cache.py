"""What is known of the latest of many turns or runs."""

from collections import OrderedDict
from typing import Final, TypeVar

_MAX_ENTRIES: Final = 1000
"""More turns do not run at once."""
Value = TypeVar("Value")


class TurnCache(OrderedDict[tuple[str, ...], Value]):
    """A value for each of the latest turns, by their ids."""

    def keep(self, ids: tuple[str, ...], value: Value) -> None:
        self[ids] = value
        while len(self) > _MAX_ENTRIES:
            self.popitem(last=False)

    def drop(self, owner: str) -> None:
        """Forget those that have an id among theirs."""
        for ids in [ids for ids in self if owner in ids]:
            self.pop(ids, None)
