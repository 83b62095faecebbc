"""How well an exported encoder alone finds what answers a question; needs no torch.

    python training/alone.py --documents FOLDER                     the encoder in the package
    python training/alone.py --model FOLDER --documents FOLDER      one that `export.py` wrote
    python training/alone.py --speed                                how fast it is on one core
    python training/alone.py --documents FOLDER --kept FOLDER       writes what is kept back, for `eunoe bench multihop`

Recall of turns, or of passages, in percent. Questions are asked as recall asks them, without the names of those who
speak. Of 2wiki_dev.json and musique_dev.json only the questions kept back from training are asked.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import corpus
import numpy as np
import talk

from eunoe.embed.encoder import FOLDER
from eunoe.embed.transformer import Transformer, session

IN_PART = ("2wiki_dev.json", "musique_dev.json")
SHORT = 45
"""How many words a short turn has at most."""

Scores = list[dict[int, float]]


class Exported(Transformer):
    _cure = "export it again"

    def __init__(self, folder: Path, threads: int | None = None) -> None:
        super().__init__(threads)
        self.name, self._folder = str(folder), folder

    def _open(self) -> tuple[Path, Any]:
        return self._folder / "tokenizer.json", session(str(self._folder / "encoder.onnx"))


def measured(model: Transformer, folder: Path | None) -> Iterator[tuple[str, Scores]]:
    yield "talk, validation", talks(model, corpus.streams(talk.load("validation")))
    yield "talk, test", talks(model, corpus.streams(talk.load("test")))
    if not folder:
        return
    locomo = folder / "locomo_dev.json"
    if locomo.exists():
        yield locomo.name, talks(model, corpus.bench(locomo))
    for path in (folder / name for name in (*IN_PART, "hotpot_dev.json")):
        if path.exists():
            yield path.name, documents(model, kept(path))


def kept(path: Path) -> corpus.Documents:
    """What of a set is not trained on."""
    whole = corpus.documents(path)
    return corpus.halves(whole, corpus.settings()["documents"]["share"])[1] if path.name in IN_PART else whole


def talks(model: Transformer, streams: Sequence[corpus.Stream]) -> Scores:
    return [
        scores
        for one in streams
        for scores in found(model, [one.asked(each.text) for each in one.questions], one.turns, one.questions)
    ]


def documents(model: Transformer, whole: corpus.Documents) -> Scores:
    return found(model, [each.text for each in whole.questions], whole.passages, whole.questions)


def found(model: Transformer, asked: list[str], texts: list[str], questions: Sequence[corpus.Asked]) -> Scores:
    """For each question the share of what answers it among the first few."""
    similar = model.embed(asked) @ model.embed(texts).T
    return corpus.shares(questions, np.argsort(-similar, axis=1, kind="stable")[:, : max(corpus.CUTS)].tolist())


def speed(folder: Path) -> str:
    """Questions one by one, and short turns all at once; loading does not count."""
    model, streams = Exported(folder, threads=1), corpus.streams(talk.load("test"))
    model.embed_query("Where is it?")
    asked = [_seconds(model, [each.text]) for one in streams for each in one.questions]
    turns = [turn for one in streams for turn in one.turns if len(turn.split()) <= SHORT]
    rate = len(turns) / _seconds(model, turns)
    return f"a question: {1000 * median(asked):.1f} ms at p50; {rate:.0f} turns of up to {SHORT} words a second"


def _seconds(model: Transformer, texts: list[str]) -> float:
    begun = perf_counter()
    model.embed(texts)
    return perf_counter() - begun


def write_kept(source: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for path in (source / name for name in IN_PART):
        asked = {each.text for each in kept(path).questions}
        data = json.loads(path.read_text(encoding="utf-8"))
        data["questions"] = [each for each in data["questions"] if each["question"] in asked]
        (folder / path.name).write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=FOLDER, help="a folder with encoder.onnx and tokenizer.json")
    parser.add_argument("--documents", type=Path, help="a folder with the sets that are not in the repository")
    parser.add_argument("--speed", action="store_true", help="measure time in place of recall")
    parser.add_argument("--kept", type=Path, help="a folder to write the documents with the questions kept back to")
    options = parser.parse_args()
    if options.kept and not options.documents:
        parser.error("--kept needs --documents")
    if options.speed or options.kept:
        print(speed(options.model)) if options.speed else write_kept(options.documents, options.kept)
        return
    for part, scores in measured(Exported(options.model), options.documents):
        figures = " ".join(f"{name} {value:.2f}" for name, value in corpus.means(scores).items())
        print(f"{part}, {len(scores)} questions: {figures}", flush=True)


if __name__ == "__main__":
    main()
