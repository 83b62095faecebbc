"""The command line on a store whose model the package has replaced."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Cli

import eunoe
from eunoe.embed.encoder import Encoder
from eunoe.engine import Engine

ANNA = "user=anna"
OLD, NEW = "eunoe-1", "eunoe-1000"


@pytest.fixture
def old_store(store: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store that the old package made; from here on there is the new one."""
    with monkeypatch.context() as patch:
        patch.setattr(Encoder, "name", OLD)
        with eunoe.open(store, embedder="eunoe", form=False) as memory:
            memory.remember_many(ANNA, [f"Anna bought {number} apples." for number in range(70)])
    monkeypatch.setattr(Encoder, "name", NEW)
    return store


@pytest.mark.usefixtures("old_store")
def test_status_recall_and_reembed_say_how_far_it_is(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Engine, "_work_after_reply", lambda self: None)
        assert f"0 of 70 items ({NEW} has replaced {OLD})" in cli("status").out
        state = cli("status", "--json").json
        assert state["reembedding"] == {"old_model": OLD, "new_model": NEW, "done": 0, "total": 70}
        result = cli("recall", ANNA, "7 apples")
        assert "Anna bought 7 apples." in result.out
        assert f"still to be re-embedded with {NEW}, and found by words alone: 70 of 70" in result.err
    assert cli("reembed").out == f"70 vectors made; the store's model is {NEW}\n"
    state = cli("status", "--json").json
    assert (state["reembedding"], state["vectors"]) == (None, {NEW: 70})
    assert "re-embedding" not in cli("status").out
    assert cli("check").code == 0


@pytest.mark.usefixtures("old_store")
def test_each_command_makes_some(cli: Cli) -> None:
    for _ in range(20):
        cli("recall", ANNA, "7 apples")
        if cli("status", "--json").json["reembedding"] is None:
            return
    raise AssertionError("it is never done")


def test_the_old_name_says_what_took_its_place(old_store: Path, cli: Cli) -> None:
    result = cli("--embedder", OLD, "list", ANNA)
    assert (result.code, result.err.count("\n")) == (1, 1)
    assert 'say "eunoe"' in result.err


SLOW = f"""
import os, sys, threading
from eunoe.cli.app import run
from eunoe.embed import pending_vectors
pending_vectors.BATCH_SIZE = 32
from eunoe.embed.encoder import Encoder
Encoder.name = {NEW!r}
embed, steps = Encoder.embed, []
def stall(self, texts):
    if steps:
        os.write(1, b"second step\\n")
        threading.Event().wait()
    steps.append(texts)
    return embed(self, texts)
Encoder.embed = stall
sys.exit(run(["reembed"]))
"""


def test_ctrl_c_keeps_what_was_made(old_store: Path, cli: Cli) -> None:
    terminal, standard_error = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "EUNOE_STORE": str(old_store)}
    with subprocess.Popen(
        [sys.executable, "-c", SLOW], stdout=subprocess.PIPE, stderr=standard_error, text=True, env=environment
    ) as child:
        assert child.stdout
        try:
            assert child.stdout.readline() == "second step\n"
            child.send_signal(signal.SIGINT)
            assert child.wait(60) == 130
        finally:
            child.kill()
    os.close(standard_error)
    shown = os.read(terminal, 1 << 16).decode()
    os.close(terminal)
    assert ("embedding" in shown, "Traceback" in shown) == (True, False)
    with eunoe.open(old_store, embedder="none") as memory:
        assert memory.status().vectors == {OLD: 38, NEW: 32}
    assert cli("reembed").out == f"38 vectors made; the store's model is {NEW}\n"
