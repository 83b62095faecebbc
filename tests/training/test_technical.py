"""The documentation in `training/technical`: its checker, and that every file is well formed."""

import subprocess
import sys
from collections.abc import Iterator
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
def technical() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(TRAINING))
        import technical

        yield technical
    for name in ("technical", "overlap", "corpus", "talk"):
        sys.modules.pop(name, None)


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


def test_a_passage_that_stands_twice_is_found(technical: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "small.txt"
    path.write_text(GOOD.replace("@questions", "3 | Config > Retries | A job is tried three times.\n@questions"))
    assert technical.read_files([path])[1] == [f"{path}: a passage stands twice"]


def test_the_command_counts_and_fails_on_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "small.txt"
    path.write_text(GOOD, encoding="utf-8")
    done = _run(path)
    assert (done.returncode, done.stdout.strip()) == (0, "1 documents, 2 passages, 2 questions")
    path.write_text(GOOD.replace("1 2 |", "7 |"), encoding="utf-8")
    done = _run(path)
    assert (done.returncode, "no passage 7" in done.stdout) == (1, True)


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


def _run(path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(TRAINING / "technical.py"), str(path)]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
