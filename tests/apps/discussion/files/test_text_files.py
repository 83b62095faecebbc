import json
from pathlib import Path

import pytest

from eunoe.apps.discussion.files.layout import (
    TextBlock,
    format_blocks,
    parse_blocks,
)
from eunoe.errors import InputError

BLOCKS = [TextBlock("Anna moved.\u2028She is happy.", "aa"), TextBlock("日本 \x1c\x85 line", "bb")]


def test_both_forms_come_back() -> None:
    assert parse_blocks(format_blocks(BLOCKS, "folders"), Path("memories.json")) == (BLOCKS, [])
    assert parse_blocks(format_blocks(BLOCKS, "flat"), Path("x_memories.jsonl")) == (BLOCKS, [])


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "half-written"),
        (b'[{"text_block": "One.", "hash"', "half-written"),
        (b'{"text_block": "One.", "hash": "aa"}', "no list"),
        (b'[{"hash": "aa"}]', "entry 1, is damaged: it has no text_block"),
        (b'[{"text_block": "One.", "hash": "aa"}, {"text_block": 5, "hash": "aa"}]', "entry 2"),
        (b'[{"text_block": "One.", "hash": 5}]', "its hash is no text"),
        (b'[{"text_block": "One.", "hash": NaN}]', "NaN"),
        (b'[{"text_block": "\xff", "hash": "aa"}]', "no UTF-8"),
        (b"[" * 100_000, "half-written"),
    ],
)
def test_a_damaged_array_is_refused_by_name(content: bytes, fault: str) -> None:
    with pytest.raises(InputError, match=rf"trip/memories\.json.*{fault}"):
        parse_blocks(content, Path("trip/memories.json"))


def test_a_half_written_line_is_refused_by_its_number() -> None:
    content = b'{"text_block": "One.", "hash": "aa"}\n\n{"text_block": "Tw'
    with pytest.raises(InputError, match=r"x_memories\.jsonl, line 3"):
        parse_blocks(content, Path("x_memories.jsonl"))


def test_entries_with_more_than_is_kept_are_noticed() -> None:
    entries = [{"text_block": "One.", "hash": "aa", "at": 5}, {"text_block": "Two."}, {"text_block": " ", "hash": ""}]
    blocks, notes = parse_blocks(json.dumps(entries).encode(), Path("m.json"))
    assert blocks == [TextBlock("One.", "aa"), TextBlock("Two.", ""), TextBlock(" ", "")]
    assert sorted(notes) == [
        "m.json has entries with more than text_block and hash: the rest is left out",
        "m.json has entries without a hash",
        "m.json has entries without words: they are left out",
    ]
