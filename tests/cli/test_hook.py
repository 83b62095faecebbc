"""The command `hook` refuses what makes no sense; what it does is tested with real processes."""

import pytest
from tests.cli.conftest import Cli


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["dance", "--assistant", "codex"], 2, "there are start, prompt, answer, compaction, end"),
        (["prompt"], 2, "--assistant"),
        (["prompt", "--assistant", "emacs"], 1, "no assistant 'emacs'"),
        (["prompt", "--assistant", "codex", "--scope", "nonsense"], 1, "nonsense"),
        (["prompt", "--assistant", "codex", "--store", ":memory:"], 1, "store in a file"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(cli: Cli, words: list[str], code: int, message: str) -> None:
    result = cli("hook", *words)
    assert result.code == code
    assert message in result.err
    assert result.err.count("\n") == 1
