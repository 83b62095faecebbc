"""The jobs view of a store whose model the package has replaced."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.server.inspector.conftest import OpenPage
from tests.support.inspector_page import Inspector
from tests.support.live_server import StartServer

import eunoe
from eunoe.embed.encoder import Encoder
from eunoe.engine import Engine


def test_it_says_how_far_it_is(
    start_server: StartServer, open_page: OpenPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Encoder, "name", "eunoe-1")
    with eunoe.open(tmp_path / "memory.db", embedder="eunoe", form=False) as memory:
        memory.remember_many("user=anna", ["3 apples", "4 apples"])
        assert memory.flush()
    monkeypatch.setattr(Encoder, "name", "eunoe-1000")
    monkeypatch.setattr(Engine, "_work_after_reply", lambda self: None)
    inspector = Inspector(open_page(), start_server(embedder="auto")).enter()
    inspector.go("jobs").shows("0 of 2")
    inspector.shows("re-embedded")
