"""Vectors of models in folders, against the same models in NumPy."""

from pathlib import Path
from shutil import copytree
from typing import ClassVar

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from onnxruntime.quantization import quantize_dynamic
from safetensors.numpy import save_file
from tests.embed.folder.models import (
    DIM,
    LINES,
    POSITIONS,
    Folder,
    TinyModel,
    bert,
    modules,
    unit,
    wordpiece,
    xlm_roberta,
)
from tests.embed.samples import python

from eunoe.embed import load_embedder
from eunoe.embed.folder import FolderEncoder
from eunoe.errors import EmbedderError

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
