# ruff: noqa: RUF001
"""Markup: what people wrote cannot pass for what stands around it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunoe.text.normalize import escape_xml, neutralize, quote_xml

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
