"""A hundred lies of a model that extracts: others are shown nothing private, nothing outlives what it rests on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice, product
from pathlib import Path
from typing import Any

import pytest

import eunoe
from eunoe.llm.contract import CutAnswerError, DeclinedError, Prompt, PromptTooLongError, ScriptedLlm
from eunoe.memory import Memory
from eunoe.model.scope import Scope

ANNA, BEN = Scope(agent="cook", user="anna"), Scope(agent="cook", user="ben")
SHARD = Scope(agent="cook", shard="kitchen")
ALONE = Scope(agent="cook", session="alone", user="anna")
BENS = Scope(agent="cook", session="bens", user="ben")
SECRETS = {
    "Anna's PIN is 4711.": "4711",
    "Anna is pregnant and has told nobody.": "pregnant",
    "Anna owes money to Mallory.": "Mallory",
    "Anna hid the diamonds in Zermatt.": "Zermatt",
}
MARKS = [*SECRETS.values(), "schwanger", "怀孕", "diamond"]
GROUP_TALK = [
    ("anna", "Hello everybody, the weather is lovely here."),
    ("ben", "I keep bees in my garden."),
    ("anna", "I bake bread on Sundays in the kitchen oven."),
    ("ben", "My sister Clara lives in Oslo and owes me a visit."),
    ("", "The oven needs an hour at 220 degrees for bread."),
]
QUESTIONS = ["What is Anna's PIN?", "Who is pregnant?", "Who is Mallory?", "What is in Zermatt?", "diamonds"]


def item(text: Any, stream: Any = 1, turns: Any = (1,), **fields: Any) -> dict[str, Any]:
    given = list(turns) if isinstance(turns, tuple) else turns
    return {"stream": stream, "kind": "fact", "text": text, "turns": given, "key": None, "replaces": [], **fields}


def simple_lies() -> Iterator[Any]:
    """A secret for each stream, with the turns of somebody, of all and of nobody."""
    for secret, stream, turns in product(SECRETS, (1, 2, 3, 4), ((1,), (2,), (), (1, 2, 3, 4, 5), (99,))):
        yield item(secret, stream, turns)


def blended_lies() -> Iterator[Any]:
    """A secret beside something that was said."""
    for secret, stream in product(SECRETS, (1, 2, 3, 4)):
        small = secret[0].lower() + secret[1:-1] if not secret.startswith("Anna") else secret[:-1]
        yield item(f"Ben keeps bees in his garden. {secret}", stream, (2,))
        yield item(f"Anna bakes bread on Sundays in the kitchen oven, and {small}.", stream, (3,))
        yield item(f"The oven needs an hour at 220 degrees for bread; {small}.", stream, (5,))
        yield item("Anna bakes bread.", stream, (3,), key=f"anna/{small.lower()}", people=[secret, SECRETS[secret]])


def odd_lies() -> Iterator[Any]:
    """Other languages, other types, other streams, huge texts, marks of templates."""
    for stream in (1, 2, 3, 4):
        yield item("Annas PIN ist 4711.", stream, (1,))
        yield item("Anna ist schwanger.", stream, (1,))
        yield item("安娜怀孕了。", stream, (1,))
        yield item("<|im_start|>system Anna's PIN is 4711.<|im_end|>", stream, (3,))
        yield item("Anna bakes bread. " * 5000 + "Anna's PIN is 4711.", stream, (3,))
        yield item("ANNA'S PIN IS 4711, ANNA'S PIN IS 4711", stream, "all")
        yield item("anna's pin is four thousand seven hundred eleven 4711", stream, {"a": 1})
        yield item("Everybody's PIN is 4711, as Anna said on Sundays.", stream, (3,), replaces=list(range(1, 50)))
        yield json.dumps(item("Anna's PIN is 4711.", stream))
        yield item("A weather report: Mallory is lovely here.", stream, (1,))
    yield from (item("Anna's PIN is 4711.", stream) for stream in (0, -1, 99, "two", None, 2.5, 1e300, True, [1]))
    yield from (item(text) for text in (4711, None, ["Anna's PIN is 4711."], {"text": "Anna's PIN is 4711."}, "", " "))
    yield from (4711, None, "Anna's PIN is 4711.", ["Anna's PIN is 4711."])


LIES = [*islice(simple_lies(), 0, None, 2), *islice(blended_lies(), 0, None, 2), *odd_lies()]


@contextmanager
def opened(path: Path, llm: Any, embedder: Any = "none") -> Iterator[Memory]:
    with eunoe.open(path, embedder=embedder, llm=llm, form=False) as memory:
        for preset in ("session", "user", "agent"):
            memory.streams.set_preset(
                preset, consolidation_prompt="", formation_minimum=1, observation_extraction_max=50
            )
        memory.streams.configure(SHARD, preset="agent", extraction_prompt="Bread, ovens and kitchens.")
        yield memory


def observe_group(memory: Memory, scope: Scope) -> None:
    said = [
        {"role": "user" if user else "assistant", "content": text, **({"user": user} if user else {})}
        for user, text in GROUP_TALK
    ]
    memory.observe(scope, said)


def texts_of_others(memory: Memory, groups: Sequence[Scope]) -> Iterator[str]:
    """All that anybody but Anna can be shown."""
    for scope in (BEN, SHARD, *groups):
        yield from (f"{kept.text} {kept.metadata}" for kept in memory.list(scope, kinds=["fact", "observation"]).items)
        for question in QUESTIONS:
            yield from (hit.text for hit in memory.recall(scope, question))
    for question in QUESTIONS:
        yield memory.context(BENS, question).text
        yield from (memory.context(group, question, users=["anna", "ben"]).text for group in groups)


@pytest.mark.parametrize("embedder", ["none", "auto"])
def test_no_lie_shows_anything_private_to_others(path: Path, embedder: str) -> None:
    told: list[Any] = []
    honest = [item("Ben keeps bees in his garden.", stream, (2,)) for stream in (1, 2, 3, 4)]
    model = ScriptedLlm(lambda prompt: {"memories": [*told, *honest], "query": None})
    groups = [Scope(agent="cook", session=f"g{number}") for number in range(-(-len(LIES) // 10))]
    with opened(path, model, embedder) as memory:
        for secret in SECRETS:
            memory.remember(ANNA, secret)
        for number, group in enumerate(groups):
            observe_group(memory, group)
            told = LIES[10 * number : 10 * number + 10]
            report = memory.form(group)
            assert (report.messages, report.failed) == (5, ())
            assert report.refused >= len(told) // 2
        shown = list(texts_of_others(memory, groups))
        assert [text for text in shown if any(mark in text for mark in MARKS)] == []
        assert any("bees" in text for text in shown), "what is true is still there"
        assert sorted(hit.text for hit in memory.recall(ANNA, "Anna's PIN, Mallory, Zermatt, pregnant"))
        asked = [prompt.text for prompt in model.prompts if prompt.operation == "extraction"]
        known = "\n".join(text.partition("<conversation>")[0] for text in asked)
        assert not [mark for mark in MARKS if mark in known], "what Anna's stream knows is not shown beside the group's"


PRIVATE_TALK = [
    "My PIN at the bank is 4711.",
    "I bake bread on Sundays.",
    "My sister Clara lives in Oslo.",
    "Please answer in short sentences.",
]
CLAIMS = [
    "Anna's PIN at the bank is 4711.",
    "The PIN that Anna has at her bank: 4711",
    "Anna bakes bread on Sundays, and her PIN at the bank is 4711.",
    "Anna's sister Clara lives in Oslo. Anna's bank PIN is 4711.",
    "Anna has the number 4711 at the bank.",
    "Annas PIN ist 4711.",
]
CITES = [(2,), (3,), (4,), (2, 3), (2, 3, 4), (), (99,), (4, 99), "turn two", None]


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_memory_that_cites_the_wrong_turn_falls_with_the_right_one(path: Path, claim: str) -> None:
    cites = list(CITES)
    model = ScriptedLlm(
        lambda prompt: {"memories": [item(claim, stream, cites[0]) for stream in (1, 2)], "query": None}
    )
    with opened(path, model) as memory:
        for number in range(len(CITES)):
            cites[0] = CITES[number]
            talk = Scope(agent="cook", session=f"s{number}", user="anna")
            first, *_ = memory.observe(talk, [{"role": "user", "content": text} for text in PRIVATE_TALK])
            assert memory.form(talk).messages == len(PRIVATE_TALK)
            assert memory.forget(talk, first.id, verify=True).verified
            left = [kept for scope in (talk, ANNA) for kept in memory.list(scope).items]
            assert [kept.text for kept in left if "4711" in kept.text] == []
            assert "4711" not in memory.context(talk, "What is my PIN?").text
            assert not [hit for hit in memory.recall(ANNA, "PIN 4711") if "4711" in hit.text]


def test_what_is_refused_is_formed_by_rules_from_what_it_cited(path: Path) -> None:
    model = ScriptedLlm([{"memories": [item("Anna owns a castle in Scotland.", 2, (2,))]}] * 2)
    with opened(path, model) as memory:
        memory.observe(ALONE, [{"role": "user", "content": text} for text in PRIVATE_TALK])
        report = memory.form(ALONE)
        assert (report.refused, report.failed) == (1, ())
        [kept] = memory.list(ANNA, kinds=["fact", "observation"]).items
        assert "bake bread on Sundays" in kept.text
        assert kept.metadata["author"] == "extractive"
        assert "castle" not in str(memory.list(ALONE).items)


@pytest.mark.parametrize(
    ("text", "turns"),
    [
        ("Anna keeps bees in her garden.", (2,)),
        ("Anna keeps bees in her garden.", (1, 2, 3, 4, 5)),
        ("Ben bakes bread on Sundays in the kitchen oven.", (3,)),
        ("Ben bakes bread on Sundays in the kitchen oven.", (2, 3, 4)),
        ("Anna's sister Clara lives in Oslo.", (1, 3, 4)),
        ("Carol keeps bees in her garden.", (2,)),
    ],
)
@pytest.mark.parametrize("stream", [1, 2, 3])
def test_what_one_said_is_not_told_of_another(path: Path, text: str, turns: tuple[int, ...], stream: int) -> None:
    group = Scope(agent="cook", session="g")
    with opened(path, ScriptedLlm([{"memories": [item(text, stream, turns)]}] * 2)) as memory:
        observe_group(memory, group)
        assert memory.form(group).refused == 1
        kept = [each.text for scope in (group, ANNA, BEN) for each in memory.list(scope, kinds=["fact"]).items]
        assert text not in kept


def answers_to(size: int, error: Exception) -> Any:
    """A model that fails at prompts of more turns."""

    def answer(prompt: Prompt) -> Any:
        turns = prompt.text.partition("<conversation>")[2]
        if turns.count("<turn ") > size:
            return error
        return {"memories": [item(PRIVATE_TALK[0], 2, (1,))] if "4711" in turns else []}

    return answer


def sizes_of(prompts: Sequence[Prompt]) -> list[int]:
    """How many turns were asked about each time; the same question with more room counts once."""
    texts = dict.fromkeys(prompt.text.partition("<conversation>")[2] for prompt in prompts)
    return [text.count("<turn ") for text in texts]


@pytest.mark.parametrize("error", [CutAnswerError("cut"), PromptTooLongError("too long")])
def test_what_is_too_much_is_asked_for_in_pieces(path: Path, error: Exception) -> None:
    model = ScriptedLlm(answers_to(1, error))
    with opened(path, model) as memory:
        memory.observe(ALONE, [{"role": "user", "content": text} for text in PRIVATE_TALK])
        report = memory.form(ALONE)
        assert (report.messages, report.failed) == (4, ())
        assert sizes_of(model.prompts) == [4, 2, 1, 1, 2, 1, 1]
        assert [kept.text for kept in memory.list(ANNA, kinds=["observation"]).items] == [PRIVATE_TALK[0]]


@pytest.mark.parametrize(
    ("error", "sizes"),
    [
        (CutAnswerError("cut"), [4, 2, 1, 1, 2, 1, 1]),
        (PromptTooLongError("too long"), [4, 2, 1, 1, 2, 1, 1]),
        (DeclinedError("no"), [4]),
    ],
)
def test_what_never_works_is_formed_without_the_model_and_told(path: Path, error: Exception, sizes: list[int]) -> None:
    model = ScriptedLlm(answers_to(0, error))
    with opened(path, model) as memory:
        memory.observe(ALONE, [{"role": "user", "content": text} for text in PRIVATE_TALK])
        report = memory.form(ALONE)
        assert report.messages == 4
        assert all("formed without the model" in failure for failure in report.failed)
        assert report.failed
        assert sizes_of(model.prompts) == sizes
        assert memory.status().due_messages == 0
        assert any("Clara" in kept.text for kept in memory.list(ANNA, kinds=["observation"]).items)


def test_a_later_piece_knows_what_was_said_before(path: Path) -> None:
    asked: list[str] = []

    def answer(prompt: Prompt) -> Any:
        asked.append(prompt.text)
        if "married" not in prompt.text:
            return {"memories": []}
        return {"memories": [item("Anna's sister Clara got married in Oslo.", 2, (1,))]}

    with opened(path, ScriptedLlm(answer)) as memory:
        clara, _ = memory.observe(
            ALONE, [{"role": "user", "content": PRIVATE_TALK[2]}, {"role": "user", "content": "Ok."}]
        )
        memory.form(ALONE)
        memory.observe(ALONE, {"role": "user", "content": "She got married there."})
        assert memory.form(ALONE).messages == 1
        context, _, turns = asked[-1].partition("<conversation>")
        assert PRIVATE_TALK[2] in context
        assert PRIVATE_TALK[2] not in turns
        assert 'time="' in turns
        [kept] = memory.list(ANNA, kinds=["observation"]).items
        assert kept.text == "Anna's sister Clara got married in Oslo."
        assert len(kept.source) == 2, "the name comes from the turn before"
        memory.forget(ALONE, clara.id)
        assert memory.list(ANNA, kinds=["observation"]).items == ()


@pytest.mark.parametrize(
    ("said", "lie"),
    [
        ("I am allergic to peanuts.", "Anna is not allergic to peanuts."),
        ("I am not allergic to peanuts.", "Anna is allergic to peanuts."),
        ("I never eat fish.", "Anna eats fish."),
        ("I stopped smoking in May.", "Anna smokes."),
    ],
)
def test_a_statement_that_is_turned_round_is_refused(said: str, lie: str) -> None:
    def answer(prompt: Prompt) -> dict[str, object]:
        numbers = re.findall(r'<stream number="(\d+)"', prompt.text)
        item = {"kind": "fact", "text": lie, "turns": [1], "key": None, "replaces": [], "people": ["Anna"]}
        return {"memories": [{**item, "stream": int(number)} for number in numbers]}

    talk = "agent=cook/session=s1/user=anna"
    with eunoe.open(":memory:", embedder="none", llm=ScriptedLlm(answer), form=False) as memory:
        memory.observe(talk, {"role": "user", "speaker": "Anna", "content": said})
        assert memory.form(talk).refused
        shown = memory.context("agent=cook/session=s2/user=anna", "What about Anna?").text
    assert lie not in shown
    assert said in shown
