"""Folders that lack something, or hold what cannot be read: the error names the file and the cure."""

from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.embed.folder.models import (
    DIM,
    POSITIONS,
    Folder,
    TinyModel,
    bert,
    modules,
    wordpiece,
    write_json,
    xlm_roberta,
)

from eunoe.embed import absolute_spec, load_embedder
from eunoe.embed.folder import FolderEncoder
from eunoe.errors import EmbedderError


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return bert(tmp_path / "model")


def problem(path: object) -> str:
    with pytest.raises(EmbedderError) as caught:
        load_embedder(f"folder:{path}")
    return str(caught.value)


class TestPath:
    def test_no_folder_a_file_and_nothing_at_all(self, folder: Folder) -> None:
        assert f'there is no folder {folder.path}x: if the model was moved, open the store with embedder="folder:' in (
            problem(f"{folder.path}x")
        )
        assert "config.json is a file: name the folder of a model" in problem(folder.path / "config.json")
        assert "needs the path of a model's folder" in problem("")
        assert "needs the path of a model's folder" in problem("  ")
        assert "needs the path of a model's folder" in problem("a\0b")

    def test_relative_paths_homes_and_spaces(
        self, folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        name = FolderEncoder(str(folder.path)).name
        folder.path.rename(tmp_path / "my models: new")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("USERPROFILE", str(tmp_path))
        for path in ("my models: new", "./my models: new/", "~/my models: new", "x/../my models: new"):
            assert FolderEncoder(path).name == name
            assert absolute_spec(f"folder:{path}") == f"folder:{tmp_path / 'my models: new'}"

    def test_other_specs_stay_as_they_are(self) -> None:
        assert [absolute_spec(spec) for spec in ("eunoe", "openai:folder:x", "none")] == [
            "eunoe",
            "openai:folder:x",
            "none",
        ]


class TestGraphFile:
    @pytest.mark.parametrize(
        "name",
        [
            "onnx/model.onnx",
            "onnx/model_quantized.onnx",
            "onnx/model_int8.onnx",
            "onnx/model_qint8_avx512.onnx",
            "model_O4.onnx",
            "e5-small-v2.onnx",
        ],
    )
    def test_it_is_found_under_the_names_that_exports_give_it(self, name: str, tmp_path: Path) -> None:
        assert FolderEncoder(str(bert(tmp_path / "model", name=name).path)).embed(["cello"]).any()

    def test_the_plain_one_goes_before_others(self, folder: Folder) -> None:
        name = FolderEncoder(str(folder.path)).name
        (folder.path / "model_int8.onnx").write_bytes(b"never read")
        assert FolderEncoder(str(folder.path)).name == name

    def test_of_several_others_one_is_to_be_named_and_can_be(self, tmp_path: Path) -> None:
        folder = bert(tmp_path / "model", name="onnx/model_int8.onnx")
        onnx.save_model(folder.model.graph(), str(folder.path / "onnx/model_O4.onnx"))
        text = problem(folder.path)
        assert "has several models (onnx/model_O4.onnx, onnx/model_int8.onnx): name one of the files" in text
        assert FolderEncoder(text.rpartition("folder:")[2]).embed(["cello"]).any()

    def test_the_subfolder_may_be_named_too(self, tmp_path: Path) -> None:
        folder = bert(tmp_path / "model", name="onnx/model.onnx", sentence_bert_config={"max_seq_length": 5})
        name = FolderEncoder(str(folder.path)).name
        assert FolderEncoder(str(folder.path / "onnx")).name == name
        assert FolderEncoder(str(folder.path / "onnx" / "model.onnx")).name == name
        (folder.path / "onnx" / "tokenizer.json").write_bytes((folder.path / "tokenizer.json").read_bytes())
        assert FolderEncoder(str(folder.path / "onnx")).name == name
        (folder.path / "tokenizer.json").unlink()
        assert FolderEncoder(str(folder.path)).name == name

    @pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
    def test_weights_for_another_program(self, name: str, folder: Folder) -> None:
        (folder.path / "model.onnx").rename(folder.path / name)
        text = problem(folder.path)
        assert f"has no model.onnx and no onnx/model.onnx ({name} is not for onnxruntime)" in text
        assert "optimum-cli export onnx" in text

    def test_no_weights_at_all(self, folder: Folder) -> None:
        (folder.path / "model.onnx").unlink()
        assert "has no model.onnx and no onnx/model.onnx: export it" in problem(folder.path)

    @pytest.mark.parametrize("content", [b"", b"\0" * 100, b"not a model", b"<html>404</html>"])
    def test_what_is_no_graph(self, content: bytes, folder: Folder) -> None:
        (folder.path / "model.onnx").write_bytes(content)
        assert f"{folder.path / 'model.onnx'} cannot be read: " in problem(folder.path)

    def test_half_a_download(self, folder: Folder) -> None:
        whole = (folder.path / "model.onnx").read_bytes()
        (folder.path / "model.onnx").write_bytes(whole[: len(whole) // 2])
        assert "model.onnx cannot be read: " in problem(folder.path)

    @pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
    def test_a_pointer_of_git_lfs(self, name: str, folder: Folder) -> None:
        (folder.path / name).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
        text = problem(folder.path)
        assert f"{name} cannot be read: it is only a pointer of Git LFS" in text

    @pytest.mark.parametrize("name", ["weights.bin", f"{'long' * 40}.bin"])
    def test_weights_beside_it_that_are_missing(self, name: str, folder: Folder) -> None:
        externalise(folder, name)
        (folder.path / name).unlink()
        assert f"{folder.path / name} is missing: model.onnx keeps its weights there" in problem(folder.path)

    def test_weights_outside_the_folder_are_not_read(self, folder: Folder, tmp_path: Path) -> None:
        (tmp_path / "secret").write_bytes(bytes(100_000))
        externalise(folder, "weights.bin")
        model = onnx.load(folder.path / "model.onnx", load_external_data=False)
        for tensor in model.graph.initializer:
            for entry in tensor.external_data:
                entry.value = "../secret" if entry.key == "location" else entry.value
        (folder.path / "model.onnx").write_bytes(model.SerializeToString())
        assert "names weights outside its folder ('../secret')" in problem(folder.path)


class TestTokenizer:
    @pytest.mark.parametrize("name", ["sentencepiece.bpe.model", "vocab.txt"])
    def test_another_file_is_not_enough(self, name: str, folder: Folder) -> None:
        (folder.path / "tokenizer.json").rename(folder.path / name)
        text = problem(folder.path)
        assert f"{folder.path / 'tokenizer.json'} is missing ({name} alone is not enough)" in text
        assert "AutoTokenizer.from_pretrained" in text

    @pytest.mark.parametrize("content", ["", "{", "[]", '{"version": "1.0"}', "\ud800"])
    def test_what_is_no_tokenizer(self, content: str, folder: Folder) -> None:
        (folder.path / "tokenizer.json").write_bytes(content.encode(errors="surrogatepass"))
        assert f"{folder.path / 'tokenizer.json'} cannot be read: " in problem(folder.path)

    def test_one_that_does_not_belong_to_the_graph(self, tmp_path: Path) -> None:
        folder = bert(tmp_path / "model", graph=TinyModel(vocabulary=10).graph())
        assert "model.onnx fails" in problem(folder.path)


class TestConfigFiles:
    @pytest.mark.parametrize(
        ("file", "value", "reason"),
        [
            ("config", [], "config.json cannot be read: it holds no JSON object"),
            ("modules", {"a": 1}, "modules.json cannot be read: it should be a list"),
            ("modules", [{"path": ""}], "modules.json cannot be read: it should be a list"),
            ("modules", [{"type": "x.Pooling", "path": "../other"}], "modules.json cannot be read: it leads out"),
            ("modules", [{"type": "x.Pooling", "path": "a\0"}], "modules.json cannot be read: it leads out"),
            ("modules", [{"type": "x.CNN"}], "model/modules.json names a step CNN"),
            ("modules", [{"type": "x.CNN", "path": "a/b"}], "model/modules.json names a step CNN"),
            ("1_Pooling/config", {"pooling_mode": "attention"}, "1_Pooling/config.json: the pooling 'attention'"),
            ("1_Pooling/config", {"pooling_mode": [["cls"]]}, "1_Pooling/config.json: the pooling ['cls']"),
            ("sentence_bert_config", {"max_seq_length": "long"}, "sentence_bert_config.json: max_seq_length must be"),
            ("sentence_bert_config", {"max_seq_length": True}, "sentence_bert_config.json: max_seq_length must be"),
            ("tokenizer_config", {"model_max_length": -1}, "tokenizer_config.json: model_max_length must be"),
            ("config_sentence_transformers", {"prompts": {"query": 1}}, "prompts must be an object of texts"),
            ("config_sentence_transformers", {"prompts": ["query"]}, "prompts must be an object of texts"),
            ("config", {"model_type": "roberta", "pad_token_id": "x"}, "config.json: pad_token_id must be a number"),
        ],
    )
    def test_what_makes_no_sense_is_named(self, file: str, value: object, reason: str, folder: Folder) -> None:
        write_json(folder.path / f"{file}.json", value)
        assert reason in problem(folder.path)

    def test_an_odd_architecture_is_none(self, folder: Folder) -> None:
        write_json(folder.path / "config.json", {"model_type": ["roberta"], "max_position_embeddings": POSITIONS})
        assert FolderEncoder(str(folder.path)).embed(["Anna plays the cello."]).any()

    def test_broken_json_and_other_encodings(self, folder: Folder) -> None:
        for name in ("config.json", "modules.json", "sentence_bert_config.json", "tokenizer_config.json"):
            old = (folder.path / name).read_bytes() if (folder.path / name).exists() else b"{}"
            for content in (b"{", b"\xff\xfe", b"[" * 100_000):
                (folder.path / name).write_bytes(content)
                assert f"{folder.path / name} cannot be read: " in problem(folder.path)
            (folder.path / name).write_bytes(b"[]" if name == "modules.json" else old)


class TestGraph:
    def test_inputs_that_are_not_known(self, folder: Folder) -> None:
        model = folder.model.graph()
        model.graph.input.append(helper.make_tensor_value_info("task_id", TensorProto.INT64, []))
        onnx.save_model(model, str(folder.path / "model.onnx"))
        text = problem(folder.path)
        assert "model.onnx takes input_ids, attention_mask, token_type_ids, task_id; known inputs are" in text

    def test_a_graph_that_tells_classes(self, folder: Folder) -> None:
        save(folder, "Identity", ["input_ids"], ["logits"], TensorProto.INT64)
        text = problem(folder.path)
        assert "model.onnx gives logits, but no last_hidden_state: export it with" in text
        assert "feature-extraction" in text

    def test_several_texts_at_a_time_and_no_other_number(self, folder: Folder) -> None:
        onnx.save_model(folder.model.graph(shape="4, length"), str(folder.path / "model.onnx"))
        assert "model.onnx takes 4 texts at a time" in problem(folder.path)

    @pytest.mark.parametrize("make", [bert, xlm_roberta])
    def test_fewer_positions_than_the_config_promises(self, make: Callable[..., Folder], tmp_path: Path) -> None:
        folder = make(tmp_path / "model", config={})
        text = problem(folder.path)
        assert "it cannot take 512 tokens: put a lower max_seq_length into" in text
        folder.write(sentence_bert_config={"max_seq_length": 62})
        assert FolderEncoder(str(folder.path)).embed(["cello " * 100]).any()

    def test_a_step_that_is_unknown_is_no_matter_where_the_graph_gives_vectors(self, tmp_path: Path) -> None:
        graph = TinyModel(wordpiece().get_vocab_size()).graph(output="sentence_embedding")
        folder = bert(tmp_path / "model", graph=graph, modules=modules("Pooling", "Router"))
        assert FolderEncoder(str(folder.path)).embed(["cello"]).shape == (1, DIM)


def externalise(folder: Folder, name: str) -> None:
    model = onnx.load(folder.path / "model.onnx")
    for tensor in model.graph.initializer:  # as onnx reads them: in raw bytes
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name))
    path = str(folder.path / "model.onnx")
    onnx.save_model(model, path, save_as_external_data=True, location=name, size_threshold=256)


def save(folder: Folder, kind: str, inputs: list[str], outputs: list[str], type: int, **attributes: int) -> None:
    """Write a graph of one operator."""
    node = helper.make_node(kind, inputs, outputs, **attributes)
    infos = [[helper.make_tensor_value_info(name, type, ["b", "s"]) for name in names] for names in (inputs, outputs)]
    model = helper.make_model(
        helper.make_graph([node], "odd", *infos), opset_imports=[helper.make_opsetid("", 17)], ir_version=9
    )
    onnx.save_model(model, str(folder.path / "model.onnx"))
