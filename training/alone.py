"""How well an exported encoder alone finds what answers a question; needs no torch.

    python training/alone.py --documents FOLDER                     the encoder in the package
    python training/alone.py --model FOLDER --documents FOLDER      one that `export.py` wrote
    python training/alone.py --speed                                how fast it is on one core
    python training/alone.py --documents FOLDER --kept FOLDER       writes what is kept back, for `bench multihop`

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

from eunoe.embed.encoder import FOLDER, SentenceEncoder, open_session, read_tokenizer

SHORT_TURN_WORDS = 45

Scores = list[dict[int, float]]


class Exported(SentenceEncoder):
    _load_hint = "export it again"

    def __init__(self, folder: Path, threads: int | None = None) -> None:
        super().__init__(threads)
        self.name, self._folder = str(folder), folder

    def _open(self) -> tuple[Any, Any]:
        return read_tokenizer(self._folder / "tokenizer.json"), open_session(str(self._folder / "encoder.onnx"))


def measure_all(model: SentenceEncoder, folder: Path | None) -> Iterator[tuple[str, Scores]]:
    yield "talk, validation", talk_recall(model, corpus.talk_streams(talk.load("validation")))
    yield "talk, test", talk_recall(model, corpus.talk_streams(talk.load("test")))
    if not folder:
        return
    locomo = folder / "locomo_dev.json"
    if locomo.exists():
        yield locomo.name, talk_recall(model, corpus.bench_streams(locomo))
    for path in (folder / name for name in (*corpus.TRAINED, "hotpot_dev.json")):
        if path.exists():
            yield path.name, document_recall(model, kept_back(path))


def kept_back(path: Path) -> corpus.DocumentSet:
    """What of a set is not trained on."""
    documents = corpus.load_documents(path)
    if path.name not in corpus.TRAINED:
        return documents
    return corpus.split_questions(documents, corpus.load_settings()["documents"]["share"])[1]


def talk_recall(model: SentenceEncoder, streams: Sequence[corpus.TalkStream]) -> Scores:
    scores: Scores = []
    for stream in streams:
        queries = [stream.query_text(each.text) for each in stream.questions]
        scores += find_recall(model, queries, stream.turns, stream.questions)
    return scores


def document_recall(model: SentenceEncoder, documents: corpus.DocumentSet) -> Scores:
    queries = [each.text for each in documents.questions]
    return find_recall(model, queries, documents.passages, documents.questions)


def find_recall(
    model: SentenceEncoder, queries: list[str], texts: list[str], questions: Sequence[corpus.GoldQuery]
) -> Scores:
    """For each question the share of what answers it among the first few."""
    similar = model.embed(queries) @ model.embed(texts).T
    best = np.argsort(-similar, axis=1, kind="stable")[:, : max(corpus.CUTS)]
    return corpus.recall_shares(questions, best.tolist())


def describe_speed(folder: Path) -> str:
    """Questions one by one, and short turns all at once; loading does not count."""
    model, streams = Exported(folder, threads=1), corpus.talk_streams(talk.load("test"))
    model.embed_query("Where is it?")
    times = [_seconds(model, [each.text]) for stream in streams for each in stream.questions]
    turns = [turn for stream in streams for turn in stream.turns if len(turn.split()) <= SHORT_TURN_WORDS]
    rate = len(turns) / _seconds(model, turns)
    turns_per_second = f"{rate:.0f} turns of up to {SHORT_TURN_WORDS} words a second"
    return f"a question: {1000 * median(times):.1f} ms at p50; {turns_per_second}"


def _seconds(model: SentenceEncoder, texts: list[str]) -> float:
    start = perf_counter()
    model.embed(texts)
    return perf_counter() - start


def write_kept_back(source: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for path in (source / name for name in corpus.TRAINED):
        kept = {each.text for each in kept_back(path).questions}
        data = json.loads(path.read_text(encoding="utf-8"))
        data["questions"] = [each for each in data["questions"] if each["question"] in kept]
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
        print(describe_speed(options.model)) if options.speed else write_kept_back(options.documents, options.kept)
        return
    for part, scores in measure_all(Exported(options.model), options.documents):
        figures = " ".join(f"{name} {value:.2f}" for name, value in corpus.recall_percent(scores).items())
        print(f"{part}, {len(scores)} questions: {figures}", flush=True)


if __name__ == "__main__":
    main()
