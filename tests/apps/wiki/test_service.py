"""The service and its repository, on a real store and real git repositories."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any
from unittest.mock import AsyncMock
from uuid import UUID, uuid4

import pytest
from tests.support.checkouts import git, make_checkout

import eunoe
from eunoe.apps.wiki import MemoryType, WikiMemoryRepository, WikiMemoryService
from eunoe.errors import StoreBusyError
from eunoe.memory import Memory

SHOP, BLOG = uuid4(), uuid4()
FIELDS = {
    *("id", "repository_id", "memory_type", "content", "source_agent", "file_paths", "related_pages"),
    *("embedding_metadata", "created_at", "updated_at", "score", "commit", "branch", "stale", "changed_files", "trust"),
}


class Desk:
    """A service, its memory and a checkout, with verbs that are not awaited."""

    def __init__(self, memory: Memory, tree: Path) -> None:
        self.memory = memory
        self.tree = tree
        self.service = WikiMemoryService(WikiMemoryRepository(memory))

    def store(
        self, content: str, type: Any = "pattern_found", repository: Any = SHOP, **options: Any
    ) -> dict[str, Any]:
        return asyncio.run(self.service.store_memory(repository, content, type, "page_agent", **options))

    def search(self, query: str, *args: Any, repository: Any = SHOP, **options: Any) -> list[dict[str, Any]]:
        return checked(asyncio.run(self.service.search_memories(repository, query, *args, **options)))["memories"]

    def by_files(self, *paths: str, repository: Any = SHOP, **options: Any) -> list[str]:
        result = asyncio.run(self.service.get_memories_by_files(repository, list(paths), **options))
        assert checked(result)["count"] == len(result["memories"])
        return [each["content"] for each in result["memories"]]

    def run(self, verb: str, *args: Any, **options: Any) -> dict[str, Any]:
        return asyncio.run(getattr(self.service, verb)(*args, **options))


def checked(result: dict[str, Any]) -> dict[str, Any]:
    assert result["status"] == "success", result
    return result


@pytest.fixture
def desk(memory: Memory, tmp_path: Path) -> Desk:
    tree = make_checkout(tmp_path / "clone", {"src/app.py": "x = 1\n", "src/web/page.py": "y = 1\n"})
    return Desk(memory, tree)


def test_results_have_all_fields_and_are_plain(desk: Desk) -> None:
    stored = desk.store("Handlers follow the command pattern.", repo_dir=desk.tree, file_paths=["src/app.py"])
    id = stored["memory_id"]
    assert stored == {
        "status": "success",
        "memory_id": id,
        "memory_ids": [id],
        "chunks_created": 1,
        "repository_id": str(SHOP),
    }
    (found,) = desk.search("handlers", repo_dir=desk.tree)
    assert found.keys() == FIELDS
    assert json.loads(json.dumps(found)) == found
    assert found["id"] == id
    assert 0 < found["score"] <= 1
    assert (found["branch"], found["commit"]) == ("main", git(desk.tree, "rev-parse", "HEAD"))
    assert (found["source_agent"], found["memory_type"], found["trust"]) == (
        "page_agent",
        "pattern_found",
        "unverified",
    )
    assert found["embedding_metadata"]["original_length"] == len("Handlers follow the command pattern.")


def test_a_uuid_and_its_texts_are_one_repository(desk: Desk) -> None:
    desk.store("Pages follow folders.", repository=SHOP)
    for spelling in (SHOP, str(SHOP), str(SHOP).upper(), SHOP.hex, f"{{{SHOP}}}"):
        assert desk.search("folders", repository=spelling)
        assert desk.by_files(".", repository=spelling) == []
    assert desk.run("purge_memories", str(SHOP).upper()) == {
        "status": "success",
        "deleted_count": 1,
        "repository_id": str(SHOP),
    }
    assert desk.search("folders") == []


@pytest.mark.parametrize("repository", [None, "", "  ", 7, b"x", "a\nb", "x" * 600])
def test_a_repository_that_names_nothing_is_an_error_for_every_verb(desk: Desk, repository: Any) -> None:
    desk.store("Pages follow folders.")
    calls = {
        "store_memory": ("words", "pattern_found", "page_agent"),
        "search_memories": ("folders",),
        "get_memories_by_files": (["."],),
        "get_memory": ("x",),
        **dict.fromkeys(("purge_memories", "hide_memories", "restore_memories", "purge_hidden_memories"), ()),
    }
    for verb, arguments in calls.items():
        result = desk.run(verb, repository, *arguments)
        assert (verb, result["status"]) == (verb, "error")
        assert result["error_type"] in ("InputError", "ScopeError")
    assert len(desk.search("folders")) == 1
    assert len(desk.memory.scopes()) == 1


def test_repositories_stay_apart(desk: Desk) -> None:
    desk.store("The shop sells tea.", repository=SHOP, file_paths=["a.py"])
    desk.store("The blog sells nothing.", repository=BLOG, file_paths=["a.py"])
    assert [each["content"] for each in desk.search("sells", repository=BLOG)] == ["The blog sells nothing."]
    assert desk.by_files("a.py", repository=BLOG) == ["The blog sells nothing."]
    desk.run("purge_memories", BLOG)
    assert [each["content"] for each in desk.search("sells")] == ["The shop sells tea."]


MEMORIES = [
    "Authentication uses JWT tokens.",
    "Errors are logged in JSON.",
    "Database migrations run with Alembic.",
    "The API is versioned under /v1.",
    "Background jobs run in Celery.",
]


@pytest.fixture
def full_desk(tmp_path: Path) -> Iterator[Desk]:
    """With memories, and with the vectors of the default embedder."""
    with eunoe.open(tmp_path / "memory.db") as memory:
        desk = Desk(memory, tmp_path)
        for text in MEMORIES:
            desk.store(text)
        yield desk


def test_what_scores_too_little_is_not_found_and_the_threshold_can_be_set(full_desk: Desk) -> None:
    desk = full_desk
    question = "how do users log in"
    scores = [each["score"] for each in desk.search(question, score_threshold=0)]
    assert [each["score"] for each in desk.search(question)] == [score for score in scores if score >= 0.2]
    assert len(desk.search(question)) < len(scores)
    assert [each["content"] for each in desk.search(question, score_threshold=0.9)] == MEMORIES[:1]
    wrong = desk.run("search_memories", SHOP, question, score_threshold=2)
    assert (wrong["status"], "score_threshold" in wrong["error"]) == ("error", True)


def test_a_type_is_chosen_before_the_limit(desk: Desk) -> None:
    for number in range(20):
        desk.store(f"The storage pattern number {number} is about storage.")
    desk.store("Storage gets a section.", "structural_decision")
    (found,) = desk.search("storage", 1, MemoryType.STRUCTURAL_DECISION)
    assert found["content"] == "Storage gets a section."


LONG = "\n\n".join(
    f"Rule {number}: every handler number {number} has a test. \t" + "é😀 " * 100 for number in range(60)
)


@pytest.mark.remote
def test_a_long_content_comes_back_byte_by_byte_as_one_hit(desk: Desk) -> None:
    stored = desk.store(LONG, file_paths=["src/app.py"])
    desk.store("Handlers are small.")
    assert stored["chunks_created"] == len(stored["memory_ids"]) > 4
    found = desk.search("handler test", 10)
    assert sorted(each["content"] == LONG for each in found) == [False, True]
    assert desk.by_files("src") == [LONG]
    for id in stored["memory_ids"]:
        assert desk.run("get_memory", SHOP, id)["memory"]["content"] == LONG
    assert desk.run("purge_memories", SHOP)["deleted_count"] == 2


def test_parts_of_one_memory_do_not_crowd_others_out(desk: Desk) -> None:
    desk.store("handler test rule " * 2000)
    for number in range(3):
        desk.store(f"A handler of kind {number} is tested.")
    assert len(desk.search("handler test", 4)) == 4


@pytest.mark.parametrize("content", ["", " \n\t", None, 7, "half \ud800"])
def test_what_cannot_be_stored_is_an_error_and_stores_nothing(desk: Desk, content: Any) -> None:
    assert desk.store(content)["error_type"] == "InputError"
    assert desk.store("Words.", "opinion")["error_type"] == "InputError"
    assert desk.store("Words.", file_paths=[3])["error_type"] == "InputError"
    assert desk.memory.scopes() == []


def test_files_by_path_folder_and_glob_from_any_clone(desk: Desk, tmp_path: Path) -> None:
    desk.store("About the app.", repo_dir=desk.tree, file_paths=[f"{desk.tree}/src/app.py"])
    desk.store("About the page.", repo_dir=desk.tree, file_paths=["src\\web\\page.py"])
    other = tmp_path / "later"
    git(tmp_path, "clone", "-q", str(desk.tree), str(other))
    for wanted in ("src/app.py", "./src/app.py", f"{other}/src/app.py"):
        assert desk.by_files(wanted, repo_dir=other) == ["About the app."]
    for wanted in ("src", "src/", ".", "/", str(other), "*.py", "src/**/*.py", f"{other}/src/**"):
        assert sorted(desk.by_files(wanted, repo_dir=other)) == ["About the app.", "About the page."]
    assert desk.by_files("src/*.py", repo_dir=other) == ["About the app."]
    assert desk.by_files("docs", "src/ap", "*.md", repo_dir=other) == []
    assert desk.by_files() == []


def test_a_memory_says_when_its_files_have_changed(desk: Desk) -> None:
    desk.store("About both.", repo_dir=desk.tree, file_paths=["src/app.py", "src/web/page.py"])
    desk.store("About nothing in particular.", repo_dir=desk.tree)

    def staleness(**options: Any) -> dict[str, Any]:
        found = desk.search("about", score_threshold=0, **options)
        return {each["content"]: (each["stale"], each["changed_files"]) for each in found}

    fresh = {"About both.": (False, []), "About nothing in particular.": (False, [])}
    assert staleness(repo_dir=desk.tree) == fresh
    (desk.tree / "src/app.py").write_text("x = 2\n")
    assert staleness(repo_dir=desk.tree)["About both."] == (True, ["src/app.py"])
    git(desk.tree, "commit", "-aqm", "Second")
    assert staleness(repo_dir=desk.tree)["About both."] == (True, ["src/app.py"])
    (desk.tree / "src/web/page.py").unlink()
    assert staleness(repo_dir=desk.tree)["About both."] == (True, ["src/app.py", "src/web/page.py"])
    git(desk.tree, "checkout", "-q", "HEAD~1", "--", ".")
    assert staleness(repo_dir=desk.tree) == fresh
    assert staleness()["About both."] == (None, [])


def test_the_same_insight_of_many_agents_at_once_is_one_memory_with_all_their_files(desk: Desk) -> None:
    def store(number: int) -> dict[str, Any]:
        return desk.store("Handlers follow the command pattern.", file_paths=[f"src/h{number}.py"])

    with ThreadPoolExecutor(8) as pool:
        results = [checked(result) for result in pool.map(store, range(16))]
    assert len({result["memory_id"] for result in results}) == 1
    (found,) = desk.search("command pattern")
    assert sorted(found["file_paths"]) == sorted(f"src/h{number}.py" for number in range(16))


def test_storing_again_after_a_change_brings_it_up_to_date(desk: Desk) -> None:
    first = desk.store("About the app.", repo_dir=desk.tree, file_paths=["src/app.py"])
    (desk.tree / "src/app.py").write_text("x = 2\n")
    git(desk.tree, "commit", "-aqm", "Second")
    second = desk.store("About the app.", repo_dir=desk.tree, file_paths=["src/app.py"], related_pages=["app"])
    assert first["memory_id"] == second["memory_id"]
    (found,) = desk.search("app", repo_dir=desk.tree)
    assert (found["stale"], found["related_pages"]) == (False, ["app"])
    assert found["commit"] == git(desk.tree, "rev-parse", "HEAD")
    assert found["created_at"] < found["updated_at"]


@pytest.mark.remote
def test_a_memory_that_is_no_longer_true_gives_way_to_another(desk: Desk) -> None:
    old = desk.store(LONG, "structural_decision", file_paths=["src/app.py"])
    new = desk.store("Handlers need no test.", "structural_decision", replaces=old["memory_ids"][1])
    assert [each["id"] for each in desk.search("handler test")] == [new["memory_id"]]
    assert desk.by_files("src") == []
    assert desk.run("get_memory", SHOP, old["memory_id"])["error_type"] == "NotFoundError"
    assert desk.memory.get(f"repository={SHOP}", old["memory_id"]).text in LONG
    assert desk.store("Third.", replaces=old["memory_id"])["error_type"] == "NotFoundError"
    checked(desk.store("Handlers need no test.", "structural_decision", replaces=new["memory_id"]))
    checked(desk.store(LONG, "structural_decision", replaces=new["memory_id"]))
    assert [each["content"] for each in desk.search("handler test")] == [LONG]
    assert desk.run("purge_memories", SHOP)["deleted_count"] == 2


def test_purging_lets_the_same_return_and_leaves_other_things_in_the_scope(desk: Desk) -> None:
    desk.store(LONG)
    desk.memory.remember(f"repository={SHOP}", "Noted by hand.")
    assert desk.run("purge_memories", SHOP)["deleted_count"] == 1
    assert [item.text for item in desk.memory.list(f"repository={SHOP}", retired=True).items] == ["Noted by hand."]
    assert desk.run("purge_memories", SHOP)["deleted_count"] == 0
    checked(desk.store(LONG))
    assert len(desk.search("handler")) == 1


class TestHiding:
    def test_hidden_memories_are_nowhere_and_come_back(self, desk: Desk) -> None:
        long = desk.store(LONG, file_paths=["src/app.py"])
        desk.store("Elsewhere.", repository=BLOG)
        assert desk.run("hide_memories", SHOP)["hidden_count"] == 1
        assert desk.search("handler") == desk.by_files("src") == []
        for id in long["memory_ids"]:
            assert desk.run("get_memory", SHOP, id)["error_type"] == "NotFoundError"
        assert desk.search("elsewhere", repository=BLOG)
        assert desk.run("restore_memories", SHOP)["restored_count"] == 1
        assert [each["content"] for each in desk.search("handler")] == [LONG]

    def test_no_earlier_version_comes_to_light(self, desk: Desk) -> None:
        for path in ("a.py", "b.py", "c.py"):
            desk.store(LONG, file_paths=[path])
        before = desk.memory.list(f"repository={SHOP}", retired=True, limit=100).items
        assert desk.run("hide_memories", SHOP)["hidden_count"] == 1
        assert desk.search("handler") == desk.by_files(".") == []
        assert desk.run("hide_memories", SHOP)["hidden_count"] == 0
        assert desk.run("restore_memories", SHOP)["restored_count"] == 1
        assert desk.memory.list(f"repository={SHOP}", retired=True, limit=100).items == before

    @pytest.mark.remote
    def test_a_run_that_succeeds_leaves_none_old_and_all_new(self, desk: Desk) -> None:
        desk.store("Old and gone.", file_paths=["src/app.py"])
        desk.store("Known again.", repo_dir=desk.tree, file_paths=["src/app.py"])
        (desk.tree / "src/app.py").write_text("x = 2\n")
        desk.run("hide_memories", SHOP)
        desk.store("Known again.", repo_dir=desk.tree, file_paths=["src/app.py"])
        desk.store("New.")
        assert desk.run("purge_hidden_memories", SHOP)["deleted_count"] == 1
        found = {each["content"]: each["stale"] for each in desk.search("old gone known again new", repo_dir=desk.tree)}
        assert found == {"Known again.": False, "New.": False}
        assert desk.run("restore_memories", SHOP)["restored_count"] == 0

    def test_a_purge_takes_hidden_ones_too(self, desk: Desk) -> None:
        desk.store("Hidden.")
        desk.run("hide_memories", SHOP)
        assert desk.run("purge_memories", SHOP)["deleted_count"] == 1
        assert desk.run("restore_memories", SHOP)["restored_count"] == 0


def test_what_was_forgotten_on_purpose_is_not_told_as_stored(desk: Desk) -> None:
    stored = desk.store("The PIN is 4711.")
    desk.memory.forget(f"repository={SHOP}", stored["memory_id"])
    result = desk.store("The PIN is 4711.")
    assert result["status"] == "error"
    assert "forgotten on purpose" in result["error"]


@pytest.mark.parametrize("error", [RuntimeError("/srv/secret.db"), StoreBusyError("/srv/secret.db is busy")])
def test_faults_within_are_not_told_outside(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    repository = AsyncMock(spec=WikiMemoryRepository)
    for verb in ("insert", "vector_search", "find_by_file_paths", "find_by_id", "delete_by_repository"):
        getattr(repository, verb).side_effect = error
    service = WikiMemoryService(repository)
    calls = (
        service.store_memory(SHOP, "Words.", MemoryType.PATTERN_FOUND, "page_agent"),
        service.search_memories(SHOP, "words"),
        service.get_memories_by_files(SHOP, ["a.py"]),
        service.get_memory(SHOP, "id"),
        service.purge_memories(SHOP),
    )
    for call in calls:
        result = asyncio.run(call)
        assert (result["status"], result["error_type"]) == ("error", type(error).__name__)
        assert "secret" not in str(result)
    assert "secret" not in caplog.text


def test_without_a_memory_the_store_of_the_command_line_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cli.db"
    monkeypatch.setenv("EUNOE_STORE", str(path))
    service = WikiMemoryService()
    assert not path.exists()
    checked(asyncio.run(service.store_memory(SHOP, "Words.", "pattern_found", "page_agent")))
    assert path.exists()
    result = asyncio.run(WikiMemoryService.purge_for_repository(SHOP))
    assert result == {"status": "success", "deleted_count": 1, "repository_id": str(SHOP)}


def test_the_event_loop_goes_on_while_the_store_works(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    is_released = Event()
    monkeypatch.setattr(WikiMemoryRepository, "_best_hits", lambda *_: [1][: not is_released.wait(10)])

    async def main() -> dict[str, Any]:
        search = asyncio.create_task(desk.service.search_memories(SHOP, "words"))
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(is_released.set)
        return await search

    assert asyncio.run(main())["count"] == 0


def test_a_vector_of_the_stores_model_is_a_question_too(tmp_path: Path) -> None:
    with eunoe.open(tmp_path / "memory.db") as memory:
        desk = Desk(memory, tmp_path)
        desk.store("The database keeps rows in SQLite.")
        desk.store("Cats sleep all day.")
        assert memory.flush()
        assert memory.embedder is not None
        vector = memory.embedder.embed_query("database rows")
        repository = WikiMemoryRepository(memory)
        found = asyncio.run(repository.vector_search(UUID(str(SHOP)), vector, limit=1))
        assert [each.content for each in found] == ["The database keeps rows in SQLite."]
        assert asyncio.run(repository.vector_search(SHOP, vector, score_threshold=0.99)) == []
        assert found[0].embedding_metadata["model"] == memory.embedder.name


@pytest.mark.parametrize(
    "metadata",
    [
        {"part": {"memory": "q"}},
        {"part": {"memory": "q", "number": "x", "parts": 2, "start": 0}},
        {"part": {"memory": "q", "number": 1, "parts": 10**9, "start": 0}},
        {"part": {"memory": "q", "number": 0, "parts": 0, "start": -1}},
        {"part": [1], "embedding": 3, "blobs": "x"},
    ],
)
def test_a_fact_that_somebody_else_wrote_breaks_nothing(desk: Desk, metadata: dict[str, Any]) -> None:
    scope = {"repository": str(SHOP)}
    desk.memory.remember(scope, "Bad parts", label="pattern_found", metadata=metadata, files=["a.py"])
    desk.store("Good parts")
    assert {each["content"] for each in desk.search("parts")} == {"Bad parts", "Good parts"}
    assert desk.by_files("a.py") == ["Bad parts"]
    for verb in ("hide_memories", "restore_memories", "purge_memories"):
        result = checked(desk.run(verb, SHOP))
        assert [value for name, value in result.items() if name.endswith("_count")] == [2]


def test_a_tenant_sees_its_own(desk: Desk) -> None:
    acme = Desk(desk.memory.restricted(tenant="acme"), desk.tree)
    acme.store(LONG)
    assert [each["content"] for each in acme.search("handler")] == [LONG]
    assert desk.search("handler") == []
    assert [scope.text for scope in desk.memory.scopes()] == [f"repository={SHOP}/tenant=acme"]


def test_what_is_stored_again_unchanged_is_not_written_again(desk: Desk) -> None:
    text = "A sentence about carts. " * 1000
    first = desk.store(text, file_paths=["a.py"], commit="c1")
    before = desk.memory.list({"repository": str(SHOP)}, retired=True, limit=100).items
    assert desk.store(text, file_paths=["a.py"], commit="c1") == first
    assert desk.memory.list({"repository": str(SHOP)}, retired=True, limit=100).items == before
    desk.store(text, file_paths=["b.py"], commit="c2")
    (memory,) = desk.search("carts")
    assert (memory["file_paths"], memory["commit"]) == (["a.py", "b.py"], "c2")
