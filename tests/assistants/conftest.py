"""A home of its own for each test, so that no real settings are touched, and hooks as assistants run them."""

from pathlib import Path

import pytest
from tests.support.hooks import HookRunner

import eunoe

_VARIABLES = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "APPDATA", "LOCALAPPDATA", "CLAUDE_CONFIG_DIR", "CODEX_HOME")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setattr("sys.platform", "linux")
    for name in (*_VARIABLES, "EUNOE_STORE", "EUNOE_SCOPE", "EUNOE_LLM"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "memory.db"
    with eunoe.open(path, embedder="none"):
        pass
    return path


@pytest.fixture
def run_hook(home: Path, store: Path, tmp_path: Path) -> HookRunner:
    folder = tmp_path / "project"
    folder.mkdir()
    return HookRunner(store, folder)
