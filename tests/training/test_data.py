"""What is trained on beside talk: documentation, other languages and plain texts, and that every file is sound."""

import gzip
import json
from collections import Counter
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

TRAINING = Path(__file__).parents[2] / "training"
GOOD = """@document small
@passages
1 | Config > Timeouts | The worker waits `timeout = 30s | 5m` for a lease.
2 | Config > Retries | A job is tried three times.

@questions
1 | default timeout worker
1 2 | How long until a job is given up?
"""


@pytest.fixture(scope="module")
def technical() -> ModuleType:
    return import_module("technical")


def test_a_good_file(technical: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "small.txt").write_text(GOOD, encoding="utf-8")
    (one,) = technical.load(tmp_path)
    assert one.name == "small"
    assert one.passages[0] == "Config > Timeouts\n\nThe worker waits `timeout = 30s | 5m` for a lease."
    assert [(query.text, query.gold) for query in one.questions] == [
        ("default timeout worker", [0]),
        ("How long until a job is given up?", [0, 1]),
    ]


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("@passages", "@passage", ":2 @passage"),
        ("2 | Config > Retries", "3 | Config > Retries", ":4 not passage 2: 3 | Config > Retries"),
        ("Config > Retries | A", "A", ":4 not passage 2: 2 | A job is tried three times."),
        ("2 | Config > Retries | A job is tried three times.", "2 | Retries |", ":4 not passage 2: 2 | Retries |"),
        ("1 | default", "one | default", ":7 question: one | default"),
        ("1 | default", "| default", ":7 question:  | default"),
        ("1 | default timeout worker", "default timeout worker", ":7 question: default timeout worker"),
        ("1 2 |", "0 9 |", ": no passage 0 9 for: How long"),
        ("How long until a job is given up?", "default timeout worker", ": a question stands twice"),
        ("@document small", "@document large", ": holds large"),
    ],
)
def test_a_fault_is_found(technical: ModuleType, tmp_path: Path, right: str, wrong: str, said: str) -> None:
    path = tmp_path / "small.txt"
    path.write_text(GOOD.replace(right, wrong, 1), encoding="utf-8")
    _, errors = technical.read_files([path])
    assert any(error.startswith(f"{path}{said}") for error in errors)
    with pytest.raises(SystemExit, match=r"small\.txt"):
        technical.load(tmp_path)


def test_every_file_is_well_formed(technical: ModuleType) -> None:
    documents = technical.load()
    assert all(each.passages and each.questions for each in documents)
    asked = [query.text for each in documents for query in each.questions]
    assert len(asked) == len(set(asked))


def test_a_paragraph_that_is_measured_is_noticed_among_what_is_trained_on(technical: ModuleType) -> None:
    import corpus
    import overlap

    measured = corpus.load_documents(overlap.TECHNICAL_SET / "docs.json")
    held = overlap.technical_body([measured], "our own documentation")
    assert not overlap.TrainedTexts([overlap.technical_body(technical.load(), "invented")]).compare(held).is_wrong
    copied = corpus.DocumentSet("copied", measured.passages[7:8], [])
    finding = overlap.TrainedTexts([overlap.technical_body([copied], "invented")]).compare(held)
    assert (len(finding.copies), finding.is_wrong) == (1, True)


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
def parallel() -> ModuleType:
    return import_module("parallel")


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


@pytest.fixture(scope="module")
def texts() -> ModuleType:
    return import_module("texts")


def test_a_text_stands_once_and_keeps_its_place(texts: ModuleType) -> None:
    pool = texts.TextPool()
    pool.add_group(["one", "two", "one"])
    pool.add_group(["two", "three"], technical=True)
    pool.add_translation("zwei", "two")
    pool.add_translation("vier", "four")
    assert pool.english == ["one", "two", "three", "four"]
    assert pool.groups == [[0, 1], [1, 2]]
    assert pool.technical == [False, False, True, False]
    assert pool.foreign == [("zwei", 1), ("vier", 3)]


def test_everything_there_is_to_learn_from(texts: ModuleType) -> None:
    import corpus
    import parallel

    question = corpus.GoldQuery("What did Mara buy?", [0], translations=["Was hat Mara gekauft?"])
    stream = corpus.TalkStream("a", "friends", ["A kayak."], ["Mara"], ["1"], [question], [])
    birds = corpus.DocumentSet("birds", ["Gull\n\nIt nests on the cliff. Ok."], [corpus.GoldQuery("Where?", [0])])
    tool = corpus.DocumentSet("tool", ["Retries\n\nA job is tried three times."], [])
    pairs = [parallel.Pair("es", "el perro", "the dog")]
    pool = texts.text_pool([stream], [birds], [tool], pairs, [["open: Opens a file.", "Opens a file."]])
    assert pool.groups[0] == [0, 1]
    assert pool.english[1] == "What did buy?", "names of speakers are left out, as recall does"
    assert ("Was hat gekauft?", 1) in pool.foreign
    assert "It nests on the cliff." in pool.english
    assert "Ok." not in pool.english, "too short to be told from others"
    software = [text for text, about in zip(pool.english, pool.technical, strict=True) if about]
    assert {"A job is tried three times.", "Opens a file."} <= set(software)
    assert "Where?" not in software
    assert pool.english[dict(pool.foreign)["el perro"]] == "the dog"
