"""Is anything that is measured also trained on: a conversation, a text or most of one, a person?

    python training/overlap.py
        the training part of talk against its validation and test parts, invented documentation against our own,
        translations trained on against those that are measured
    python training/overlap.py --bench locomo_dev.json --trained 2wiki_dev.json musique_dev.json --kept hotpot_dev.json
        and against conversations that are only measured; of documents, the questions trained on against those kept back

Texts are compared by runs of eight words, without case and punctuation. Exit status 1: something is too near.
"""

import argparse
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import corpus
import parallel
import talk
import technical

RUN_WORDS = 8
MIN_COPY_WORDS = 6
"""Shorter texts may well be the same by chance: "See you on Saturday!"."""
NEAR_SHARE = 0.5
TRAINED_SHARE = corpus.load_settings()["documents"]["share"]
"""Of the questions about documents, how many are trained on."""

TECHNICAL_SET = Path(__file__).parents[1] / "bench" / "technical"
"""What `python -m bench multihop --set technical` asks."""
OTHER_LANGUAGES = TECHNICAL_SET.with_name("languages.json")
"""What `python -m bench languages` asks."""

_WORD = re.compile(r"\w+")
_NAME = re.compile(r"(?<=[a-z,:.] )[A-ZÀ-Þ][a-zß-ÿ]+ [A-ZÀ-Þ][a-zß-ÿ]+\b")


@dataclass(frozen=True)
class PlacedText:
    place: str
    text: str
    about: frozenset[str] = frozenset()
    """For a question about documents, the titles of those that answer it."""

    @cached_property
    def words(self) -> tuple[str, ...]:
        return tuple(_WORD.findall(self.text.casefold()))

    @cached_property
    def runs(self) -> frozenset[int]:
        return frozenset(
            hash(self.words[start : start + RUN_WORDS]) for start in range(len(self.words) - RUN_WORDS + 1)
        )


@dataclass
class TextBody:
    """Texts that belong together, and the full names of those who speak in them."""

    name: str
    texts: list[PlacedText]
    people: frozenset[str] = frozenset()
    is_spoken: bool = False
    is_counted_only: bool = False
    """What it shares is counted, and is no fault: passages of Wikipedia are in more than one set."""

    @property
    def places(self) -> frozenset[str]:
        return frozenset(text.place for text in self.texts)


@dataclass(frozen=True)
class TextPair:
    share: float
    held: PlacedText
    trained: PlacedText

    @property
    def is_formula(self) -> bool:
        """Whether two questions are made alike and ask about other things: nothing of one answers the other."""
        return bool(self.held.about and self.trained.about) and not self.held.about & self.trained.about

    def __str__(self) -> str:
        return "\n".join(f"    {self.share:.2f} {one.place}: {one.text[:150]!r}" for one in (self.held, self.trained))


@dataclass
class Finding:
    """What one body shares with what is trained on."""

    body: TextBody
    copies: list[TextPair]
    near: list[TextPair]
    formulas: list[TextPair]
    below: list[TextPair]
    people: list[str]
    places: list[str]
    names: list[str]
    largest_share: float
    """The most that one conversation has of one other, in runs."""

    @property
    def is_wrong(self) -> bool:
        return not self.body.is_counted_only and bool(self.copies or self.near or self.people or self.places)

    def lines(self, shown: int) -> Iterator[str]:
        yield f"{self.body.name}: {len(self.body.texts)} texts" + (
            " (counted, no fault)" if self.body.is_counted_only else ""
        )
        if self.body.is_spoken:
            yield f"  conversations trained on: {len(self.places)} {' '.join(self.places)}".rstrip()
            yield f"  most runs of {RUN_WORDS} words that one has of another: {self.largest_share:.2%}"
            yield f"  speakers that speak there too: {len(self.people)} {', '.join(self.people)}".rstrip()
            yield f"  names of two words that stand there too: {len(self.names)} {', '.join(self.names)}".rstrip()
        yield from _pair_lines(f"the same {MIN_COPY_WORDS} words or more", self.copies, shown)
        yield from _pair_lines(f"{NEAR_SHARE:.0%} of the runs of the shorter text, or more", self.near, shown)
        if self.formulas:
            yield from _pair_lines("as near by a formula, about other things (counted, no fault)", self.formulas, 1)
        if not self.body.is_counted_only:
            yield from _pair_lines("a run in common, below that", self.below, 1)


def _pair_lines(what: str, pairs: Sequence[TextPair], count: int) -> Iterator[str]:
    yield f"  {what}: {len(pairs)}"
    yield from map(str, pairs[:count])


class TrainedTexts:
    """All texts that are trained on, found by their words and by their runs."""

    def __init__(self, bodies: Sequence[TextBody]) -> None:
        self.bodies = bodies
        self.texts = [text for body in bodies for text in body.texts]
        self.people = frozenset[str]().union(*(body.people for body in bodies))
        self.places = frozenset[str]().union(*(body.places for body in bodies))
        self._exact = {text.words: text for text in self.texts}
        self._rows: dict[int, list[int]] = defaultdict(list)
        for row, text in enumerate(self.texts):
            for run in text.runs:
                self._rows[run].append(row)

    def compare(self, body: TextBody) -> Finding:
        copies = [pair for pair in map(self._copy, body.texts) if pair]
        same = {pair.held for pair in copies}
        pairs = [pair for pair in map(self._nearest, body.texts) if pair and pair.held not in same]
        pairs.sort(key=lambda pair: pair.share, reverse=True)
        over = [pair for pair in pairs if pair.share >= NEAR_SHARE]
        return Finding(
            body,
            copies,
            near=[pair for pair in over if not pair.is_formula],
            formulas=[pair for pair in over if pair.is_formula],
            below=pairs[len(over) :],
            people=sorted(body.people & self.people),
            places=sorted(body.places & self.places),
            names=sorted(self._names & _names(body)) if body.is_spoken else [],
            largest_share=self._largest_share(body) if body.is_spoken else 0.0,
        )

    def _copy(self, text: PlacedText) -> TextPair | None:
        found = self._exact.get(text.words) if len(text.words) >= MIN_COPY_WORDS else None
        return TextPair(1.0, text, found) if found else None

    def _nearest(self, text: PlacedText) -> TextPair | None:
        shared = Counter(row for run in text.runs for row in self._rows.get(run, ()))
        pairs = (TextPair(_share(count, text, self.texts[row]), text, self.texts[row]) for row, count in shared.items())
        return max(pairs, key=lambda pair: (not pair.is_formula and pair.share >= NEAR_SHARE, pair.share), default=None)

    def _largest_share(self, body: TextBody) -> float:
        runs: dict[str, set[int]] = defaultdict(set)
        for text in body.texts:
            runs[text.place] |= text.runs
        return max((self._most_shared_runs(own) / len(own) for own in runs.values() if own), default=0.0)

    def _most_shared_runs(self, runs: set[int]) -> int:
        shared = Counter(place for run in runs for place in {self.texts[row].place for row in self._rows.get(run, ())})
        return max(shared.values(), default=0)

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset[str]().union(*(_names(body) for body in self.bodies if body.is_spoken))


def _names(body: TextBody) -> frozenset[str]:
    return body.people.union(name for text in body.texts for name in _NAME.findall(text.text))


def _share(count: int, one: PlacedText, other: PlacedText) -> float:
    """Of the shorter text's runs; a single run in common makes no copy of a text that has no more than that."""
    return count / max(3, min(len(one.runs), len(other.runs)))


def talk_body(part: str) -> TextBody:
    found = talk.load(part)
    texts = [PlacedText(one.id, text) for one in found for text in _all_texts(one)]
    return TextBody(
        f"talk, {part}", texts, _full_names(name for one in found for name in one.people.values()), is_spoken=True
    )


def _all_texts(one: talk.Conversation) -> Iterator[str]:
    yield from (turn.text for turn in one.turns)
    yield from (query.text for query in (*one.questions, *one.facts))


def bench_body(path: Path) -> TextBody:
    found = corpus.bench_streams(path)
    texts = [PlacedText(one.id, text) for one in found for text in (*one.turns, *(each.text for each in one.questions))]
    return TextBody(path.name, texts, _full_names(name for one in found for name in one.speakers), is_spoken=True)


def _full_names(names: Iterable[str]) -> frozenset[str]:
    """First names alone are everybody's."""
    return frozenset(name for name in names if " " in name)


def question_body(documents: corpus.DocumentSet, name: str) -> TextBody:
    titles = [passage.partition("\n")[0] for passage in documents.passages]
    texts = [PlacedText(name, each.text, frozenset(titles[row] for row in each.gold)) for each in documents.questions]
    return TextBody(name, texts)


def passage_bodies(documents: corpus.DocumentSet, name: str) -> list[TextBody]:
    """Those that answer a question, and the others."""
    gold = {row for each in documents.questions for row in each.gold}
    parts = {f"{name}, passages that answer": True, f"{name}, other passages": False}
    return [
        TextBody(
            part,
            [PlacedText(part, text) for row, text in enumerate(documents.passages) if (row in gold) is own],
            is_counted_only=True,
        )
        for part, own in parts.items()
    ]


def technical_body(sets: Sequence[corpus.DocumentSet], name: str) -> TextBody:
    """Everything in sets of documentation; what of it is measured must not be trained on, paragraphs included."""
    texts = [PlacedText(f"{name}, {one.name}", text) for one in sets for text in (*one.passages, *_question_texts(one))]
    return TextBody(name, texts)


def _question_texts(documents: corpus.DocumentSet) -> list[str]:
    return [each.text for each in documents.questions]


def translation_body(folder: Path, name: str) -> TextBody:
    """The translations in a folder, without their English side."""
    return TextBody(name, [PlacedText(f"talk-{file}", pair.text) for file, pair in parallel.by_hand(folder)])


def language_body() -> TextBody:
    """The questions that are measured in other languages."""
    questions = json.loads(OTHER_LANGUAGES.read_text(encoding="utf-8"))["questions"]
    texts = [PlacedText(each["conversation"], each[code]) for each in questions for code in ("de", "es", "fr")]
    return TextBody("questions in other languages", texts)


def load_bodies(
    bench: Sequence[Path], trained: Sequence[Path], kept: Sequence[Path]
) -> tuple[list[TextBody], list[TextBody]]:
    """What is trained on, and what is not."""
    trained_bodies = [talk_body("train"), technical_body(technical.load(), "invented documentation")]
    trained_bodies += [translation_body(parallel.TRANSLATIONS, "translations")]
    held = [talk_body("validation"), talk_body("test"), *map(bench_body, bench)]
    technical_set = [corpus.load_documents(path) for path in sorted(TECHNICAL_SET.glob("*.json"))]
    held += [technical_body(technical_set, "technical set")]
    held += [translation_body(parallel.TRANSLATIONS / "validation", "translations, validation"), language_body()]
    for path in trained:
        own, rest = corpus.split_questions(corpus.load_documents(path), TRAINED_SHARE)
        trained_bodies += [question_body(own, f"{path.name}, questions trained on"), *passage_bodies(own, path.name)]
        held += [question_body(rest, f"{path.name}, questions kept back")]
    for path in kept:
        whole = corpus.load_documents(path)
        held += [question_body(whole, f"{path.name}, questions"), *passage_bodies(whole, path.name)]
    return trained_bodies, held


def answers_shared(path: Path) -> str:
    """Questions kept back are asked of the same passages as those trained on."""
    own, rest = corpus.split_questions(corpus.load_documents(path), TRAINED_SHARE)
    mine = {row for each in own.questions for row in each.gold}
    both = sum(bool(mine.intersection(each.gold)) for each in rest.questions)
    return f"{path.name}: {both} of {len(rest.questions)} questions kept back need a passage that answers a trained one"


def nearest_pairs(trained: TrainedTexts, body: TextBody, count: int) -> list[TextPair]:
    """The texts nearest in meaning, for a person to look at."""
    from eunoe.embed.word_vectors import StaticEmbedder

    embedder = StaticEmbedder()
    asked = [text for one in trained.bodies if not one.is_counted_only for text in one.texts]
    mine, others = ([text for text in texts if len(text.words) >= MIN_COPY_WORDS] for texts in (asked, body.texts))
    known = embedder.embed([text.text for text in mine])
    pairs = []
    for start in range(0, len(others), 256):
        rows = others[start : start + 256]
        similar = embedder.embed([text.text for text in rows]) @ known.T
        best = similar.argmax(1)
        pairs += [TextPair(float(line[at]), text, mine[at]) for line, at, text in zip(similar, best, rows, strict=True)]
    return sorted(pairs, key=lambda pair: pair.share, reverse=True)[:count]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", nargs="*", type=Path, default=[], help="conversations that are only measured")
    parser.add_argument("--trained", nargs="*", type=Path, default=[], help="documents of which some are trained on")
    parser.add_argument("--kept", nargs="*", type=Path, default=[], help="documents that are only measured")
    parser.add_argument("--shown", type=int, default=3, help="pairs to print of each sort")
    parser.add_argument("--near", type=int, default=0, help="print so many pairs that are nearest by their vectors")
    options = parser.parse_args()
    trained_bodies, held = load_bodies(options.bench, options.trained, options.kept)
    trained = TrainedTexts(trained_bodies)
    print("trained on:", *(f"  {body.name}: {len(body.texts)} texts" for body in trained_bodies), "", sep="\n")
    findings = [trained.compare(body) for body in held]
    for finding in findings:
        print(*finding.lines(options.shown), sep="\n")
        if options.near and not finding.body.is_counted_only:
            print("  nearest by vectors:", *nearest_pairs(trained, finding.body, options.near), sep="\n")
    print(*map(answers_shared, options.trained), sep="\n")
    wrong = [finding.body.name for finding in findings if finding.is_wrong]
    print(f"too near: {'; '.join(wrong)}" if wrong else "nothing is too near")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
