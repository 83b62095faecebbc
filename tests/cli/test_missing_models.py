"""What recall and context have to do without is said in one line on standard error, and changes nothing else."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Cli, Result

import eunoe
from eunoe.embed import encoder as encoders
from eunoe.embed import encoder as rerankers
from eunoe.embed import encoder as transformers

ANNA = "agent=cook/user=anna"
QUESTION = "Which tea does Anna like?"
CALLS = {"recall": ("recall", ANNA, QUESTION), "context": ("context", f"{ANNA}/session=s1", QUESTION)}
both = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def cli(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Runs a command line as if each call were a process of its own."""
    monkeypatch.setattr("eunoe.net.http._sleep", lambda seconds: None)

    def call(*args: str) -> Result:
        monkeypatch.setattr(transformers, "_loaded", {})
        return cli(*args)

    return call


def hit_ids(result: Result) -> list[str]:
    hits = result.json["hits"] if isinstance(result.json, dict) else result.json
    return [hit["id"] for hit in hits]


def fill_store(cli: Cli, store: Path, embedder: Any) -> None:
    """Make a store of this embedder whose vectors are still to be made."""
    with eunoe.open(store, embedder=embedder) as memory:
        memory.streams.configure(ANNA, fact_buffer_max=0)
    for id, text in (("tea", "Anna likes a strong tea."), ("rain", "It rained for a week in Turin.")):
        assert cli("remember", ANNA, text, "--id", id, "--embedder", "none").code == 0


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
    fault: Any, call: tuple[str, ...], cli: Cli, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_store(cli, store, "eunoe")
    assert cli(*call).err == ""
    fault(monkeypatch, store.parent)
    check(cli, call, "pip install --force-reinstall eunoe")


@both
def test_an_endpoint_that_is_down(call: tuple[str, ...], cli: Cli, store: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        fill_store(cli, store, f"openai:small@{url}")
        check(cli, call, f"{url} cannot be reached")


@both
def test_an_embedder_that_only_code_has(call: tuple[str, ...], cli: Cli, store: Path) -> None:
    def letters(texts: list[str]) -> list[list[float]]:
        return [[1.0, float(len(text))] for text in texts]

    fill_store(cli, store, letters)
    check(cli, call, "open it with that embedder")


def check(cli: Cli, call: tuple[str, ...], reason: str) -> None:
    shown, as_json = cli(*call), cli(*call, "--json")
    assert (shown.code, as_json.code) == (0, 0)
    assert shown.err == as_json.err
    assert shown.err.startswith("searched without vectors: ")
    assert reason in shown.err
    assert shown.err.count("\n") == 1
    assert "strong tea" in shown.out
    assert hit_ids(as_json) == hit_ids(cli(*call, "--json", "--embedder", "none")) == ["tea"]
    for quiet in (("--recipe", "lexical"), ("--embedder", "none")):
        assert cli(*call, *quiet).err == ""
    assert cli("context", ANNA, QUESTION, "--no-recall") == (
        *(0, ""),
        "nothing found\nnothing was looked up: recall is off\n",
    )


@both
@pytest.mark.parametrize("embedder", ["eunoe", "static", "none"])
def test_where_all_is_well_nothing_is_said(call: tuple[str, ...], embedder: str, cli: Cli, store: Path) -> None:
    fill_store(cli, store, embedder)
    for recipe in ("default", "thorough", "rrf"):
        found = cli(*call, "--recipe", recipe, "--json")
        assert (found.code, found.err) == (0, "")
        assert hit_ids(found)[0] == "tea"


@both
def test_a_reranker_that_cannot_be_loaded(
    call: tuple[str, ...], cli: Cli, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_store(cli, store, "none")
    plain = cli(*call, "--json")
    monkeypatch.setattr(rerankers, "FOLDER", store.parent)
    read = cli(*call, "--json", "--recipe", "thorough")
    assert (read.code, hit_ids(read)) == (0, hit_ids(plain))
    assert read.err.startswith("not read by the reranker: eunoe-reranker-2 cannot be loaded")
    assert read.err.count("\n") == 1
    assert cli(*call, "--json").err == ""


@both
def test_both_at_once_are_two_lines(
    call: tuple[str, ...], cli: Cli, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_store(cli, store, "eunoe")
    without_its_runtime(monkeypatch, store.parent)
    read = cli(*call, "--recipe", "thorough")
    assert read.code == 0
    assert [line.split(":")[0] for line in read.err.splitlines()] == [
        "searched without vectors",
        "not read by the reranker",
    ]


@pytest.mark.parametrize("recipe", ["zz", ""])
def test_an_unknown_recipe_is_one_line(recipe: str, cli: Cli, store: Path) -> None:
    fill_store(cli, store, "none")
    results = [cli(*call, "--recipe", recipe) for call in CALLS.values()]
    assert results[0] == results[1]
    assert (results[0].code, results[0].out) == (1, "")
    assert results[0].err.startswith(f"eunoe: there is no recipe {recipe!r}: choose one of default, thorough")
