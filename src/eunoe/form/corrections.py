"""Corrections by hand at work: a sentence that is like a corrected one is read as that one was corrected."""

from collections.abc import Callable, Sequence
from typing import Final

from eunoe.form.kind_model import KindModel
from eunoe.form.statements import is_secret, is_vital
from eunoe.form.turn_reading import Sentence, TurnReading
from eunoe.model.arguments import KEPT_KINDS
from eunoe.model.turn import Turn
from eunoe.records.corrections import LikeSentences, Match, Place, find_match

_MIN_VITAL_LIKENESS: Final = 0.95
"""What matters for health is dropped only if it says nearly the same."""


def find_places(model: KindModel | None, readings: Sequence[TurnReading]) -> dict[str, Place]:
    """Where the model puts the sentences of turns that it read."""
    means = {each.text: own.means[each.text] for own in readings if own.means for each in own.sentences}
    return dict(zip(means, model.place([*means.values()]), strict=True)) if model and means else {}


def correct_readings(
    readings: Sequence[TurnReading], places: dict[str, Place], find: Callable[[Turn], Sequence[LikeSentences]]
) -> list[TurnReading]:
    """Readings with what corrections say of their sentences; `find` gives those that count for a turn."""
    pairs = ((reading, find(reading.turn)) for reading in readings)
    return [
        own._replace(sentences=tuple(_correct(each, places.get(each.text), known) for each in own.sentences))
        if known
        else own
        for own, known in pairs
    ]


def _correct(sentence: Sentence, place: Place | None, known: Sequence[LikeSentences]) -> Sentence:
    match = find_match(known, sentence.text, place)
    return _apply(match, sentence) if match else sentence


def _apply(match: Match, sentence: Sentence) -> Sentence:
    verdict, text = match.sentence.verdict, match.sentence.text
    if verdict == "drop":
        is_kept = match.likeness < _MIN_VITAL_LIKENESS and is_vital(sentence.text)
        return sentence if is_kept else sentence._replace(kind="nothing", worth=0.0, correction=text)
    if is_secret(sentence.text):
        return sentence
    kind = sentence.kind if sentence.kind in KEPT_KINDS else "fact"
    return sentence._replace(kind=kind if verdict == "keep" else verdict, worth=1.0, correction=text)
