"""The languages bench: its questions, its figures and its command."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from bench.__main__ import run_bench
from bench.conversations import load_conversations
from bench.languages import BUILT_IN, LANGUAGES, translate_conversations

from bench import languages
from bench import languages as languages_bench
from eunoe.errors import InputError

TRANSLATIONS = Path(__file__).parents[2] / "training" / "translations"
QUESTIONS = json.loads(BUILT_IN.read_text(encoding="utf-8"))["questions"]


@pytest.fixture
def few(tmp_path: Path) -> Path:
    """Three questions about one conversation."""
    return write(tmp_path, {"questions": QUESTIONS[:3]})


def write(folder: Path, data: Any) -> Path:
    path = folder / "few.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def test_a_hundred_questions_are_spread_over_the_english_conversations() -> None:
    asked = {(each.id, question.text): question for each in load_conversations() for question in each.questions}
    chosen = [asked[each["conversation"], each["en"]] for each in QUESTIONS]
    assert len({(each["conversation"], each["en"]) for each in QUESTIONS}) == len(chosen) == 100
    assert "languages" not in {question.kind for question in chosen}
    shares = Counter(each["conversation"] for each in QUESTIONS)
    assert len(shares) == 11
    assert set(shares.values()) == {9, 10}
    categories = Counter(question.category for question in chosen)
    assert min(categories[name] for name in ("single", "multi", "temporal", "update", "inference")) >= 17


def test_every_question_is_there_in_every_language_once() -> None:
    for each in QUESTIONS:
        assert set(each) == {"conversation", *LANGUAGES}
        assert len({each[code].strip() for code in LANGUAGES} - {""}) == len(LANGUAGES)
    for code in LANGUAGES:
        assert len({each[code] for each in QUESTIONS}) == len(QUESTIONS)


def test_no_question_is_among_the_translations_for_training() -> None:
    lines = [line for path in TRANSLATIONS.rglob("*.tsv") for line in path.read_text(encoding="utf-8").splitlines()]
    rows = [line.split("\t") for line in lines]
    texts = {text for row in rows for text in row[1:]}
    assert texts
    assert texts.isdisjoint(each[code] for each in QUESTIONS for code in LANGUAGES)
    assert {f"talk-{row[0]}" for row in rows}.isdisjoint(each["conversation"] for each in QUESTIONS)


def test_the_languages_of_a_question_have_the_same_gold(few: Path) -> None:
    (conversation,) = translate_conversations(few)
    assert [question.kind for question in conversation.questions[:4]] == list(LANGUAGES.values())
    assert len({question.gold for question in conversation.questions[:4]}) == 1
    assert len({question.id for question in conversation.questions}) == 12


def test_a_run(few: Path) -> None:
    calls: list[tuple[int, int]] = []
    result = languages_bench.measure(few, embedder="none", progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (12, 12)
    assert list(result["by_language"]) == ["English", "German", "Spanish", "French"]
    assert {scores["questions"] for scores in result["by_language"].values()} == {result["questions"]} == {3}
    assert (result["embedder"], result["recipe"]) == ("none", "default")


def test_the_same_words_have_the_same_scores(tmp_path: Path) -> None:
    data = {"questions": [{**each, "de": each["en"], "es": "?", "fr": "?"} for each in QUESTIONS[:10]]}
    scores = languages_bench.measure(write(tmp_path, data), embedder="none")["by_language"]
    assert scores["German"] == scores["English"]
    assert scores["English"]["recall@10"] > scores["French"]["recall@10"] == 0


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ({"questions": []}, "0 of 0 questions"),
        ({"questions": [{**QUESTIONS[0], "en": "Who?"}, QUESTIONS[1]]}, "1 of 2 questions"),
        ({"questions": [{"conversation": "talk-a3", "en": "Who?"}]}, "another shape"),
        ([], "another shape"),
    ],
)
def test_what_cannot_be_asked(tmp_path: Path, data: Any, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        languages_bench.measure(write(tmp_path, data), embedder="none")


def test_the_command(few: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(languages, "BUILT_IN", few)
    assert run_bench(["languages", "--embedder", "none", "--recipe", "lexical", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["questions"], result["recipe"]) == (3, "lexical")
    assert run_bench(["languages"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[-4:]] == list(LANGUAGES.values())
