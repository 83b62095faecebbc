"""The scripts of `training/` as modules."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

TRAINING = Path(__file__).parents[2] / "training"


@pytest.fixture(scope="session", autouse=True)
def _scripts() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(TRAINING))
        yield
    for name, module in list(sys.modules.items()):
        if Path(getattr(module, "__file__", None) or ".").parent == TRAINING:
            del sys.modules[name]
