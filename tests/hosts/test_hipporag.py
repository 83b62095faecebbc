"""In the place of HippoRAG: its interface, its results, and its folders, which hold a pickle that nobody may open."""

from __future__ import annotations

import gc
import inspect
import json
import pickle
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

import eunoe
from eunoe.cli.app import run
from eunoe.errors import EunoeError, InputError
from eunoe.hosts import hipporag
from eunoe.hosts.hipporag import HippoRAG, HippoReport, QuerySolution, import_folder
from eunoe.projects import STORE_FILE_NAME, ProjectMemory, ProjectSettings

CHILD = Path(__file__).parents[1] / "support" / "project_child.py"
OLIVER = "Oliver Badman is a politician."
GEORGE = "George Rankin is a politician."
CINDERELLA = "Cinderella attended the royal ball."
DOCS = [OLIVER, GEORGE, CINDERELLA]


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"MEMORY_{name.upper()}" for name in ProjectSettings.__slots__]
    for name in (*names, "EUNOE_LLM", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def rag(tmp_path: Path) -> Iterator[HippoRAG]:
    rag = HippoRAG(save_dir=str(tmp_path / "rag"), llm_model_name="none", embedding_model_name="none")
    yield rag
    rag.close()


class TestDropIn:
    def test_takes_what_hipporag_takes_in_the_same_order(self) -> None:
        assert list(inspect.signature(HippoRAG).parameters) == [
            *("global_config", "save_dir", "llm_model_name", "llm_base_url", "embedding_model_name"),
            *("embedding_base_url", "azure_endpoint", "azure_embedding_endpoint"),
        ]
        assert list(inspect.signature(HippoRAG.retrieve).parameters)[1:] == ["queries", "num_to_retrieve", "gold_docs"]
        assert list(inspect.signature(HippoRAG.delete).parameters)[1:] == ["docs_to_delete"]

    @pytest.mark.parametrize("config", ["outputs", Path("outputs")])
    def test_a_folder_in_the_place_of_the_config_is_refused(
        self, config: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        with pytest.raises(InputError, match=r"outputs.*not a config object.*save_dir="):
            HippoRAG(config, "llm", "static")
        assert list(tmp_path.iterdir()) == []

    def test_its_quickstart_finds_every_gold_document(self, tmp_path: Path) -> None:
        glass = "The prince used the lost glass slipper to search the kingdom."
        fit = "When the slipper fit perfectly, Cinderella was reunited with the prince."
        birthplace, county = "Erik Hort's birthplace is Montebello.", "Montebello is a part of Rockland County."
        others = ["Thomas Marwick is a politician.", "Marina is bom in Minsk."]
        rag = HippoRAG(save_dir=str(tmp_path), llm_model_name="none", embedding_model_name="static")
        rag.index([*DOCS, glass, fit, birthplace, county, *others])
        _, figures = rag.retrieve(
            [
                "What is George Rankin's occupation?",
                "How did Cinderella reach her happy ending?",
                "What county is Erik Hort's birthplace a part of?",
            ],
            gold_docs=[[GEORGE], [CINDERELLA, glass, fit], [birthplace, county]],
        )
        rag.close()
        assert figures["Recall@5"] == 1.0

    def test_results_are_as_code_written_for_it_reads_them(self, rag: HippoRAG) -> None:
        rag.index(docs=DOCS)
        (solution,) = rag.retrieve(queries=["Which ball did Cinderella attend?"], num_to_retrieve=2)
        assert isinstance(solution, QuerySolution)
        assert (solution.question, solution.docs[0]) == ("Which ball did Cinderella attend?", CINDERELLA)
        assert isinstance(solution.doc_scores, np.ndarray)
        assert solution.doc_scores.tolist()[: len(solution.docs)] == solution.doc_scores.tolist()
        said = solution.to_dict()
        assert json.loads(json.dumps(said)) == said
        assert set(said) == {"question", "answer", "gold_answers", "docs", "doc_scores", "gold_docs"}

    def test_an_unrelated_question_gets_an_empty_array(self, rag: HippoRAG) -> None:
        rag.index(DOCS)
        (solution,) = rag.retrieve(["quantum chromodynamics lattice"])
        assert (solution.docs, solution.doc_scores.shape, solution.to_dict()["doc_scores"]) == ([], (0,), [])

    def test_gold_documents_give_recall_beside_the_results(self, rag: HippoRAG) -> None:
        rag.index(DOCS)
        solutions, figures = rag.retrieve(["Cinderella royal ball", "Oliver Badman"], 5, [[CINDERELLA], [OLIVER, "x"]])
        assert [solution.gold_docs for solution in solutions] == [[CINDERELLA], [OLIVER, "x"]]
        assert (figures["Recall@1"], figures["Recall@200"]) == (0.75, 0.75)

    def test_a_document_is_found_at_once_after_an_earlier_retrieve(self, rag: HippoRAG) -> None:
        rag.index([OLIVER])
        assert rag.retrieve(["Cinderella royal ball"])[0].docs == []
        rag.index([CINDERELLA])
        assert rag.retrieve(["Cinderella royal ball"])[0].docs == [CINDERELLA]
        assert rag.retrieve(["Oliver Badman"])[0].docs == [OLIVER]

    def test_deletes_what_is_there_and_passes_over_the_rest(self, rag: HippoRAG) -> None:
        rag.index(DOCS)
        rag.delete([CINDERELLA, "never indexed"])
        rag.delete(["never indexed"])
        assert rag.retrieve(["Cinderella royal ball"])[0].docs == []
        rag.index([CINDERELLA])
        assert rag.retrieve(["Cinderella royal ball"])[0].docs == [CINDERELLA]

    def test_blank_and_broken_texts_stop_nothing(self, rag: HippoRAG) -> None:
        assert len(rag.index(["", " ", "Zanzibar \ud800 gateway", OLIVER])) == 2
        assert rag.retrieve(["Zanzibar gateway"])[0].docs == ["Zanzibar \ufffd gateway"]
        rag.delete(["Zanzibar \ud800 gateway"])
        assert rag.retrieve(["Zanzibar gateway", ""])[0].docs == []
        assert rag.index([]) == []

    @pytest.mark.parametrize("docs", ["one text", [1], [{"text": OLIVER}]])
    def test_documents_are_texts(self, rag: HippoRAG, docs: Any) -> None:
        with pytest.raises(InputError, match="docs must be a list of texts"):
            rag.index(docs)

    def test_answering_is_left_to_the_host(self, rag: HippoRAG) -> None:
        with pytest.raises(EunoeError, match="retrieve"):
            rag.rag_qa(["Who?"])

    def test_models_may_change_and_everything_stays(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        for llm, embedding in (("gpt-4o-mini", "nvidia/NV-Embed-v2"), ("meta/llama", "facebook/contriever")):
            rag = HippoRAG(save_dir=str(tmp_path), llm_model_name=llm, embedding_model_name=embedding)
            rag.index([OLIVER])
            assert rag.retrieve(["Who is Oliver Badman?"])[0].docs == [OLIVER]
            rag.close()
        assert "contriever needs a server" in caplog.text
        assert [file.name for file in tmp_path.iterdir()] == [STORE_FILE_NAME]

    def test_reads_its_settings_from_a_config_and_from_the_environment(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        @dataclass
        class Config:
            save_dir: str
            retrieval_top_k: int = 1
            embedding_model_name: str = "none"
            llm_name: str = "none"

        rag = HippoRAG(global_config=Config(str(tmp_path / "config")))
        rag.index([OLIVER, GEORGE])
        assert len(rag.retrieve(["politician"])[0].docs) == 1
        rag.close()
        monkeypatch.setenv("MEMORY_SAVE_DIR", str(tmp_path / "environment"))
        monkeypatch.setenv("MEMORY_EMBEDDING_MODEL", "none")
        HippoRAG().close()
        monkeypatch.delenv("MEMORY_SAVE_DIR")
        monkeypatch.chdir(tmp_path)
        HippoRAG(azure_endpoint="https://x").close()
        assert sorted(str(file.parent.relative_to(tmp_path)) for file in tmp_path.rglob(STORE_FILE_NAME)) == [
            *("config", "environment", "outputs")
        ]

    def test_closes_when_nobody_has_it_any_more(self, tmp_path: Path) -> None:
        rag = HippoRAG(save_dir=str(tmp_path), embedding_model_name="none")
        memory = rag.memory
        rag.index([OLIVER])
        del rag
        gc.collect()
        with pytest.raises(eunoe.errors.ClosedError):
            memory.projects()

    def test_two_processes_find_each_others_documents_at_once(self, tmp_path: Path, rag: HippoRAG) -> None:
        command = [sys.executable, "-W", "error", str(CHILD), "hippo", str(tmp_path / "rag")]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdin
            assert child.stdout

            def ask(words: str) -> Any:
                assert child.stdin
                assert child.stdout
                child.stdin.write(f"{words}\n")
                child.stdin.flush()
                return json.loads(child.stdout.readline())

            assert json.loads(child.stdout.readline()) == {"ready": True}
            assert ask("Cinderella royal ball") == {"docs": []}
            rag.index(DOCS)
            assert ask("Cinderella royal ball") == {"docs": [CINDERELLA]}
            assert ask("+The gateway of Zanzibar was restarted.") == {"indexed": True}
            assert rag.retrieve(["gateway of Zanzibar"])[0].docs == ["The gateway of Zanzibar was restarted."]
            rag.delete([CINDERELLA])
            assert ask("Cinderella royal ball") == {"docs": []}


class Trap:
    """A pickle that cannot be opened unnoticed."""

    def __reduce__(self) -> Any:
        return (Path("pickle-was-opened").touch, ())


OPENIE = [
    {
        "idx": "chunk-1",
        "passage": OLIVER,
        "extracted_entities": ["Oliver Badman", "politician"],
        "extracted_triples": [["Oliver Badman", "is a", "politician"]],
    },
    {"idx": "chunk-2", "passage": GEORGE, "extracted_entities": [], "extracted_triples": []},
]


def put_openie(folder: Path, docs: Any, llm: str = "gpt-4o-mini") -> Path:
    folder.mkdir(exist_ok=True, parents=True)
    file = folder / f"openie_results_ner_{llm}.json"
    file.write_text(json.dumps({"docs": docs, "avg_ent_chars": 3.0}), encoding="utf-8")
    return file


def put_chunks(folder: Path, texts: Sequence[Any], models: str = "gpt-4o-mini_nvidia_NV-Embed-v2") -> Path:
    file = folder / models / "chunk_embeddings" / "vdb_chunk.parquet"
    file.parent.mkdir(parents=True)
    columns = {
        "hash_id": [f"chunk-{number}" for number in range(len(texts))],
        "content": list(texts),
        "embedding": [[0.5, 0.5]] * len(texts),
    }
    parquet.write_table(pyarrow.table(columns), file)
    (folder / models / "graph.pickle").write_bytes(pickle.dumps(Trap()))
    return file


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ProjectMemory]:
    monkeypatch.chdir(tmp_path)
    with ProjectMemory.open(tmp_path / "memory", embedder="none") as memory:
        yield memory
    assert not (tmp_path / "pickle-was-opened").exists()


@pytest.fixture
def without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hipporag, "find_spec", lambda name: None)


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

    def test_a_second_run_changes_nothing(self, tmp_path: Path, memory: ProjectMemory) -> None:
        put_openie(tmp_path / "old", OPENIE)
        import_folder(memory, "shop", tmp_path / "old")
        before = memory.memory.list({"project": "shop"}).items
        assert import_folder(memory, "shop", tmp_path / "old") == HippoReport(documents=2, known=2)
        assert memory.memory.list({"project": "shop"}).items == before

    def test_what_two_models_drew_from_one_passage_is_joined(self, tmp_path: Path, memory: ProjectMemory) -> None:
        put_openie(tmp_path / "old", OPENIE)
        put_openie(tmp_path / "old", [{**OPENIE[0], "extracted_entities": ["Badman", "politician"]}], "other")
        assert import_folder(memory, "shop", tmp_path / "old") == HippoReport(
            documents=2, stored=2, entities=3, triples=1
        )

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

    def test_a_long_passage_keeps_its_triples_and_comes_back_whole(self, tmp_path: Path, memory: ProjectMemory) -> None:
        text = "Minutes of a meeting.\n" * 1000
        put_openie(tmp_path / "old", [{**OPENIE[0], "passage": text}])
        assert import_folder(memory, "shop", tmp_path / "old").triples == 1
        assert memory.retrieve("shop", ["minutes of a meeting"])[0]["docs"] == [text]

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

    @pytest.mark.usefixtures("without_pyarrow")
    def test_a_file_that_cannot_be_read_here_is_no_failure(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        put_openie(tmp_path / "old", OPENIE)
        put_chunks(tmp_path / "old", DOCS)
        assert self.call(tmp_path / "old", "--project", "shop") == 0
        assert "install pyarrow" in capsys.readouterr().err

    def test_a_folder_without_anything_is_one_line(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.call(tmp_path, "--project", "shop") == 1
        assert capsys.readouterr().err.count("\n") == 1
        assert self.call(tmp_path) == 2

    def test_has_a_sentence_and_an_example(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.call("--help") == 0
        assert "Example: eunoe migrate hipporag" in capsys.readouterr().out
