"""How well an exported encoder alone finds what answers a question; needs no torch.

    python training/alone.py --documents FOLDER                     the encoder in the package
    python training/alone.py --model FOLDER --documents FOLDER      one that `export.py` wrote

Recall of turns, or of passages, in percent. Questions are asked as recall asks them, without the names of those who
speak. Of 2wiki_dev.json and musique_dev.json only the questions kept back from training are asked.
"""

import argparse
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import corpus
import numpy as np
import talk

from eunoe.embed.encoder import FOLDER
from eunoe.embed.transformer import Transformer, session

HERE = Path(__file__).parent
CUTS = (2, 5, 10)
IN_PART = ("2wiki_dev.json", "musique_dev.json")

Scores = list[list[float]]


class Exported(Transformer):
    _cure = "export it again"

    def __init__(self, folder: Path) -> None:
        super().__init__()
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
    share = tomllib.loads((HERE / "settings.toml").read_text())["documents"]["share"]
    whole = corpus.documents(path)
    return corpus.halves(whole, share)[1] if path.name in IN_PART else whole


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
    best = np.argsort(-similar, axis=1, kind="stable")[:, : max(CUTS)].tolist()
    return [
        [len(set(each.gold).intersection(rows[:cut])) / len(set(each.gold)) for cut in CUTS]
        for each, rows in zip(questions, best, strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=FOLDER, help="a folder with encoder.onnx and tokenizer.json")
    parser.add_argument("--documents", type=Path, help="a folder with the sets that are not in the repository")
    options = parser.parse_args()
    for name, scores in measured(Exported(options.model), options.documents):
        figures = " ".join(f"R@{cut} {100 * mean:.2f}" for cut, mean in zip(CUTS, np.mean(scores, axis=0), strict=True))
        print(f"{name}, {len(scores)} questions: {figures}", flush=True)


if __name__ == "__main__":
    main()
