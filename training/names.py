"""Trains the model that says whether a word with a capital is part of a name; needs numpy and the package alone.

    python training/names.py              train, measure, and write the file that ships
    python training/names.py --measure    write nothing
    python training/names.py --unknown    list the words whose labels have to be written by hand

Read are the training part of talk, the labelled turns, the invented documentation, the translations, and the pages and
docstrings of this repository. A capital inside a sentence marks a name, small letters mark a word that is none; what
begins a sentence is labelled by how the same document writes it elsewhere. How common a word is, is counted in all
other documents, so that the model learns what to do with words it has not seen.
"""

import argparse
import ast
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from zlib import crc32

import numpy as np
import talk
import turns
from numpy.typing import NDArray

from eunoe.text.entities import lowercase_words
from eunoe.text.languages import LANGUAGES
from eunoe.text.names import (
    DATE_WORDS,
    GERMAN,
    GIVEN_NAMES,
    MODEL_FILE,
    TOKEN,
    Surroundings,
    is_capitalised,
    plain_word,
    read_marks,
    read_surroundings,
    word_level,
)
from eunoe.text.normalize import load_words
from eunoe.text.sentences import split_sentences

HERE = Path(__file__).parent
ROOT = HERE.parent
NAMES, OTHERS = load_words("names", HERE / "labels"), load_words("no_names", HERE / "labels") - GIVEN_NAMES
"""Words that begin sentences, labelled by hand."""
_CODE = re.compile(r"```.*?```|`[^`\n]*`|>>>.*?(?=\n\n|\Z)", re.DOTALL)
"""Code in pages and docstrings, whose examples write names in small letters."""
LANGUAGE_CODES = {"de": "german", "es": "spanish", "fr": "french", "it": "italian", "pt": "portuguese"}
LEVELS = (4, 12, 50)
"""So often a word stands in small letters at each level."""
LEAST_MARKS = 25
"""A mark that fewer examples have says nothing."""
LEAST_WEIGHT = 0.15
CLEAR = 5
"""How many times more often a word is written one way than the other, where it is labelled."""
COMMON_NAME_SHARE, RARE_WORD_SHARE = 0.15, 0.03
"""What an example counts again with another level: a name may be a common word, and another word may be rare."""
RIDGE = 1.0
NAME_SHARE = 3
"""How many times a word in small letters counts less for each time it is a name: examples have names in keys too."""
STEPS, PACE = 250, 0.1
FOLDS = 4


@dataclass
class Token:
    """A word with a capital in its sentence."""

    tokens: list[str]
    place: int
    lowercase: frozenset[str]
    is_name: bool | None = None


@dataclass
class Document:
    id: str
    language: int
    texts: list[str]
    names: frozenset[str] = frozenset()
    """Of speakers."""
    translated: list[str] = field(default_factory=list)
    """The same in English, text by text, where capitals mark all nouns."""


def read_documents() -> Iterator[Document]:
    for each in talk.load("train"):
        people = frozenset(plain_word(word) for name in each.people.values() for word in name.split())
        language = next((LANGUAGES.index(name) for name in LANGUAGES if name in each.kind), 0)
        yield Document(each.file, language, [turn.text for turn in each.turns], people - OTHERS)
    genres = defaultdict(list)
    for turn in turns.load():
        genres[turn.genre] += [turn.before, turn.text]
    for genre, texts in genres.items():
        yield Document(genre, 0, texts)
    for path in sorted((HERE / "technical").glob("*.txt")):
        lines = [line.split(" | ", 2)[2] for line in path.read_text("utf-8").splitlines() if line.count(" | ") == 2]
        yield Document(path.stem, 0, lines)
    for path in sorted((ROOT / "docs").rglob("*.md")):
        prose = _CODE.sub(" ", path.read_text("utf-8"))
        yield Document(str(path.relative_to(ROOT)), 0, prose.split("\n\n"))
    for folder in sorted((ROOT / "src" / "eunoe").iterdir()):
        texts = [text for path in sorted(folder.rglob("*.py")) for text in _docstrings(path)]
        yield Document(folder.name, 0, texts)
    yield from _translations()


def _docstrings(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield _CODE.sub(" ", ast.get_docstring(node) or "")


def _translations() -> Iterator[Document]:
    for code, name in LANGUAGE_CODES.items():
        rows = [line.split("\t") for line in (HERE / "translations" / f"{code}.tsv").read_text("utf-8").splitlines()]
        for file in sorted({row[0] for row in rows}):
            own = [row for row in rows if row[0] == file]
            english, texts = [row[1] for row in own], [row[2] for row in own]
            yield Document(f"{code}-{file}", LANGUAGES.index(name), texts, translated=english)


@dataclass
class Counts:
    """How often a document has each word in small letters, and with a capital inside a sentence; and pairs of these."""

    small: Counter[str] = field(default_factory=Counter)
    inside: Counter[str] = field(default_factory=Counter)
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    nouns: Counter[str] = field(default_factory=Counter)
    """German ones, which have a capital without being names."""


def read_tokens(document: Document) -> tuple[list[Token], Counts]:
    counts, found = Counts(), []
    for text, english in zip(document.texts, document.translated or document.texts, strict=True):
        lowercase, known = lowercase_words(text), {plain_word(token) for token in TOKEN.findall(english)}
        for sentence in split_sentences(text):
            tokens = TOKEN.findall(sentence)
            around = read_surroundings(tokens, lowercase, document.language)
            for place, token in enumerate(tokens):
                word = plain_word(token)
                if token.islower():
                    counts.small[word] += 1
                elif document.language == GERMAN and not document.translated:
                    continue
                elif is_capitalised(token) and word not in DATE_WORDS:
                    found.append(Token(tokens, place, lowercase))
                    if document.language == GERMAN:
                        is_name = word in known or word.removesuffix("s") in known
                        found[-1].is_name = is_name
                        counts.nouns[word] += not is_name
                    elif not around.is_shouted and place and tokens[place - 1][0].isalnum() and not token.isupper():
                        counts.inside[word] += 1
                        counts.pairs[plain_word(tokens[place - 1]), word] += is_capitalised(tokens[place - 1])
    return found, counts


def label(token: Token, document: Document, own: Counts, rest: Counts) -> bool | None:
    """Say whether a word is part of a name; None where that is not clear."""
    if token.is_name is not None:
        return token.is_name
    written = token.tokens[token.place]
    word = plain_word(written)
    if len(word) < 2 or (word in OTHERS and not (is_inside(token) and "'" not in word)):
        return False
    if word in NAMES or word in document.names:
        return True
    following = token.tokens[token.place + 1] if token.place + 1 < len(token.tokens) else "."
    if not is_inside(token) and following[0].isupper() and not written.isupper():
        return label_before_capital(word, plain_word(following), own, rest)
    small, inside = own.small[word], own.inside[word]
    if written.isupper():
        all_small = small + rest.small[word]
        return True if not all_small else False if all_small >= CLEAR else None
    if is_inside(token):
        return True if "'" not in word or not rest.small[word] else None
    if not small + inside:
        small, inside = rest.small[word], rest.inside[word]
    if inside > CLEAR * small:
        return True
    return False if small > CLEAR * inside else None


def is_inside(token: Token) -> bool:
    """Whether a word stands after another, so that a capital is not due to its place."""
    return bool(token.place) and token.tokens[token.place - 1][0].isalnum()


def label_before_capital(word: str, following: str, own: Counts, rest: Counts) -> bool | None:
    """Say whether the first word of a sentence belongs to the name that follows: whether they stand together inside."""
    if own.pairs[word, following] or rest.pairs[word, following]:
        return True
    is_common = own.small[word] + rest.small[word] >= CLEAR
    return False if is_common and own.inside[following] + rest.inside[following] else None


@dataclass
class Examples:
    """Marks by example, labels, weights, and the fold that each belongs to."""

    marks: list[list[str]] = field(default_factory=list)
    labels: list[bool] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    folds: list[int] = field(default_factory=list)

    def add(self, marks: Iterable[str], is_name: bool, weight: float, fold: int) -> None:
        self.marks.append(list(marks))
        self.labels.append(is_name)
        self.weights.append(weight)
        self.folds.append(fold)


def levels_of(counts: Mapping[str, int]) -> dict[str, int]:
    counted = {word: sum(count >= least for least in LEVELS) for word, count in counts.items() if count >= LEVELS[0]}
    return counted | dict.fromkeys(OTHERS, len(LEVELS) + 1)


def make_examples(unknown: Counter[str]) -> tuple[Examples, dict[str, int]]:
    documents = list(read_documents())
    read = [read_tokens(document) for document in documents]
    small, inside, pairs = Counter[str](), Counter[str](), Counter[tuple[str, str]]()
    for _, own in read:
        small.update(own.small)
        inside.update(own.inside)
        pairs.update(own.pairs)
    for _, own in read:
        nouns = {word: count for word, count in own.nouns.items() if not inside[word]}
        own.small.update(nouns)
        small.update(nouns)
    small = Counter({word: count - NAME_SHARE * inside[word] for word, count in small.items()})
    levels, examples = levels_of(small), Examples()
    for document, (found, own) in zip(documents, read, strict=True):
        rest = Counts(small - own.small, inside - own.inside, pairs - own.pairs)
        fold = crc32(document.id.removeprefix("de-").encode()) % FOLDS

        def level(word: str, own: Counts = own) -> int:
            here = own.small.get(word)
            if not here or word in OTHERS:
                return word_level(word, levels)
            return sum(small[word] - here >= least for least in LEVELS)

        for token in found:
            is_name = label(token, document, own, rest)
            if is_name is None:
                unknown[plain_word(token.tokens[token.place])] += 1
                continue
            around = read_surroundings(token.tokens, token.lowercase, document.language)
            examples.add(read_marks(token.tokens, token.place, around, level), is_name, 1.0, fold)
            if is_name:
                add_as_common(examples, token, around, fold)
            else:
                examples.add(read_marks(token.tokens, token.place, around, lambda _: 0), False, RARE_WORD_SHARE, fold)
    return examples, levels


def add_as_common(examples: Examples, token: Token, around: Surroundings, fold: int) -> None:
    """Add a name as if it were also a common word, and as if it were one that people are given."""
    number = crc32(f"{len(examples.marks)}".encode())
    names = sorted(GIVEN_NAMES)
    given = [*token.tokens]
    given[token.place] = names[number % len(names)].capitalize()
    following = token.tokens[token.place + 1][:1] if token.place + 1 < len(token.tokens) else ""
    # A common word before a name is seldom part of it.
    for tokens in (given,) if following.isupper() else (token.tokens, given):
        marks = read_marks(tokens, token.place, around, lambda _: number % 3 + 1)
        examples.add(marks, True, COMMON_NAME_SHARE, fold)


class Regression:
    """A logistic regression over marks, fitted by Adam over all examples at once."""

    def __init__(self, examples: Examples, rows: NDArray[np.bool_]) -> None:
        counts = Counter(mark for marks, used in zip(examples.marks, rows, strict=True) if used for mark in marks)
        self.places = {mark: place for place, (mark, count) in enumerate(counts.items()) if count >= LEAST_MARKS}
        self.places = {mark: place for place, mark in enumerate(self.places)}
        self.row, self.column = self._cells(examples)
        self.weights = self._fit(examples, rows)

    def _cells(self, examples: Examples) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        cells = [
            (row, self.places[mark])
            for row, marks in enumerate(examples.marks)
            for mark in marks
            if mark in self.places
        ]
        row, column = np.array(cells).T
        return row, column

    def odds(self, size: int) -> NDArray[np.float64]:
        return np.bincount(self.row, self.weights[self.column], size)

    def _fit(self, examples: Examples, rows: NDArray[np.bool_]) -> NDArray[np.float64]:
        size, count = len(examples.labels), len(self.places)
        sign, share = np.where(examples.labels, 1.0, -1.0), np.array(examples.weights) * rows
        weights, mean, square = np.zeros(count), np.zeros(count), np.zeros(count)
        for step in range(1, STEPS + 1):
            margin = np.bincount(self.row, weights[self.column], size) * sign
            slope = -sign * share / (1 + np.exp(np.clip(margin, -40, 40)))
            gradient = np.bincount(self.column, slope[self.row], count) + RIDGE * weights
            mean, square = 0.9 * mean + 0.1 * gradient, 0.99 * square + 0.01 * gradient**2
            rate = PACE * (1 - step / (STEPS + 1)) / (1 - 0.9**step) * np.sqrt(1 - 0.99**step)
            weights = weights - rate * mean / (np.sqrt(square) + 1e-9)
        return weights


def measure(examples: Examples) -> Iterator[str]:
    """Each fold judged by a model of the others."""
    labels, folds = np.array(examples.labels), np.array(examples.folds)
    is_own = np.array(examples.weights) == 1.0
    odds = np.zeros(len(labels))
    for fold in range(FOLDS):
        rows = folds != fold
        odds[~rows] = Regression(examples, rows).odds(len(labels))[~rows]
    starts = np.array([any(mark[0] in "sm" and mark[1:2] in "CAXH" for mark in marks) for marks in examples.marks])
    for name, part in (("all", is_own), ("at the start of a sentence", is_own & starts)):
        for least in (0.2, 0.5, 0.8):
            chosen = part & (odds > np.log(least / (1 - least)))
            right = int((chosen & labels).sum())
            precision, recall = right / max(int(chosen.sum()), 1), right / max(int((part & labels).sum()), 1)
            yield f"{name}, above {least}: precision {precision:.1%}, recall {recall:.1%} of {int(part.sum())}"


def write(examples: Examples, levels: Mapping[str, int]) -> None:
    model = Regression(examples, np.ones(len(examples.labels), np.bool_))
    weights = {
        mark: round(float(model.weights[place]), 2)
        for mark, place in sorted(model.places.items())
        if abs(model.weights[place]) >= LEAST_WEIGHT
    }
    words = [
        " ".join(sorted(word for word, own in levels.items() if own == level)) for level in range(1, len(LEVELS) + 2)
    ]
    MODEL_FILE.write_text(
        json.dumps({"weights": weights, "words": words}, ensure_ascii=False, indent=0) + "\n", "utf-8"
    )
    print(f"{MODEL_FILE.name}: {len(weights)} marks, {len(levels)} words, {MODEL_FILE.stat().st_size:,} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description="Trains the model that tells names from other words.")
    parser.add_argument("--measure", action="store_true", help="write nothing")
    parser.add_argument("--unknown", action="store_true", help="list the words that have no label")
    arguments = parser.parse_args()
    unknown = Counter[str]()
    examples, levels = make_examples(unknown)
    if arguments.unknown:
        print(*(f"{word} {count}" for word, count in unknown.most_common()), sep="\n")
        return
    own = [is_name for is_name, weight in zip(examples.labels, examples.weights, strict=True) if weight == 1.0]
    print(f"{len(own)} words with a capital, {sum(own)} of them in names")
    print(*measure(examples), sep="\n")
    if not arguments.measure:
        write(examples, levels)


if __name__ == "__main__":
    main()
