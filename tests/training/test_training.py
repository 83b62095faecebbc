"""From data to model on a CPU: a few steps of everything in `training`, from random weights of one layer."""

import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from eunoe.embed.encoder import FOLDER, open_session

pytest.importorskip("torch", reason="training needs torch (training/requirements.txt), which is not installed")
pytest.importorskip("onnx", reason="training needs onnx (training/requirements.txt), which is not installed")

ROOT = Path(__file__).parents[2]
WIDTH, WORDS = 384, 30522


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("start")
    save_file(_weights(), folder / "model.safetensors")
    shutil.copy(FOLDER / "tokenizer.json", folder)
    return folder


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documents")
    passages = [{"title": f"Bird {n}", "text": f"It nests on cliff {n}. It lays {n + 1} eggs."} for n in range(60)]
    questions = [{"question": f"How many eggs has the bird of cliff {n}?", "gold": [n]} for n in range(20)]
    for name in ("2wiki", "musique"):
        text = json.dumps({"name": f"{name}-dev", "passages": passages, "questions": questions})
        (folder / f"{name}_dev.json").write_text(text, encoding="utf-8")
    return folder


def _weights() -> dict[str, np.ndarray]:
    layer = "encoder.layer.0."
    linear = {f"{layer}attention.self.{name}": (WIDTH, WIDTH) for name in ("query", "key", "value")}
    linear[f"{layer}attention.output.dense"] = (WIDTH, WIDTH)
    linear |= {f"{layer}intermediate.dense": (4 * WIDTH, WIDTH), f"{layer}output.dense": (WIDTH, 4 * WIDTH)}
    tables = {"word": WORDS, "position": 512, "token_type": 2}
    chance = np.random.default_rng(0)
    shapes = {f"{name}.weight": shape for name, shape in linear.items()}
    shapes |= {f"embeddings.{name}_embeddings.weight": (rows, WIDTH) for name, rows in tables.items()}
    made = {name: chance.normal(0, 0.05, shape).astype(np.float32) for name, shape in shapes.items()}
    made |= {f"{name}.bias": np.zeros(shape[0], np.float32) for name, shape in linear.items()}
    for norm in ("embeddings", f"{layer}attention.output", f"{layer}output"):
        made[f"{norm}.LayerNorm.weight"] = np.ones(WIDTH, np.float32)
        made[f"{norm}.LayerNorm.bias"] = np.zeros(WIDTH, np.float32)
    return made


def script(name: str, *arguments: object) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "training" / name, *map(str, arguments)],
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr[-2000:]


def make(what: str, start: Path, documents: Path, out: Path) -> None:
    script("make.py", what, "--smoke", "--start", start, "--documents", documents, "--out", out)


def log(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_encoder_and_the_reranker_beside_it(start: Path, documents: Path, tmp_path: Path) -> None:
    make("encoder", start, documents, tmp_path)
    assert [row["what"] for row in log(tmp_path / "encoder.csv")] == ["loss, talk", "loss, passages"]
    assert set(json.loads((tmp_path / "encoder.json").read_text())["found"]) == {"start", "mix 0.9"}
    begun, made = load_file(start / "model.safetensors"), load_file(tmp_path / "encoder.safetensors")
    name = "encoder.layer.0.output.dense.weight"
    assert 0 < np.abs(made[name].astype(np.float32) - begun[name]).max() < 0.01

    make("reranker", start, documents, tmp_path)
    shipped = tmp_path / "model"
    tokenizer = ("--tokenizer", start / "tokenizer.json")
    script("export.py", tmp_path / "encoder.safetensors", shipped, *tokenizer)
    beside = ("--name", "reranker", "--head", "score", "--words", "encoder")
    script("export.py", tmp_path / "reranker.safetensors", shipped, *tokenizer, *beside)
    ids = {"ids": np.array([[101, 2054, 102]])}
    assert open_session(str(shipped / "encoder.onnx")).run(None, ids)[0].shape == (1, WIDTH)
    assert open_session(str(shipped / "reranker.onnx")).run(None, ids)[0].shape == (1,)


def test_vectors_by_encoders_that_had_not_seen_the_conversation(start: Path, documents: Path, tmp_path: Path) -> None:
    make("folds", start, documents, tmp_path)
    assert {row["run"] for row in log(tmp_path / "folds.csv")} == {"seed 11", "seed 12", "seed 13"}
    kept = np.load(tmp_path / "folds.npz")
    conversations = {name.rpartition(" ")[0] for name in kept}
    assert len(conversations) == 4
    assert set(kept) == {f"{one} {what}" for one in conversations for what in ("turns", "questions")}
    assert all(kept[name].shape[1] == WIDTH for name in kept)
