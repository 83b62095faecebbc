"""Models of the package that a later one has replaced. Their files are gone, but stores have vectors of theirs."""

from collections.abc import Mapping
from typing import Final

from eunoe.errors import EmbedderError

REPLACED: Final[Mapping[str, str]] = {"eunoe-1": "eunoe"}
"""By the name of a model, the spec of the one in its place. The model that a spec stands for today replaces nothing."""


def check_not_replaced(name: str) -> None:
    """Raise EmbedderError if a spec names a model that is no longer in the package."""
    if spec := REPLACED.get(name):
        raise EmbedderError(
            f'{name} is no longer in the package: say "{spec}" for the model in its place. '
            f"A store of {name} opens with it and is re-embedded behind the replies"
        )
