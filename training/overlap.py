"""Is anything that is measured also trained on: a conversation, a text or most of one, a person?

    python training/overlap.py
        the training part of talk against its validation and test parts
    python training/overlap.py --bench locomo_dev.json --trained 2wiki_dev.json musique_dev.json --kept hotpot_dev.json
        and against conversations that are only measured; of documents, the questions trained on against those kept back

Texts are compared by runs of eight words, without case and punctuation. Exit status 1: something is too near.
"""

import argparse
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import corpus
import talk

RUN = 8
COPY = 6
"""Shorter texts may well be the same by chance: "See you on Saturday!"."""
NEAR = 0.5
SHARE = corpus.settings()["documents"]["share"]
"""Of the questions about documents, how many are trained on."""

_WORD = re.compile(r"\w+")
_NAME = re.compile(r"(?<=[a-z,:.] )[A-ZÀ-Þ][a-zß-ÿ]+ [A-ZÀ-Þ][a-zß-ÿ]+\b")


@dataclass(frozen=True)
class Text:
    place: str
    text: str
    about: frozenset[str] = frozenset()
    """For a question about documents, the titles of those that answer it."""

    @cached_property
    def words(self) -> tuple[str, ...]:
        return tuple(_WORD.findall(self.text.casefold()))

    @cached_property
    def runs(self) -> frozenset[int]:
        return frozenset(hash(self.words[start : start + RUN]) for start in range(len(self.words) - RUN + 1))


@dataclass
class Body:
    """Texts that belong together, and the full names of those who speak in them."""

    name: str
    texts: list[Text]
    people: frozenset[str] = frozenset()
    spoken: bool = False
    told: bool = False
    """What it shares is counted, and is no fault: passages of Wikipedia are in more than one set."""

    @property
    def places(self) -> frozenset[str]:
        return frozenset(text.place for text in self.texts)


@dataclass(frozen=True)
class Pair:
    share: float
    held: Text
    trained: Text

    @property
    def formula(self) -> bool:
        """Whether two questions are made alike and ask about other things: nothing of one answers the other."""
        return bool(self.held.about and self.trained.about) and not self.held.about & self.trained.about

    def __str__(self) -> str:
        return "\n".join(f"    {self.share:.2f} {one.place}: {one.text[:150]!r}" for one in (self.held, self.trained))


@dataclass
class Finding:
    """What one body shares with what is trained on."""

    body: Body
    copies: list[Pair]
    near: list[Pair]
    formulas: list[Pair]
    below: list[Pair]
    people: list[str]
    places: list[str]
    names: list[str]
    whole: float
    """The most that one conversation has of one other, in runs."""

    @property
    def wrong(self) -> bool:
        return not self.body.told and bool(self.copies or self.near or self.people or self.places)

    def lines(self, shown: int) -> Iterator[str]:
        yield f"{self.body.name}: {len(self.body.texts)} texts" + (" (told, no fault)" if self.body.told else "")
        if self.body.spoken:
            yield f"  conversations trained on: {len(self.places)} {' '.join(self.places)}".rstrip()
            yield f"  most runs of {RUN} words that one has of another: {self.whole:.2%}"
            yield f"  speakers that speak there too: {len(self.people)} {', '.join(self.people)}".rstrip()
            yield f"  names of two words that stand there too: {len(self.names)} {', '.join(self.names)}".rstrip()
        yield from _shown(f"the same {COPY} words or more", self.copies, shown)
        yield from _shown(f"{NEAR:.0%} of the runs of the shorter text, or more", self.near, shown)
        if self.formulas:
            yield from _shown("as near by a formula, about other things (told, no fault)", self.formulas, 1)
        if not self.body.told:
            yield from _shown("a run in common, below that", self.below, 1)


def _shown(what: str, pairs: Sequence[Pair], count: int) -> Iterator[str]:
    yield f"  {what}: {len(pairs)}"
    yield from map(str, pairs[:count])


class Trained:
    """All texts that are trained on, found by their words and by their runs."""

    def __init__(self, bodies: Sequence[Body]) -> None:
        self.bodies = bodies
        self.texts = [text for body in bodies for text in body.texts]
        self.people = frozenset[str]().union(*(body.people for body in bodies))
        self.places = frozenset[str]().union(*(body.places for body in bodies))
        self._exact = {text.words: text for text in self.texts}
        self._rows: dict[int, list[int]] = defaultdict(list)
        for row, text in enumerate(self.texts):
            for run in text.runs:
                self._rows[run].append(row)

    def against(self, body: Body) -> Finding:
        copies = [pair for pair in map(self._copy, body.texts) if pair]
        same = {pair.held for pair in copies}
        pairs = [pair for pair in map(self._nearest, body.texts) if pair and pair.held not in same]
        pairs.sort(key=lambda pair: pair.share, reverse=True)
        over = [pair for pair in pairs if pair.share >= NEAR]
        return Finding(
            body,
            copies,
            near=[pair for pair in over if not pair.formula],
            formulas=[pair for pair in over if pair.formula],
            below=pairs[len(over) :],
            people=sorted(body.people & self.people),
            places=sorted(body.places & self.places),
            names=sorted(self._names & _names(body)) if body.spoken else [],
            whole=self._whole(body) if body.spoken else 0.0,
        )

    def _copy(self, text: Text) -> Pair | None:
        found = self._exact.get(text.words) if len(text.words) >= COPY else None
        return Pair(1.0, text, found) if found else None

    def _nearest(self, text: Text) -> Pair | None:
        shared = Counter(row for run in text.runs for row in self._rows.get(run, ()))
        pairs = (Pair(_share(count, text, self.texts[row]), text, self.texts[row]) for row, count in shared.items())
        return max(pairs, key=lambda pair: (not pair.formula and pair.share >= NEAR, pair.share), default=None)

    def _whole(self, body: Body) -> float:
        runs: dict[str, set[int]] = defaultdict(set)
        for text in body.texts:
            runs[text.place] |= text.runs
        return max((self._most(own) / len(own) for own in runs.values() if own), default=0.0)

    def _most(self, runs: set[int]) -> int:
        shared = Counter(place for run in runs for place in {self.texts[row].place for row in self._rows.get(run, ())})
        return max(shared.values(), default=0)

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset[str]().union(*(_names(body) for body in self.bodies if body.spoken))


def _names(body: Body) -> frozenset[str]:
    return body.people.union(name for text in body.texts for name in _NAME.findall(text.text))


def _share(count: int, one: Text, other: Text) -> float:
    """Of the shorter text's runs; a single run in common makes no copy of a text that has no more than that."""
    return count / max(3, min(len(one.runs), len(other.runs)))


def of_talk(part: str) -> Body:
    found = talk.load(part)
    texts = [Text(one.id, text) for one in found for text in _texts(one)]
    return Body(f"talk, {part}", texts, _full(name for one in found for name in one.people.values()), spoken=True)


def _texts(one: talk.Conversation) -> Iterator[str]:
    yield from (turn.text for turn in one.turns)
    yield from (query.text for query in (*one.questions, *one.facts))


def of_bench(path: Path) -> Body:
    found = corpus.bench(path)
    texts = [Text(one.id, text) for one in found for text in (*one.turns, *(each.text for each in one.questions))]
    return Body(path.name, texts, _full(name for one in found for name in one.speakers), spoken=True)


def _full(names: Iterable[str]) -> frozenset[str]:
    """First names alone are everybody's."""
    return frozenset(name for name in names if " " in name)


def of_questions(documents: corpus.Documents, name: str) -> Body:
    titles = [passage.partition("\n")[0] for passage in documents.passages]
    texts = [Text(name, each.text, frozenset(titles[row] for row in each.gold)) for each in documents.questions]
    return Body(name, texts)


def of_passages(documents: corpus.Documents, name: str) -> list[Body]:
    """Those that answer a question, and the others."""
    gold = {row for each in documents.questions for row in each.gold}
    parts = {f"{name}, passages that answer": True, f"{name}, other passages": False}
    return [
        Body(part, [Text(part, text) for row, text in enumerate(documents.passages) if (row in gold) is own], told=True)
        for part, own in parts.items()
    ]


def gather(bench: Sequence[Path], trained: Sequence[Path], kept: Sequence[Path]) -> tuple[list[Body], list[Body]]:
    """What is trained on, and what is not."""
    learnt, held = [of_talk("train")], [of_talk("validation"), of_talk("test"), *map(of_bench, bench)]
    for path in trained:
        own, rest = corpus.halves(corpus.documents(path), SHARE)
        learnt += [of_questions(own, f"{path.name}, questions trained on"), *of_passages(own, path.name)]
        held += [of_questions(rest, f"{path.name}, questions kept back")]
    for path in kept:
        whole = corpus.documents(path)
        held += [of_questions(whole, f"{path.name}, questions"), *of_passages(whole, path.name)]
    return learnt, held


def answers_shared(path: Path) -> str:
    """Questions kept back are asked of the same passages as those trained on."""
    own, rest = corpus.halves(corpus.documents(path), SHARE)
    mine = {row for each in own.questions for row in each.gold}
    both = sum(bool(mine.intersection(each.gold)) for each in rest.questions)
    return f"{path.name}: {both} of {len(rest.questions)} questions kept back need a passage that answers a trained one"


def nearest(trained: Trained, body: Body, count: int) -> list[Pair]:
    """The texts nearest in meaning, for a person to look at."""
    from eunoe.embed.static import Static

    embedder = Static()
    asked = [text for one in trained.bodies if not one.told for text in one.texts]
    mine, others = ([text for text in texts if len(text.words) >= COPY] for texts in (asked, body.texts))
    known = embedder.embed([text.text for text in mine])
    pairs = []
    for start in range(0, len(others), 256):
        rows = others[start : start + 256]
        similar = embedder.embed([text.text for text in rows]) @ known.T
        best = similar.argmax(1)
        pairs += [Pair(float(line[at]), text, mine[at]) for line, at, text in zip(similar, best, rows, strict=True)]
    return sorted(pairs, key=lambda pair: pair.share, reverse=True)[:count]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", nargs="*", type=Path, default=[], help="conversations that are only measured")
    parser.add_argument("--trained", nargs="*", type=Path, default=[], help="documents of which some are trained on")
    parser.add_argument("--kept", nargs="*", type=Path, default=[], help="documents that are only measured")
    parser.add_argument("--shown", type=int, default=3, help="pairs to print of each sort")
    parser.add_argument("--near", type=int, default=0, help="print so many pairs that are nearest by their vectors")
    options = parser.parse_args()
    learnt, held = gather(options.bench, options.trained, options.kept)
    trained = Trained(learnt)
    print("trained on:", *(f"  {body.name}: {len(body.texts)} texts" for body in learnt), "", sep="\n")
    findings = [trained.against(body) for body in held]
    for finding in findings:
        print(*finding.lines(options.shown), sep="\n")
        if options.near and not finding.body.told:
            print("  nearest by vectors:", *nearest(trained, finding.body, options.near), sep="\n")
    print(*map(answers_shared, options.trained), sep="\n")
    wrong = [finding.body.name for finding in findings if finding.wrong]
    print(f"too near: {'; '.join(wrong)}" if wrong else "nothing is too near")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
