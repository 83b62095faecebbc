"""The published weights that training starts from: whole or in parts, and what is wrong with a folder."""

from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="training needs torch (training/requirements.txt), which is not installed")

WORDS = "embeddings.word_embeddings.weight"


@pytest.fixture(scope="module")
def starts() -> ModuleType:
    return import_module("starts")


@pytest.fixture
def weights() -> dict[str, Any]:
    layers = {f"encoder.layer.{number}.output.dense.weight": torch.full((8, 8), float(number)) for number in range(3)}
    return {
        WORDS: torch.arange(96.0).reshape(24, 4),
        "embeddings.position_embeddings.weight": torch.ones(5, 4),
    } | layers


def test_parts_are_joined(starts: ModuleType, weights: dict[str, Any], tmp_path: Path) -> None:
    starts.save_parts(weights, tmp_path / "cut", size=150)
    assert len(list((tmp_path / "cut").iterdir())) > 3
    joined = starts.load_start(tmp_path / "cut")
    assert joined.keys() == weights.keys()
    assert all(torch.equal(joined[name].float(), value) for name, value in weights.items())


def test_more_than_ten_parts_of_a_table_stay_in_order(starts: ModuleType, tmp_path: Path) -> None:
    starts.save_file(
        {f"{WORDS}.{number}": torch.full((1, 4), float(number)) for number in range(12)}, tmp_path / "a.safetensors"
    )
    assert starts.load_start(tmp_path)[WORDS][:, 0].tolist() == list(range(12))


def test_the_checksum_does_not_see_the_cut(starts: ModuleType, weights: dict[str, Any], tmp_path: Path) -> None:
    starts.save_parts(weights, tmp_path / "small", size=150)
    starts.save_parts(weights, tmp_path / "large")
    sums = {starts.checksum(starts.load_start(tmp_path / name)) for name in ("small", "large")}
    extra = {"embeddings.position_ids": torch.arange(5), "pooler.dense.weight": torch.ones(4, 4)}
    assert sums == {starts.checksum(weights)} == {starts.checksum(weights | extra)}
    assert starts.checksum(weights | {WORDS: weights[WORDS] + 1}) not in sums


def test_a_folder_without_weights_is_named(starts: ModuleType, weights: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"no \.safetensors file in .*training/README\.md says where it comes from"):
        starts.load_start(tmp_path / "nowhere")
    weights.pop(WORDS)
    starts.save_file(weights, tmp_path / "other.safetensors")
    with pytest.raises(SystemExit, match=f"hold no {WORDS}"):
        starts.load_start(tmp_path)


def test_layers_are_chosen_and_numbered_anew(starts: ModuleType, weights: dict[str, Any]) -> None:
    chosen = starts.choose_layers(weights, [2, 0])
    layers = [chosen[f"encoder.layer.{number}.output.dense.weight"][0, 0].item() for number in range(2)]
    assert layers == [2, 0]
    assert len(chosen) == 4


def test_the_mean_of_runs(starts: ModuleType, weights: dict[str, Any]) -> None:
    mean = starts.mean_weights([weights, {name: value + 2 for name, value in weights.items()}])
    assert torch.equal(mean[WORDS], weights[WORDS] + 1)
