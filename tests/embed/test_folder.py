"""Models in folders: found, read and run as the same models in NumPy are, known by their content, kept by a store."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from shutil import copytree
from typing import ClassVar

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import quantize_dynamic
from safetensors.numpy import save_file
from tests.embed.folder_models import (
    DIM,
    LINES,
    POSITIONS,
    Folder,
    TinyModel,
    bert,
    modules,
    unit,
    wordpiece,
    write_json,
    xlm_roberta,
)
from tests.embed.samples import python

import eunoe
from eunoe.cli.app import run
from eunoe.cli.command import Options
from eunoe.cli.serve import _arguments
from eunoe.embed import absolute_spec, encoder, load_embedder
from eunoe.embed import folder as folder_encoder
from eunoe.embed.folder import FolderEncoder, read_config
from eunoe.errors import EmbedderError, ModelMismatchError

NOISE = 2e-6


def assert_mean(folder: Folder, noise: float = NOISE, texts: list[str] = LINES) -> None:
    encoder = FolderEncoder(str(folder.path))
    expected = np.stack([folder.mean(text) for text in texts])
    assert np.abs(encoder.embed(texts) - expected).max() < noise
    assert np.abs(np.stack([encoder.embed_query(text) for text in texts]) - expected).max() < noise


class TestArchitectures:
    def test_bert_with_kinds_of_tokens(self, tmp_path: Path) -> None:
        assert_mean(bert(tmp_path / "model"))

    def test_xlm_roberta_whose_positions_begin_after_the_padding_token(self, tmp_path: Path) -> None:
        assert_mean(xlm_roberta(tmp_path / "model"))

    def test_positions_that_are_an_input(self, tmp_path: Path) -> None:
        names = ("input_ids", "attention_mask", "position_ids")
        assert_mean(bert(tmp_path / "bert", graph=TinyModel(wordpiece().get_vocab_size()).graph(names)))
        folder = xlm_roberta(tmp_path / "xlm")
        onnx.save_model(folder.model.graph(names), str(folder.path / "model.onnx"))
        assert_mean(folder)

    def test_a_graph_of_fixed_length_takes_one_text_at_a_time(self, tmp_path: Path) -> None:
        folder = bert(tmp_path / "model", graph=TinyModel(wordpiece().get_vocab_size()).graph(shape="1, 40"))
        assert_mean(folder)
        row = FolderEncoder(str(folder.path)).embed(["cello " * 50])[0]
        assert np.abs(row - folder.mean("cello " * 50, limit=40)).max() < NOISE
        copy = copytree(folder.path, tmp_path / "copy")
        assert np.array_equal(FolderEncoder(str(copy)).embed(["cello " * 50])[0], row)

    @pytest.mark.parametrize("output", ["sentence_embedding", "token_embeddings", "some_name"])
    def test_other_outputs(self, output: str, tmp_path: Path) -> None:
        graph = TinyModel(wordpiece().get_vocab_size()).graph(output=output)
        assert_mean(bert(tmp_path / "model", graph=graph))

    def test_the_vector_of_a_text_goes_before_the_states_of_tokens_and_before_the_modules(self, tmp_path: Path) -> None:
        model = TinyModel(wordpiece().get_vocab_size())
        graph = model.graph(output="sentence_embedding")
        graph.graph.output.insert(0, onnx.helper.make_tensor_value_info("states", TensorProto.FLOAT, ["b", "s", DIM]))
        folder = bert(tmp_path / "model", graph=graph, modules=modules("WordWeights", "Pooling"))
        folder.write(**{"1_Pooling__config": {"pooling_mode_cls_token": True}})
        assert_mean(folder)

    def test_half_precision(self, tmp_path: Path) -> None:
        model = TinyModel(wordpiece().get_vocab_size())
        graph = model.graph(output="wide")
        graph.graph.node.append(onnx.helper.make_node("Cast", ["wide"], ["last_hidden_state"], to=TensorProto.FLOAT16))
        del graph.graph.output[:]
        info = onnx.helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT16, ["b", "s", DIM])
        graph.graph.output.append(info)
        folder = bert(tmp_path / "model", graph=graph)
        assert_mean(folder, noise=2e-3)
        assert FolderEncoder(str(folder.path)).embed(["x"]).dtype == np.float32

    def test_weights_beside_the_graph(self, tmp_path: Path) -> None:
        folder = bert(tmp_path / "model")
        beside(folder.path / "model.onnx")
        assert (folder.path / "model.onnx_data").is_file()
        assert_mean(folder)


class TestQuantised:
    @pytest.mark.filterwarnings("ignore")
    def test_a_vector_does_not_depend_on_its_batch_though_inputs_are_quantised_together(self, tmp_path: Path) -> None:
        folder = bert(tmp_path / "model", name="onnx/model.onnx")
        quantize_dynamic(folder.path / "onnx/model.onnx", folder.path / "onnx/model_quantized.onnx")
        (folder.path / "onnx/model.onnx").unlink()
        assert_mean(folder, noise=0.12)  # processors round eight bits differently
        encoder = FolderEncoder(str(folder.path))
        same_length = ["cello cat boat", "harbour harbour harbour", "cat cat cat", "old cello boat"]
        alone = np.stack([encoder.embed([text])[0] for text in same_length])
        assert np.array_equal(encoder.embed(same_length), alone)


class TestBatches:
    def test_a_vector_does_not_depend_on_its_batch(self, tmp_path: Path) -> None:
        encoder = FolderEncoder(str(xlm_roberta(tmp_path / "model").path))
        texts = [" ".join(LINES[number % 7].split()[: 1 + number % 5]) for number in range(300)]
        alone = np.stack([encoder.embed([text])[0] for text in texts])
        assert np.abs(encoder.embed(texts) - alone).max() < NOISE

    def test_what_the_tokenizer_does_not_know_gives_a_zero_row(self, tmp_path: Path) -> None:
        folder = bert(tmp_path / "e5-tiny")
        rows = FolderEncoder(str(folder.path)).embed(["ഹലോ 你好 мир", "the cello", "cat"])
        assert rows.any(axis=1).tolist() == [False, True, True]
        assert not FolderEncoder(str(folder.path)).embed_query("ഹലോ 你好").any()


class TestPooling:
    POOLED: ClassVar = {
        "cls_token": lambda states: states[0],
        "max_tokens": lambda states: states.max(axis=0),
        "mean_tokens": lambda states: states.mean(axis=0),
        "mean_sqrt_len_tokens": lambda states: states.sum(axis=0) / np.sqrt(len(states)),
        "weightedmean_tokens": lambda states: np.average(states, axis=0, weights=np.arange(1, len(states) + 1)),
        "lasttoken": lambda states: states[-1],
    }

    @pytest.mark.parametrize("mode", POOLED)
    def test_every_mode(self, mode: str, tmp_path: Path) -> None:
        folder = bert(tmp_path / "model", modules=modules("Pooling", "Normalize"))
        config = {f"pooling_mode_{name}": name == mode for name in self.POOLED}
        folder.write(**{"1_Pooling__config": {"word_embedding_dimension": DIM, **config}})
        rows = FolderEncoder(str(folder.path)).embed(LINES)
        expected = np.stack([unit(self.POOLED[mode](folder.states(text))) for text in LINES])
        assert np.abs(rows - expected).max() < NOISE

    def test_several_modes_stand_side_by_side(self, tmp_path: Path) -> None:
        folder = bert(tmp_path / "model", **{"1_Pooling/config": {"pooling_mode": ["cls", "max"]}})
        states = folder.states(LINES[0])
        expected = unit(np.concatenate([states[0], states.max(axis=0)]))
        assert np.abs(FolderEncoder(str(folder.path)).embed_query(LINES[0]) - expected).max() < NOISE

    def test_a_prompt_may_be_left_out(self, tmp_path: Path) -> None:
        folder = bert(tmp_path / "e5", **{"1_Pooling/config": {"pooling_mode": "mean", "include_prompt": False}})
        own = folder.states("query: the old cello")[len(folder.ids("query:")) - 1 :]
        assert (
            np.abs(FolderEncoder(str(folder.path)).embed_query("the old cello") - unit(own.mean(axis=0))).max() < NOISE
        )


class TestDense:
    def test_a_layer_after_pooling(self, tmp_path: Path) -> None:
        folder = bert(tmp_path / "model", modules=modules("Pooling", "Normalize", "Dense", "Normalize"))
        weight, bias = np.random.default_rng(2).normal(size=(2, 5, DIM)).astype(np.float32)
        folder.write(**{"3_Dense__config": {"activation_function": "torch.nn.modules.activation.Tanh"}})
        save_file(
            {"linear.weight": weight, "linear.bias": bias[:, 0].copy()}, folder.path / "3_Dense/model.safetensors"
        )
        rows = FolderEncoder(str(folder.path)).embed(LINES)
        expected = np.stack([unit(np.tanh(weight @ folder.mean(text) + bias[:, 0])) for text in LINES])
        assert rows.shape == (len(LINES), 5)
        assert np.abs(rows - expected).max() < NOISE

    def test_what_cannot_be_done_is_said(self, tmp_path: Path) -> None:
        folder = bert(tmp_path / "model", modules=modules("Pooling", "Dense"))
        with pytest.raises(
            EmbedderError, match=r"2_Dense/model.safetensors is missing: save the model with safetensors"
        ):
            FolderEncoder(str(folder.path))
        save_file({"other": np.ones(2, np.float32)}, str(folder_of(folder, "2_Dense") / "model.safetensors"))
        with pytest.raises(EmbedderError, match=r"2_Dense/model.safetensors cannot be read"):
            FolderEncoder(str(folder.path))
        folder.write(**{"2_Dense__config": {"activation_function": "torch.nn.modules.activation.Mish"}})
        with pytest.raises(EmbedderError, match=r"2_Dense/config.json describes a layer that cannot be done here"):
            FolderEncoder(str(folder.path))
        folder.write(modules=modules("Pooling", "LSTM"))
        with pytest.raises(EmbedderError, match=r"modules.json names a step LSTM.*sentence_embedding"):
            FolderEncoder(str(folder.path))


class TestPrompts:
    def test_questions_and_texts_have_their_own(self, tmp_path: Path) -> None:
        prompts = {"query": "what is ", "document": "the "}
        folder = bert(tmp_path / "model", config_sentence_transformers={"prompts": prompts})
        encoder = FolderEncoder(str(folder.path))
        assert np.abs(encoder.embed(["boat"])[0] - folder.mean("the boat")).max() < NOISE
        assert np.abs(encoder.embed_query("boat") - folder.mean("what is boat")).max() < NOISE

    def test_e5_has_its_prompts_though_no_file_says_so(self, tmp_path: Path) -> None:
        folder = xlm_roberta(tmp_path / "multilingual-e5-small")
        encoder = FolderEncoder(str(folder.path))
        assert np.abs(encoder.embed(["Katze"])[0] - folder.mean("passage: Katze")).max() < NOISE
        assert np.abs(encoder.embed_query("Katze") - folder.mean("query: Katze")).max() < NOISE

    def test_lower_case_where_the_config_says_so(self, tmp_path: Path) -> None:
        folder = xlm_roberta(tmp_path / "model", sentence_bert_config={"do_lower_case": True})
        assert np.abs(FolderEncoder(str(folder.path)).embed_query("ANNA") - folder.mean("anna")).max() < NOISE


class TestLength:
    @pytest.mark.parametrize(
        ("configs", "limit"),
        [
            ({"sentence_bert_config": {"max_seq_length": 9}}, 9),
            ({"tokenizer_config": {"model_max_length": 11}}, 11),
            ({"tokenizer_config": {"model_max_length": 1e30}}, POSITIONS - 2),
            ({"sentence_bert_config": {"max_seq_length": POSITIONS}}, POSITIONS - 2),
            ({"sentence_xlm-roberta_config": {"max_seq_length": 7}, "tokenizer_config": {"model_max_length": 11}}, 7),
        ],
    )
    def test_only_the_first_tokens_count(self, configs: dict[str, object], limit: int, tmp_path: Path) -> None:
        folder = xlm_roberta(tmp_path / "model", **configs)
        text = " ".join(LINES * 3)
        assert np.abs(FolderEncoder(str(folder.path)).embed([text])[0] - folder.mean(text, limit)).max() < NOISE
        assert np.abs(folder.mean(text, limit) - folder.mean(text, limit - 1)).max() > 1e-4


class TestProcess:
    def test_it_is_slow_and_knows_like_words(self, tmp_path: Path) -> None:
        encoder = load_embedder(bert(tmp_path / "model").spec)
        assert isinstance(encoder, FolderEncoder)
        assert encoder.is_slow is True

    def test_nothing_is_loaded_before_it_is_needed_and_no_other_package_is(self, tmp_path: Path) -> None:
        folder = bert(tmp_path / "model")
        FolderEncoder(str(folder.path))  # new here: read, run and taken down
        assert python(ALONE, folder.spec) == f"[] {DIM}"


ALONE = """
import sys
for name in ("onnx", "torch", "transformers", "sentence_transformers"):
    sys.modules[name] = None  # an import of it fails
from eunoe.embed import load_embedder
embedder = load_embedder(sys.argv[1])
before = sorted({"onnxruntime", "tokenizers"} & set(sys.modules))
print(before, len(embedder.embed_query("hello cello")))
"""


def beside(graph: Path) -> None:
    """Move the weights of a graph into a file beside it."""
    model = onnx.load(graph)
    onnx.save_model(model, str(graph), save_as_external_data=True, location="model.onnx_data", size_threshold=256)


def folder_of(folder: Folder, name: str) -> Path:
    (folder.path / name).mkdir(exist_ok=True)
    return folder.path / name


NO_PROMPTS = {"prompts": {"query": "", "document": ""}, "default_prompt_name": None}
"""What sentence-transformers writes for a model that has none."""


def prompts(folder: Path, stated: dict[str, object] | None = None, name: str = "") -> tuple[str, str]:
    if stated is not None:
        write_json(folder / "config_sentence_transformers.json", stated)
    write_json(folder / "config.json", {"_name_or_path": name})
    config = read_config(folder)
    return config.question_prompt, config.text_prompt


class TestConfigPrompts:
    @pytest.mark.parametrize(
        ("stated", "expected"),
        [
            ({"prompts": {"query": "q: ", "document": "d: "}}, ("q: ", "d: ")),
            ({"prompts": {"query": "q: ", "passage": "p: "}}, ("q: ", "p: ")),
            ({"prompts": {"retrieval.query": "q: ", "retrieval.passage": "p: "}}, ("q: ", "p: ")),
            ({"prompts": {"s2p_query": "q: ", "s2s_query": "s: "}}, ("q: ", "")),
            ({"prompts": {"query": "q: ", "other": "o: "}, "default_prompt_name": "other"}, ("q: ", "o: ")),
            ({"prompts": {"clustering": "c: "}}, ("", "")),
            ({"prompts": None}, ("", "")),
            (NO_PROMPTS, ("", "")),
            ({}, ("", "")),
        ],
    )
    def test_those_that_the_folder_names(
        self, stated: dict[str, object], expected: tuple[str, str], tmp_path: Path
    ) -> None:
        assert prompts(tmp_path / "model", stated) == expected

    @pytest.mark.parametrize("stated", [None, {}, NO_PROMPTS])
    @pytest.mark.parametrize("name", ["multilingual-e5-small", "e5-small-v2", "E5_base", "models--intfloat--e5-large"])
    def test_those_of_e5_by_the_name_of_the_folder_or_in_the_config(
        self, name: str, stated: dict[str, object] | None, tmp_path: Path
    ) -> None:
        assert prompts(tmp_path / name, stated) == ("query: ", "passage: ")
        assert prompts(tmp_path / "model", stated, name=f"intfloat/{name}") == ("query: ", "passage: ")

    @pytest.mark.parametrize("name", ["model-5e5", "bge-small", "e5b2f1", "mine5"])
    def test_another_name_has_none(self, name: str, tmp_path: Path) -> None:
        assert prompts(tmp_path / name) == ("", "")

    def test_what_the_folder_of_an_e5_says_goes_first(self, tmp_path: Path) -> None:
        assert prompts(tmp_path / "e5-mine", {"prompts": {"query": "ask: "}}) == ("ask: ", "")

    def test_e5_that_takes_instructions(self, tmp_path: Path) -> None:
        question, text = prompts(tmp_path / "multilingual-e5-large-instruct")
        assert question.startswith("Instruct: ")
        assert question.endswith("\nQuery: ")
        assert text == ""

    def test_the_cache_of_the_hub_names_the_model_two_levels_up(self, tmp_path: Path) -> None:
        folder = tmp_path / "models--intfloat--multilingual-e5-small" / "snapshots" / "614241f622f5"
        assert prompts(folder) == ("query: ", "passage: ")
        (tmp_path / "link").symlink_to(folder, target_is_directory=True)
        assert prompts(tmp_path / "link") == ("query: ", "passage: ")


class TestConfigPooling:
    def test_the_mean_where_nothing_is_said(self, tmp_path: Path) -> None:
        assert read_config(tmp_path).modes == ("mean",)

    def test_it_is_read_from_where_the_modules_say(self, tmp_path: Path) -> None:
        steps = [*modules(), {"type": "sentence_transformers.sentence_transformer.modules.Pooling", "path": "pool"}]
        write_json(tmp_path / "modules.json", steps)
        write_json(tmp_path / "pool" / "config.json", {"pooling_mode": "lasttoken"})
        write_json(tmp_path / "1_Pooling" / "config.json", {"pooling_mode": "max"})
        assert read_config(tmp_path).modes == ("lasttoken",)

    def test_none_of_all_is_the_mean(self, tmp_path: Path) -> None:
        write_json(tmp_path / "1_Pooling" / "config.json", {"pooling_mode_cls_token": False})
        assert read_config(tmp_path).modes == ("mean",)


class TestConfigLength:
    @pytest.mark.parametrize(
        ("configs", "limit"),
        [
            ({}, 512),
            ({"config": {"max_position_embeddings": 8192}}, 8192),
            ({"config": {"max_position_embeddings": 514, "model_type": "xlm-roberta", "pad_token_id": 1}}, 512),
            ({"config": {"max_position_embeddings": 512}, "sentence_bert_config": {"max_seq_length": 256}}, 256),
            ({"config": {"max_position_embeddings": 512}, "sentence_bert_config": {"max_seq_length": None}}, 512),
            ({"sentence_bert_config": {"max_seq_length": 512}, "tokenizer_config": {"model_max_length": 128}}, 512),
            ({"tokenizer_config": {"model_max_length": 1000000000000000019884624838656}}, 512),
        ],
    )
    def test_the_longest_input(self, configs: dict[str, object], limit: int, tmp_path: Path) -> None:
        for name, value in configs.items():
            write_json(tmp_path / f"{name}.json", value)
        assert read_config(tmp_path).max_tokens == limit


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing of the models in these tests is kept in the user's own folders."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(encoder, "_loaded", {})
    return tmp_path / "data"


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


ANNA = "user=anna"


@pytest.fixture
def tiny(tmp_path: Path) -> Folder:
    return bert(tmp_path / "models" / "tiny")


@pytest.fixture
def store(tiny: Folder, tmp_path: Path) -> Path:
    """A store with a memory and its vector."""
    path = tmp_path / "memory.db"
    with eunoe.open(path, embedder=tiny.spec, llm="none") as memory:
        memory.remember(ANNA, "Anna plays the cello.")
        memory.flush()
        assert memory.status().vectors == {memory.status().embedder: 1}
    return path


def recall(memory: eunoe.Memory) -> list[str]:
    return [hit.text for hit in memory.recall(ANNA, "the old cello", recipe="dense")]


def replace_model(tiny: Folder) -> None:
    other = TinyModel(tiny.tokenizer.get_vocab_size(), seed=9)
    onnx.save_model(other.graph(), str(tiny.path / "model.onnx"))


class TestReopening:
    def test_the_store_finds_its_model_again_from_another_working_directory(
        self, tiny: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tiny.path.parent)
        with eunoe.open(tmp_path / "memory.db", embedder="folder:tiny") as memory:
            memory.remember(ANNA, "Anna plays the cello.")
        monkeypatch.chdir(tmp_path)
        with eunoe.open(tmp_path / "memory.db") as memory:
            assert recall(memory) == ["Anna plays the cello."]
            assert memory.status().embedder_error == ""

    def test_a_moved_folder_is_said_with_the_cure_and_accepted_where_it_is_now(
        self, store: Path, tiny: Folder, tmp_path: Path
    ) -> None:
        tiny.path.rename(tmp_path / "moved and renamed")
        encoder._loaded.clear()
        with eunoe.open(store) as memory:
            assert f"there is no folder {tiny.path}: if the model was moved" in memory.status().embedder_error
            assert memory.recall(ANNA, "cello")[0].text == "Anna plays the cello."
        with eunoe.open(store, embedder=f"folder:{tmp_path / 'moved and renamed'}") as memory:
            assert recall(memory) == ["Anna plays the cello."]
        with eunoe.open(store) as memory:  # from now on it looks there
            assert memory.status().embedder_error == ""
            assert recall(memory) == ["Anna plays the cello."]

    def test_a_copy_serves_as_well(self, store: Path, tiny: Folder, tmp_path: Path) -> None:
        shutil.copytree(tiny.path, tmp_path / "copy")
        with eunoe.open(store, embedder=f"folder:{tmp_path / 'copy'}") as memory:
            assert recall(memory)

    def test_a_model_that_was_replaced_is_refused(self, store: Path, tiny: Folder) -> None:
        replace_model(tiny)
        with pytest.raises(ModelMismatchError, match=r"the store's vectors come from bert-\w+, not bert-\w+"):
            eunoe.open(store, embedder=tiny.spec)
        with eunoe.open(store) as memory:
            assert "change them with reembed" in memory.status().embedder_error
            assert memory.recall(ANNA, "cello")
            assert memory.admin.reembed(tiny.spec) == 1
            assert recall(memory)
        with eunoe.open(store, embedder=tiny.spec) as memory:
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

    def test_small_writes_do_not_wait(self, tiny: Folder) -> None:
        with eunoe.open(":memory:", embedder=tiny.spec) as memory:
            assert not memory.remember(ANNA, "Anna plays the cello.").embedded
            assert recall(memory)
            assert memory.status().unembedded == 0


class TestReembedding:
    def test_from_one_model_to_one_in_a_folder(self, tiny: Folder, tmp_path: Path) -> None:
        with eunoe.open(tmp_path / "memory.db", embedder="none") as memory:
            memory.remember(ANNA, "Anna plays the cello.")
            assert memory.admin.reembed(tiny.spec) == 1
            name = memory.status().embedder
        with eunoe.open(tmp_path / "memory.db") as memory:
            assert (memory.status().embedder, memory.status().vectors) == (name, {name: 1})
            assert recall(memory)

    def test_a_model_that_fails_later_costs_no_words(self, tiny: Folder) -> None:
        with eunoe.open(":memory:", embedder=tiny.spec) as memory:
            encoder._loaded.clear()
            replace_model(tiny)
            memory.remember(ANNA, "Anna plays the cello.")
            assert memory.recall(ANNA, "cello")[0].text == "Anna plays the cello."
            assert "has changed since it was opened" in memory.status().embedder_error


class TestCommandLine:
    @pytest.mark.parametrize("spec", [["folder:models/tiny"], ["--embedder", "folder:models/tiny"]])
    def test_reembed_and_recall(
        self,
        spec: list[str],
        tiny: Folder,
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
