"""Small random models, written as real ONNX files with real tokenizers, and the same models in NumPy."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper, parser
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

Floats = NDArray[Any]

DIM = 16
POSITIONS = 64
LINES = [
    "Anna plays the cello in an old orchestra.",
    "The boat will be launched on Friday at the harbour.",
    "query: passage: what is the name of her cat?",
    "Die Katze heißt Mimi und schläft auf dem Sofa.",
    "El gato se llama Luna y duerme en la cocina.",
    "He works as a gardener and grows tomatoes.",
    "She moved from Berlin to Lisbon in the spring.",
]


class TinyModel:
    """One layer of attention with random weights. `padding` makes its positions those of XLM-R."""

    def __init__(self, vocabulary: int, padding: int | None = None, seed: int = 1) -> None:
        random = np.random.default_rng(seed)
        shapes = {"words": (vocabulary, DIM), "places": (POSITIONS, DIM), "kinds": (2, DIM)}
        shapes |= dict.fromkeys(("query", "key", "value"), (DIM, DIM))
        self.weights = {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
        self.padding = padding

    def states(self, ids: Sequence[int]) -> Floats:
        """The states of one text's tokens, by NumPy."""
        w = {name: weight.astype(np.float64) for name, weight in self.weights.items()}
        first = 0 if self.padding is None else self.padding + 1
        x = w["words"][list(ids)] + w["places"][first : first + len(ids)] + w["kinds"][0]
        scores = (x @ w["query"]) @ (x @ w["key"]).T / DIM
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        y = x + (shares / shares.sum(axis=1, keepdims=True)) @ (x @ w["value"])
        return (y - y.mean(axis=1, keepdims=True)) / np.sqrt(y.var(axis=1, keepdims=True) + 1e-5)

    def graph(
        self,
        inputs: Sequence[str] = ("input_ids", "attention_mask", "token_type_ids"),
        output: str = "last_hidden_state",
        shape: str = "batch, length",
        ids: str = "int64",
    ) -> onnx.ModelProto:
        """The model as an ONNX graph. The output `sentence_embedding` is the mean of its states."""
        if "position_ids" in inputs:
            places = "places_of = Cast <to = 7> (position_ids)"
        elif self.padding is None:
            places = """length = Shape <start = 1, end = 2> (input_ids)
                size = Squeeze (length)
                places_of = Range (zero, size, one)"""
        else:
            places = """is_padding = Equal (wide_ids, padding)
                is_word = Not (is_padding)
                words_in = Cast <to = 7> (is_word)
                sums = CumSum (words_in, one)
                counted = Mul (sums, words_in)
                places_of = Add (counted, padding)"""
        kinds = "Gather (kinds, token_type_ids)" if "token_type_ids" in inputs else "Gather (kinds, zero)"
        is_text = output == "sentence_embedding"
        end = "ReduceMean <axes = [1], keepdims = 0> (states)" if is_text else "Identity (states)"
        text = f"""<ir_version: 9, opset_import: ["" : 17]>
            encoder ({", ".join(f"{ids}[{shape}] {name}" for name in inputs)})
                => (float[{"batch, dim" if is_text else "batch, length, dim"}] {output}) {{
                wide_ids = Cast <to = 7> (input_ids)
                {places}
                word = Gather (words, wide_ids)
                place = Gather (places, places_of)
                kind = {kinds}
                placed = Add (word, place)
                x = Add (placed, kind)
                asked = MatMul (x, query)
                keys = MatMul (x, key)
                values = MatMul (x, value)
                turned = Transpose <perm = [0, 2, 1]> (keys)
                products = MatMul (asked, turned)
                scores = Div (products, dim_size)
                mask = Cast <to = 1> (attention_mask)
                wide_mask = Unsqueeze (mask, one_axis)
                off = Sub (unit, wide_mask)
                low = Mul (off, far)
                masked = Add (scores, low)
                shares = Softmax <axis = -1> (masked)
                mixed = MatMul (shares, values)
                y = Add (x, mixed)
                states = LayerNormalization <axis = -1> (y, scale, shift)
                {output} = {end}
            }}"""
        model = parser.parse_model(text)
        constants = {
            "zero": np.array(0),
            "one": np.array(1),
            "one_axis": np.array([1]),
            "padding": np.array(self.padding or 0),
            "unit": np.float32(1),
            "far": np.float32(-1e9),
            "dim_size": np.float32(DIM),
            "scale": np.ones(DIM, np.float32),
            "shift": np.zeros(DIM, np.float32),
        }
        for name, value in {**self.weights, **constants}.items():
            model.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
        onnx.checker.check_model(model)
        return model


def wordpiece() -> Tokenizer:
    """A tokenizer as BERT has it."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    tokenizer.train_from_iterator(
        LINES, trainers.WordPieceTrainer(vocab_size=150, special_tokens=special, show_progress=False)
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.enable_padding(length=30)  # as many that are published have it
    return tokenizer


def unigram() -> Tokenizer:
    """A tokenizer as XLM-R has it."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(vocab_size=150, special_tokens=special, unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(LINES, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return tokenizer


def write_json(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


class Folder:
    """A model's folder on disk, with what its vectors should be."""

    def __init__(
        self,
        path: Path,
        model: TinyModel,
        tokenizer: Tokenizer,
        graph: onnx.ModelProto | None = None,
        name: str = "model.onnx",
        **configs: object,
    ) -> None:
        self.path = path
        self.spec = f"folder:{path}"
        self.model = model
        self.tokenizer = tokenizer
        path.mkdir(parents=True, exist_ok=True)
        tokenizer.save(str(path / "tokenizer.json"))
        (path / name).parent.mkdir(exist_ok=True)
        onnx.save_model(graph or model.graph(), str(path / name))
        for file, value in configs.items():
            write_json(path / f"{file}.json", value)

    def write(self, **configs: object) -> None:
        for file, value in configs.items():
            write_json(self.path / f"{file.replace('__', '/')}.json", value)

    def ids(self, text: str, limit: int | None = None) -> list[int]:
        """The ids of a text without padding, cut as the config says."""
        tokenizer = Tokenizer.from_str(self.tokenizer.to_str())
        tokenizer.no_padding()
        if limit:
            tokenizer.enable_truncation(limit)
        return tokenizer.encode(text).ids

    def states(self, text: str, limit: int | None = None) -> Floats:
        return self.model.states(self.ids(text, limit))

    def mean(self, text: str, limit: int | None = None) -> Floats:
        return unit(self.states(text, limit).mean(axis=0))


def unit(row: Floats) -> Floats:
    return row / np.linalg.norm(row)


def bert(path: Path, seed: int = 1, **options: Any) -> Folder:
    tokenizer = wordpiece()
    config = {"model_type": "bert", "max_position_embeddings": POSITIONS}
    return Folder(path, TinyModel(tokenizer.get_vocab_size(), seed=seed), tokenizer, **{"config": config, **options})


def xlm_roberta(path: Path, **options: Any) -> Folder:
    tokenizer = unigram()
    model = TinyModel(tokenizer.get_vocab_size(), padding=1)
    graph = model.graph(inputs=("input_ids", "attention_mask"))
    config = {"model_type": "xlm-roberta", "pad_token_id": 1, "max_position_embeddings": POSITIONS}
    return Folder(path, model, tokenizer, **{"graph": graph, "config": config, **options})


def modules(*kinds: str) -> list[Mapping[str, object]]:
    """What `modules.json` lists."""
    names = [("", "Transformer"), *((f"{place}_{kind}", kind) for place, kind in enumerate(kinds, 1))]
    return [
        {"idx": place, "name": str(place), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for place, (path, kind) in enumerate(names)
    ]
