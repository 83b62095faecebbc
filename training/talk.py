"""Reads conversations in the talk format, checks them, and writes them as JSON for `python -m bench recall`.

python training/talk.py                       check and count what is in training/talk
python training/talk.py FILE.txt ...          check and count these
python training/talk.py --part test OUT.json  write a part of the split
"""

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
FOLDER = HERE / "talk"
PARTS = ("train", "validation", "test")
CATEGORIES = ("single", "multi", "temporal", "update", "inference", "instruction", "order", "summary")

# What a kind of conversation is counted under; the first that fits.
GROUPS = {
    "languages": re.compile(r"german|spanish|french|italian|dutch|polish"),
    "assistant": re.compile(r"assistant"),
    "logs": re.compile(r"agent|\blog\b|wiki|tickets"),
    "texting": re.compile(r"texting|football"),
    "work": re.compile(r"work|team|client|guidance"),
    "groups": re.compile(r"group"),
    "people": re.compile(r""),
}

_TURN = re.compile(r"(\d+)\.(\d+) (\w+): (.+)")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d$")


@dataclass
class Turn:
    id: str
    session: str
    speaker: str
    time: str
    text: str


@dataclass
class TalkQuery:
    """A question, a fact or the words of a standing instruction, and the turns that hold it."""

    text: str
    gold: list[str]
    category: str = ""


@dataclass
class Conversation:
    id: str
    kind: str = ""
    people: dict[str, str] = field(default_factory=dict)
    turns: list[Turn] = field(default_factory=list)
    questions: list[TalkQuery] = field(default_factory=list)
    facts: list[TalkQuery] = field(default_factory=list)
    instructions: list[TalkQuery] = field(default_factory=list)

    @property
    def file(self) -> str:
        return self.id.removeprefix("talk-")

    @property
    def group(self) -> str:
        kind = "assistant" if self.kind == "mixed" and "Assistant" in self.people.values() else self.kind
        return next(name for name, pattern in GROUPS.items() if pattern.search(kind))

    def as_json(self) -> dict:
        questions = [
            {"id": f"{self.id}-q{number}", "question": query.text, "gold": query.gold, "category": query.category}
            for number, query in enumerate(self.questions)
        ]
        facts = [{"fact": query.text, "gold": query.gold} for query in self.facts]
        instructions = [{"instruction": query.text, "gold": query.gold} for query in self.instructions]
        return {
            "id": self.id,
            "kind": self.group,
            "turns": [vars(turn) for turn in self.turns],
            "questions": questions,
            "facts": facts,
            **({"instructions": instructions} if instructions else {}),
        }


class TalkReader:
    """Reads one file line by line and notes what is wrong with it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.errors: list[str] = []
        self.conversation = Conversation("")
        self._part, self._session, self._time, self._line = "", "", "", 0

    def parse(self) -> Conversation:
        for line in self.path.read_text(encoding="utf-8").splitlines():
            self._line += 1
            if line.startswith("@"):
                name, _, rest = line[1:].partition(" ")
                self._mark(name, rest.strip())
            elif line.strip():
                self._content(line)
        self._check()
        return self.conversation

    def _mark(self, name: str, rest: str) -> None:
        if name == "conversation":
            self.conversation.id, _, self.conversation.kind = rest.partition(" ")
        elif name == "people":
            pairs = (pair.split("=", 1) for pair in rest.split(";") if "=" in pair)
            self.conversation.people = {key.strip(): value.strip() for key, value in pairs}
        elif name == "session":
            self._session, _, self._time = rest.partition(" ")
            self._part = "turns"
            if not _TIME.match(self._time):
                self._add_error(f"session time {self._time}")
        elif name in ("questions", "facts", "instructions"):
            self._part = name
        else:
            self._add_error(f"@{name}")

    def _content(self, line: str) -> None:
        if self._part == "turns":
            self._turn(line)
        else:
            self._query([each.strip() for each in line.split("|")])

    def _turn(self, line: str) -> None:
        match = _TURN.match(line)
        if not match or match[1] != self._session or match[3] not in self.conversation.people:
            self._add_error(f"turn: {line[:60]}")
            return
        speaker = self.conversation.people[match[3]]
        turn = Turn(f"D{match[1]}:{match[2]}", self._session, speaker, f"{self._time}:00", match[4])
        self.conversation.turns.append(turn)

    def _query(self, fields: list[str]) -> None:
        if self._part == "questions" and len(fields) == 3:
            if fields[0] not in CATEGORIES:
                self._add_error(f"category {fields[0]}")
            self.conversation.questions.append(TalkQuery(fields[2], _ids(fields[1]), fields[0]))
        elif self._part in ("facts", "instructions") and len(fields) == 2:
            getattr(self.conversation, self._part).append(TalkQuery(fields[1], _ids(fields[0])))
        else:
            self._add_error(" | ".join(fields)[:60])

    def _check(self) -> None:
        one, texts = self.conversation, {turn.id: turn.text for turn in self.conversation.turns}
        if len(one.turns) != len(texts):
            self.errors.append(f"{self.path}: a turn id stands twice")
        for query in (*one.questions, *one.facts, *one.instructions):
            missing = [id for id in query.gold if id not in texts]
            if missing or not query.gold:
                self.errors.append(f"{self.path}: no turn {' '.join(missing) or 'named'} for: {query.text}")
        for query in one.instructions:
            if not any(query.text in texts.get(id, "") for id in query.gold):
                self.errors.append(f"{self.path}: not the words of {' '.join(query.gold)}: {query.text}")
        if self.conversation.file != self.path.stem:
            self.errors.append(f"{self.path}: holds {self.conversation.id}")

    def _add_error(self, what: str) -> None:
        self.errors.append(f"{self.path}:{self._line} {what}")


def _ids(text: str) -> list[str]:
    return ["D" + each.replace(".", ":") for each in text.split()]


def load(part: str = "") -> list[Conversation]:
    """The conversations of a part of the split, or all."""
    conversations, errors = read_files(sorted(FOLDER.glob("*.txt")))
    if errors:
        raise SystemExit("\n".join(errors))
    return [each for each in conversations if part in ("", part_of(each))]


def read_files(paths: Iterable[Path]) -> tuple[list[Conversation], list[str]]:
    readers = [TalkReader(path) for path in paths]
    return [reader.parse() for reader in readers], [error for reader in readers for error in reader.errors]


def part_of(conversation: Conversation) -> str:
    split = json.loads((HERE / "split.json").read_text())
    return next((part for part in split if conversation.file in split[part]), "train")


def as_json(conversations: Iterable[Conversation]) -> str:
    """The plain format of the bench, one conversation a line."""
    lines = ",\n".join(json.dumps(each.as_json(), ensure_ascii=False) for each in conversations)
    return f'{{"name": "talk", "conversations": [\n{lines}\n]}}\n'


def _count_lines(conversations: list[Conversation]) -> Iterator[str]:
    for part in PARTS:
        own = [each for each in conversations if part_of(each) == part]
        turns, questions, facts = (sum(len(getattr(c, name)) for c in own) for name in ("turns", "questions", "facts"))
        yield f"{part}: {len(own)} conversations, {turns} turns, {questions} questions, {facts} facts"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--part", choices=PARTS)
    options = parser.parse_args()
    if options.part:
        if len(options.files) != 1:
            parser.error("--part needs the file to write")
        options.files[0].write_text(as_json(load(options.part)), encoding="utf-8")
        return 0
    conversations, errors = read_files(options.files or sorted(FOLDER.glob("*.txt")))
    print(*errors, *_count_lines(conversations), sep="\n")
    return bool(errors)


if __name__ == "__main__":
    sys.exit(main())
