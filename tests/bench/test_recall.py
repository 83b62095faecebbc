"""The recall bench: its formats, its figures and its command."""

import json
from pathlib import Path
from typing import Any

import pytest
from bench.__main__ import run_bench
from bench.conversations import BUILT_IN, load_conversations, merge_conversations
from bench.metrics import latency, mean_scores, percentile, ranking_scores

from bench import recall as recall_bench
from eunoe import embed
from eunoe.errors import InputError

PLAIN: dict[str, Any] = {
    "name": "small",
    "conversations": [
        {
            "id": "c1",
            "turns": [
                {"id": "1", "session": "1", "speaker": "Mara", "time": "2024-03-01T10:00", "text": "I bought a kayak."},
                {"id": "2", "session": "1", "speaker": "Otto", "time": "2024-03-01T10:00", "text": "What colour?"},
                {"id": "3", "session": "1", "speaker": "Mara", "time": "2024-03-01T10:01", "text": "Bright yellow."},
                {"id": "4", "session": "2", "speaker": "Otto", "time": "2024-04-02T10:00", "text": "My boiler broke."},
            ],
            "questions": [
                {"id": "q1", "question": "Who bought a kayak?", "gold": ["1"], "category": "single"},
                {"id": "q2", "question": "Whose boiler broke?", "gold": ["4"], "category": "single"},
                {"id": "q3", "question": "Which colour is the kayak?", "gold": ["3", "1"], "category": "multi"},
                {"id": "q4", "question": "Unknown", "gold": ["99"], "category": "multi"},
            ],
        }
    ],
}
LOCOMO = [
    {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Mara",
            "speaker_b": "Otto",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Mara", "dia_id": "D1:1", "text": "Look!", "blip_caption": "a photo of a yellow kayak"},
                {"speaker": "Otto", "dia_id": "D1:2", "text": "My boiler broke."},
            ],
            "session_2_date_time": "9:00 am on 1 June, 2023",
            "session_2": [{"speaker": "Mara", "dia_id": "D2:1", "text": "It is mended."}],
        },
        "qa": [
            {"question": "Whose boiler broke?", "answer": "Otto's", "evidence": ["D1:2; D2:1"], "category": 1},
            {"question": "Nothing to go by", "answer": "", "evidence": [], "category": 5},
        ],
    }
]


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    path = tmp_path / "plain.json"
    path.write_text(json.dumps(PLAIN), encoding="utf-8")
    return path


@pytest.fixture
def locomo(tmp_path: Path) -> Path:
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps(LOCOMO), encoding="utf-8")
    return path


def test_the_plain_format(plain: Path) -> None:
    (conversation,) = load_conversations(plain)
    assert [turn.id for turn in conversation.turns] == ["1", "2", "3", "4"]
    assert [question.id for question in conversation.questions] == ["q1", "q2", "q3"]


def test_locomos_own_file(locomo: Path) -> None:
    (conversation,) = load_conversations(locomo)
    first, _, last = conversation.turns
    assert (first.caption, first.session) == ("a photo of a yellow kayak", "1")
    assert first.time is not None
    assert first.time.isoformat() == "2023-05-08T13:56:00+00:00"
    assert last.session == "2"
    assert [question.gold for question in conversation.questions] == [("D1:2", "D2:1")]


def test_together_keeps_turns_sessions_and_gold_apart(plain: Path, locomo: Path) -> None:
    merged = merge_conversations([*load_conversations(plain), *load_conversations(locomo)])
    assert len({turn.id for turn in merged.turns}) == 7
    assert {turn.session for turn in merged.turns} == {"c1/1", "c1/2", "conv-1/1", "conv-1/2"}
    known = {turn.id for turn in merged.turns}
    assert all(known.issuperset(question.gold) for question in merged.questions)


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"conversations": []}', '{"conversations": [{"id": 1}]}', "5"])
def test_what_is_no_conversation_file_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=r"bad\.json"):
        load_conversations(path)


def test_figures() -> None:
    scores = ranking_scores(["a", "b", "c", "d", "e", "f"], ["b", "f", "z"])
    assert scores["recall@5"] == pytest.approx(100 / 3)
    assert scores["recall@10"] == pytest.approx(200 / 3)
    assert scores["hit@10"] == 100
    assert 0 < scores["ndcg@10"] < 100
    assert ranking_scores(["a"], ["a"])["ndcg@10"] == 100
    assert mean_scores([{"x": 1.0}, {"x": 2.0}]) == {"x": 1.5}
    assert (percentile([3.0, 1.0, 2.0], 0.5), percentile([1.0, 2.0], 0.5), percentile([], 0.5)) == (2.0, 1.5, 0.0)
    assert latency([1.0, 2.0, 3.0]) == {"p50": 2.0, "p95": 2.9}


@pytest.mark.parametrize("embedder", ["auto", "none"])
def test_a_run(plain: Path, embedder: str) -> None:
    calls: list[tuple[int, int]] = []
    result = recall_bench.measure(plain, embedder=embedder, progress=lambda done, total: calls.append((done, total)))
    assert result["turn"]["recall@5"] == 100
    assert set(result["turn"]) == {"recall@5", "recall@10", "recall@20", "hit@10", "ndcg@10"}
    assert set(result["session"]) == set(result["turn"])
    assert set(result["by_category"]) == {"single", "multi"}
    assert set(result["latency_ms"]) == {"embed_p50", "search_p50", "search_p95"}
    assert (result["embedder"], result["recipe"]) == (
        "none" if embedder == "none" else embed.load_embedder().name,
        "default",
    )
    assert calls[-1] == (3, 3)


def test_recall_by_kind_of_conversation(tmp_path: Path) -> None:
    first = PLAIN["conversations"][0]
    path = tmp_path / "kinds.json"
    kinds = [first | {"kind": "friends"}, first | {"id": "c2", "kind": "work"}, first | {"id": "c3"}]
    path.write_text(json.dumps({"conversations": kinds}), encoding="utf-8")
    for merge in (False, True):
        result = recall_bench.measure(path, embedder="none", merge=merge)
        assert {name: one["questions"] for name, one in result["by_kind"].items()} == {"friends": 3, "work": 3}
        assert set(result["by_kind"]["work"]) == {"questions", *result["turn"]}
        assert result["questions"] == 9


def test_without_a_file_the_conversations_in_the_package_are_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_bench(["recall", "--embedder", "none", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    asked = json.loads(BUILT_IN.read_text(encoding="utf-8"))["conversations"]
    assert result["questions"] == sum(len(one["questions"]) for one in asked)
    assert set(result["by_kind"]) == {one["kind"] for one in asked}
    assert result["turn"]["recall@10"] > 40


def test_the_command_prints_json(plain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_bench(["recall", str(plain), "--json", "--together", "--recipe", "lexical"]) == 0
    assert json.loads(capsys.readouterr().out)["recipe"] == "lexical"


def test_the_command_prints_a_table(plain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_bench(["recall", str(plain)]) == 0
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("sessions", "single", "multi"))


def test_a_missing_file_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_bench(["recall", str(tmp_path / "none.json")]) == 1
    assert capsys.readouterr().err.count("\n") == 1
