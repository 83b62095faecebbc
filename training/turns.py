"""Reads labelled turns, and checks them.

python training/turns.py              check and count what is in training/turns
python training/turns.py FILE.txt ... check and count these
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from eunoe.model.arguments import TURN_KINDS

FOLDER = Path(__file__).parent / "turns"
ROLES = ("user", "assistant", "person", "agent")
SEPARATOR = " | "
NOTHING_BEFORE = "-"


@dataclass(frozen=True)
class LabelledTurn:
    """A turn, what was said just before it, and the kind of thing that it holds."""

    kind: str
    role: str
    before: str
    text: str
    genre: str


def load(paths: Iterable[Path] = ()) -> list[LabelledTurn]:
    """The turns of these files, or of all."""
    turns, errors = read_files(paths or sorted(FOLDER.glob("*.txt")))
    if errors:
        raise SystemExit("\n".join(errors))
    return turns


def read_files(paths: Iterable[Path]) -> tuple[list[LabelledTurn], list[str]]:
    turns: list[LabelledTurn] = []
    errors: list[str] = []
    for path in paths:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            fields = [field.strip() for field in line.split(SEPARATOR)]
            if len(fields) == 4 and fields[0] in TURN_KINDS and fields[1] in ROLES and all(fields):
                kind, role, before, text = fields
                turns.append(LabelledTurn(kind, role, "" if before == NOTHING_BEFORE else before, text, path.stem))
            else:
                errors.append(f"{path}:{number} {line[:60]}")
    return turns, errors


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    turns, errors = read_files(parser.parse_args().files or sorted(FOLDER.glob("*.txt")))
    print(*errors, f"{len(turns)} turns", sep="\n")
    for kind, count in Counter(turn.kind for turn in turns).most_common():
        print(f"{kind}: {count}")
    return bool(errors)


if __name__ == "__main__":
    sys.exit(main())
