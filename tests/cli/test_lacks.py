"""What recall and context have to do without is said in one line on standard error, and changes nothing else."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import eunoe
from eunoe.cli.app import run
from eunoe.embed import encoder as encoders
from eunoe.embed import encoder as rerankers
from eunoe.embed import encoder as transformers

ANNA = "agent=cook/user=anna"
QUESTION = "Which tea does Anna like?"
CALLS = {"recall": ("recall", ANNA, QUESTION), "context": ("context", f"{ANNA}/session=s1", QUESTION)}
both = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


class Result(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def found(self) -> list[str]:
        told = json.loads(self.out)
        return [hit["id"] for hit in (told["hits"] if isinstance(told, dict) else told)]


Cli = Callable[..., Result]


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs a command line on the test's store, as if each were a process of its own."""
    monkeypatch.setenv("EUNOE_STORE", str(tmp_path / "memory.db"))
    monkeypatch.setattr("eunoe.net.endpoint._sleep", lambda seconds: None)
    for name in ("EUNOE_LLM", "EUNOE_LLM_FAST", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)

    def call(*args: str) -> Result:
        monkeypatch.setattr(transformers, "_loaded", {})
        code = run(args)
        return Result(code, *capsys.readouterr())

    return call


def stored(cli: Cli, tmp_path: Path, embedder: Any) -> Cli:
    """A store of this embedder whose vectors are still to be made."""
    with eunoe.open(tmp_path / "memory.db", embedder=embedder) as memory:
        memory.streams.configure(ANNA, fact_buffer_max=0)
    for id, text in (("tea", "Anna likes a strong tea."), ("rain", "It rained for a week in Turin.")):
        assert cli("remember", ANNA, text, "--id", id, "--embedder", "none").code == 0
    return cli


def damaged(patch: pytest.MonkeyPatch, folder: Path) -> None:
    (folder / "encoder.onnx").write_bytes(b"damaged")
    patch.setattr(encoders, "FOLDER", folder)


def removed(patch: pytest.MonkeyPatch, folder: Path) -> None:
    patch.setattr(encoders, "FOLDER", folder)


def without_its_runtime(patch: pytest.MonkeyPatch, folder: Path) -> None:
    patch.setitem(sys.modules, "onnxruntime", None)


@both
@pytest.mark.parametrize("fault", [damaged, removed, without_its_runtime])
def test_an_encoder_that_cannot_be_loaded(
    fault: Any, call: tuple[str, ...], cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(cli, tmp_path, "eunoe")
    assert cli(*call).err == ""
    fault(monkeypatch, tmp_path)
    check(cli, call, "pip install --force-reinstall eunoe")


@both
def test_an_endpoint_that_is_down(call: tuple[str, ...], cli: Cli, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        stored(cli, tmp_path, f"openai:small@{url}")
        check(cli, call, f"{url}/embeddings cannot be reached")


@both
def test_an_embedder_that_only_code_has(call: tuple[str, ...], cli: Cli, tmp_path: Path) -> None:
    def letters(texts: list[str]) -> list[list[float]]:
        return [[1.0, float(len(text))] for text in texts]

    check(stored(cli, tmp_path, letters), call, "open it with that embedder")


def check(cli: Cli, call: tuple[str, ...], reason: str) -> None:
    shown, told = cli(*call), cli(*call, "--json")
    assert (shown.code, told.code) == (0, 0)
    assert shown.err == told.err
    assert shown.err.startswith("searched without vectors: ")
    assert reason in shown.err
    assert shown.err.count("\n") == 1
    assert "strong tea" in shown.out
    assert told.found == cli(*call, "--json", "--embedder", "none").found == ["tea"]
    for quiet in (("--recipe", "lexical"), ("--embedder", "none")):
        assert cli(*call, *quiet).err == ""
    assert cli("context", ANNA, QUESTION, "--no-recall") == (0, "", "nothing found\n")


@both
@pytest.mark.parametrize("embedder", ["eunoe", "static", "none"])
def test_where_all_is_well_nothing_is_said(call: tuple[str, ...], embedder: str, cli: Cli, tmp_path: Path) -> None:
    stored(cli, tmp_path, embedder)
    for recipe in ("default", "thorough", "rrf"):
        found = cli(*call, "--recipe", recipe, "--json")
        assert (found.code, found.err) == (0, "")
        assert found.found[0] == "tea"


@both
def test_a_reranker_that_cannot_be_loaded(
    call: tuple[str, ...], cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(cli, tmp_path, "none")
    plain = cli(*call, "--json")
    monkeypatch.setattr(rerankers, "FOLDER", tmp_path)
    read = cli(*call, "--json", "--recipe", "thorough")
    assert (read.code, read.found) == (0, plain.found)
    assert read.err.startswith("not read by the reranker: eunoe-reranker-1 cannot be loaded")
    assert read.err.count("\n") == 1
    assert cli(*call, "--json").err == ""


@both
def test_both_at_once_are_two_lines(
    call: tuple[str, ...], cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(cli, tmp_path, "eunoe")
    without_its_runtime(monkeypatch, tmp_path)
    read = cli(*call, "--recipe", "thorough")
    assert read.code == 0
    assert [line.split(":")[0] for line in read.err.splitlines()] == [
        "searched without vectors",
        "not read by the reranker",
    ]


@pytest.mark.parametrize("recipe", ["zz", ""])
def test_an_unknown_recipe_is_one_line(recipe: str, cli: Cli, tmp_path: Path) -> None:
    stored(cli, tmp_path, "none")
    results = [cli(*call, "--recipe", recipe) for call in CALLS.values()]
    assert results[0] == results[1]
    assert (results[0].code, results[0].out) == (1, "")
    assert results[0].err.startswith(f"eunoe: there is no recipe {recipe!r}: choose one of default, thorough")
