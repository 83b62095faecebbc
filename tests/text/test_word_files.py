"""Word lists in text files."""

from pathlib import Path

import pytest

import eunoe.text
from eunoe.text.normalize import load_table, load_words

FOLDER = Path(str(eunoe.text.__file__)).parent / "words"
FILES = sorted(path.relative_to(FOLDER).with_suffix("") for path in FOLDER.rglob("*.txt"))


def test_words_stand_in_any_number_of_lines_between_comments(tmp_path: Path) -> None:
    (tmp_path / "drinks.txt").write_text("# What is drunk.\ntea  coffee\n\n# In the evening.\nma\u00dfbier\n", "utf-8")
    assert load_words("drinks", tmp_path) == {"tea", "coffee", "ma\u00dfbier"}


def test_a_table_gives_each_entry_its_value(tmp_path: Path) -> None:
    (tmp_path / "days.txt").write_text("# Days from today.\n-1: yesterday, last night\n0: today\n", "utf-8")
    assert load_table("days", tmp_path) == {"yesterday": "-1", "last night": "-1", "today": "0"}


def test_there_are_word_lists() -> None:
    assert len(FILES) > 30


@pytest.mark.parametrize("name", FILES, ids=str)
def test_every_word_list_says_what_it_is_and_can_be_read(name: Path) -> None:
    lines = (FOLDER / name).with_suffix(".txt").read_text("utf-8").splitlines()
    assert lines[0].startswith("# ")
    entries = [line for line in lines if not line.startswith("#")]
    assert load_table(str(name)) if ": " in entries[0] else load_words(str(name))
    assert all((": " in line) == (": " in entries[0]) for line in entries)
