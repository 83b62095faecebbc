"""A model is known by what is in its files, not by where they lie."""

import json
import os
import shutil
from pathlib import Path

import onnx
import pytest
from tests.embed.folder.models import Folder, TinyModel, bert

from eunoe.embed import folder as folder_encoder
from eunoe.embed.folder import FolderEncoder
from eunoe.errors import EmbedderError


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return bert(tmp_path / "model")


def name(path: Path) -> str:
    return FolderEncoder(str(path)).name


class TestName:
    def test_a_copy_elsewhere_under_another_name_is_the_same_model(self, folder: Folder, tmp_path: Path) -> None:
        shutil.copytree(folder.path, tmp_path / "elsewhere" / "copy")
        assert name(folder.path) == name(tmp_path / "elsewhere" / "copy")

    def test_it_says_which_model_it_is(self, tmp_path: Path) -> None:
        config = {"_name_or_path": "C:\\models\\multilingual e5!", "max_position_embeddings": 64}
        assert name(bert(tmp_path / "a", config=config).path).startswith("multilingual-e5-")

    def test_other_weights_are_another_model(self, folder: Folder) -> None:
        before = name(folder.path)
        other = TinyModel(folder.tokenizer.get_vocab_size(), seed=2)
        onnx.save_model(other.graph(), str(folder.path / "model.onnx"))
        assert name(folder.path) != before

    def test_one_bit_is_enough_though_size_and_time_are_kept(self, folder: Folder) -> None:
        path = folder.path / "model.onnx"
        before, stat, content = name(folder.path), path.stat(), path.read_bytes()
        place = content.index(folder.model.weights["words"].tobytes()) + 7
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        assert path.stat().st_size == stat.st_size
        assert name(folder.path) != before

    def test_weights_beside_the_graph_belong_to_it(self, folder: Folder) -> None:
        path = folder.path / "model.onnx"
        onnx.save_model(onnx.load(path), str(path), save_as_external_data=True, location="w.bin", size_threshold=256)
        before, content = name(folder.path), (folder.path / "w.bin").read_bytes()
        assert name(folder.path) == before
        (folder.path / "w.bin").write_bytes(bytes([content[0] ^ 1]) + content[1:])
        assert name(folder.path) != before

    @pytest.mark.parametrize(
        "change",
        [
            {"sentence_bert_config": {"max_seq_length": 9}},
            {"1_Pooling__config": {"pooling_mode": "cls"}},
            {"config_sentence_transformers": {"prompts": {"query": "ask: "}}},
        ],
    )
    def test_another_use_of_the_same_weights_is_another_model(self, change: dict[str, object], folder: Folder) -> None:
        before = name(folder.path)
        folder.write(**change)
        assert name(folder.path) != before

    def test_what_changes_no_vector_changes_no_name(self, folder: Folder) -> None:
        before = name(folder.path)
        (folder.path / "README.md").write_text("A model.")
        folder.write(special_tokens_map={"cls_token": "[CLS]"})
        assert name(folder.path) == before


class TestCache:
    def test_files_that_were_read_once_are_not_read_again(
        self, folder: Folder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = name(folder.path)
        monkeypatch.setattr(folder_encoder, "read_content", lambda files: pytest.fail("was read again"))
        assert name(folder.path) == before

    @pytest.mark.parametrize("content", ["", "[]", '{"digest": 1}', '{"digest": "0", "states": [["x"]]}', "\0"])
    def test_what_is_broken_there_is_not_believed(self, content: str, folder: Folder, own_home: Path) -> None:
        before = name(folder.path)
        (entry,) = (own_home / "eunoe" / "models").iterdir()
        entry.write_text(content)
        assert name(folder.path) == before
        assert json.loads(entry.read_text())["digest"]

    def test_it_is_done_without_where_nothing_can_be_kept(self, folder: Folder, own_home: Path) -> None:
        own_home.mkdir()
        (own_home / "eunoe").write_text("a file where the folder should be")
        assert name(folder.path) == name(folder.path)

    def test_files_that_change_before_they_are_loaded_are_refused(
        self, folder: Folder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        FolderEncoder(str(folder.path))
        monkeypatch.setattr("eunoe.embed.encoder._loaded", {})
        encoder = FolderEncoder(str(folder.path))
        onnx.save_model(TinyModel(folder.tokenizer.get_vocab_size(), seed=2).graph(), str(folder.path / "model.onnx"))
        with pytest.raises(EmbedderError, match="has changed since it was opened: open it again"):
            encoder.embed(["cello"])
