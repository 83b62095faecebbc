"""The translations in `training/translations`: questions and facts of talk, each as it is asked there."""

import json
from pathlib import Path

import pytest

TRAINING = Path(__file__).parents[2] / "training"
VALIDATION = TRAINING / "translations" / "validation"
LANGUAGES = ("de", "es", "fr", "it", "pt")


def read(language: str) -> list[list[str]]:
    return [line.split("\t") for line in (VALIDATION / f"{language}.tsv").read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_hundred_questions_of_the_validation_part(language: str) -> None:
    lines = read(language)
    assert len({translation for _, _, translation in lines}) == len(lines) == 100
    assert {name for name, _, _ in lines} <= set(json.loads((TRAINING / "split.json").read_text())["validation"])
    for name, question, translation in lines:
        asked = (TRAINING / "talk" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
        assert any(line.endswith(f"| {question}") for line in asked), question
        assert translation.strip() == translation != question


def test_the_same_questions_in_every_language() -> None:
    chosen = [[line[:2] for line in read(language)] for language in LANGUAGES]
    assert all(each == chosen[0] for each in chosen)
