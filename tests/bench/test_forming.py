"""The forming bench: its work, its figures and its command."""

import json
import re
from pathlib import Path

import pytest
from bench.__main__ import run_bench
from bench.forming import count_llm_calls, made_up_sentence

from bench import forming as forming_bench
from eunoe.llm.contract import Prompt

TINY = ["--turns", "2", "--atoms", "10", "--embedder", "none"]


def test_no_two_sentences_are_the_same() -> None:
    assert len({made_up_sentence(number) for number in range(5000)}) == 5000


@pytest.mark.parametrize("embedder", ["auto", "none"])
def test_a_run(embedder: str) -> None:
    result = forming_bench.measure(turns=3, atoms=20, embedder=embedder)
    for name in ("observe_ms", "observe_without_pause_ms", "context_ms"):
        assert set(result[name]) == {"p50", "p95"}
        assert 0 < result[name]["p50"] <= result[name]["p95"]
    assert result["calls_per_formation"] == {1: 1, 2: 1, 4: 1, 8: 1}
    assert (result["turns"], result["atoms"]) == (3, 20)


def test_the_one_call_is_for_as_many_streams_as_it_says(tmp_path: Path) -> None:
    streams: list[int] = []

    def answer(prompt: Prompt) -> str:
        streams.append(len(re.findall(r"<stream number=", prompt.text)))
        return '{"memories": []}'

    for count in (1, 2, 4, 8):
        assert count_llm_calls(tmp_path / f"{count}.db", count, answer) == 1
    assert streams == [1, 2, 4, 8]


def test_a_second_call_would_be_counted(tmp_path: Path) -> None:
    # It is asked once more.
    assert count_llm_calls(tmp_path / "calls.db", 2, lambda prompt: "no JSON at all") == 2


def test_the_command_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_bench(["forming", *TINY, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    times = {"observe_ms", "observe_without_pause_ms", "context_ms"}
    assert set(printed) == {*times, "calls_per_formation", "turns", "atoms"}
    assert printed["calls_per_formation"] == {"1": 1, "2": 1, "4": 1, "8": 1}


def test_the_command_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_bench(["forming", *TINY]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "observe a turn and its answer" in printed
    assert "1 for 8 streams" in printed


@pytest.mark.parametrize("options", [["--turns", "0"], ["--atoms", "-1"], ["--store", "x.db"]])
def test_misuse_is_named(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run_bench(["forming", *options]) == 2
    assert options[0] in capsys.readouterr().err


def test_an_unknown_embedder_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_bench(["forming", "--turns", "1", "--atoms", "1", "--embedder", "nonesuch"]) == 1
    assert capsys.readouterr().err.count("\n") == 1
