"""Long texts are shortened: the numbers are right, and no half of a secret is left at a cut."""

from __future__ import annotations

import re

import pytest
from tests.support.secret_samples import BASE64

from eunoe.apps.tickets.redaction import clip_redacted
from eunoe.apps.tickets.worker import ProgramResult

LEFT_OUT = re.compile(r"\[\.\.\. ([\d,]+) characters left out \.\.\.\]")


def left_out(text: str) -> list[int]:
    return [int(number.replace(",", "")) for number in LEFT_OUT.findall(text)]


@pytest.mark.parametrize(("count", "lines"), [(17, 3_100), (20, 3_100), (60, 2_000)])
def test_no_half_of_a_secret_is_left(count: int, lines: int) -> None:
    """What is found becomes shorter: a half at the first cut would then be in what is shown."""
    text = "".join(f"PASSWORD={f'SECRT{number:04}-' * count}\n" for number in range(lines))
    assert "SECRT" not in clip_redacted(text, 200_000)


def test_no_half_of_a_secret_is_left_in_a_single_line() -> None:
    for shift in (0, 13):
        text = "." * shift + '"password": "two SECRT words", ' * 30_000
        assert "SECRT" not in clip_redacted(text, 200_000)
    key = f"-----BEGIN PRIVATE KEY-----\\n{BASE64}\\nzN4Rk8SECRT0s\\n-----END PRIVATE KEY-----"
    assert "SECRT" not in clip_redacted(f'{{"key": "{key}"}}' * 8_000, 200_000)


def test_what_is_left_out_is_counted() -> None:
    text = "".join(f"line {number:06}\n" for number in range(300_000))
    shown = clip_redacted(text, 200_000)
    (count,) = left_out(shown)
    assert len(LEFT_OUT.sub("", shown)) - 2 + count == len(text)
    assert len(shown) <= 200_100


@pytest.mark.parametrize(
    ("output", "errors"), [(2_500_000, 0), (100, 2_500_000), (2_500_000, 1_100_000), (3_000_000, 3_000_000)]
)
def test_what_a_program_wrote_is_cut_where_it_was_cut_before(output: int, errors: int) -> None:
    """Otherwise half of a secret would stand at the first cut."""
    shown = ProgramResult("agent", "o" * output, "e" * errors, "failed").describe()
    total = len(f"{'o' * output}\n[standard error]\n{'e' * errors}\n[agent failed]") - (0 if errors else 18)
    assert sum(left_out(clip_redacted(shown, 200_000))) == total - 200_000
