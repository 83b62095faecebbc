"""The learning bench: which turns count as kept, which instructions as held, labelled turns, and its command."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from bench.__main__ import run_bench
from bench.conversations import BUILT_IN, read_conversations
from bench.labelled_turns import DROPPED_KINDS, label_figures, load_labelled_turns
from bench.learning import holds_words
from bench.metrics import f1_scores, precision_at_recall

from bench import labelled_turns as labelled_turns_bench
from bench import learning as learning_bench
from eunoe import embed
from eunoe.errors import InputError
from eunoe.form.turns import Judgement, TurnReading
from eunoe.model.arguments import KEPT_KINDS, TURN_KINDS
from eunoe.model.turn import Turn

ALLERGY, ORDER = "I am allergic to peanuts.", "From now on always answer me in German."
CHAT: dict[str, Any] = {
    "id": "c1",
    "kind": "assistant",
    "turns": [
        {"id": "1", "session": "s1", "speaker": "User", "time": "2024-03-01T10:00", "text": f"Hello! {ALLERGY}"},
        {"id": "2", "session": "s1", "speaker": "Assistant", "time": "2024-03-01T10:01", "text": "Noted."},
        {"id": "3", "session": "s1", "speaker": "User", "time": "2024-03-01T10:02", "text": f"Lovely day. {ORDER}"},
        {"id": "4", "session": "s2", "speaker": "User", "time": "2024-03-09T10:00", "text": "Thanks!"},
        {"id": "5", "session": "s2", "speaker": "Assistant", "time": "2024-03-09T10:01", "text": "Any time."},
    ],
    "questions": [
        {"id": "q1", "question": "Which language do I want?", "gold": ["3"], "category": "instruction"},
        {"id": "q2", "question": "What must I not eat?", "gold": ["1"], "category": "single"},
    ],
    "facts": [
        {"fact": "The user is allergic to peanuts.", "gold": ["1"]},
        {"fact": "The user is glad.", "gold": ["4", "99"]},
        {"fact": "About no turn.", "gold": ["99"]},
    ],
    "instructions": [{"instruction": "always answer me in German", "gold": ["3"]}],
}
PEOPLE: dict[str, Any] = {
    "id": "c2",
    "kind": "people",
    "turns": [{"id": "1", "speaker": "Mara", "text": "My sister Lea moved to Turin in 2021."}],
    "questions": [],
    "facts": [{"fact": "Lea lives in Turin.", "gold": ["1"]}],
}
LABELLED = """\
# genre: a test

instruction | user | Here is the recipe. | From now on always answer me in German.
fact | person | Where do you live? | I live in Turin with my sister Lea.
nothing | user | - | Thanks!
request | user |  | What time is it?
"""


def write(path: Path, *conversations: dict[str, Any]) -> Path:
    path.write_text(json.dumps({"conversations": conversations}), encoding="utf-8")
    return path


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    return write(tmp_path / "chat.json", CHAT, PEOPLE)


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    path = tmp_path / "turns.txt"
    path.write_text(LABELLED, encoding="utf-8")
    return path


class TestConversations:
    @pytest.mark.parametrize("embedder", ["auto", "none"])
    def test_a_run(self, chat: Path, embedder: str) -> None:
        calls: list[tuple[int, int]] = []
        result = learning_bench.measure(
            chat, embedder=embedder, progress=lambda done, total: calls.append((done, total))
        )
        turns = result["turns"]
        assert (turns["turns"], turns["gold"]) == (6, 3)
        assert 1 <= turns["kept"] <= 6
        assert set(turns) == {"turns", "gold", "kept", "precision", "recall", "f1", "precision@65"}
        assert result["instructions"]["count"] == 1
        assert result["formed"]["facts"] + result["formed"]["observations"] >= 1
        assert result["embedder"] == ("none" if embedder == "none" else embed.load_embedder().name)
        assert calls == [(1, 3), (2, 3), (3, 3)]

    def test_what_rules_learn(self, chat: Path) -> None:
        result = learning_bench.measure(chat, embedder="none")
        assert result["turns"]["recall"] == pytest.approx(200 / 3, abs=0.01)
        assert result["turns"]["precision"] >= 50
        assert result["instructions"] == {"count": 1, "always": 100.0, "mean": 100.0}

    def test_figures_by_kind_of_conversation(self, chat: Path) -> None:
        by_kind = learning_bench.measure(chat, embedder="none")["by_kind"]
        assert {name: own["turns"]["turns"] for name, own in by_kind.items()} == {"assistant": 5, "people": 1}
        assert by_kind["people"]["turns"]["f1"] == 100.0
        assert by_kind["assistant"]["instructions"]["count"] == 1
        assert by_kind["people"]["instructions"] is None

    def test_an_instruction_is_looked_for_in_later_sessions_and_with_every_question(self, chat: Path) -> None:
        (row,) = learning_bench.measure(chat, embedder="none")["each_instruction"]
        # One message of the user in the second session, and two questions afterwards.
        assert (row["conversation"], row["turn"], row["contexts"], row["held"]) == ("c1", "3", 3, 100.0)
        assert row["words"] == "always answer me in German"

    def test_without_marks_any_sentence_of_a_turn_that_is_asked_for_will_do(self, tmp_path: Path) -> None:
        path = write(tmp_path / "plain.json", {name: value for name, value in CHAT.items() if name != "instructions"})
        (conversation,) = read_conversations(path)
        assert [(each.turn, each.quotes) for each in conversation.instructions] == [("3", ("Lovely day.", ORDER))]
        assert learning_bench.measure(path, embedder="none")["instructions"]["always"] == 100.0

    def test_what_cannot_be_measured_is_refused(self, tmp_path: Path) -> None:
        path = write(tmp_path / "bare.json", PEOPLE | {"facts": []})
        with pytest.raises(InputError, match="neither facts nor questions about instructions"):
            learning_bench.measure(path)

    @pytest.mark.parametrize(
        "odd", [{"facts": 5}, {"facts": ["Lea"]}, {"facts": [{"fact": "no gold"}]}, {"instructions": [{"gold": ["1"]}]}]
    )
    def test_odd_facts_are_refused(self, tmp_path: Path, odd: dict[str, Any]) -> None:
        with pytest.raises(InputError, match=r"odd\.json cannot be asked"):
            learning_bench.measure(write(tmp_path / "odd.json", PEOPLE | odd))

    def test_locomos_own_observations_are_facts(self, tmp_path: Path) -> None:
        talk = {
            "sample_id": "conv-1",
            "conversation": {
                "session_1": [
                    {"speaker": "Mara", "dia_id": "D1:1", "text": "Hi!"},
                    {"speaker": "Otto", "dia_id": "D1:2", "text": "My boiler broke."},
                ]
            },
            "observation": {
                "session_1_observation": {"Otto": [["Otto's boiler broke.", "D1:2"], ["Both.", ["D1:1", "D1:2"]]]}
            },
            "qa": [],
        }
        path = tmp_path / "locomo.json"
        path.write_text(json.dumps([talk]), encoding="utf-8")
        (conversation,) = read_conversations(path)
        assert [fact.gold for fact in conversation.facts] == [("D1:2",), ("D1:1", "D1:2")]
        assert learning_bench.measure(path, embedder="none")["turns"]["gold"] == 2

    def test_the_conversations_in_the_package_have_facts_and_instructions(self) -> None:
        conversations = read_conversations(BUILT_IN)
        assert all(each.facts and each.kind for each in conversations)
        texts = {(each.id, turn.id): turn.text for each in conversations for turn in each.turns}
        instructions = [(each.id, own) for each in conversations for own in each.instructions]
        assert len(instructions) > 20
        assert all(own.quotes[0] in texts[id, own.turn] for id, own in instructions)


class TestFigures:
    def test_words_are_held_by_one_line_for_each_sentence(self) -> None:
        context = (
            "<UserMemory>\n- Anna: Salt &amp; pepper, never sugar! (2024)\n- Anna: I live in Turin.\n</UserMemory>"
        )
        assert holds_words(context, ["salt & pepper, NEVER sugar"])
        assert holds_words(context, ["Never sugar. I live in Turin"])
        assert holds_words(context, ["nothing of the kind", "I live in Turin"])
        assert not holds_words(context, ["never sugar in Turin"])
        assert not holds_words(context, ["never honey"])

    def test_scores(self) -> None:
        assert f1_scores(0, 0, 0) == {"precision": 0.0, "recall": 0.0, "f1": 0.0}
        assert f1_scores(3, 4, 6) == {"precision": 75.0, "recall": 50.0, "f1": 60.0}

    def test_precision_at_a_recall(self) -> None:
        ranked = [(0.2, True), (0.9, True), (0.5, False), (0.7, True)]
        assert precision_at_recall(65, ranked) == 100.0
        assert precision_at_recall(100, ranked) == 75.0
        assert precision_at_recall(65, [(1.0, True), (1.0, False)]) == 50.0
        assert precision_at_recall(65, []) == 0.0

    def test_figures_of_labels(self) -> None:
        judged = [("fact", "fact"), ("fact", "plan"), ("plan", "nothing"), ("nothing", "nothing"), ("request", "fact")]
        figures = label_figures(judged)
        assert list(figures) == ["kept", "dropped", "macro_f1", "kinds"]
        assert figures["kept"] == {"precision": 66.67, "recall": 66.67, "f1": 66.67}
        assert figures["dropped"] == {"precision": 50.0, "recall": 50.0, "f1": 50.0}
        assert figures["kinds"]["fact"] == {"precision": 50.0, "recall": 50.0, "f1": 50.0, "count": 2}
        assert figures["kinds"]["change"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "count": 0}
        # The mean of the four kinds that occur: 50, 0, 66.67 and 0.
        assert figures["macro_f1"] == 29.17
        assert (*KEPT_KINDS, *DROPPED_KINDS) == TURN_KINDS == tuple(figures["kinds"])


class TestLabelledTurns:
    def test_the_format(self, labelled: Path) -> None:
        turns = load_labelled_turns(labelled)
        assert [turn.kind for turn in turns] == ["instruction", "fact", "nothing", "request"]
        assert [[(each.role, each.speaker) for each in turn.messages] for turn in turns] == [
            [("assistant", ""), ("user", "")],
            [("user", "Other"), ("user", "One")],
            [("user", "")],
            [("user", "")],
        ]

    def test_a_file_with_a_mark_and_windows_line_ends(self, tmp_path: Path) -> None:
        path = tmp_path / "windows.txt"
        path.write_bytes(b"\xef\xbb\xbffact | agent | - | The queue is empty.\r\n\r\n")
        (turn,) = load_labelled_turns(path)
        assert (turn.kind, turn.text, turn.messages[0].role) == ("fact", "The queue is empty.", "agent")

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            ("fact | user | -", "turns.txt:1: not KIND | ROLE | BEFORE | TURN: fact | user | -"),
            ("# one\nfact | user | - | Hi | ho", "turns.txt:2: not KIND | ROLE | BEFORE | TURN"),
            ("\n\nopinion | user | - | Hm.", "turns.txt:3: there is no kind 'opinion', only instruction, preference"),
            ("fact | users | - | Hm.", "turns.txt:1: there is no role 'users', only user, assistant, person, agent"),
            ("fact | user | - | ", "turns.txt:1: "),
            ("", "has no labelled turn"),
            ("# only a comment\n\n", "has no labelled turn"),
        ],
    )
    def test_a_fault_is_named_with_its_line(self, tmp_path: Path, content: str, said: str) -> None:
        path = tmp_path / "turns.txt"
        path.write_text(content, encoding="utf-8")
        with pytest.raises(InputError) as raised:
            load_labelled_turns(path)
        assert said in str(raised.value)

    @pytest.mark.parametrize("embedder", ["auto", "none"])
    def test_a_run(self, labelled: Path, embedder: str) -> None:
        calls: list[tuple[int, int]] = []
        result = labelled_turns_bench.measure([labelled], embedder=embedder, progress=lambda *done: calls.append(done))
        assert list(result) == ["kept", "dropped", "macro_f1", "kinds"]
        assert result["kinds"]["instruction"]["f1"] == 100.0
        assert result["kinds"]["request"]["count"] == 1
        assert calls == [(1, 4), (2, 4), (3, 4), (4, 4)]

    def test_several_files_have_figures_each_and_together(self, labelled: Path, tmp_path: Path) -> None:
        other = tmp_path / "other.txt"
        other.write_text("nothing | user | - | Thanks!\n", encoding="utf-8")
        result = labelled_turns_bench.measure([labelled, other], embedder="none")
        assert list(result) == ["files", "together"]
        assert list(result["files"]) == [str(labelled), str(other)]
        assert result["files"][str(other)]["kinds"]["nothing"]["count"] == 1
        assert result["together"]["kinds"]["nothing"]["count"] == 2
        assert result["files"][str(labelled)] == labelled_turns_bench.measure([labelled], embedder="none")


class LengthReader:
    """Takes what is long for facts, and does not know what to say of thanks."""

    def __init__(self, embedder: object) -> None:
        pass

    def read(self, turns: Sequence[Turn]) -> list[TurnReading]:
        return [TurnReading(turn, (), None if turn.text == "Thanks!" else self._judge(turn.text)) for turn in turns]

    def _judge(self, text: str) -> Judgement:
        return Judgement("fact" if len(text) > 20 else "nothing", {}, len(text))


class TestAJudge:
    def test_it_ranks_turns(self, chat: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("bench.labelled_turns.TurnReader", LengthReader)
        turns = learning_bench.measure(chat, embedder="none")["turns"]
        # Two of the three gold turns are among the three longest, the third has no rank.
        assert turns["precision@65"] == 66.67
        assert turns["recall"] == pytest.approx(200 / 3, abs=0.01)

    def test_it_names_kinds(self, labelled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("bench.labelled_turns.TurnReader", LengthReader)
        kinds = labelled_turns_bench.measure([labelled], embedder="none")["kinds"]
        assert {name: own["recall"] for name, own in kinds.items() if own["count"]} == {
            "instruction": 0.0,
            "fact": 100.0,
            "request": 0.0,
            "nothing": 100.0,
        }
        assert kinds["nothing"]["precision"] == 50.0


class TestTheCommand:
    def test_json(self, chat: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run_bench(["learning", str(chat), "--embedder", "none", "--json"]) == 0
        printed = json.loads(capsys.readouterr().out)
        assert printed["turns"]["gold"] == 3
        assert printed["by_kind"].keys() == {"assistant", "people"}

    def test_a_table(self, chat: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run_bench(["learning", str(chat), "--embedder", "none"]) == 0
        printed = capsys.readouterr().out
        assert all(word in printed for word in ("precision", "assistant", "people", "always answer me in German"))

    def test_labelled_turns_as_json(self, labelled: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run_bench(["learning", str(labelled), "--embedder", "none", "--json"]) == 0
        printed = json.loads(capsys.readouterr().out)
        assert list(printed) == ["kept", "dropped", "macro_f1", "kinds"]
        assert list(printed["kinds"]) == list(TURN_KINDS)
        assert list(printed["kinds"]["plan"]) == ["precision", "recall", "f1", "count"]

    @pytest.mark.parametrize("name", ["none.txt", "none.json"])
    def test_a_missing_file_is_one_line(self, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert run_bench(["learning", str(tmp_path / name)]) == 1
        assert capsys.readouterr().err.count("\n") == 1

    @pytest.mark.parametrize("names", [("chat.json", "turns.txt"), ("chat.json", "chat2.json")])
    def test_files_that_do_not_go_together_are_misuse(
        self, tmp_path: Path, names: tuple[str, ...], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run_bench(["learning", *(str(tmp_path / name) for name in names)]) == 2
        assert "one file of conversations" in capsys.readouterr().err
