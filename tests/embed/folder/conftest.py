"""Nothing of the models in these tests is kept in the user's own folders."""

from pathlib import Path

import pytest

from eunoe.embed import encoder


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(encoder, "_loaded", {})
    return tmp_path / "data"
