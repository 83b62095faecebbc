"""The conversations in `training/talk`: their checker, their split, what ships of them, and that none is measured and
trained on."""

import json
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from bench.conversations import BUILT_IN, load_conversations
from numpy.typing import NDArray

import eunoe
from eunoe.recall import reranking

TRAINING = Path(__file__).parents[2] / "training"
GOOD = """@conversation talk-small friends
@people M=Mara Lind; O=Otto Brehm
@session 1 2024-03-01T10:00
1.1 M: I bought a kayak from the man at the boathouse, and it leaks.
1.2 O: What colour?
@session 2 2024-03-09T18:30
2.1 M: Bright yellow.
@questions
single | 1.1 | What did Mara get?
multi | 1.2 2.1 | Which colour is it?
@facts
2.1 | Mara's kayak is yellow.
@instructions
1.2 | What colour
"""
PLAIN = GOOD.partition("@instructions")[0]


@pytest.fixture(scope="module")
def talk() -> ModuleType:
    return import_module("talk")


@pytest.fixture(scope="module")
def overlap() -> ModuleType:
    return import_module("overlap")


def script(name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, TRAINING / name, *map(str, arguments)], capture_output=True, text=True, encoding="utf-8"
    )


class TestTheChecker:
    def test_a_good_file(self, talk: ModuleType, tmp_path: Path) -> None:
        path = tmp_path / "small.txt"
        path.write_text(GOOD, encoding="utf-8")
        (one,), errors = talk.read_files([path])
        assert errors == []
        assert (one.id, one.kind, [turn.id for turn in one.turns]) == (
            "talk-small",
            "friends",
            ["D1:1", "D1:2", "D2:1"],
        )
        assert vars(one.turns[2]) == {
            "id": "D2:1",
            "session": "2",
            "speaker": "Mara Lind",
            "time": "2024-03-09T18:30:00",
            "text": "Bright yellow.",
        }
        assert [(query.category, query.gold) for query in one.questions] == [
            ("single", ["D1:1"]),
            ("multi", ["D1:2", "D2:1"]),
        ]
        assert [query.gold for query in one.facts] == [["D2:1"]]
        assert [(query.text, query.gold) for query in one.instructions] == [("What colour", ["D1:2"])]

    def test_facts_and_instructions_go_along_as_json(self, talk: ModuleType, tmp_path: Path) -> None:
        path = tmp_path / "small.txt"
        for text, instructions in ((GOOD, [{"instruction": "What colour", "gold": ["D1:2"]}]), (PLAIN, None)):
            path.write_text(text, encoding="utf-8")
            ((one,), _) = talk.read_files([path])
            (data,) = json.loads(talk.as_json([one]))["conversations"]
            assert data["facts"] == [{"fact": "Mara's kayak is yellow.", "gold": ["D2:1"]}]
            assert data.get("instructions") == instructions

    @pytest.mark.parametrize(
        ("right", "wrong", "said"),
        [
            ("@people", "@persons", ":2 @persons"),
            ("2024-03-01T10:00", "1 March 2024", ":3 session time 1 March 2024"),
            ("1.2 O:", "1.2 X:", ":5 turn: 1.2 X: What colour?"),
            ("1.2 O:", "2.2 O:", ":5 turn: 2.2 O: What colour?"),
            ("1.2 O:", "O:", ":5 turn: O: What colour?"),
            ("1.2 O:", "1.1 O:", "a turn id stands twice"),
            ("single | 1.1 |", "single | 1.9 |", "no turn D1:9 for: What did Mara get?"),
            ("single | 1.1 |", "single | |", "no turn named for: What did Mara get?"),
            ("single | 1.1 |", "singel | 1.1 |", ":9 category singel"),
            ("@questions", "@", ":8 @"),
            ("single | 1.1 |", "single |", ":9 single | What did Mara get?"),
            ("2.1 | Mara's", "3.1 | Mara's", "no turn D3:1 for: Mara's kayak is yellow."),
            ("2.1 | Mara's", "Mara's", ":12 Mara's kayak is yellow."),
            ("1.2 | What colour", "1.2 | Which colour", "not the words of D1:2: Which colour"),
            ("1.2 | What colour", "1.9 | What colour", "no turn D1:9 for: What colour"),
            ("talk-small", "talk-other", "holds talk-other"),
        ],
    )
    def test_a_fault_is_found(self, talk: ModuleType, tmp_path: Path, right: str, wrong: str, said: str) -> None:
        path = tmp_path / "small.txt"
        path.write_text(GOOD.replace(right, wrong, 1), encoding="utf-8")
        _, errors = talk.read_files([path])
        assert f"{path}{said}" in errors or f"{path}: {said}" in errors

    def test_the_command_fails_on_a_fault(self, tmp_path: Path) -> None:
        path = tmp_path / "small.txt"
        path.write_text(GOOD, encoding="utf-8")
        assert script("talk.py", path).returncode == 0
        path.write_text(GOOD.replace("1.1 |", "9.9 |"), encoding="utf-8")
        done = script("talk.py", path)
        assert (done.returncode, "no turn D9:9" in done.stdout) == (1, True)
        assert script("talk.py", "--part", "test").returncode == 2


class TestTheData:
    def test_every_file_is_well_formed(self, talk: ModuleType) -> None:
        found, errors = talk.read_files(sorted(talk.FOLDER.glob("*.txt")))
        assert errors == []
        assert all(one.turns and one.questions and one.facts for one in found)

    def test_parts_are_disjoint_and_name_files(self, talk: ModuleType) -> None:
        split = json.loads((TRAINING / "split.json").read_text(encoding="utf-8"))
        named = [file for part in split.values() for file in part]
        files = {path.stem for path in talk.FOLDER.glob("*.txt")}
        assert set(split) == {"validation", "test"}
        assert len(named) == len(set(named))
        assert files.issuperset(named)
        parts = {part: {one.file for one in talk.load(part)} for part in talk.PARTS}
        assert (parts["validation"], parts["test"]) == (set(split["validation"]), set(split["test"]))
        assert parts["train"] == files.difference(named)

    def test_what_ships_is_the_test_part(self, talk: ModuleType, tmp_path: Path) -> None:
        made = tmp_path / "talk.json"
        assert script("talk.py", "--part", "test", made).returncode == 0
        assert made.read_bytes() == BUILT_IN.read_bytes()
        questions = [len(one.questions) for one in talk.load("test")]
        assert [len(one.questions) for one in load_conversations()] == questions


class RecordingReranker:
    """A reranker that keeps what it is shown."""

    name = "recording"

    def __init__(self) -> None:
        self.shown: list[str] = []

    def scores(self, question: str, texts: Sequence[str]) -> NDArray[np.float32]:
        self.shown += texts
        return np.zeros(len(texts), np.float32)


def test_the_reranker_learns_from_turns_as_recall_shows_them(
    talk: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recall shows fewer words of the turn before; all else is the same."""
    import corpus

    assert reranking.WORDS_BEFORE <= corpus.WORDS_BEFORE
    monkeypatch.setattr(corpus, "WORDS_BEFORE", reranking.WORDS_BEFORE)
    path = tmp_path / "small.txt"
    path.write_text(GOOD.replace("it leaks.", f"it leaks {'badly ' * 40}."), encoding="utf-8")
    (one,) = corpus.talk_streams(talk.read_files([path])[0])
    turns = zip(one.turns, one.speakers, one.sessions, strict=True)
    model = RecordingReranker()
    with eunoe.open(":memory:", embedder="none") as memory:
        memory._engine.reranker.model = model
        memory.observe("user=anna", [{"text": text, "speaker": who, "session": part} for text, who, part in turns])
        memory.recall("user=anna", "Which kayak, what colour, bright yellow?", recipe="thorough")
    assert sorted(model.shown) == sorted(one.reranker_texts)


class TestOverlap:
    def test_nothing_held_back_is_trained_on(self, overlap: ModuleType) -> None:
        bodies, held = overlap.load_bodies([], [], [])
        trained = overlap.TrainedTexts(bodies)
        assert [body.name for body in held] == [
            *("talk, validation", "talk, test", "technical set"),
            *("translations, validation", "questions in other languages"),
        ]
        assert not any(trained.compare(body).is_wrong for body in held)

    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("i bought a KAYAK from the man at the boathouse and, it leaks!", "copies"),
            ("Listen: I bought a kayak from the man at the boathouse, and it never floats, would you believe?", "near"),
            ("I bought a canoe from the woman at the boathouse, and it never leaks.", ""),
            ("Bright yellow.", ""),
        ],
    )
    def test_a_planted_copy_is_found(self, overlap: ModuleType, text: str, found: str) -> None:
        source = "I bought a kayak from the man at the boathouse, and it leaks."
        trained = overlap.TrainedTexts(
            [overlap.TextBody("a", [overlap.PlacedText("a", source), overlap.PlacedText("a", "Bright yellow.")])]
        )
        finding = trained.compare(overlap.TextBody("b", [overlap.PlacedText("b", text)]))
        assert [name for name in ("copies", "near") if getattr(finding, name)] == [found] * bool(found)
        assert finding.is_wrong is bool(found)

    def test_people_and_conversations_are_distinguished(self, overlap: ModuleType) -> None:
        mine = overlap.TextBody("a", [overlap.PlacedText("talk-1", "Hello.")], frozenset({"Mara Lind"}), is_spoken=True)
        trained = overlap.TrainedTexts([mine])
        assert trained.compare(mine).places == ["talk-1"]
        other = overlap.TextBody(
            "b", [overlap.PlacedText("talk-2", "Hello.")], frozenset({"Mara Lind"}), is_spoken=True
        )
        assert (trained.compare(other).places, trained.compare(other).people) == ([], ["Mara Lind"])
        assert trained.compare(other).is_wrong
        stranger = overlap.TextBody(
            "c", [overlap.PlacedText("talk-3", "Hello.")], frozenset({"Otto Brehm"}), is_spoken=True
        )
        assert not trained.compare(stranger).is_wrong

    def test_the_command_fails_on_a_conversation_that_is_trained_on(self, talk: ModuleType, tmp_path: Path) -> None:
        path = tmp_path / "copied.json"
        path.write_text(talk.as_json(talk.load("train")[:1]), encoding="utf-8")
        done = script("overlap.py", "--bench", path)
        assert (done.returncode, "too near: copied.json" in done.stdout) == (1, True)

    def test_documents_have_their_questions_compared(self, tmp_path: Path) -> None:
        path = self._birds(tmp_path, gold=[[n] for n in range(20)])
        done = script("overlap.py", "--trained", path)
        assert (done.returncode, "too near: birds.json, questions kept back" in done.stdout) == (1, True)
        kept = script("overlap.py", "--kept", path)
        assert (kept.returncode, "birds.json, passages that answer: 20 texts" in kept.stdout) == (0, True)

    def test_a_question_that_shares_its_passage_with_one_kept_back_is_not_trained_on(self, tmp_path: Path) -> None:
        done = script("overlap.py", "--trained", self._birds(tmp_path, gold=[[n, 0] for n in range(20)]))
        assert (done.returncode, "birds.json, questions trained on: 0 texts" in done.stdout) == (0, True)

    def _birds(self, folder: Path, gold: list[list[int]]) -> Path:
        """Questions that are worded alike, about passages with one title."""
        passages = [{"title": "Gull", "text": f"Another bird, number {n}."} for n in range(20)]
        questions = [
            {"question": f"Which of the birds on the cliff is the larger one, say {n}?", "gold": rows}
            for n, rows in enumerate(gold)
        ]
        path = folder / "birds.json"
        path.write_text(json.dumps({"name": "birds", "passages": passages, "questions": questions}), encoding="utf-8")
        return path
