"""Sentences and words of other languages beside their English, to pull those languages towards the English vectors.

    python training/parallel.py --documents FOLDER --out parallel.tsv

Apertium's rules applied to talk and to passages, and FreeDict's dictionaries. Both are read from Debian's packages, on
the machine that trains: apertium-eng-spa, apertium-es-pt, apertium-fr-es, apertium-spa-ita, and dict-freedict-XXX-eng
for deu, fra, ita, por and spa. Nothing of the validation and test conversations is read. A line is language, other
text, English. The questions and facts of talk that were translated by hand (`translations/`) are read beside it.
"""

import argparse
import csv
import gzip
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import corpus
import talk

TRANSLATIONS = Path(__file__).parent / "translations"
DICTIONARIES = Path("/usr/share/dictd")
CODES = {"deu": "de", "fra": "fr", "ita": "it", "por": "pt", "spa": "es"}
RULES = {"es": ("eng-spa",), "pt": ("eng-spa", "es-pt"), "fr": ("eng-spa", "es-fr"), "it": ("eng-spa", "spa-ita")}
"""Apertium's modes, one after the other: Spanish is the only one of these languages that it reaches from English."""
MAX_SENTENCES = 14000
"""So many sentences, of talk and of passages, go through each chain of rules."""
MAX_SPACES = 3
"""In longer headwords, which are sentences, a comma does not part two meanings."""
MAX_WORDS = 50000
"""So many entries of a dictionary are taken, those whose English is most common in talk first."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_UNKNOWN = re.compile(r"[*@#](?=\w)")
_EXAMPLE = re.compile(r'^\s+"(.+?)"\s+-\s+(.+)$')
_NOTES = re.compile(r"\s*(/[^/]*/|<[^>]*>|\([^)]*\)|\[[^\]]*\])")
_WORD = re.compile(r"[a-z]+")


class Pair(NamedTuple):
    language: str
    text: str
    english: str


def by_hand(folder: Path = TRANSLATIONS) -> Iterator[tuple[str, Pair]]:
    """Translations that were written by hand, with the conversation that each is from."""
    for path in sorted(folder.glob("*.tsv")):
        with path.open(encoding="utf-8", newline="") as file:
            for conversation, english, text in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
                yield conversation, Pair(path.stem, text, english)


def load(path: Path) -> list[Pair]:
    """What `save` wrote; the file may be packed with gzip."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [Pair(*line.split("\t")) for line in data.decode().rstrip("\n").split("\n")]


def save(pairs: Iterable[Pair], path: Path) -> None:
    lines = ("\t".join(" ".join(part.split()) for part in pair) + "\n" for pair in pairs)
    path.write_text("".join(lines), encoding="utf-8", newline="")


def by_rules(sentences: list[str]) -> Iterator[Pair]:
    missing = "apertium is missing: apt-get install apertium-eng-spa apertium-es-pt apertium-fr-es apertium-spa-ita"
    if not shutil.which("apertium"):
        raise SystemExit(missing)
    for language, modes in RULES.items():
        texts = sentences
        for mode in modes:
            texts = _apply(mode, texts)
        if len(texts) != len(sentences):
            raise SystemExit(f"apertium {mode} gave {len(texts)} lines for {len(sentences)}")
        yield from (Pair(language, text, english) for text, english in zip(texts, sentences, strict=True) if text)


def _apply(mode: str, lines: list[str]) -> list[str]:
    """Each line translated; marks of unknown words are taken off."""
    done = subprocess.run(
        ["apertium", "-f", "line", mode], input="\n".join(lines), capture_output=True, text=True, encoding="utf-8"
    )
    return [" ".join(_UNKNOWN.sub("", line).split()) for line in done.stdout.split("\n")]


def by_dictionary(folder: Path, common: Counter[str]) -> Iterator[Pair]:
    for code, language in CODES.items():
        path = folder / f"freedict-{code}-eng.dict.dz"
        if not path.is_file():
            raise SystemExit(f"{path.name} is missing: apt-get install dict-freedict-{code}-eng")
        with gzip.open(path, "rt", encoding="utf-8") as file:
            pairs = list(dict.fromkeys(_entries(language, file)))
        yield from sorted(pairs, key=lambda pair: -_commonness(pair.english, common))[:MAX_WORDS]


def _entries(language: str, lines: Iterable[str]) -> Iterator[Pair]:
    """Headwords with their first two translations, and the examples in their entries."""
    headword = ""
    for line in lines:
        example = _EXAMPLE.match(line)
        if example:
            yield Pair(language, example[1], _NOTES.sub("", example[2]).split(";")[0].strip())
        elif " /" in line and not line.startswith(" "):
            headword = _NOTES.sub("", line).strip()
        elif headword and line.strip():
            meanings = _NOTES.sub("", line).split(";" if headword.count(" ") > MAX_SPACES else ",")
            yield from (Pair(language, headword, english.strip()) for english in meanings[:2] if english.strip())
            headword = ""


def _commonness(english: str, common: Counter[str]) -> float:
    """How often its rarest word is in talk; longer texts first where that is the same."""
    words = _WORD.findall(english.lower())
    return min((common[word] for word in words), default=0) * len(words)


def sentences(documents: Path) -> list[str]:
    """Sentences of the training conversations and of the passages that are trained on, in an order of chance."""
    streams = corpus.talk_streams(talk.load("train"))
    texts = [text for stream in streams for text in stream.turns]
    queries = [each.text for stream in streams for each in stream.questions + stream.facts]
    passages = [text for name in corpus.TRAINED for text in corpus.load_documents(documents / name).passages]
    chance = random.Random(0)
    spoken = _short([part for text in texts for part in _SENTENCE_END.split(text)], chance, MAX_SENTENCES // 2)
    written = _short([part for text in passages for part in _SENTENCE_END.split(text)], chance, MAX_SENTENCES // 7)
    return [" ".join(text.split()) for text in (*spoken, *written, *chance.sample(queries, min(len(queries), 5000)))]


def _short(texts: Iterable[str], chance: random.Random, count: int) -> list[str]:
    fit = list(dict.fromkeys(text for text in texts if 4 <= len(text.split()) <= 30))
    return chance.sample(fit, min(count, len(fit)))


def word_counts() -> Counter[str]:
    streams = corpus.talk_streams(talk.load("train"))
    return Counter(word for stream in streams for text in stream.turns for word in _WORD.findall(text.lower()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=Path, required=True, help="the folder of 2wiki_dev.json and others")
    parser.add_argument("--dictionaries", type=Path, default=DICTIONARIES)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    pairs = [*by_rules(sentences(options.documents)), *by_dictionary(options.dictionaries, word_counts())]
    save(pairs, options.out)
    print(
        *(f"{language} {count}" for language, count in Counter(pair.language for pair in pairs).items()),
        file=sys.stderr,
    )


if __name__ == "__main__":
    main()
