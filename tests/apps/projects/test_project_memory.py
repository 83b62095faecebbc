"""Project memory: what is indexed is found, whole and at once, by everybody, until it is deleted."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import eunoe
from eunoe.apps.projects import ProjectMemory
from eunoe.apps.projects.documents import MAX_UNSPLIT_CHARACTERS
from eunoe.apps.projects.memory import THRESHOLDS
from eunoe.errors import ConflictError, InputError, NotFoundError, ScopeError

CHILD = Path(__file__).parents[2] / "support" / "project_child.py"
LOGIN = "Ticket: Login broken. Users were logged out. The clock of the server was wrong; ntp is installed."
COUPON = "Ticket: Coupons. Two coupons were applied to the full price. They are applied one after the other."
FOREST = "Ticket: Frame drops in the forest level. Trees are drawn by instancing; 60 fps again."
HAY = "The committee met again and approved the minutes of the last meeting without any changes.\n"
LONG_ONE = (
    HAY * (MAX_UNSPLIT_CHARACTERS // len(HAY))
    + "The zebra sleeps in the attic of the library.\n"
    + HAY * (MAX_UNSPLIT_CHARACTERS // len(HAY))
)
PEOPLE = [
    "Greta Lindqvist runs the warehouse in Stone Harbour.",
    "Greta Lindqvist was born in Uppsala and studied botany.",
    "Marc Olsen runs the warehouse in Far Bay.",
    "Marc Olsen was born in Bergen.",
]
SCRIPTS = {
    "ru": (
        [
            "Вход сломан. Анна Ковалёва исправила часы сервера в Новосибирске.",
            "Купоны теперь применяются один за другим.",
            "Поиск был медленным, добавлен индекс в Postgres.",
            "Счета печатаются через WeasyPrint.",
            "Вебхуки повторяются восемь раз.",
        ],
        "Кто исправил часы?",
        ["Кто написал Войну и мир?", "Какая столица Монголии?", "Как испечь хлеб дома?"],
    ),
    "ja": (
        [
            "石港の倉庫は花子が管理している。",
            "クーポンは順番に適用される。",
            "検索が遅いのでインデックスを追加した。",
            "請求書はPDFで出力される。",
            "ウェブフックは八回再試行する。",
        ],
        "倉庫の管理",
        ["モナリザを描いたのは誰?", "モンゴルの首都はどこ?", "パンの焼き方"],
    ),
}


@pytest.fixture(params=["static", "none"])
def memory(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[ProjectMemory]:
    with ProjectMemory.open(tmp_path / "projects", embedder=request.param) as memory:
        yield memory


def find_texts(memory: ProjectMemory, query: str, project: str = "shop", count: int | None = None) -> list[str]:
    return list(memory.retrieve(project, [query], count)[0]["docs"])


class TestIndexAndRetrieve:
    def test_each_question_gets_its_own_documents_best_first(self, memory: ProjectMemory) -> None:
        ids = memory.index("shop", [LOGIN, COUPON, FOREST])
        login, coupon = memory.retrieve("shop", ["Why were users logged out?", "coupons applied to the full price"])
        assert (login["question"], login["docs"][0], login["ids"][0]) == ("Why were users logged out?", LOGIN, ids[0])
        assert (coupon["docs"][0], coupon["ids"][0]) == (COUPON, ids[1])
        for result in (login, coupon):
            assert list(result["doc_scores"]) == sorted(result["doc_scores"], reverse=True)
            assert all(0 <= score <= 1 for score in result["doc_scores"])

    @pytest.mark.parametrize("query", ["Who painted the Mona Lisa?", "東京の天気", ""])
    def test_a_question_on_something_else_gets_none(self, memory: ProjectMemory, query: str) -> None:
        memory.index("shop", [LOGIN, COUPON, FOREST])
        assert memory.retrieve("shop", [query]) == [{"question": query, "docs": [], "doc_scores": [], "ids": []}]

    def test_what_only_the_graph_leads_to_is_not_thrown_out(self, memory: ProjectMemory) -> None:
        memory.index("shop", [*PEOPLE, "Backups run at night on the second disk.", "The bridge was closed in May."])
        docs = find_texts(memory, "Where was the person who runs the warehouse in Stone Harbour born?")
        assert docs[:2] == PEOPLE[:2]

    def test_what_scores_little_beside_the_best_is_left_out(self, memory: ProjectMemory) -> None:
        memory.index("shop", [*PEOPLE, LOGIN, COUPON])
        (result,) = memory.retrieve("shop", ["Which ticket was about coupons applied to the full price?"], 20)
        assert result["docs"][0] == COUPON
        assert len(result["docs"]) < 6
        assert result["doc_scores"][-1] >= THRESHOLDS["documents"].follower

    @pytest.mark.parametrize("query", ["what is the", "Who was that?", "?!"])
    def test_stop_words_alone_find_nothing(self, memory: ProjectMemory, query: str) -> None:
        memory.index("shop", [LOGIN, COUPON, FOREST, "What is the matter with it and who are they?"])
        assert find_texts(memory, query) == []

    def test_one_name_that_is_everywhere_does_not_hide_the_rest_of_a_question(self, memory: ProjectMemory) -> None:
        others = [f"Larkspur ships parcel {number} from bay {number}." for number in range(30)]
        memory.index("shop", [*others, "Larkspur rotates the signing key every quarter."])
        assert find_texts(memory, "How often does Larkspur rotate the signing key?")[0].endswith("quarter.")
        assert len(find_texts(memory, "Larkspur")) == 5

    @pytest.mark.parametrize("script", SCRIPTS)
    def test_a_script_that_the_embedder_cannot_read_is_judged_by_words(
        self, memory: ProjectMemory, script: str
    ) -> None:
        docs, question, unrelated = SCRIPTS[script]
        memory.index("shop", docs)
        assert find_texts(memory, question) == docs[:1]
        assert [find_texts(memory, query) for query in unrelated] == [[]] * len(unrelated)

    def test_a_threshold_of_ones_own_holds_for_every_document(self, tmp_path: Path) -> None:
        question = "Which ticket was about coupons applied to the full price of a forest?"
        counts = []
        for threshold in (0.0, 0.5, 1.0):
            with ProjectMemory.open(tmp_path, embedder="static", threshold=threshold) as memory:
                memory.index("shop", [*PEOPLE, LOGIN, COUPON, FOREST])
                (result,) = memory.retrieve("shop", [question], 20)
                assert all(score >= threshold for score in result["doc_scores"])
                counts.append(len(result["ids"]))
        assert counts[0] >= counts[1] > counts[2] == 0

    def test_a_project_that_has_nothing_gives_nothing(self, memory: ProjectMemory) -> None:
        assert find_texts(memory, "login") == []
        assert memory.index("shop", []) == []
        assert memory.retrieve("shop", []) == []

    def test_five_are_given_unless_a_number_is_asked_for(self, lexical_memory: ProjectMemory) -> None:
        lexical_memory.index("shop", [f"The pump of building {number} was repaired." for number in range(9)])
        assert [len(find_texts(lexical_memory, "repaired pump", count=count)) for count in (None, 2, 20)] == [5, 2, 9]
        for count in (0, -1, True, 2.0, "5"):
            with pytest.raises(InputError, match="at least 1"):
                lexical_memory.retrieve("shop", ["pump"], count)  # type: ignore[arg-type]

    def test_projects_do_not_see_each_other(self, memory: ProjectMemory) -> None:
        memory.index("shop", [LOGIN])
        memory.index("game", [FOREST])
        assert find_texts(memory, "login broken users logged out", "game") == []
        assert find_texts(memory, "frame drops in the forest level", "game") == [FOREST]

    def test_a_title_is_found_and_shown(self, memory: ProjectMemory) -> None:
        memory.index("shop", [{"text": "It was restarted twice.", "title": "Zanzibar gateway"}, COUPON])
        assert find_texts(memory, "zanzibar gateway") == ["Zanzibar gateway\n\nIt was restarted twice."]

    def test_time_ticket_and_metadata_are_kept(self, lexical_memory: ProjectMemory) -> None:
        item = {"text": LOGIN, "ticket": 7, "time": "2026-01-02T03:04:05Z", "metadata": {"outcome": "done"}}
        (id,) = lexical_memory.index("shop", [item])
        atom = lexical_memory.memory.get({"project": "shop"}, id)
        assert (atom.time and atom.time.year, dict(atom.metadata)) == (2026, {"outcome": "done", "ticket": "7"})


class TestIdentity:
    def test_the_same_words_have_the_same_id_in_one_call_and_later(self, lexical_memory: ProjectMemory) -> None:
        first, second, third = lexical_memory.index("shop", [LOGIN, COUPON, LOGIN])
        assert (first == third, first == second) == (True, False)
        assert lexical_memory.index("shop", [LOGIN]) == [first]
        assert find_texts(lexical_memory, "login broken users", count=20) == [LOGIN]

    def test_two_tickets_with_the_same_words_are_two_memories(self, lexical_memory: ProjectMemory) -> None:
        first, second = lexical_memory.index("shop", [{"text": LOGIN, "ticket": "1"}, {"text": LOGIN, "ticket": "2"}])
        assert first != second
        assert lexical_memory.ticket_documents("shop", "1") == [first]
        assert lexical_memory.delete("shop", [first]) == [first]
        assert lexical_memory.retrieve("shop", ["login broken users"])[0]["ids"] == [second]

    def test_an_id_of_ones_own_stands_for_one_text(self, lexical_memory: ProjectMemory) -> None:
        lexical_memory.index("shop", [{"text": LOGIN, "id": "a"}, {"text": LOGIN, "id": "b"}])
        assert lexical_memory.index("shop", [{"text": LOGIN, "id": "a"}]) == ["a"]
        with pytest.raises(ConflictError, match="'a' stands for other words"):
            lexical_memory.index("shop", [FOREST, {"text": COUPON, "id": "a"}])
        with pytest.raises(ConflictError, match="'new' stands for other words"):
            lexical_memory.index("shop", [{"text": COUPON, "id": "new"}, {"text": FOREST, "id": "new"}])
        assert find_texts(lexical_memory, "forest level frame drops coupons price") == []

    def test_what_was_archived_is_found_when_it_is_indexed_again(self, lexical_memory: ProjectMemory) -> None:
        ids = lexical_memory.index("shop", [LOGIN, COUPON])
        assert [
            id for id, _ in lexical_memory.memory.streams.apply_retention({"project": "shop"}, keep_best=1).archived
        ] == ids[:1]
        assert find_texts(lexical_memory, "login broken users") == []
        assert lexical_memory.index("shop", [LOGIN]) == ids[:1]
        assert find_texts(lexical_memory, "login broken users") == [LOGIN]

    @pytest.mark.parametrize("docs", [[LOGIN, ""], [LOGIN, {"title": "x"}], [LOGIN, 5], LOGIN, {"text": LOGIN}, 5])
    def test_nothing_is_stored_if_one_makes_no_sense(self, lexical_memory: ProjectMemory, docs: Any) -> None:
        with pytest.raises(InputError):
            lexical_memory.index("shop", docs)
        assert find_texts(lexical_memory, "login broken users") == []

    def test_what_was_forgotten_on_purpose_is_refused_and_said_so(self, lexical_memory: ProjectMemory) -> None:
        (id,) = lexical_memory.index("shop", [LOGIN])
        lexical_memory.memory.forget({"project": "shop"}, [id])
        with pytest.raises(ConflictError, match=f"1 of 2 documents .* {id} was forgotten on purpose"):
            lexical_memory.index("shop", [LOGIN, COUPON])
        assert find_texts(lexical_memory, "two coupons were applied") == [COUPON]


class TestLongDocuments:
    def test_is_found_by_its_middle_and_comes_back_whole(self, memory: ProjectMemory) -> None:
        (id,) = memory.index("shop", [LONG_ONE])
        memory.index("shop", [LOGIN, COUPON])
        (result,) = memory.retrieve("shop", ["Where does the zebra sleep?"])
        assert (result["docs"], result["ids"], len(result["doc_scores"])) == ([LONG_ONE], [id], 1)

    def test_its_parts_leave_room_for_other_documents(self, lexical_memory: ProjectMemory) -> None:
        long = "The pump was repaired again. " * 2000
        lexical_memory.index("shop", [long, *(f"The pump of building {number} was repaired." for number in range(4))])
        docs = find_texts(lexical_memory, "pump repaired", count=5)
        assert (len(docs), len(set(docs)), long in docs) == (5, 5, True)

    def test_is_known_again_and_deleted_whole_by_words_or_by_id(self, lexical_memory: ProjectMemory) -> None:
        for name in (LONG_ONE, ""):
            (id,) = lexical_memory.index("shop", [LONG_ONE])
            assert lexical_memory.index("shop", [LONG_ONE]) == [id]
            assert lexical_memory.delete("shop", [name or id]) == [id]
            assert lexical_memory.memory.list({"project": "shop"}).items == ()

    def test_its_parts_do_not_mix_with_a_document_that_has_the_id_of_one(self, lexical_memory: ProjectMemory) -> None:
        lexical_memory.index("shop", [{"text": LOGIN, "id": "a#2"}])
        with pytest.raises(ConflictError, match="'a' stands for other words"):
            lexical_memory.index("shop", [{"text": LONG_ONE, "id": "a"}])
        lexical_memory.index("shop", [{"text": LONG_ONE, "id": "b"}])
        with pytest.raises(ConflictError, match="b#2 stands for other words"):
            lexical_memory.index("shop", [{"text": LOGIN, "id": "b#2"}])
        assert lexical_memory.remove_project("shop") == 2


class TestDelete:
    def test_by_id_or_by_words(self, memory: ProjectMemory) -> None:
        ids = memory.index("shop", [LOGIN, COUPON, FOREST])
        assert memory.delete("shop", [ids[0], COUPON, ids[0]]) == ids[:2]
        assert find_texts(memory, "Why were users logged out?") == []
        assert find_texts(memory, "frame drops in the forest") == [FOREST]

    def test_by_words_takes_each_document_that_has_them(self, lexical_memory: ProjectMemory) -> None:
        docs = [{"text": LOGIN, "id": "own"}, {"text": LOGIN, "ticket": 1}, LOGIN, {"text": LOGIN, "title": "Clock"}]
        ids = lexical_memory.index("shop", docs)
        assert sorted(lexical_memory.delete("shop", [LOGIN])) == sorted(ids)

    def test_unknown_ones_are_named_and_nothing_is_removed(self, lexical_memory: ProjectMemory) -> None:
        ids = lexical_memory.index("shop", [LOGIN])
        with pytest.raises(NotFoundError, match=r"no document is 'nope', 'x{59}…'; nothing was removed"):
            lexical_memory.delete("shop", [*ids, "nope", "x" * 5000])
        assert find_texts(lexical_memory, "login broken users") == [LOGIN]
        assert lexical_memory.delete("shop", [*ids, "nope", ""], missing_ok=True) == ids
        assert lexical_memory.delete("shop", []) == []

    def test_a_part_is_no_document(self, lexical_memory: ProjectMemory) -> None:
        (id,) = lexical_memory.index("shop", [LONG_ONE])
        with pytest.raises(NotFoundError):
            lexical_memory.delete("shop", [f"{id}#2"])

    def test_what_was_deleted_may_be_indexed_again(self, memory: ProjectMemory) -> None:
        ids = memory.index("shop", [LOGIN, {"text": COUPON, "id": "own"}])
        memory.delete("shop", ids)
        assert memory.index("shop", [LOGIN, {"text": FOREST, "id": "own"}]) == ids
        assert find_texts(memory, "Why were users logged out?") == [LOGIN]

    def test_no_trace_of_it_is_left_on_disk(self, tmp_path: Path, lexical_memory: ProjectMemory) -> None:
        lexical_memory.index("shop", ["The passphrase is xylophone-quagga-77."])
        lexical_memory.delete("shop", ["The passphrase is xylophone-quagga-77."])
        lexical_memory.close()
        files = [file for file in (tmp_path / "projects").rglob("*") if file.is_file()]
        assert files
        assert not any(b"quagga" in file.read_bytes() for file in files)


class TestProjects:
    def test_one_is_removed_and_the_others_stay(self, lexical_memory: ProjectMemory) -> None:
        lexical_memory.index("shop", [LOGIN, LONG_ONE])
        lexical_memory.index("game", [FOREST])
        assert (lexical_memory.projects(), lexical_memory.remove_project("shop")) == (["game", "shop"], 2)
        assert (
            lexical_memory.projects(),
            lexical_memory.remove_project("shop"),
            lexical_memory.remove_project("never"),
        ) == (["game"], 0, 0)
        assert lexical_memory.index("shop", [LOGIN])
        assert find_texts(lexical_memory, "login broken users") == [LOGIN]

    @pytest.mark.parametrize("name", ["../../etc", "/absolute", "café 🙂", "x" * 512])
    def test_a_name_is_never_a_path(self, tmp_path: Path, name: str) -> None:
        with ProjectMemory.open(tmp_path / "in" / "here", embedder="none") as memory:
            memory.index(name, [LOGIN])
            assert find_texts(memory, "login broken users", name) == [LOGIN]
            assert memory.projects() == [name]
        assert {file.parent for file in tmp_path.rglob("*") if file.is_file()} == {tmp_path / "in" / "here"}

    @pytest.mark.parametrize("name", ["", "  ", None, 1.5, "a\nb", "x" * 513])
    def test_a_name_that_names_nothing_is_refused(self, lexical_memory: ProjectMemory, name: Any) -> None:
        for call in (
            lambda: lexical_memory.index(name, [LOGIN]),
            lambda: lexical_memory.retrieve(name, ["login"]),
            lambda: lexical_memory.delete(name, ["x"]),
            lambda: lexical_memory.remove_project(name),
        ):
            with pytest.raises(ScopeError):
                call()


class TestRecipes:
    def test_any_memory_will_do(self) -> None:
        with eunoe.open(":memory:", embedder="none") as memory:
            projects = ProjectMemory(memory, recipe="lexical", threshold=0.0)
            projects.index("shop", [LOGIN, COUPON])
            assert find_texts(projects, "login") == [LOGIN]


@pytest.fixture
def start_child() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    children: list[subprocess.Popen[str]] = []

    def begin(*arguments: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-W", "error", str(CHILD), *map(str, arguments)]
        children.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        return children[-1]

    yield begin
    for child in children:
        child.kill()
        child.communicate()


def read_line(child: subprocess.Popen[str]) -> Any:
    assert child.stdout
    return json.loads(child.stdout.readline())


def test_several_processes_share_one_project(
    tmp_path: Path, start_child: Callable[..., subprocess.Popen[str]], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    children = [start_child("write", tmp_path, name, 15) for name in ("ann", "ben")]
    assert [read_line(child) for child in children] == [{"ready": True}] * 2
    for child in children:
        assert child.stdin
        child.stdin.write("\n")
        child.stdin.flush()
    kept = [id for child in children for id in read_line(child)["kept"]]
    assert [child.wait(60) for child in children] == [0, 0]
    with ProjectMemory.open(tmp_path) as memory:
        assert len(kept) == 20
        assert {item.id for item in memory.memory.list({"project": "shared"}).items} == set(kept)


def test_a_killed_process_leaves_no_half_document(
    tmp_path: Path, start_child: Callable[..., subprocess.Popen[str]]
) -> None:
    for _ in range(2):
        child = start_child("long_ones", tmp_path)
        assert [read_line(child)["done"] for _ in range(4)]
        child.kill()
        child.communicate()
        with ProjectMemory.open(tmp_path) as memory:
            atoms = memory.memory.list({"project": "shared"}, limit=1000).items
            places = [atom.metadata["document"] for atom in atoms]
            whole = {place["id"]: place["parts"] for place in places}
            assert len(places) == sum(whole.values())
            (result,) = memory.retrieve("shared", ["Line of report 0"], 1)
            assert result["docs"][0].startswith("Report ")
            assert result["docs"][0].endswith(".\n")
