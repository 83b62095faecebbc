"""Trains the models of the package. Minutes on one GPU; with --smoke a few steps on a CPU.

    python training/make.py all --documents FOLDER --starts FOLDER --out FOLDER

FOLDER of --documents holds 2wiki_dev.json and musique_dev.json, which are trained on in part, and hotpot_dev.json and
locomo_dev.json, which are only measured. FOLDER of --starts holds a folder of weights for each start that
`settings.toml` names; `all` runs all stages, several side by side:

    teacher    an encoder from one start, on the whole training part or without one fold of it
    opinions   a reranker without one fold reads that fold: what it says teaches the smaller one that ships
    student    an encoder taught by all teachers
    encoder    the encoder that ships: the mean of the students
    reranker   the reranker that ships: it starts from the encoder, keeps its words, and learns from the opinions

What comes out, NAME.safetensors, is for `export.py`; NAME.csv and NAME.json hold losses and recall.
"""

import argparse
import csv
import json
import subprocess
import sys
import time
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import corpus
import measure
import numpy as np
import parallel
import talk
import technical
import torch
from distill import StudentSettings, Teachers, learn_task, learn_texts
from encoder import Encoder
from reranker import Opinions, Reranker, RerankerSettings, candidate_rows, read_opinions, train_reranker
from safetensors.torch import load_file, save_file
from starts import checksum, choose_layers, load_start, mean_weights
from texts import standard_library, text_pool
from torch import Tensor
from train import Settings, train

LOG_EVERY_STEPS = 100
TOKENIZER = Path(__file__).parent.parent / "src" / "eunoe" / "embed" / "model" / "tokenizer.json"


@dataclass
class TrainingData:
    """Everything there is to learn from and to be measured on."""

    talk: list[corpus.TalkStream]
    trained: list[corpus.DocumentSet]
    technical: list[corpus.DocumentSet]
    pairs: list[parallel.Pair]
    validation: list[corpus.TalkStream]
    locomo: list[corpus.TalkStream]
    kept: list[corpus.DocumentSet]
    foreign: dict[str, dict[str, list[tuple[str, str]]]] = field(default_factory=dict)
    """By language and conversation: questions of the validation part and their translations."""

    def fold(self, number: int, count: int) -> list[corpus.TalkStream]:
        return self.talk[number::count]

    def without_fold(self, number: int | None, count: int) -> list[corpus.TalkStream]:
        """All conversations but those of a fold; all if no fold is named."""
        return [each for row, each in enumerate(self.talk) if number is None or row % count != number]

    def measure(self, model: Encoder) -> dict[str, Any]:
        found: dict[str, Any] = {"validation": measure.talk_recall(model, self.validation)}
        if self.locomo:
            found["locomo"] = measure.talk_recall(model, self.locomo)
        found |= {each.name: measure.document_recall(model, each) for each in self.kept}
        return found | {
            language: measure.foreign_recall(model, self.validation, pairs) for language, pairs in self.foreign.items()
        }


class Journal:
    """Losses, and recall on the way, as they come."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: list[tuple[str, int, str, Any]] = []
        self._start = time.monotonic()

    def log(self, run: str) -> Callable[[int, dict], None]:
        """Takes the losses of each step of a run."""

        def take(step: int, losses: dict[str, Tensor]) -> None:
            values = {name: value.detach() for name, value in losses.items()}
            self._rows += ((run, step, f"loss, {name}", value) for name, value in values.items())
            if step % LOG_EVERY_STEPS == LOG_EVERY_STEPS - 1:
                self.say(f"{run}, step {step + 1}: {', '.join(f'{n} {float(v):.3f}' for n, v in values.items())}")

        return take

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self._start:6.1f} s  {text}", flush=True)

    def save(self) -> None:
        with self._path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("run", "step", "what", "value"))
            writer.writerows((run, step, what, f"{float(value):.4f}") for run, step, what, value in self._rows)


class Workshop:
    """One stage of the training: reads what earlier stages wrote to the folder `out` and writes its own files."""

    def __init__(self, options: argparse.Namespace, settings: dict) -> None:
        self._options, self._settings = options, settings
        self._out: Path = options.out
        self._folds: int = settings["folds"]["count"]
        self._fold: int | None = options.fold
        self._name = options.name + (f"-fold{options.fold}" if options.fold is not None else "")
        self._journal = Journal(self._out / f"{self._name}.csv")

    @cached_property
    def _data(self) -> TrainingData:
        return load(self._options, self._settings)

    def teacher(self) -> None:
        start = load_start(self._options.starts / self._options.start)
        chosen = self._settings["teacher"] | self._teacher_settings(self._options.start)
        chosen |= self._settings["fold"] if self._fold is not None else {}
        model = _encoder(start, chosen["dropout"])
        documents = [*self._data.trained, *self._data.technical]
        train(
            model,
            Settings(seed=self._options.seed, **_fields_of(Settings, chosen)),
            self._data.without_fold(self._fold, self._folds),
            documents,
            self._journal.log(self._name),
        )
        if self._fold is not None:
            self._save_vectors(model, self._data.fold(self._fold, self._folds))
        found = {"validation": measure.talk_recall(model, self._data.validation)}
        self._finish(model.state(), found, {"start": checksum(start)})

    def opinions(self) -> None:
        chosen = RerankerSettings(**_fields_of(RerankerSettings, self._settings["reranker_teacher"]))
        finders = self._teachers().encoders
        weights = choose_layers(finders[0].state(), chosen.layers)
        model = Reranker(weights, TOKENIZER, chosen.dropout).to(_device())
        log = self._journal.log(self._name)
        others = self._data.without_fold(self._fold, self._folds)
        train_reranker(
            model, finders[0], chosen, others, self._data.trained, {}, lambda step, loss: log(step, {"reranker": loss})
        )
        own = self._data.fold(self._fold or 0, self._folds)
        said = read_opinions(model, candidate_rows(finders, chosen, own), own)
        (self._out / f"{self._name}.opinions.json").write_text(json.dumps(said))
        found = {"validation": measure.reranked_recall(model, finders[0], self._data.validation)}
        self._finish(model.state(), found)

    def student(self) -> None:
        chosen = StudentSettings(seed=self._options.seed, **_fields_of(StudentSettings, self._settings["student"]))
        torch.manual_seed(chosen.seed)
        teachers, data = self._teachers(), self._data
        student = _encoder(choose_layers(teachers.encoders[0].state(), chosen.layers), chosen.dropout)
        docstrings = [] if self._options.smoke else standard_library()
        pool = text_pool(data.talk, data.trained, data.technical, data.pairs, docstrings)
        self._journal.say(f"{len(pool.english)} English texts, {len(pool.foreign)} of other languages")
        learn_texts(student, teachers, pool, chosen, self._journal.log("texts"))
        weights = learn_task(
            student, teachers, data.talk, data.trained, data.technical, chosen, self._journal.log("task")
        )
        self._finish(weights, {"validation": measure.talk_recall(_encoder(weights), data.validation)})

    def encoder(self) -> None:
        names = [f"student-{seed}" for seed in self._settings["student"]["seeds"]]
        weights = mean_weights([self._load(name, "student") for name in names])
        model = _encoder(weights)
        self._save_vectors(model, self._data.validation)
        self._finish(weights, self._data.measure(model))

    def reranker(self) -> None:
        chosen = RerankerSettings(
            **_fields_of(RerankerSettings, self._settings["reranker_teacher"] | self._settings["reranker"])
        )
        start = self._load("encoder", "encoder")
        finder = _encoder(start)
        model = Reranker(choose_layers(start, chosen.layers), TOKENIZER, chosen.dropout, chosen.shared).to(_device())
        log = self._journal.log(self._name)
        data = self._data
        train_reranker(
            model,
            finder,
            chosen,
            data.talk,
            [*data.trained, *data.technical],
            self._opinions(),
            lambda step, loss: log(step, {"reranker": loss}),
        )
        found = {"validation": measure.reranked_recall(model, finder, data.validation, depth=40)}
        if data.locomo:
            found["locomo"] = measure.reranked_recall(model, finder, data.locomo, depth=40)
        self._finish(model.state(), found)

    def _teacher_settings(self, start: str) -> dict:
        return next(each for each in self._settings["teachers"] if each["start"] == start)

    def _teachers(self) -> Teachers:
        """All of them; where this stage leaves a fold out, those that do so too."""
        found = []
        for each in self._settings["teachers"]:
            seeds = each["seeds"] if self._fold is None else [f"fold{self._fold}"]
            paths = [self._out / f"{each['start']}-{seed}.safetensors" for seed in seeds]
            if all(path.is_file() for path in paths):
                found.append(_encoder(mean_weights([load_file(path) for path in paths])))
        if not found:
            raise SystemExit("there are no teachers: run the stage teacher first")
        return Teachers(found)

    def _load(self, name: str, stage: str) -> dict[str, Tensor]:
        path = self._out / f"{name}.safetensors"
        if not path.is_file():
            raise SystemExit(f"there is no {path.name}: run the stage {stage} first")
        return load_file(path)

    def _opinions(self) -> Opinions:
        paths = [self._out / f"opinions-fold{number}.opinions.json" for number in range(self._folds)]
        if not all(path.is_file() for path in paths):
            raise SystemExit("not all folds have opinions: run the stage opinions first")
        parts = [json.loads(path.read_text()) for path in paths]
        return {id: [(rows, said) for rows, said in each] for part in parts for id, each in part.items()}

    def _save_vectors(self, model: Encoder, streams: list[corpus.TalkStream]) -> None:
        """Vectors of conversations that this encoder has not seen: the blend is fitted on them."""
        np.savez_compressed(self._out / f"{self._name}.npz", **dict(_vectors(model, streams)))

    def _finish(self, weights: dict[str, Tensor], found: dict, more: dict | None = None) -> None:
        for name, figures in found.items():
            self._journal.say(f"RESULT {self._name} {name} {figures}")
        path = self._out / self._name
        save_file(
            {name: value.half().contiguous() for name, value in weights.items()},
            path.with_name(f"{self._name}.safetensors"),
        )
        report = {"found": found, "settings": self._settings} | (more or {})
        path.with_name(f"{self._name}.json").write_text(json.dumps(report, indent=1))
        self._journal.save()


def load(options: argparse.Namespace, settings: dict) -> TrainingData:
    chosen = settings["documents"]
    parts = [
        corpus.split_questions(corpus.load_documents(options.documents / name), chosen["share"])
        for name in corpus.TRAINED
    ]
    hotpot, locomo = options.documents / "hotpot_dev.json", options.documents / "locomo_dev.json"
    projects = technical.load()
    data = TrainingData(
        corpus.talk_streams(talk.load("train")),
        [trained for trained, _ in parts],
        [corpus.join_documents("technical", [each for each in projects if each.name not in chosen["technical_kept"]])],
        parallel.load(options.pairs) if options.pairs else [],
        corpus.talk_streams(talk.load("validation")),
        corpus.bench_streams(locomo) if locomo.exists() else [],
        [
            *(kept for _, kept in parts),
            *([corpus.load_documents(hotpot)] if hotpot.exists() else []),
            corpus.join_documents("technical", [each for each in projects if each.name in chosen["technical_kept"]]),
        ],
        _kept_translations(),
    )
    _translate(data.talk)
    return _shrink(data) if options.smoke else data


def _translate(streams: list[corpus.TalkStream]) -> None:
    translations = defaultdict(list)
    for _, pair in parallel.by_hand():
        translations[pair.english].append(pair.text)
    for stream in streams:
        for each in stream.questions + stream.facts:
            each.translations = translations[each.text]


def _kept_translations() -> dict[str, dict[str, list[tuple[str, str]]]]:
    found: dict[str, dict[str, list[tuple[str, str]]]] = defaultdict(lambda: defaultdict(list))
    for conversation, pair in parallel.by_hand(parallel.TRANSLATIONS / "validation"):
        found[pair.language][f"talk-{conversation.removeprefix('talk-')}"].append((pair.english, pair.text))
    return found


def _shrink(data: TrainingData) -> TrainingData:
    """Enough of everything for each step to run."""
    data.trained, data.kept = ([corpus.first_questions(each, 3) for each in part] for part in (data.trained, data.kept))
    data.technical = [corpus.first_questions(each, 3) for each in data.technical]
    data.talk, data.validation, data.pairs = data.talk[:3], data.validation[:1], data.pairs[:20]
    for stream in data.talk:
        stream.questions, stream.facts = stream.questions[:4], stream.facts[:4]
    data.locomo = []
    return data


def _encoder(weights: dict[str, Tensor], dropout: float = 0.1) -> Encoder:
    return Encoder(weights, TOKENIZER, dropout).to(_device())


def _fields_of(kind: type, settings: dict) -> dict:
    return {each.name: settings[each.name] for each in fields(kind) if each.name in settings}


def _vectors(model: Encoder, streams: list[corpus.TalkStream]) -> Iterator[tuple[str, np.ndarray]]:
    for stream in streams:
        queries = [stream.query_text(each.text) for each in stream.questions]
        for name, texts in (("turns", stream.turns), ("questions", queries)):
            yield f"{stream.id} {name}", measure.vectors(model, texts).half().cpu().numpy()


def _device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def run_all(options: argparse.Namespace, settings: dict) -> None:
    """All stages in waves; the stages of a wave run side by side."""
    for number, wave in enumerate(stage_waves(settings)):
        started = time.monotonic()
        _run_wave([[sys.executable, __file__, *stage, *_common(options)] for stage in wave], options.side_by_side)
        print(f"wave {number + 1}: {time.monotonic() - started:.0f} s", flush=True)
    first, count = settings["teachers"][0]["start"], settings["folds"]["count"]
    paths = [options.out / "encoder.npz", *(options.out / f"{first}-fold{number}.npz" for number in range(count))]
    vectors = {name: value for path in paths for name, value in np.load(path).items()}
    np.savez_compressed(options.out / "folds.npz", **vectors)


def stage_waves(settings: dict) -> list[list[list[str]]]:
    folds = [str(number) for number in range(settings["folds"]["count"])]
    seed = str(settings["folds"]["seed"])
    teachers = [
        ["teacher", "--start", each["start"], "--seed", str(one), "--name", f"{each['start']}-{one}"]
        for each in settings["teachers"]
        for one in each["seeds"]
    ]
    first = settings["teachers"][0]["start"]
    of_folds = [["teacher", "--start", first, "--seed", seed, "--name", first, "--fold", fold] for fold in folds]
    opinions = [["opinions", "--name", "opinions", "--fold", fold] for fold in folds]
    students = [["student", "--seed", str(one), "--name", f"student-{one}"] for one in settings["student"]["seeds"]]
    last = [[[name, "--name", name]] for name in ("encoder", "reranker")]
    return [teachers + of_folds, opinions + students, *last]


def _common(options: argparse.Namespace) -> list[str]:
    named = {
        "--documents": options.documents,
        "--starts": options.starts,
        "--out": options.out,
        "--pairs": options.pairs,
    }
    given = [part for name, value in named.items() if value for part in (name, str(value))]
    return [
        *given,
        *(["--smoke"] if options.smoke else []),
        *(part for each in options.set for part in ("--set", each)),
    ]


def _run_wave(commands: list[list[str]], side_by_side: int) -> None:
    waiting, running = list(commands), []
    while waiting or running:
        while waiting and len(running) < side_by_side:
            running.append(subprocess.Popen(waiting.pop(0)))
        for each in [each for each in running if each.poll() is not None]:
            running.remove(each)
            if each.returncode:
                for other in running:
                    other.kill()
                raise SystemExit(f"a stage failed: {' '.join(map(str, each.args[2:6]))}")
        time.sleep(0.2)


def _settings(options: argparse.Namespace) -> dict:
    settings = corpus.load_settings()
    if options.smoke:
        for name in ("teacher", "student", "reranker_teacher", "reranker"):
            settings[name] |= settings["smoke"]
        settings["fold"] = {}
        settings["reranker"]["layers"] = settings["student"]["layers"] = settings["reranker_teacher"]["layers"] = [0]
    for each in options.set:
        section, _, rest = each.partition(".")
        settings[section] |= tomllib.loads(rest)
    return settings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", choices=("all", "teacher", "opinions", "student", "encoder", "reranker"))
    parser.add_argument("--documents", type=Path, required=True, help="the folder of 2wiki_dev.json and the others")
    parser.add_argument("--starts", type=Path, required=True, help="the folder of the published models to start from")
    parser.add_argument("--pairs", type=Path, help="what parallel.py wrote; without it other languages get less")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--name", default="model", help="of the files that a stage writes")
    parser.add_argument("--start", help="the folder in --starts that a teacher starts from")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fold", type=int, help="leave these conversations out")
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="another setting")
    parser.add_argument("--side-by-side", type=int, default=5, help="how many stages run at a time")
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    settings = _settings(options)
    missing = [each["start"] for each in settings["teachers"] if not (options.starts / each["start"]).is_dir()]
    if missing:
        parser.error(
            f"{options.starts} has no folder {', '.join(missing)}; training/README.md says where they come from"
        )
    options.out.mkdir(parents=True, exist_ok=True)
    if options.stage == "all":
        run_all(options, settings)
    else:
        getattr(Workshop(options, settings), options.stage)()


if __name__ == "__main__":
    main()
