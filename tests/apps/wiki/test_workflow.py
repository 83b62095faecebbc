"""Wikis from the plan to the last page: real agents, real files, a scripted model."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware, ModelRetryMiddleware
from tests.apps.wiki.conftest import Generate
from tests.support.wiki_author import Author, Call, text_of

from eunoe.apps.wiki.workflow import PageFailure, Progress
from eunoe.errors import ConflictError, InputError, LlmError


@pytest.fixture
def wiki(tmp_path: Path) -> Path:
    return tmp_path / "wiki"


def test_a_wiki_has_its_pages_and_a_table_of_contents(wiki: Path, author: Author, generate: Generate) -> None:
    author.files = ["src/cart.py"]
    progress: list[Progress] = []
    report = generate(tell=progress.append)
    assert (report.written, report.kept, report.failures) == (("cart", "orders", "overview"), (), ())
    assert (wiki / "index.md").read_text() == (
        "# The shop\n\nWhat it does.\n\n## All\n\n"
        "- [Overview](overview.md): About overview.\n- [Cart](cart.md): About cart.\n"
        "- [Orders](orders.md): About orders.\n"
    )
    assert (wiki / "cart.md").read_text() == (
        "# Page cart\n\nText of cart.\n\n## Files\n\n- `src/cart.py`\n\n---\n\n[Contents](index.md)\n"
    )
    assert [(each.done, each.total, each.is_failure) for each in progress] == [(n, 3, False) for n in (1, 2, 3)]


def test_every_link_of_a_wiki_leads_somewhere(shop: Path, author: Author, generate: Generate) -> None:
    author.page_script = lambda id: [
        f"# {id}\n\n[cart](cart), [code](src/cart.py), [lost](nowhere), [Orders](/orders.md)"
    ]
    generate(out_dir=shop / "docs" / "wiki")
    for page in (shop / "docs" / "wiki").glob("*.md"):
        targets = re.findall(r"\]\(([^)]+)\)", page.read_text())
        assert targets
        assert [target for target in targets if not (page.parent / target).exists()] == []


def test_agents_read_the_repository_and_not_the_wiki(shop: Path, author: Author, generate: Generate) -> None:
    author.planning = [
        ("list_directory_with_sizes", {"path": "."}),
        ("read_multiple_files", {"paths": ["README.md", "src/cart.py", "wiki/index.md", "../x"]}),
    ]
    author.page_script = lambda id: [("read_text_file", {"path": "src/cart.py"}), f"# {id}"]
    generate(out_dir=shop / "wiki")
    generate(out_dir=shop / "wiki")
    assert set(author.results("list_directory_with_sizes")) == {"[DIR] src/ (1 files)\n[FILE] README.md (7 bytes)"}
    (texts,) = set(author.results("read_multiple_files"))
    assert texts == (
        "README.md:\n# Shop\n\n---\nsrc/cart.py:\ndef total(): ...\n\n---\n"
        "wiki/index.md:\nError: wiki/index.md belongs to the wiki, not to the repository's files\n---\n"
        "../x:\nError: ../x is outside the repository"
    )
    assert set(author.results("read_text_file")) == {"def total(): ...\n"}


def test_pages_are_written_side_by_side_but_not_all_at_once(author: Author, generate: Generate) -> None:
    author.pages = [f"page-{number}" for number in range(6)]
    both, running, most = threading.Barrier(2, timeout=20), 0, 0
    lock = threading.Lock()

    def begin(id: str) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        both.wait()  # until another page is begun
        with lock:
            running -= 1

    author.on_page = begin
    assert len(generate(concurrency=2).written) == 6
    assert most == 2


STORE = ("store_memory", {"content": "Carts are values.", "memory_type": "pattern_found"})
READ = ("read_text_file", {"path": "README.md"})


@pytest.mark.parametrize("calls", [[STORE], [STORE, READ]], ids=["store", "store and read"])
@pytest.mark.parametrize("size", [400])
@pytest.mark.parametrize("reply", ["Stored.", "I've stored 2 memories about this page.", "All as it was. " * 60])
def test_a_page_that_comes_with_a_call_is_not_lost_to_the_next_sentence(
    wiki: Path, author: Author, generate: Generate, calls: list[Call], size: int, reply: str
) -> None:
    author.pages = ["cart"]
    page = f"# The page cart\n\n{'Long. ' * (size // 6)}".strip()
    author.page_script = lambda id: [(page, calls), reply]
    assert generate().notes == ()
    assert (wiki / "cart.md").read_text().startswith(f"{page}\n")


def test_a_run_says_which_page_has_no_heading(wiki: Path, author: Author, generate: Generate) -> None:
    author.pages = ["cart"]
    author.page_script = lambda id: [
        ("The cart.\nIt adds up prices, and knows the customer.", [STORE]),
        "It is written.",
    ]
    assert generate().notes == ("page cart: the model wrote no heading; look whether it is a page",)
    assert "It adds up prices" in (wiki / "cart.md").read_text()


def test_a_transient_error_ends_neither_the_plan_nor_a_page(
    author: Author, generate: Generate, delays: list[float]
) -> None:
    faults = {"": 3, "cart": 3}

    def fail(id: str) -> None:
        if faults.get(id):
            faults[id] -= 1
            raise ConnectionError("try again")

    author.on_begin = fail
    assert generate(concurrency=1).is_complete
    assert sorted(delays) == [1, 1, 2, 2, 4, 4]


def test_a_tool_that_fails_is_tried_again_and_then_named_to_the_model(
    author: Author, generate: Generate, delays: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> str:
        raise OSError("/home/anna is away")

    monkeypatch.setattr("eunoe.apps.wiki.tools._text", fail)
    author.pages = ["cart"]
    author.page_script = lambda id: [[READ], "# Cart"]
    assert generate().is_complete
    assert author.results("read_text_file") == ["The tool cannot be used at the moment (OSError). Go on without it."]
    assert delays == [1, 2, 4]


def test_middleware_of_ones_own_serves_both_agents_and_takes_the_place_of_the_same(
    author: Author, generate: Generate, delays: list[float]
) -> None:
    def fail(id: str) -> None:
        if id == "cart":
            raise ConnectionError("no route")

    calls = []

    class Counter(AgentMiddleware[Any, Any, Any]):
        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            calls.append(request.system_message.text)
            return await handler(request)

    author.on_begin = fail
    report = generate(middleware=[ModelRetryMiddleware(max_retries=1, on_failure="error"), Counter()])
    assert [failure.id for failure in report.failures] == ["cart"]
    assert delays == [1]
    assert {"plan a wiki" in text for text in calls} == {True, False}


def test_a_page_that_fails_is_the_only_one_of_the_next_run(wiki: Path, author: Author, generate: Generate) -> None:
    def fail(id: str) -> None:
        if id == "cart":
            raise ConnectionError("no route")

    author.on_page = fail
    report = generate()
    assert report.failures == (PageFailure("cart", "ConnectionError: no route"),)
    assert report.written == ("orders", "overview")
    assert "- Cart (not written yet): About cart." in (wiki / "index.md").read_text()
    author.on_page, author.seen = lambda id: None, []
    again = generate()
    assert (author.plans, author.written, again.written, again.kept) == (0, ["cart"], ("cart",), ("overview", "orders"))
    assert "- [Cart](cart.md)" in (wiki / "index.md").read_text()


def test_an_agent_that_never_ends_is_ended(author: Author, generate: Generate) -> None:
    author.pages = ["cart"]
    author.page_script = lambda id: [("read_text_file", {"path": "README.md"})]
    (failure,) = generate().failures
    assert "ModelCallLimitExceededError" in failure.reason


def test_a_complete_wiki_is_written_anew_and_knows_its_pages(author: Author, generate: Generate) -> None:
    generate()
    author.seen = []
    assert len(generate().written) == 3
    asked = text_of(next(each for each in author.seen[0] if each["role"] == "user"))
    assert "<pages>\n- overview: Overview\n- cart: Cart\n- orders: Orders\n</pages>" in asked


def test_a_structure_that_is_none_is_told_to_the_model_which_corrects_it(author: Author, generate: Generate) -> None:
    author.planning = [("WikiStructure", {"title": "Shop", "sections": []})]
    assert generate().is_complete
    assert "between 1 and 100 pages" in str(author.seen[1])


def test_a_model_that_cannot_plan_is_an_error_and_leaves_no_page(
    wiki: Path, author: Author, generate: Generate
) -> None:
    author.planning = ["I cannot do that."]
    with pytest.raises(LlmError, match="no structure"):
        generate()
    assert list(wiki.glob("*.md")) == []


def test_files_that_do_not_exist_and_bad_names_spoil_nothing(
    wiki: Path, tmp_path: Path, author: Author, generate: Generate
) -> None:
    page = {"title": "T", "file_paths": ["src/cart.py", "src/none.py"]}
    pages = [{**page, "id": id} for id in ("../../outside", "a", "A", "/etc/passwd", "index", "")]
    author.structure = {"title": "Shop", "sections": [{"title": "All", "pages": pages}]}
    before = set(tmp_path.iterdir()) | {wiki}
    report = generate()
    assert report.written == ("a", "a-2", "etc-passwd", "index-page", "outside", "t")
    assert len(report.notes) == 6
    assert "src/none.py" not in (wiki / "a.md").read_text()
    assert set(tmp_path.iterdir()) == before


def test_a_file_of_somebody_else_stops_the_run_before_a_page_is_written(
    wiki: Path, author: Author, generate: Generate
) -> None:
    wiki.mkdir()
    (wiki / "cart.md").write_text("mine")
    for _ in range(2):
        with pytest.raises(ConflictError, match=r"cart\.md in .* not written by Eunoe"):
            generate()
    assert (author.plans, author.written) == (1, [])
    assert (wiki / "cart.md").read_text() == "mine"
    (wiki / "cart.md").rename(wiki / "my-cart.md")
    assert len(generate().written) == 3
    assert author.plans == 1


@pytest.mark.parametrize("out", [".", "..", ".git/wiki"])
def test_a_wiki_needs_a_folder_of_its_own(shop: Path, generate: Generate, out: str) -> None:
    with pytest.raises(InputError):
        generate(out_dir=shop / out)


@pytest.mark.parametrize("pages", [0, 101])
def test_plans_that_are_refused_again_and_again_end_the_run_with_the_reason(
    author: Author, generate: Generate, wiki: Path, pages: int
) -> None:
    author.pages = [f"page-{number}" for number in range(pages)]
    with pytest.raises(LlmError, match=f"between 1 and 100 pages in its sections; these have {pages}"):
        generate()
    assert len(author.seen) == 3
    assert not wiki.exists()
