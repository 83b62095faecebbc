"""The shipped file against BERT as its paper writes it, on a small model with random weights."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save_file

from eunoe.embed.encoder import open_session

pytest.importorskip("onnx", reason="the graph is built with it")

DIM, LAYERS, WORDS = 64, 2, 50
IDS = np.random.default_rng(1).integers(0, WORDS, (5, 12))


def _module() -> ModuleType:
    path = Path(__file__).parents[2] / "training" / "export.py"
    spec = importlib.util.spec_from_file_location("training_export", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


export = _module()


def weights(seed: int = 0) -> dict[str, NDArray[np.float32]]:
    random = np.random.default_rng(seed)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (WORDS, DIM),
        "embeddings.position_embeddings.weight": (32, DIM),
        "embeddings.token_type_embeddings.weight": (2, DIM),
        "classifier.weight": (1, DIM),
        "classifier.bias": (1,),
    }
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}."
        for name in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
            shapes |= {f"{at}{name}.weight": (DIM, DIM), f"{at}{name}.bias": (DIM,)}
        shapes |= {f"{at}intermediate.dense.weight": (4 * DIM, DIM), f"{at}intermediate.dense.bias": (4 * DIM,)}
        shapes |= {f"{at}output.dense.weight": (DIM, 4 * DIM), f"{at}output.dense.bias": (DIM,)}
    made = {name: random.normal(0, 0.1, shape).astype(np.float32) for name, shape in shapes.items()}
    norms = ["embeddings.LayerNorm"]
    norms += [f"encoder.layer.{n}.{part}.LayerNorm" for n in range(LAYERS) for part in ("attention.output", "output")]
    for norm in norms:
        made[f"{norm}.weight"] = random.normal(1, 0.1, DIM).astype(np.float32)
        made[f"{norm}.bias"] = random.normal(0, 0.1, DIM).astype(np.float32)
    return made


def states(w: dict[str, NDArray[np.float32]], ids: NDArray[Any]) -> NDArray[Any]:
    """The state of every token of one text, in double precision."""
    from math import erf

    def linear(x: NDArray[Any], at: str) -> NDArray[Any]:
        return x @ w[f"{at}.weight"].astype(float).T + w[f"{at}.bias"]

    def norm(x: NDArray[Any], at: str) -> NDArray[Any]:
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12)
        return x * w[f"{at}.weight"] + w[f"{at}.bias"]

    gelu = np.vectorize(lambda value: value * (1 + erf(value / 2**0.5)) / 2)
    x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.token_type_embeddings.weight"][0]
    x = norm(x + w["embeddings.position_embeddings.weight"][: len(ids)], "embeddings.LayerNorm")
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}."
        query, key, value = (
            linear(x, f"{at}attention.self.{name}").reshape(len(ids), -1, export.HEAD_SIZE).swapaxes(0, 1)
            for name in ("query", "key", "value")
        )
        shares = np.exp(query @ key.swapaxes(1, 2) / export.HEAD_SIZE**0.5)
        mixed = (shares / shares.sum(-1, keepdims=True) @ value).swapaxes(0, 1).reshape(len(ids), DIM)
        x = norm(x + linear(mixed, f"{at}attention.output.dense"), f"{at}attention.output.LayerNorm")
        wide = gelu(linear(x, f"{at}intermediate.dense"))
        x = norm(x + linear(wide, f"{at}output.dense"), f"{at}output.LayerNorm")
    return x


def run(graph: bytes, **given: NDArray[Any]) -> NDArray[np.float32]:
    result: NDArray[np.float32] = open_session(graph).run(None, given)[0]
    return result


def cosines(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    return (one * other).sum(-1) / np.linalg.norm(one, axis=-1) / np.linalg.norm(other, axis=-1)


@pytest.fixture(scope="module")
def graph() -> bytes:
    made: bytes = export.graph_of(weights())
    return made


def test_its_vectors_are_close_to_exact_ones(graph: bytes) -> None:
    exact = np.stack([states(weights(), ids).mean(0) for ids in IDS])
    assert cosines(run(graph, ids=IDS), exact).min() > 0.999


def test_in_single_precision_they_are_the_same() -> None:
    exact = np.stack([states(weights(), ids).mean(0) for ids in IDS])
    assert np.abs(run(export.graph_of(weights(), kind=export.FloatGraph), ids=IDS) - exact).max() < 1e-5


def test_a_text_gets_the_same_vector_alone_and_in_company(graph: bytes) -> None:
    together = run(graph, ids=IDS)
    assert all(np.array_equal(run(graph, ids=IDS[i : i + 1])[0], together[i]) for i in range(len(IDS)))


def test_weights_and_words_are_bytes_of_a_reduced_range(graph: bytes) -> None:
    import onnx
    from onnx import numpy_helper

    tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load_from_string(graph).graph.initializer}
    matrices = [value for name, value in tensors.items() if name.endswith(".weight") and value.ndim == 2]
    layers = [value for value in matrices if value.dtype == np.int8]
    assert len(layers) == 4 * LAYERS
    assert max(np.abs(value.astype(int)).max() for value in layers) == export.MAX_WEIGHT_BYTE
    assert tensors["words"].dtype == np.int8
    assert [value.shape for value in matrices if value.dtype != np.int8] == [(32, DIM)]


def test_a_text_gets_a_score() -> None:
    w = weights()
    given = run(export.graph_of(w, "score"), ids=IDS)
    assert given.shape == (5,)
    for score, ids in zip(given, IDS, strict=True):
        exact = states(w, ids).mean(0) @ w["classifier.weight"][0] + w["classifier.bias"][0]
        assert score == pytest.approx(float(exact), abs=0.03)


def test_the_same_weights_give_the_same_bytes_under_either_naming(tmp_path: Path) -> None:
    tokenizer = {"version": "1.0", "padding": {"length": 128}, "truncation": {"max_length": 128}, "model": {"é": 1}}
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer))
    for name, prefix in (("bare", ""), ("named", "bert.")):
        save_file({prefix + key: value for key, value in weights().items()}, tmp_path / f"{name}.safetensors")
    bare, named = (export.export(tmp_path / f"{name}.safetensors", tmp_path / name) for name in ("bare", "named"))
    assert bare.read_bytes() == named.read_bytes() == export.graph_of(weights())
    kept = json.loads((tmp_path / "bare" / "tokenizer.json").read_text(encoding="utf-8"))
    assert kept == tokenizer | {"padding": None, "truncation": None}


def test_other_weights_give_other_bytes(graph: bytes) -> None:
    assert export.graph_of(weights(seed=1)) != graph


def test_a_file_reads_what_it_shares_with_another_one_beside_it(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    one, other = weights(), weights(seed=1)
    shared = [name for name in one if name.startswith(("embeddings.", "encoder.layer.0."))]
    other |= {name: one[name] for name in shared}
    save_file(one, tmp_path / "one.safetensors")
    save_file(other, tmp_path / "other.safetensors")
    first = export.export(tmp_path / "one.safetensors", tmp_path / "out")
    second = export.export(
        tmp_path / "other.safetensors", tmp_path / "out", head="score", name="second", shared="encoder"
    )
    whole = export.graph_of(other, "score")
    assert np.array_equal(open_session(str(second)).run(None, {"ids": IDS})[0], run(whole, ids=IDS))
    assert len(whole) - second.stat().st_size > 0.9 * sum(one[name].size for name in shared)
    assert first.read_bytes() == export.graph_of(one)


def test_a_deep_encoder_gives_its_means_half_way_up(tmp_path: Path) -> None:
    deep = weights() | {
        name.replace("layer.0.", f"layer.{layer}."): value
        for layer in range(12)
        for name, value in weights(seed=layer).items()
        if "layer.0." in name
    }
    session = open_session(export.graph_of(deep, kind=export.FloatGraph))
    assert [output.name for output in session.get_outputs()] == ["mean", "layer_means"]
    given = session.run(["layer_means"], {"ids": IDS})[0].reshape(len(IDS), len(export.GIVEN_LAYERS), DIM)
    for place, layers in enumerate(export.GIVEN_LAYERS):
        cut = {name: value for name, value in deep.items() if _layer(name) < layers}
        mean = open_session(export.graph_of(cut, kind=export.FloatGraph)).run(["mean"], {"ids": IDS})[0]
        assert np.abs(given[:, place] - mean).max() < 1e-6


def _layer(name: str) -> int:
    return int(name.split(".")[2]) if name.startswith("encoder.layer.") else -1


def test_a_trained_head_is_found_under_its_own_name(tmp_path: Path) -> None:
    w = weights()
    save_file({name.replace("classifier.", "head."): value for name, value in w.items()}, tmp_path / "w.safetensors")
    assert export.graph_of(export.load_weights(tmp_path / "w.safetensors"), "score") == export.graph_of(w, "score")
