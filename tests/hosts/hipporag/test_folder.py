"""Moving in from a HippoRAG folder: what comes along, what is named as a problem, and what is never opened."""

from __future__ import annotations

import json
import logging
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.hosts.hipporag.samples import (
    CINDERELLA,
    DOCS,
    GEORGE,
    MODELS,
    OLIVER,
    OPENIE,
    put_chunks,
    put_metadata,
    put_openie,
)

import eunoe
from eunoe.apps.projects import ProjectMemory
from eunoe.cli.app import run
from eunoe.errors import InputError
from eunoe.hosts.hipporag import Chunk, HippoRAG, HippoReport, import_folder, import_projects


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ProjectMemory]:
    monkeypatch.chdir(tmp_path)
    with ProjectMemory.open(tmp_path / "memory", embedder="none") as memory:
        yield memory
    assert not (tmp_path / "pickle-was-opened").exists()


@pytest.fixture
def without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eunoe.hosts.hipporag.folder.find_spec", lambda name: None)


class TestImport:
    def test_documents_of_both_files_come_once_with_what_was_drawn_from_them(
        self, tmp_path: Path, memory: ProjectMemory
    ) -> None:
        old = tmp_path / "old"
        put_openie(old, OPENIE)
        put_chunks(old, DOCS)
        report = import_folder(memory, "shop", old)
        assert report == HippoReport(documents=3, stored=3, entities=2, triples=1)
        assert memory.retrieve("shop", ["Cinderella royal ball"])[0]["docs"] == [CINDERELLA]
        (id,) = memory.index("shop", [OLIVER])
        assert memory.memory.get({"project": "shop"}, id).metadata == {
            "entities": ["Oliver Badman", "politician"],
            "triples": [["Oliver Badman", "is a", "politician"]],
        }

    def test_triples_are_in_the_graph_at_once(self, tmp_path: Path, memory: ProjectMemory) -> None:
        put_openie(tmp_path / "old", OPENIE)
        import_folder(memory, "shop", tmp_path / "old")
        assert memory.memory.graph.size("project=shop").triples == 1
        (relation,) = memory.memory.graph.neighbours("project=shop", "Oliver Badman").relations
        assert (relation.subject, relation.relation, relation.object) == ("oliver badman", "is a", "politician")

    @pytest.mark.parametrize("name", ["openie_results_ner.json", f"{MODELS}/openie_state.json", "openie_state.json"])
    def test_every_place_of_the_json_is_known(self, tmp_path: Path, memory: ProjectMemory, name: str) -> None:
        put_openie(tmp_path / "old", OPENIE, name)
        assert import_folder(memory, "shop", tmp_path / "old") == HippoReport(
            documents=2, stored=2, entities=2, triples=1
        )

    def test_metadata_of_chunks_comes_along(self, tmp_path: Path, memory: ProjectMemory) -> None:
        old = tmp_path / "old"
        put_openie(old, [*OPENIE, {"passage": "lone \ud800 half"}])
        put_chunks(old, DOCS)
        put_metadata(old, {OLIVER: {"page": 3, "source_id": "people.md"}, "unknown": {"page": 9}, GEORGE: "odd"})
        put_metadata(old, {OLIVER: {"year": 1901}}, "other_model")
        (old / "broken_model").mkdir()
        (old / "broken_model" / "chunk_metadata.json").write_text("[1]", encoding="utf-8")
        report = import_folder(memory, "shop", old)
        assert (report.stored, report.described) == (4, 1)
        assert [problem.split(": ")[0].partition(" ")[0] for problem in report.problems] == [
            "broken_model/chunk_metadata.json",
            f"{MODELS}/chunk_metadata.json",
        ]
        (id,) = memory.index("shop", [OLIVER])
        described = {"page": 3, "source_id": "people.md", "year": 1901}
        assert memory.memory.get({"project": "shop"}, id).metadata["chunk"] == described

    def test_a_project_beside_others_is_read_alone(self, tmp_path: Path, memory: ProjectMemory) -> None:
        """An attack: flat folders of two projects look like those of two models."""
        for name, text in (("first", OLIVER), ("second", CINDERELLA)):
            put_openie(tmp_path / "all" / name, [{"passage": text}], "openie_results_ner.json")
            put_chunks(tmp_path / "all" / name, [text], ".")
        with pytest.raises(InputError, match=r"name the save_dir of one HippoRAG \(there are first, second\)"):
            import_folder(memory, "shop", tmp_path / "all")
        assert {name: each.documents for name, each in import_projects(memory, tmp_path / "all").items()} == {
            "first": 1,
            "second": 1,
        }
        assert memory.retrieve("first", ["Cinderella royal ball"])[0]["docs"] == []

    def test_a_second_run_changes_nothing(self, tmp_path: Path, memory: ProjectMemory) -> None:
        put_openie(tmp_path / "old", OPENIE)
        import_folder(memory, "shop", tmp_path / "old")
        before = memory.memory.list({"project": "shop"}).items
        assert import_folder(memory, "shop", tmp_path / "old") == HippoReport(documents=2, known=2)
        assert memory.memory.list({"project": "shop"}).items == before

    def test_what_was_forgotten_here_stays_forgotten(self, tmp_path: Path, memory: ProjectMemory) -> None:
        ids = memory.index("shop", [OLIVER])
        memory.memory.forget({"project": "shop"}, ids)
        put_openie(tmp_path / "old", OPENIE)
        report = import_folder(memory, "shop", tmp_path / "old")
        assert (report.stored, report.forgotten) == (1, 1)

    def test_what_makes_no_sense_is_named_and_stops_nothing(self, tmp_path: Path, memory: ProjectMemory) -> None:
        triples = [["a", "b"], "abc", ["a", None, "c"], ["", "is", "c"], ["Oliver", "is", "tall"], 7]
        odd: list[Any] = [
            {"passage": OLIVER, "extracted_entities": ["Oliver", 3, ""], "extracted_triples": triples},
            {"passage": GEORGE, "extracted_entities": "George", "extracted_triples": {"a": 1}},
            *({"idx": "x"}, {"passage": None}, {"passage": " "}, "text", None, [], 5),
            {"passage": CINDERELLA},
        ]
        put_openie(tmp_path / "old", odd)
        (tmp_path / "old" / "openie_results_ner_broken.json").write_text('{"docs": [', encoding="utf-8")
        (tmp_path / "old" / "openie_results_ner_binary.json").write_bytes(b"\xff\xfe\x00")
        (tmp_path / "old" / "openie_results_ner_list.json").write_text("[]", encoding="utf-8")
        put_chunks(tmp_path / "old", [OLIVER, None, "Only in the parquet file."])
        (tmp_path / "old" / "b_b" / "chunk_embeddings").mkdir(parents=True)
        (tmp_path / "old" / "b_b" / "chunk_embeddings" / "vdb_chunk.parquet").write_bytes(b"PAR1 nonsense")
        report = import_folder(memory, "shop", tmp_path / "old")
        assert (report.stored, report.entities, report.triples) == (4, 1, 1)
        places = [problem.split(": ")[0] for problem in report.problems]
        main = "openie_results_ner_gpt-4o-mini.json docs"
        assert sorted(places) == sorted(
            [
                *(f"openie_results_ner_{name}.json" for name in ("broken", "binary", "list")),
                *(f"{main}[0] extracted_entities[{number}]" for number in (1, 2)),
                *(f"{main}[0] extracted_triples[{number}]" for number in (0, 1, 2, 3, 5)),
                *(f"{main}[{number}]" for number in (1, 1, 2, 3, 4, 5, 6, 7, 8)),
                "b_b/chunk_embeddings/vdb_chunk.parquet",
                "gpt-4o-mini_nvidia_NV-Embed-v2/chunk_embeddings/vdb_chunk.parquet row 1",
            ]
        )
        assert all("\n" not in problem and len(problem) < 400 for problem in report.problems)

    def test_a_second_run_brings_back_what_was_deleted_and_not_what_was_forgotten(self, tmp_path: Path) -> None:
        put_openie(tmp_path, OPENIE)
        with HippoRAG(save_dir=tmp_path, embedding_model_name="none") as rag:
            rag.migrate()
            rag.delete([OLIVER])
            (id,) = rag.index([GEORGE])
            rag.memory.memory.forget("project=hipporag", [id])
            report = rag.migrate()
            assert (report.stored, report.forgotten) == (1, 1)
            assert rag.retrieve(["Oliver Badman"])[0].docs == [OLIVER]
            assert rag.retrieve(["George Rankin"])[0].docs in ([], [OLIVER])

    @pytest.mark.usefixtures("without_pyarrow")
    def test_without_pyarrow_the_json_is_enough(self, tmp_path: Path, memory: ProjectMemory) -> None:
        put_openie(tmp_path / "old", OPENIE)
        put_chunks(tmp_path / "old", DOCS)
        report = import_folder(memory, "shop", tmp_path / "old")
        assert (report.stored, report.problems, len(report.unread)) == (2, (), 1)
        assert "install pyarrow" in report.unread[0]

    @pytest.mark.usefixtures("without_pyarrow")
    def test_without_pyarrow_and_json_it_says_what_is_missing(self, tmp_path: Path, memory: ProjectMemory) -> None:
        put_chunks(tmp_path / "old", DOCS)
        with pytest.raises(InputError, match="install pyarrow"):
            import_folder(memory, "shop", tmp_path / "old")

    def test_a_folder_of_several_projects_is_not_taken_for_one(self, tmp_path: Path, memory: ProjectMemory) -> None:
        put_openie(tmp_path / "all" / "first", OPENIE)
        put_chunks(tmp_path / "all" / "second", DOCS)
        for folder in ("all", "nowhere"):
            with pytest.raises(InputError, match="name the save_dir of one HippoRAG"):
                import_folder(memory, "shop", tmp_path / folder)
        assert memory.projects() == []


class TestCommand:
    @pytest.fixture(autouse=True)
    def store(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setenv("EUNOE_STORE", str(tmp_path / "memory.db"))
        with eunoe.open(tmp_path / "memory.db", embedder="none"):
            pass
        return tmp_path / "memory.db"

    def call(self, *args: object) -> int:
        return run(["migrate", "hipporag", *map(str, args)])

    def test_says_what_came(self, tmp_path: Path, store: Path, capsys: pytest.CaptureFixture[str]) -> None:
        put_openie(tmp_path / "old", OPENIE)
        assert self.call(tmp_path / "old", "--project", "shop") == 0
        assert capsys.readouterr().out == (
            "2 documents read\n2 stored, with 2 entities and 1 triple\n0 known already, 0 forgotten before\n"
        )
        assert self.call(tmp_path / "old", "-p", "shop", "--json") == 0
        assert json.loads(capsys.readouterr().out)["known"] == 2
        with ProjectMemory.open(store) as memory:
            assert memory.retrieve("shop", ["Oliver Badman"])[0]["docs"] == [OLIVER]

    def test_trouble_is_named_and_is_an_exit_code(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        put_openie(tmp_path / "old", [*OPENIE, *([None] * 30)])
        assert self.call(tmp_path / "old", "--project", "shop") == 1
        said = capsys.readouterr()
        assert said.out.startswith("2 documents read\n")
        assert "cannot be read: openie_results_ner_gpt-4o-mini.json docs[2]: " in said.err
        assert "cannot be read: 10 more; --json names them all" in said.err

    def test_each_folder_becomes_a_project_of_its_name(
        self, tmp_path: Path, store: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        put_openie(tmp_path / "all" / "shop", OPENIE)
        put_openie(tmp_path / "all" / "ball", [{"passage": CINDERELLA}])
        put_chunks(tmp_path / "all" / "ball", [CINDERELLA])
        put_metadata(tmp_path / "all" / "ball", {CINDERELLA: {"page": 1}})
        assert self.call(tmp_path / "all") == 0
        said = capsys.readouterr().out
        assert said.startswith(
            "3 documents of 2 projects read\n3 stored, with 2 entities and 1 triple; 1 with metadata\n"
        )
        with ProjectMemory.open(store) as memory:
            assert memory.projects() == ["ball", "shop"]
            assert memory.retrieve("shop", ["Cinderella royal ball"])[0]["docs"] == []
            assert memory.retrieve("ball", ["Cinderella royal ball"])[0]["docs"] == [CINDERELLA]
        assert self.call(tmp_path / "all", "--json") == 0
        assert {name: each["known"] for name, each in json.loads(capsys.readouterr().out).items()} == {
            "ball": 1,
            "shop": 2,
        }


class TestOffer:
    """A memory that is opened where HippoRAG kept its own."""

    def test_an_old_folder_is_noticed_until_something_is_there(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.chdir(tmp_path)
        put_openie(tmp_path / "old outputs", OPENIE)
        put_chunks(tmp_path / "old outputs", DOCS)
        for _ in range(2):
            caplog.clear()
            with HippoRAG(save_dir="old outputs", embedding_model_name="none") as rag:
                assert rag.retrieve(["Oliver Badman"])[0].docs == []
            (offer,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
            assert "holds documents of HippoRAG" in offer
        assert "rag.migrate()" in offer
        command = offer.split("`")[1]
        assert run(shlex.split(command)[1:]) == 0
        caplog.clear()
        with HippoRAG(save_dir="old outputs", embedding_model_name="none") as rag:
            assert rag.retrieve(["Oliver Badman"])[0].docs == [OLIVER]
        assert caplog.records == []
        assert not (tmp_path / "pickle-was-opened").exists()

    def test_the_class_brings_it_in_too(self, tmp_path: Path) -> None:
        put_openie(tmp_path / "old", OPENIE)
        put_metadata(tmp_path / "old", {OLIVER: {"page": 3}})
        with HippoRAG(save_dir=str(tmp_path / "old"), embedding_model_name="none") as rag:
            assert rag.migrate().stored == 2
            assert rag.retrieve(["Oliver Badman"])[0].doc_metadata == [{"page": 3}]
            rag.index([Chunk(OLIVER, metadata={"page": 4})])
            assert rag.retrieve(["Oliver Badman"])[0].doc_metadata == [{"page": 4}]
            assert rag.get_graph_info()["num_extracted_triples"] == 1
        with HippoRAG(save_dir=str(tmp_path / "new"), embedding_model_name="none") as rag:
            assert rag.migrate(tmp_path / "old").stored == 2
