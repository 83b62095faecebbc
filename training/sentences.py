"""Reads the labelled sentences of talk, and checks them.

python training/sentences.py    check and count what is in training/sentences
"""

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import talk

from eunoe.model.arguments import TURN_KINDS
from eunoe.text.sentences import split_sentences

FOLDER = Path(__file__).parent / "sentences"
SEPARATOR = " | "


@dataclass(frozen=True)
class LabelledSentence:
    """A sentence of a turn, what was said just before it, and the kind of thing that it holds."""

    kind: str
    text: str
    before: str
    continues: bool
    """Whether the same speaker said what was said before."""
    turn: talk.Turn
    conversation: talk.Conversation


def load(part: str = "") -> list[LabelledSentence]:
    """The sentences of a part of the split, or all."""
    found = [each for conversation in talk.load(part) for each in read_sentences(conversation)]
    if errors := [each for each in found if isinstance(each, str)]:
        raise SystemExit("\n".join(errors))
    return [each for each in found if isinstance(each, LabelledSentence)]


def read_sentences(conversation: talk.Conversation) -> Iterator[LabelledSentence | str]:
    """The labelled sentences of a conversation; an error for each line that is not one."""
    path = FOLDER / f"{conversation.file}.txt"
    places = {turn.id: place for place, turn in enumerate(conversation.turns)}
    end = ("", 0)
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1) if path.is_file() else ():
        kind, id, text = (*line.split(SEPARATOR, 2), "", "")[:3]
        turn = conversation.turns[places[id]] if id in places else None
        start = turn.text.find(text, end[1] if end[0] == id else 0) if turn and text else -1
        if kind not in TURN_KINDS or turn is None or start < 0:
            yield f"{path}:{number} not KIND | TURN | a sentence of it: {line[:60]}"
            continue
        end = (id, start + len(text))
        yield LabelledSentence(kind, text, *said_before(conversation, places[id], start), turn, conversation)


def said_before(conversation: talk.Conversation, place: int, start: int) -> tuple[str, bool]:
    """What was said just before a place in a turn, and whether the same speaker said it."""
    turn = conversation.turns[place]
    if earlier := split_sentences(turn.text[:start]):
        return earlier[-1], True
    before = conversation.turns[place - 1] if place else turn
    is_near = place > 0 and before.session == turn.session
    return (before.text, before.speaker == turn.speaker) if is_near else ("", False)


def main() -> int:
    found = [each for conversation in talk.load() for each in read_sentences(conversation)]
    errors = [each for each in found if isinstance(each, str)]
    kinds = Counter(each.kind for each in found if isinstance(each, LabelledSentence))
    print(*errors, f"{kinds.total()} sentences", *(f"{kind}: {kinds[kind]}" for kind in TURN_KINDS), sep="\n")
    return bool(errors)


if __name__ == "__main__":
    sys.exit(main())
