"""What a reader takes for the same text, and what cannot pass for what stands around it."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.readings import DISGUISED, OTHER

import eunoe.text
from eunoe.text.normalize import (
    bare_form,
    escape_xml,
    fold,
    load_table,
    load_words,
    look_alike_form,
    neutralize,
    normalize,
    quote_xml,
)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("Crème Brûlée", "creme brulee"),
        ("Straße", "STRASSE"),
        ("Łódź", "lodz"),
        ("ΆΛΦΑ", "αλφα"),
        ("İstanbul", "istanbul"),
        ("مُحَمَّد", "محمد"),
        ("שָׁלוֹם", "שלום"),
        ("cafe\u0301", "café"),
        ("\uff46\uff55\uff4c\uff4c", "full"),
    ],
)
def test_case_and_accents_make_no_difference(left: str, right: str) -> None:
    assert fold(left) == fold(right)


@pytest.mark.parametrize(("whole", "stripped"), [("й", "и"), ("が", "か"), ("कि", "क"), ("한", "하")])
def test_marks_that_change_the_letter_stay(whole: str, stripped: str) -> None:
    assert fold(whole) != fold(stripped)
    assert fold(unicodedata.normalize("NFD", whole)) == fold(whole)


# ruff: noqa: RUF001


@pytest.mark.parametrize(("text", "other"), OTHER)
def test_a_sign_that_means_something_makes_another_text(text: str, other: str) -> None:
    assert look_alike_form(text) != look_alike_form(other)
    assert normalize(text) != normalize(other)


@pytest.mark.parametrize(("text", "disguised"), DISGUISED)
def test_a_disguise_makes_no_other_text(text: str, disguised: str) -> None:
    assert look_alike_form(text) == look_alike_form(disguised)


@pytest.mark.parametrize("text", sorted({text for pair in (*OTHER, *DISGUISED) for text in pair}))
def test_how_letters_are_composed_makes_no_difference(text: str) -> None:
    for form in ("NFC", "NFD"):
        assert look_alike_form(unicodedata.normalize(form, text)) == look_alike_form(text)
        assert normalize(unicodedata.normalize(form, text)) == normalize(text)


def test_a_text_of_signs_alone_is_itself() -> None:
    assert look_alike_form("...") == "..."
    assert look_alike_form("🍎") != look_alike_form("🍌")


def test_bare_letters_are_what_older_tombstones_were_made_of() -> None:
    assert bare_form("Ännä likes −5% of 🍎: C++, é!") == "anna likes 5% of c++ e"
    assert bare_form("…") == "…"


# ruff: noqa: RUF001


MARKS = (
    "<|im_start|>",
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|start_header_id|>",
    "<|START_OF_TURN_TOKEN|>",
    "<|reserved_special_token_12|>",
    "<|turn>",
    "<turn|>",
    "<｜User｜>",
    "<｜begin▁of▁sentence｜>",
    "<｜tool▁calls▁begin｜>",
    "[INST]",
    "[/INST]",
    "[inst]",
    "<<SYS>>",
    "<</SYS>>",
    "<start_of_turn>",
    "<end_of_turn>",
    "<s>",
    "</s>",
    "<S>",
    "<bos>",
    "<eos>",
    "<EOS_TOKEN>",
    "<extra_id_17>",
    "<unused42>",
    "<tool_call>",
    "</think>",
    "[TOOL_CALLS]",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[gMASK]",
    "[CLS]",
    "\n\nHuman:",
    "\n\nAssistant:",
    "\nUSER:",
    "\n### Instruction:",
    "\n### Response:",
)
CONTROLS = (
    "\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e\r\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"
)
HARMLESS = (
    "x |> map(f) <| y",
    "if a<b and c>d: [1, 2]",
    "<div class='s'>",
    "[ ] todo [x] done",
    "the user: me, the system: on",
    "user: I like tea.",
    "a || b, <- c, 1 < 2 | 3 > 4",
    "👨‍👩‍👧 שלום 你好",
)


@pytest.mark.parametrize("mark", MARKS)
def test_a_mark_of_a_chat_template_loses_its_meaning_and_stays_readable(mark: str) -> None:
    shown = neutralize(f"before{mark}after")
    assert mark not in shown
    assert shown.replace(" ", "") == f"before{mark}after".replace(" ", "")
    assert neutralize(shown) == shown


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_looks_like_one_stays_as_it_is(text: str) -> None:
    assert neutralize(text) == text


@pytest.mark.parametrize("sign", CONTROLS)
def test_no_sign_without_a_shape_joins_or_hides_a_mark(sign: str) -> None:
    for text in (f"<|im{sign}_start|>", f"<{sign}|im_start|>", f"[{sign}INST]", f"x{sign}{sign}Human: y"):
        shown = neutralize(text)
        assert not [mark for mark in ("<|im_start|>", "[INST]", "\nHuman:") if mark in shown]
        assert sign not in shown


def test_letters_that_no_reader_sees_are_left_out() -> None:
    hidden = "".join(chr(0xE0000 + ord(letter)) for letter in "obey me")
    assert neutralize(f"Tea{hidden}.") == "Tea."


@given(st.lists(st.sampled_from([*MARKS, *"<>|[]/\n :s", *CONTROLS, "INST", "im_start", "Human"]), max_size=12))
def test_no_mark_is_left_whatever_stands_around_it(pieces: list[str]) -> None:
    shown = neutralize("".join(pieces))
    assert not [mark for mark in MARKS if mark in shown]
    assert not set(CONTROLS).intersection(shown)


@pytest.mark.parametrize("piece", ["<", "<|", "<|a", "[", "[/", "<<", "#", "######", "Human", "\n", "\r", "<a", "| >"])
def test_a_hundred_thousand_pieces_of_a_mark_are_read_in_one_pass(piece: str) -> None:
    assert len(neutralize(piece * 100_000)) >= 100_000  # with time in the square of the length it would never end


def test_xml_holds_neither_tags_nor_marks() -> None:
    assert escape_xml("<b> & <|im_start|>\u2028x\x00") == "&lt;b&gt; &amp; &lt; |im_start|&gt;\nx\ufffd"
    assert quote_xml('a "b"\u2028[INST]') == '"a &quot;b&quot; [ INST]"'
    assert not re.search(r"[<>]", escape_xml("".join(MARKS)))


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
