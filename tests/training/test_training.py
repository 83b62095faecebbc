"""The stages of `training/make.py` on a CPU: two steps of each, from random weights of one layer."""

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
FIRST = "e5-small-v2"
STARTS = (FIRST, "bge-small-en-v1.5", "all-MiniLM-L6-v2")
DENSE = "encoder.layer.0.output.dense.weight"


class Workplace:
    """Folders of what training reads and writes, and a command for each stage."""

    def __init__(self, folder: Path) -> None:
        self.documents, self.starts, self.out = (folder / name for name in ("documents", "starts", "out"))

    def run(self, stage: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        folders = ("--documents", self.documents, "--starts", self.starts, "--out", self.out)
        return script("make.py", stage, "--smoke", *folders, *arguments)

    def make(self, stage: str, *arguments: object) -> None:
        done = self.run(stage, *arguments)
        assert done.returncode == 0, done.stderr[-2000:]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    place = Workplace(tmp_path_factory.mktemp("training"))
    _write_documents(place.documents)
    for number, name in enumerate(STARTS):
        _write_parts(_weights(number), place.starts / name)
    return place


@pytest.fixture(scope="module")
def fold_teacher(place: Workplace) -> Workplace:
    place.make("teacher", "--start", FIRST, "--name", FIRST, "--fold", 0)
    return place


@pytest.fixture(scope="module")
def opinions(fold_teacher: Workplace) -> Workplace:
    fold_teacher.make("opinions", "--name", "opinions", "--fold", 0)
    return fold_teacher


@pytest.fixture(scope="module")
def encoder(fold_teacher: Workplace) -> Workplace:
    """Its teachers are what a fold's teacher learnt, and a start as it is."""
    place = fold_teacher
    for seed in (1, 2):
        shutil.copy(place.out / f"{FIRST}-fold0.safetensors", place.out / f"{FIRST}-{seed}.safetensors")
    save_file(_weights(1), place.out / f"{STARTS[1]}-1.safetensors")
    for seed in (1, 2, 3):
        place.make("student", "--seed", seed, "--name", f"student-{seed}")
    place.make("encoder", "--name", "encoder")
    return place


def _write_documents(folder: Path) -> None:
    folder.mkdir()
    passages = [{"title": f"Bird {n}", "text": f"It nests on cliff {n}. It lays {n + 1} eggs."} for n in range(60)]
    questions = [{"question": f"How many eggs has the bird of cliff {n}?", "gold": [n]} for n in range(20)]
    for name in ("2wiki", "musique"):
        text = json.dumps({"name": f"{name}-dev", "passages": passages, "questions": questions})
        (folder / f"{name}_dev.json").write_text(text, encoding="utf-8")


def _write_parts(weights: dict[str, np.ndarray], folder: Path) -> None:
    folder.mkdir(parents=True)
    words = weights.pop("embeddings.word_embeddings.weight")
    save_file({"embeddings.word_embeddings.weight.0": words[:20000]}, folder / "part-0.safetensors")
    save_file(weights | {"embeddings.word_embeddings.weight.1": words[20000:]}, folder / "part-1.safetensors")


def _weights(seed: int) -> dict[str, np.ndarray]:
    layer = "encoder.layer.0."
    linear = {f"{layer}attention.self.{name}": (WIDTH, WIDTH) for name in ("query", "key", "value")}
    linear[f"{layer}attention.output.dense"] = (WIDTH, WIDTH)
    linear |= {f"{layer}intermediate.dense": (4 * WIDTH, WIDTH), f"{layer}output.dense": (WIDTH, 4 * WIDTH)}
    tables = {"word": WORDS, "position": 512, "token_type": 2}
    chance = np.random.default_rng(seed)
    shapes = {f"{name}.weight": shape for name, shape in linear.items()}
    shapes |= {f"embeddings.{name}_embeddings.weight": (rows, WIDTH) for name, rows in tables.items()}
    made = {name: chance.normal(0, 0.05, shape).astype(np.float16) for name, shape in shapes.items()}
    made |= {f"{name}.bias": np.zeros(shape[0], np.float16) for name, shape in linear.items()}
    for norm in ("embeddings", f"{layer}attention.output", f"{layer}output"):
        made[f"{norm}.LayerNorm.weight"] = np.ones(WIDTH, np.float16)
        made[f"{norm}.LayerNorm.bias"] = np.zeros(WIDTH, np.float16)
    return made


def script(name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "training" / name, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8")


def log(path: Path) -> list[str]:
    with path.open(newline="", encoding="utf-8") as file:
        return [row["what"] for row in csv.DictReader(file)]


def report(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def distance(weights: Path, other: dict[str, np.ndarray], name: str) -> float:
    return float(np.abs(load_file(weights)[name].astype(np.float32) - other[name]).max())


def test_a_teacher_leaves_a_fold_out_and_embeds_it(fold_teacher: Workplace) -> None:
    out = fold_teacher.out
    assert log(out / f"{FIRST}-fold0.csv") == ["loss, talk", "loss, passages"]
    said = report(out / f"{FIRST}-fold0.json")
    assert set(said["found"]) == {"validation"}
    assert len(said["start"]) == 64
    assert 0 < distance(out / f"{FIRST}-fold0.safetensors", _weights(0), DENSE) < 0.01
    vectors = np.load(out / f"{FIRST}-fold0.npz")
    assert {name.rpartition(" ")[2] for name in vectors} == {"turns", "questions"}
    assert len(vectors) == 2
    assert all(vectors[name].shape[1] == WIDTH for name in vectors)


def test_a_reranker_reads_the_fold_that_it_left_out(opinions: Workplace) -> None:
    said = report(opinions.out / "opinions-fold0.opinions.json")
    read = {name.rpartition(" ")[0] for name in np.load(opinions.out / f"{FIRST}-fold0.npz")}
    assert set(said) == read
    assert all(len(rows) == len(set(rows)) == len(scores) > 1 for each in said.values() for rows, scores in each)
    assert set(report(opinions.out / "opinions-fold0.json")["found"]["validation"]) == {"0.0", "0.05", "0.1", "0.2"}


def test_the_encoder_learns_texts_then_the_task(encoder: Workplace) -> None:
    assert log(encoder.out / "student-1.csv") == ["loss, texts", "loss, texts", "loss, talk", "loss, passages"]
    found = report(encoder.out / "encoder.json")["found"]
    assert set(found) == {"validation", "2wiki-dev", "musique-dev", "technical", "de", "es", "fr", "it", "pt"}
    begun = load_file(encoder.out / f"{FIRST}-1.safetensors")
    students = [load_file(encoder.out / f"student-{seed}.safetensors") for seed in (1, 2, 3)]
    assert all(0 < np.abs(each[DENSE].astype(np.float32) - begun[DENSE]).max() < 0.01 for each in students)
    mean = {DENSE: sum(each[DENSE].astype(np.float32) for each in students) / 3}
    assert distance(encoder.out / "encoder.safetensors", mean, DENSE) < 0.001
    assert np.load(encoder.out / "encoder.npz").files


def test_the_reranker_keeps_the_words_of_the_encoder_and_both_are_exported(
    encoder: Workplace, opinions: Workplace, tmp_path: Path
) -> None:
    out = encoder.out
    for fold in (1, 2):
        (out / f"opinions-fold{fold}.opinions.json").write_text(json.dumps(_opinions(fold)))
    encoder.make("reranker", "--name", "reranker")
    words = "embeddings.word_embeddings.weight"
    begun = load_file(out / "encoder.safetensors")
    assert distance(out / "reranker.safetensors", begun, words) == 0
    assert 0 < distance(out / "reranker.safetensors", begun, DENSE) < 0.01

    tokenizer = ("--tokenizer", FOLDER / "tokenizer.json")
    beside = ("--name", "reranker", "--head", "score", "--share", "encoder")
    for name, more in (("encoder", ()), ("reranker", beside)):
        assert script("export.py", out / f"{name}.safetensors", tmp_path, *tokenizer, *more).returncode == 0
    ids = {"ids": np.array([[101, 2054, 102]])}
    assert open_session(str(tmp_path / "encoder.onnx")).run(None, ids)[0].shape == (1, WIDTH)
    assert open_session(str(tmp_path / "reranker.onnx")).run(None, ids)[0].shape == (1,)


def _opinions(fold: int) -> dict[str, list]:
    """Of the one conversation that --smoke leaves in a fold: of the first turns, and of those that answer."""
    import corpus
    import talk

    stream = corpus.talk_streams(talk.load("train"))[fold]
    chosen = [list(dict.fromkeys([*each.gold, *range(8)])) for each in stream.questions[:4] + stream.facts[:4]]
    return {stream.id: [(rows, [0.5] * len(rows)) for rows in chosen]}


def test_what_is_missing_is_named(place: Workplace, tmp_path: Path) -> None:
    empty = Workplace(tmp_path)
    (empty.starts / FIRST).mkdir(parents=True)
    done = empty.run("all")
    assert done.returncode == 2
    assert f"has no folder {STARTS[1]}, {STARTS[2]}; training/README.md says where they come from" in done.stderr
    empty.starts, empty.documents = place.starts, place.documents
    done = empty.run("encoder", "--name", "encoder")
    assert (done.returncode, done.stderr.strip()) == (1, "there are no teachers: run the stage teacher first")
