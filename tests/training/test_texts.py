"""The plain texts that a student learns from."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

TRAINING = Path(__file__).parents[2] / "training"


@pytest.fixture(scope="module")
def texts() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(TRAINING))
        import texts

        yield texts
    for name in ("texts", "parallel", "corpus", "talk"):
        sys.modules.pop(name, None)


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


def test_docstrings_with_the_name_and_their_first_sentence(texts: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text('def close():\n    """Close the file at once. Then go."""\n\ndef short():\n    """Tiny."""\n')
    assert list(texts._docstrings(path)) == ["close: Close the file at once. Then go.", "Close the file at once."]
    path.write_text("def broken(:\n")
    assert list(texts._docstrings(path)) == []


def test_the_standard_library_has_modules_of_several_docstrings(texts: ModuleType) -> None:
    first = next(texts.standard_library())
    assert len(first) == len(set(first)) > 1
