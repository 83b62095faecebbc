"""Other languages beside English, for training: dictionaries, rules, translations by hand, and the file of them all."""

import gzip
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

TRAINING = Path(__file__).parents[2] / "training"
DICTIONARY = """freedict-url
Hund /hʊnt/ <masc>
dog, hound, cur
   see also: Welpe
 "Der Hund bellt." - The dog barks.; The dog is barking.
Wer nicht wagt, der nicht gewinnt /ver/
nothing ventured, nothing gained; no pain, no gain
leer /ler/
   (dated)
Haus (n) /haʊs/
house [building], home
"""


@pytest.fixture(scope="module")
def parallel() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(TRAINING))
        import parallel

        yield parallel
    for name in ("parallel", "corpus", "talk"):
        sys.modules.pop(name, None)


@pytest.fixture
def dictionaries(parallel: ModuleType, tmp_path: Path) -> Path:
    for code in parallel.CODES:
        text = DICTIONARY if code == "deu" else "casa /kasa/\nhouse\n"
        with gzip.open(tmp_path / f"freedict-{code}-eng.dict.dz", "wt", encoding="utf-8") as file:
            file.write(text)
    return tmp_path


def test_words_and_examples_of_a_dictionary(parallel: ModuleType) -> None:
    pairs = parallel._entries("de", DICTIONARY.splitlines(keepends=True))
    assert [(pair.text, pair.english) for pair in pairs] == [
        ("Hund", "dog"),
        ("Hund", "hound"),
        ("Der Hund bellt.", "The dog barks."),
        ("Wer nicht wagt, der nicht gewinnt", "nothing ventured, nothing gained"),
        ("Wer nicht wagt, der nicht gewinnt", "no pain, no gain"),
        ("Haus", "house"),
        ("Haus", "home"),
    ]


def test_the_most_common_words_come_first(
    parallel: ModuleType, dictionaries: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "MAX_WORDS", 2)
    pairs = list(parallel.by_dictionary(dictionaries, Counter({"home": 9, "dog": 5, "house": 1})))
    assert [pair.english for pair in pairs if pair.language == "de"] == ["home", "dog"]
    assert {pair.language for pair in pairs} == {"de", "es", "fr", "it", "pt"}


def test_a_missing_dictionary_is_named_with_its_package(parallel: ModuleType, dictionaries: Path) -> None:
    (dictionaries / "freedict-por-eng.dict.dz").unlink()
    with pytest.raises(SystemExit, match="apt-get install dict-freedict-por-eng"):
        list(parallel.by_dictionary(dictionaries, Counter()))


def test_missing_rules_are_named_with_their_packages(parallel: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SystemExit, match="apt-get install apertium-eng-spa"):
        list(parallel.by_rules(["The dog barks."]))


def test_rules_are_applied_one_after_the_other(
    parallel: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for apertium that writes down the mode and marks an unknown word, as apertium does."""
    tool = tmp_path / "apertium"
    tool.write_text('#!/bin/sh\nsed "s/$/ *$3/"\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    said = {pair.language: pair.text for pair in parallel.by_rules(["The dog"])}
    assert said["es"] == "The dog eng-spa"
    assert said["pt"] == "The dog eng-spa es-pt"
    assert set(said) == {"es", "pt", "fr", "it"}


def test_translations_by_hand(parallel: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "de.tsv").write_text('a1\tWho says "no"?\tWer sagt "nein"?\n', encoding="utf-8")
    assert list(parallel.by_hand(tmp_path)) == [("a1", ("de", 'Wer sagt "nein"?', 'Who says "no"?'))]


@pytest.mark.parametrize("name", ["pairs.tsv", "pairs.tsv.gz"])
def test_what_was_saved_is_read_packed_or_not(parallel: ModuleType, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    parallel.save([parallel.Pair("es", 'el "perro"', "the\tdog\r\n"), parallel.Pair("de", "Bär", "bear")], path)
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(path.read_bytes()))
    assert parallel.load(path) == [("es", 'el "perro"', "the dog"), ("de", "Bär", "bear")]


def test_translations_by_hand_are_of_training_conversations(parallel: ModuleType) -> None:
    import talk

    asked = {
        one.id.removeprefix("talk-"): {each.text for each in one.questions + one.facts} for one in talk.load("train")
    }
    for conversation, pair in parallel.by_hand():
        assert pair.english in asked[conversation.removeprefix("talk-")], (pair.language, pair.english)
