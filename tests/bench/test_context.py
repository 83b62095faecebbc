"""The context bench: what counts as held, its figures and its command."""

import json
from pathlib import Path
from typing import Any

import pytest
from bench.__main__ import run_bench
from bench.context import ContextAnswer, context_figures, holds_gold
from bench.conversations import join_turns, load_conversations

from bench import context as context_bench
from eunoe import embed
from eunoe.model.arguments import utc_now
from eunoe.model.atom import Record
from eunoe.model.result import Context, Hit
from eunoe.model.scope import Scope
from eunoe.text.sentences import token_count

BOILER = "My boiler broke."
GOODBYE = ["Oh dear.", "Quite.", "Goodbye then.", "See you."]
"""A context leaves out the last four messages, which the host has before it."""
PLAIN: dict[str, Any] = {
    "name": "small",
    "conversations": [
        {
            "id": "c1",
            "turns": [
                {"id": "1", "session": "1", "speaker": "Mara", "time": "2024-03-01T10:00", "text": "I bought a kayak."},
                {"id": "2", "session": "1", "speaker": "Otto", "time": "2024-03-01T10:00", "text": "What colour?"},
                {"id": "3", "session": "1", "speaker": "Mara", "time": "2024-03-01T10:01", "text": "Bright yellow."},
                {"id": "4", "session": "2", "speaker": "Otto", "time": "2024-04-02T10:00", "text": BOILER},
                *(
                    {"id": f"{place}", "session": "2", "speaker": "Otto", "time": "2024-04-02T10:01", "text": text}
                    for place, text in enumerate(GOODBYE, 5)
                ),
            ],
            "questions": [
                {"id": "q1", "question": "Who bought a kayak?", "gold": ["1"], "category": "single"},
                {"id": "q2", "question": "Whose boiler broke?", "gold": ["4"], "category": "single"},
                {"id": "q3", "question": "Which colour is the kayak?", "gold": ["3"], "category": "multi"},
                {"id": "q4", "question": "Unknown", "gold": ["99"], "category": "multi"},
            ],
        }
    ],
}
BAD = ["{", "[]", "{}", '{"conversations": []}', '{"conversations": [{"id": 1}]}', "5"]


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    path = tmp_path / "plain.json"
    path.write_text(json.dumps(PLAIN), encoding="utf-8")
    return path


def answer(hit: bool, tokens: int, ms: float, category: str = "", foreign: int | None = None) -> ContextAnswer:
    scores = {"recall@10": 100.0 * hit}
    return ContextAnswer(category, hit, tokens, ms, not hit, hit, scores, scores, tokens, foreign)


def test_a_gold_turn_is_held_if_it_was_recalled() -> None:
    record = Record("message", "3", b"", "Bright yellow.", utc_now())
    hit = Hit(record, Scope(user="mara"), 0.5, lambda: ())
    context = Context(text="", tokens=0, hits=(hit,))
    assert holds_gold(context, ["1", "3"], {"1": "I bought a kayak.", "3": "Bright yellow."})
    assert not holds_gold(context, ["1"], {"1": "I bought a kayak."})


def test_a_gold_turn_is_held_if_its_words_stand_anywhere_in_the_text() -> None:
    context = Context(text="<UserMemory>\n- Mara: Salt &amp;\n  pepper, please. (2024)\n</UserMemory>", tokens=20)
    assert holds_gold(context, ["1"], {"1": "Salt & pepper,   please."})
    assert not holds_gold(context, ["1"], {"1": "Salt & pepper!"})


def test_figures() -> None:
    answers = [answer(True, 100, 1.0, "a"), answer(True, 50, 3.0, "b"), answer(False, 30, 2.0, "b")]
    result = context_figures(answers, 120)
    assert result["hit"] == 66.67
    assert (result["tokens_mean"], result["tokens_most"], result["tokens"]) == (60.0, 100, 120)
    assert result["by_category"] == {"a": {"questions": 1, "hit": 100.0}, "b": {"questions": 2, "hit": 50.0}}
    assert result["latency_ms"]["p50"] == 2.0
    assert result["beside"] == {"latest turns": 33.33, "keyword search": 66.67}
    assert result["recall"]["log"]["recall@10"] == pytest.approx(66.67, abs=0.01)
    assert result["recalled"] == {"own": {"tokens_mean": 60.0, "nothing": 0.0}, "foreign": None}
    assert result["questions"] == 3


def test_questions_about_another_conversation_have_figures_of_their_own() -> None:
    result = context_figures([answer(True, 100, 1.0, foreign=0), answer(True, 50, 3.0, foreign=30)], 120)
    assert result["recalled"]["foreign"] == {"tokens_mean": 15.0, "nothing": 50.0}


def test_another_conversation_is_asked_about_where_there_is_one(tmp_path: Path) -> None:
    garden = {
        "id": "c2",
        "turns": [{"id": f"{n}", "speaker": "Ida", "text": f"The tulip bed number {n} is dry."} for n in range(8)],
        "questions": [{"id": "q1", "question": "Which tulip bed is dry?", "gold": ["0"]}],
    }
    path = tmp_path / "two.json"
    path.write_text(json.dumps({"conversations": [*PLAIN["conversations"], garden]}), encoding="utf-8")
    recalled = context_bench.measure(path, embedder="none")["recalled"]
    assert recalled["own"]["nothing"] < 50
    assert recalled["foreign"] == {"tokens_mean": 0.0, "nothing": 100.0}


@pytest.mark.parametrize("embedder", ["auto", "none"])
def test_a_run(plain: Path, embedder: str) -> None:
    calls: list[tuple[int, int]] = []
    result = context_bench.measure(plain, embedder=embedder, progress=lambda done, total: calls.append((done, total)))
    assert (result["hit"], result["questions"]) == (100.0, 3)
    assert 0 < result["tokens_mean"] <= result["tokens_most"] <= 2000
    assert result["beside"]["latest turns"] == 100.0
    assert result["recall"]["log and formed"]["recall@10"] >= result["recall"]["log"]["recall@10"] == 100.0
    assert set(result["recall"]["log"]) == {"recall@5", "recall@10", "hit@10", "ndcg@10"}
    if embedder == "none":  # the kind model finds nothing there that is worth keeping
        assert result["formed"]["facts"] + result["formed"]["observations"] > 0
    assert result["embedder"] == ("none" if embedder == "none" else embed.load_embedder().name)
    assert calls == [(1, 3), (2, 3), (3, 3)]


def test_the_latest_turns_are_those_that_fit(plain: Path) -> None:
    result = context_bench.measure(plain, tokens=sum(map(token_count, [BOILER, *GOODBYE])), embedder="none")
    assert result["beside"]["latest turns"] == 33.33
    result = context_bench.measure(plain, tokens=sum(map(token_count, GOODBYE)), embedder="none")
    assert result["beside"]["latest turns"] == 0.0


def test_the_command_prints_json(plain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--tokens", "300", "--embedder", "none", "--recipe", "thorough", "--json"]
    assert run_bench(["context", str(plain), *options]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["hit"], printed["tokens"], printed["recipe"]) == (100.0, 300, "thorough")
    assert 0 < printed["tokens_mean"] <= 300


def test_the_command_prints_a_table(plain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_bench(["context", str(plain), "--embedder", "none"]) == 0
    printed = capsys.readouterr().out
    assert "100.0 %" in printed
    assert "keyword search" in printed


def test_turns_are_joined_to_long_messages_and_gold_turns_stay_what_they_were(plain: Path) -> None:
    [conversation] = load_conversations(plain)
    long = join_turns(conversation, 800)
    assert [turn.text.count("\n") for turn in long.turns[:2]] == [2, 4]
    assert long.turns[0].text == "Mara: I bought a kayak.\nOtto: What colour?\nMara: Bright yellow."
    assert [(asked.gold, asked.quotes) for asked in long.questions] == [
        (("1",), ("I bought a kayak.",)),
        (("4",), ("My boiler broke.",)),
        (("1",), ("Bright yellow.",)),
    ]
    short = join_turns(conversation, 4)
    assert [turn.text for turn in short.turns[:2]] == [
        "Mara: I bought a kayak.",
        "Otto: What colour?\nMara: Bright yellow.",
    ]
    assert context_bench.measure(plain, words=800, embedder="none")["hit"] == 100.0
