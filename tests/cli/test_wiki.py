"""`eunoe wiki` as people run it: with a server that speaks as OpenAI's do, in processes that are killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Cli
from tests.support.wiki_author import Author, author_server

import eunoe

pytest.importorskip("langchain_openai", reason="needs langchain-openai: make setup installs it")


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    root.mkdir()
    (root / "README.md").write_text("# Shop\n")
    git(root, "init", "-q")
    git(root, "remote", "add", "origin", "https://anna:secret-token@example.org/anna/shop.git")
    return root


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(root), *arguments], check=True)


@pytest.fixture
def author() -> Author:
    return Author(["one", "two", "three", "four"])


@pytest.fixture
def model(author: Author) -> Iterator[str]:
    with author_server(author) as model:
        yield model


def start(*arguments: str | Path, store: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "error", "-m", "eunoe", "wiki", *map(str, arguments)]
    environment = os.environ | {"EUNOE_STORE": str(store)}
    return subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def kill_at(author: Author, is_due: Callable[[str], bool]) -> tuple[threading.Event, threading.Event]:
    """Has the server hold its answer for a page back: when the first event is set, the page is asked for."""
    asked, answered = threading.Event(), threading.Event()

    def hold(id: str) -> None:
        if is_due(id):
            asked.set()
            answered.wait(60)

    author.on_page = hold
    return asked, answered


def test_killed_after_page_n_of_m_the_next_run_makes_m_less_n(
    shop: Path, author: Author, model: str, store: Path, cli: Cli, tmp_path: Path
) -> None:
    out = tmp_path / "wiki"
    stored = {"content": "Carts are values.", "memory_type": "pattern_found"}
    author.page_script = lambda id: [("store_memory", stored), f"# {id}"] if id == "one" else [f"# {id}"]
    asked, answered = kill_at(author, lambda id: id == "three")
    with start(shop, "--model", model, "--out", out, "--concurrency", "1", store=store) as process:
        assert asked.wait(60)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    answered.set()
    assert {path.name for path in out.glob("*.md")} == {"one.md", "two.md"}
    before = (out / "one.md").stat().st_mtime_ns
    author.on_page, author.seen = lambda id: None, []
    result = cli("wiki", shop, "--model", model, "--out", out, "--json")
    assert result.code == 0, result.err
    assert (author.plans, sorted(author.written)) == (0, ["four", "three"])
    assert (result.json["written"], result.json["kept"]) == (["four", "three"], ["one", "two"])
    assert (out / "one.md").stat().st_mtime_ns == before
    assert sorted(path.name for path in out.iterdir() if path.suffix == ".md") == [
        "four.md",
        "index.md",
        "one.md",
        "three.md",
        "two.md",
    ]
    author.planning, author.seen = [("recall_memories", {"query": "carts"})], []
    assert cli("wiki", shop, "--model", model, "--out", out).code == 0
    assert "Carts are values." in author.results("recall_memories")[0]


@pytest.mark.parametrize("again", [["--force"], []])
def test_killed_under_force_the_old_memories_are_deleted_by_the_next_forced_run_or_come_back(
    shop: Path, author: Author, model: str, store: Path, cli: Cli, tmp_path: Path, again: list[str]
) -> None:
    arguments = (shop, "--model", model, "--out", tmp_path / "wiki", "--repository-id", "r1")
    with eunoe.open(store) as memory:
        memory.remember("repository=r1", "Old.", label="pattern_found")
        memory.remember("repository=r2", "Of another repository.", label="pattern_found")
    stored = {"content": "New.", "memory_type": "pattern_found"}
    author.page_script = lambda id: [("store_memory", stored), f"# {id}"] if id == "one" else [f"# {id}"]
    asked, answered = kill_at(author, lambda id: id == "two")
    with start(*arguments, "--force", "--concurrency", "1", store=store) as process:
        assert asked.wait(60)
        with eunoe.open(store) as memory:
            assert [hit.text for hit in memory.recall("repository=r1", "old or new")] == ["New."]
        process.send_signal(signal.SIGKILL)
        process.communicate()
    answered.set()
    author.on_page, author.seen = lambda id: None, []
    assert cli("wiki", *arguments, *again).code == 0
    assert sorted(author.written) == ["four", "three", "two"]
    with eunoe.open(store) as memory:
        texts = {item.text for item in memory.list("repository=r1").items}
        assert texts == ({"New."} if again else {"New.", "Old."})
        assert len(memory.list("repository=r2").items) == 1


def test_pages_that_fail_are_told_with_the_exit_code(
    shop: Path, author: Author, model: str, cli: Cli, tmp_path: Path
) -> None:
    def fail(id: str) -> None:
        if id == "two":
            raise ValueError("the model is ill")

    author.on_page = fail
    result = cli("wiki", shop, "--model", model, "--out", tmp_path / "wiki", "--concurrency", "1")
    assert result.code == 1
    assert "3 pages written" in result.out
    lines = result.err.splitlines()
    assert lines[:2] == ["1 of 4 pages: One is written", "1 of 4 pages: Two failed"]
    assert any(line.startswith("page two failed: ") and "the model is ill" in line for line in lines)
    assert "run the same command again" in lines[-1]


def test_the_id_follows_from_the_origin_and_its_password_is_nowhere(
    shop: Path, author: Author, model: str, store: Path, cli: Cli, tmp_path: Path
) -> None:
    author.pages = ["one"]
    stored = {"content": "Kept.", "memory_type": "pattern_found"}
    author.page_script = lambda id: [("store_memory", stored), f"# {id}"]
    result = cli("wiki", shop, "--model", model, "--out", tmp_path / "wiki", "--json")
    git(shop, "remote", "set-url", "origin", "https://example.org/anna/shop.git")
    again = cli("wiki", shop, "--model", model, "--out", tmp_path / "wiki", "--json")
    assert result.json["repository_id"] == again.json["repository_id"]
    texts = [result.out, result.err, json.dumps(author.seen)]
    texts += [path.read_bytes().decode(errors="replace") for path in [*(tmp_path / "wiki").iterdir(), store]]
    assert not any("secret-token" in text for text in texts)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "needs a chat model"),
        (("--model", "none"), "needs a chat model"),
        (("--model", "gpt"), "names no chat model"),
        (("--model", "openai:gpt-x"), "OPENAI_API_KEY"),
        (("--model", "anthropic:claude-x"), "ANTHROPIC_API_KEY"),
        (("--model", "groq:llama"), "langchain-groq"),
        (("--model", "nobody:model"), "Unsupported provider='nobody'"),
        (("--model", "google_genai:x"), "GOOGLE_API_KEY"),
        (("--repository-id", "a\nb", "--model", "http://127.0.0.1:1/v1?model=x"), "line breaks"),
        (("--model", "http://127.0.0.1:1/v1"), "names no model"),
        (("--model", "http://anna:secret-token@127.0.0.1:1/v1?model=x"), "no user, password"),
    ],
)
def test_a_model_that_cannot_be_used_is_said_in_one_line(
    shop: Path, cli: Cli, tmp_path: Path, arguments: tuple[str, ...], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    result = cli("wiki", shop, "--out", tmp_path / "wiki", *arguments)
    assert (result.code, result.out) == (1, "")
    assert words in result.err
    assert len(result.err.splitlines()) == 1
    assert "secret-token" not in result.err
    assert "api_key" not in result.err.replace("Provide api_key parameter or", "")
    assert not (tmp_path / "wiki").exists()


def test_a_server_that_is_not_there_is_said_in_one_line(shop: Path, cli: Cli, tmp_path: Path) -> None:
    result = cli("wiki", shop, "--out", tmp_path / "wiki", "--model", "http://127.0.0.1:1/v1?model=x")
    assert result.code == 1
    assert "the wiki cannot be planned" in result.err
    assert "Traceback" not in result.err


def test_a_folder_without_git_needs_an_id(tmp_path: Path, model: str, cli: Cli) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "a.txt").write_text("a")
    arguments = ("wiki", tmp_path / "plain", "--out", tmp_path / "wiki", "--model", model)
    result = cli(*arguments)
    assert result.code == 1
    assert "--repository-id" in result.err
    assert cli(*arguments, "--repository-id", "plain").code == 0


@pytest.mark.parametrize(("path", "words"), [("missing", "there is no folder"), ("shop/README.md", "is not a folder")])
def test_what_is_no_folder_is_refused(shop: Path, tmp_path: Path, model: str, cli: Cli, path: str, words: str) -> None:
    result = cli("wiki", tmp_path / path, "--out", tmp_path / "wiki", "--model", model)
    assert result.code == 1
    assert words in result.err
    assert len(result.err.splitlines()) == 1


@pytest.mark.skipif(not os.environ.get("OPENAI_API_KEY"), reason="needs OPENAI_API_KEY: a real model is asked")
def test_a_real_model_writes_a_wiki(shop: Path, tmp_path: Path, store: Path) -> None:
    out = tmp_path / "wiki"
    with start(shop, "--model", "openai:gpt-4.1-mini", "--out", out, store=store) as process:
        _, said = process.communicate()
    assert process.returncode == 0, said
    assert (out / "index.md").exists()
