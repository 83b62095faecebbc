"""Reads documentation of invented projects, and the questions about it, and checks both.

python training/technical.py              check and count what is in training/technical
python training/technical.py FILE.txt ... check and count these
"""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from corpus import DocumentSet, GoldQuery

FOLDER = Path(__file__).parent / "technical"
PARTS = ("passages", "questions")


class TechnicalReader:
    """Reads one file line by line and notes what is wrong with it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.errors: list[str] = []
        self.documents = DocumentSet("", [], [])
        self._part, self._line = "", 0

    def parse(self) -> DocumentSet:
        for line in self.path.read_text(encoding="utf-8").splitlines():
            self._line += 1
            if line.startswith("@"):
                self._mark(*line[1:].partition(" ")[::2])
            elif line.strip():
                self._content(line)
        self._check()
        return self.documents

    def _mark(self, name: str, rest: str) -> None:
        if name == "document":
            self.documents.name = rest.strip()
        elif name in PARTS:
            self._part = name
        else:
            self._add_error(f"@{name}")

    def _content(self, line: str) -> None:
        if self._part == "passages":
            self._passage([each.strip() for each in line.split("|", 2)])
        else:
            self._question([each.strip() for each in line.split("|", 1)])

    def _passage(self, fields: list[str]) -> None:
        number = str(len(self.documents.passages) + 1)
        if len(fields) == 3 and fields[0] == number and all(fields):
            self.documents.passages.append(f"{fields[1]}\n\n{fields[2]}")
        else:
            self._add_error(f"not passage {number}: {' | '.join(fields)[:60]}")

    def _question(self, fields: list[str]) -> None:
        numbers = fields[0].split()
        if len(fields) == 2 and all(fields) and all(number.isdecimal() for number in numbers):
            self.documents.questions.append(GoldQuery(fields[1], [int(number) - 1 for number in numbers]))
        else:
            self._add_error(f"question: {' | '.join(fields)[:60]}")

    def _check(self) -> None:
        rows = range(len(self.documents.passages))
        for question in self.documents.questions:
            missing = [str(row + 1) for row in question.gold if row not in rows]
            if missing:
                self.errors.append(f"{self.path}: no passage {' '.join(missing)} for: {question.text}")
        for kind, texts in (
            ("passage", self.documents.passages),
            ("question", [question.text for question in self.documents.questions]),
        ):
            if len(set(texts)) < len(texts):
                self.errors.append(f"{self.path}: a {kind} stands twice")
        if self.documents.name != self.path.stem:
            self.errors.append(f"{self.path}: holds {self.documents.name}")

    def _add_error(self, what: str) -> None:
        self.errors.append(f"{self.path}:{self._line} {what}")


def load(folder: Path = FOLDER) -> list[DocumentSet]:
    """The documents of a folder, by name."""
    documents, errors = read_files(sorted(folder.glob("*.txt")))
    if errors:
        raise SystemExit("\n".join(errors))
    return documents


def read_files(paths: Iterable[Path]) -> tuple[list[DocumentSet], list[str]]:
    readers = [TechnicalReader(path) for path in paths]
    return [reader.parse() for reader in readers], [error for reader in readers for error in reader.errors]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    documents, errors = read_files(parser.parse_args().files or sorted(FOLDER.glob("*.txt")))
    passages, questions = (sum(len(getattr(each, part)) for each in documents) for part in PARTS)
    print(*errors, f"{len(documents)} documents, {passages} passages, {questions} questions", sep="\n")
    return bool(errors)


if __name__ == "__main__":
    sys.exit(main())
