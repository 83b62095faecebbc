"""Memory across runs: what one generation remembers the next one uses, and what --force does with it."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.apps.wiki.conftest import Generate
from tests.support.wiki_author import Author, AuthorModel

from eunoe.apps.wiki import generate_wiki
from eunoe.errors import ConflictError, LlmError
from eunoe.memory import Memory

SCOPE = "repository=r1"
OLD = (
    "Pages follow the folders of the repository.",
    "Prices are kept in cents, never as floats.",
    "The cart page and the order page share the section on taxes.",
)


def storing(*texts: str) -> Any:
    """The page `overview` stores these; the others store nothing."""
    calls = [("store_memory", {"content": text, "memory_type": "pattern_found"}) for text in texts]
    return lambda id: [calls, f"# {id}"] if id == "overview" and calls else [f"# {id}"]


def texts(memory: Memory, scope: str = SCOPE) -> set[str]:
    """What can be recalled."""
    return {item.text for item in memory.list(scope, limit=100).items if not item.valid_to}


@pytest.fixture
def author() -> Author:
    author = Author()
    author.page_script = storing(*OLD)
    return author


def test_the_second_run_recalls_what_the_first_one_stored_in_order_of_relevance(
    author: Author, generate: Generate
) -> None:
    generate()
    author.page_script = storing()
    question = "Do the cart page and the order page share a section on taxes, and do pages follow folders? Prices?"
    author.planning = [("recall_memories", {"query": question, "limit": 3})]
    generate()
    (answer,) = author.results("recall_memories")
    assert answer.startswith("Found 3 relevant memories:")
    places = [answer.find(text) for text in (OLD[2], OLD[0], OLD[1])]
    assert 0 < places[0] < places[1] < places[2]


def test_force_leaves_nothing_old_and_what_is_new(author: Author, memory: Memory, generate: Generate) -> None:
    generate()
    generate("r2", out_dir=generate().out_dir.with_name("other"))
    author.page_script = storing("New.", OLD[0])
    author.planning = [("recall_memories", {"query": "prices in cents"})]
    author.seen = []
    assert generate(force=True).is_complete
    assert author.results("recall_memories") == ["No relevant memories found."]
    assert texts(memory) == {"New.", OLD[0]}
    assert texts(memory, "repository=r2") == set(OLD)
    assert len(memory.list(SCOPE, limit=100).items) == 2


@pytest.mark.parametrize("fails", ["plan", "page"])
def test_what_fails_under_force_brings_everything_back(
    author: Author, memory: Memory, generate: Generate, fails: str
) -> None:
    generate()
    generate()  # its pages store the same again, as new versions
    before = memory.list(SCOPE, limit=100, retired=True).items
    during = []

    def fail(id: str) -> None:
        during.append(texts(memory))
        raise ConnectionError

    if fails == "page":
        author.on_page = fail
        assert len(generate(force=True).failures) == 3
        assert during == [set()] * 12  # each page is tried four times
    else:
        author.planning = ["I cannot."]
        with pytest.raises(LlmError):
            generate(force=True)
    assert texts(memory) == set(OLD)
    assert {item.id for item in memory.list(SCOPE, limit=100, retired=True).items} == {item.id for item in before}


def test_a_forced_run_that_is_taken_up_deletes_only_what_is_older(
    author: Author, memory: Memory, generate: Generate
) -> None:
    generate()
    author.page_script = storing("New.")

    def fail(id: str) -> None:
        if id == "cart":
            raise ConnectionError

    author.on_page = fail
    assert not generate(force=True).is_complete
    assert texts(memory) == {*OLD, "New."}
    author.on_page, author.seen = lambda id: None, []
    assert generate(force=True).written == ("cart",)
    assert texts(memory) == {"New."}


def test_a_plain_run_after_a_failed_forced_one_deletes_nothing(
    author: Author, memory: Memory, generate: Generate
) -> None:
    generate()
    author.on_page = lambda id: 1 / 0
    generate(force=True)
    author.on_page = lambda id: None
    author.page_script = storing("New.")
    assert generate().is_complete
    assert texts(memory) == {*OLD, "New."}


def test_a_forced_run_that_is_cancelled_brings_everything_back(
    author: Author, memory: Memory, generate: Generate, shop: Path, tmp_path: Path
) -> None:
    generate()
    begun, go_on = threading.Event(), threading.Event()

    def hold(id: str) -> None:
        begun.set()
        go_on.wait(20)

    author.on_page = hold
    model = AuthorModel(author=author)

    async def cancel() -> None:
        wiki = generate_wiki("r1", True, repo_dir=shop, out_dir=tmp_path / "wiki", model=model, memory=memory)
        task = asyncio.create_task(wiki)
        assert await asyncio.to_thread(begun.wait, 20)
        assert texts(memory) == set()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go_on.set()

    asyncio.run(cancel())
    assert texts(memory) == set(OLD)


@pytest.mark.parametrize("forced", [(True, False), (False, True), (True, True)])
def test_beside_a_forced_run_no_other_uses_the_memories_of_its_repository(
    author: Author, memory: Memory, generate: Generate, tmp_path: Path, forced: tuple[bool, bool]
) -> None:
    generate()
    author.page_script = storing("New.")
    refusals = []

    def begin_another(id: str) -> None:
        with pytest.raises(ConflictError, match="another run is writing a wiki of repository r1") as refusal:
            generate(force=forced[1], out_dir=tmp_path / "other")
        refusals.append(refusal.value)

    author.on_page = begin_another
    assert generate(force=forced[0], concurrency=1).is_complete
    assert len(refusals) == 3
    assert texts(memory) == ({"New."} if forced[0] else {*OLD, "New."})
    assert not list(tmp_path.glob("*.lock"))
    author.on_page = lambda id: None
    assert generate(force=True, out_dir=tmp_path / "other").is_complete
