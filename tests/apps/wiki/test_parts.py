"""Long contents come back out of their parts as they went in."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from eunoe.apps.wiki.memory import MAX_CHARACTERS, OVERLAP, join_parts, split_content

WORDS = st.sampled_from(
    ["a", "word ", "\n\n", ". ", " ", "\r\n", "😀", "x" * 900, " " * 1500, "\n" * 5000, "0123 " * 300]
)


@given(st.lists(WORDS, max_size=30).map("".join).filter(str.strip))
def test_parts_give_the_content_back_and_none_is_blank(content: str) -> None:
    parts = split_content(content)
    assert join_parts(parts) == content
    assert all(part.text.strip() for part in parts)
    assert all(part.text == content[part.start : part.start + len(part.text)] for part in parts)


def test_parts_overlap_and_end_where_a_paragraph_ends() -> None:
    content = "\n\n".join(f"Paragraph {number}: {'text ' * 120}" for number in range(20))
    parts = split_content(content)
    assert len(parts) > 2
    for before, after in itertools.pairwise(parts):
        assert len(before.text) <= MAX_CHARACTERS
        assert before.text[-OVERLAP:] == after.text[:OVERLAP]
        assert before.text.endswith("\n\n")


def test_a_content_at_the_limit_stays_whole() -> None:
    assert len(split_content("x" * MAX_CHARACTERS)) == 1
    assert len(split_content("x" * (MAX_CHARACTERS + 1))) == 2
