"""Stores whose vectors come from a model in a folder."""

import shutil
from pathlib import Path

import onnx
import pytest
from tests.embed.folder.models import Folder, TinyModel, bert, xlm_roberta

import eunoe
from eunoe.cli.app import run
from eunoe.cli.command import Options
from eunoe.cli.serve import _arguments
from eunoe.embed import encoder
from eunoe.errors import EmbedderError, ModelMismatchError

ANNA = "user=anna"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return bert(tmp_path / "models" / "tiny")


@pytest.fixture
def store(folder: Folder, tmp_path: Path) -> Path:
    """A store with a memory and its vector."""
    path = tmp_path / "memory.db"
    with eunoe.open(path, embedder=folder.spec, llm="none") as memory:
        memory.remember(ANNA, "Anna plays the cello.")
        memory.flush()
        assert memory.status().vectors == {memory.status().embedder: 1}
    return path


def recall(memory: eunoe.Memory) -> list[str]:
    return [hit.text for hit in memory.recall(ANNA, "the old cello", recipe="dense")]


def replace_model(folder: Folder) -> None:
    other = TinyModel(folder.tokenizer.get_vocab_size(), seed=9)
    onnx.save_model(other.graph(), str(folder.path / "model.onnx"))


class TestReopening:
    def test_the_store_finds_its_model_again_from_another_working_directory(
        self, folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(folder.path.parent)
        with eunoe.open(tmp_path / "memory.db", embedder="folder:tiny") as memory:
            memory.remember(ANNA, "Anna plays the cello.")
        monkeypatch.chdir(tmp_path)
        with eunoe.open(tmp_path / "memory.db") as memory:
            assert recall(memory) == ["Anna plays the cello."]
            assert memory.status().embedder_error == ""

    def test_a_moved_folder_is_said_with_the_cure_and_accepted_where_it_is_now(
        self, store: Path, folder: Folder, tmp_path: Path
    ) -> None:
        folder.path.rename(tmp_path / "moved and renamed")
        encoder._loaded.clear()
        with eunoe.open(store) as memory:
            assert f"there is no folder {folder.path}: if the model was moved" in memory.status().embedder_error
            assert memory.recall(ANNA, "cello")[0].text == "Anna plays the cello."
        with eunoe.open(store, embedder=f"folder:{tmp_path / 'moved and renamed'}") as memory:
            assert recall(memory) == ["Anna plays the cello."]
        with eunoe.open(store) as memory:  # from now on it looks there
            assert memory.status().embedder_error == ""
            assert recall(memory) == ["Anna plays the cello."]

    def test_a_copy_serves_as_well(self, store: Path, folder: Folder, tmp_path: Path) -> None:
        shutil.copytree(folder.path, tmp_path / "copy")
        with eunoe.open(store, embedder=f"folder:{tmp_path / 'copy'}") as memory:
            assert recall(memory)

    def test_a_model_that_was_replaced_is_refused(self, store: Path, folder: Folder) -> None:
        replace_model(folder)
        with pytest.raises(ModelMismatchError, match=r"the store's vectors come from bert-\w+, not bert-\w+"):
            eunoe.open(store, embedder=folder.spec)
        with eunoe.open(store) as memory:
            assert "change them with reembed" in memory.status().embedder_error
            assert memory.recall(ANNA, "cello")
            assert memory.admin.reembed(folder.spec) == 1
            assert recall(memory)
        with eunoe.open(store, embedder=folder.spec) as memory:
            assert memory.status().embedder_error == ""

    def test_another_folder_is_refused(self, store: Path, tmp_path: Path) -> None:
        other = xlm_roberta(tmp_path / "other")
        with pytest.raises(ModelMismatchError):
            eunoe.open(store, embedder=other.spec)

    def test_a_bad_folder_is_said_at_once_and_leaves_the_store_open_to_another_model(self, tmp_path: Path) -> None:
        with pytest.raises(EmbedderError, match="there is no folder"):
            eunoe.open(tmp_path / "new.db", embedder=f"folder:{tmp_path / 'nothing'}")
        with eunoe.open(tmp_path / "new.db", embedder="static") as memory:
            assert memory.status().embedder == "wordllama-256"

    def test_small_writes_do_not_wait(self, folder: Folder) -> None:
        with eunoe.open(":memory:", embedder=folder.spec) as memory:
            assert not memory.remember(ANNA, "Anna plays the cello.").embedded
            assert recall(memory)
            assert memory.status().unembedded == 0


class TestReembedding:
    def test_from_one_model_to_one_in_a_folder(self, folder: Folder, tmp_path: Path) -> None:
        with eunoe.open(tmp_path / "memory.db", embedder="none") as memory:
            memory.remember(ANNA, "Anna plays the cello.")
            assert memory.admin.reembed(folder.spec) == 1
            name = memory.status().embedder
        with eunoe.open(tmp_path / "memory.db") as memory:
            assert (memory.status().embedder, memory.status().vectors) == (name, {name: 1})
            assert recall(memory)

    def test_a_model_that_fails_later_costs_no_words(self, folder: Folder) -> None:
        with eunoe.open(":memory:", embedder=folder.spec) as memory:
            encoder._loaded.clear()
            replace_model(folder)
            memory.remember(ANNA, "Anna plays the cello.")
            assert memory.recall(ANNA, "cello")[0].text == "Anna plays the cello."
            assert "has changed since it was opened" in memory.status().embedder_error


class TestCommandLine:
    @pytest.mark.parametrize("spec", [["folder:models/tiny"], ["--embedder", "folder:models/tiny"]])
    def test_reembed_and_recall(
        self,
        spec: list[str],
        folder: Folder,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("EUNOE_STORE", str(tmp_path / "memory.db"))
        assert run(["--embedder", "none", "remember", ANNA, "Anna plays the cello."]) == 0
        assert run(["reembed", *spec]) == 0
        assert "1 vector made; the store's model is bert-" in capsys.readouterr().out
        monkeypatch.chdir("/")
        assert run(["recall", ANNA, "the old cello", "--recipe", "dense"]) == 0
        assert "cello" in capsys.readouterr().out

    def test_an_assistant_is_told_the_whole_path(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        words = _arguments(Options(embedder="folder:models/tiny"), "default", None, False)
        assert words == ("--embedder", f"folder:{tmp_path / 'models' / 'tiny'}")
        assert _arguments(Options(), "default", None, False) == ()
