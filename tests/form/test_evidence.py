# ruff: noqa: RUF001
"""What is claimed is borne out by what was said: names, numbers, dates and enough of the words."""

from datetime import UTC, datetime

import pytest

from eunoe.form.chunk import shows_beside
from eunoe.form.claims import TurnEvidence
from eunoe.form.evidence import Source, all_values, compare, find_numbers, is_borne_out
from eunoe.form.extractive import add_dates
from eunoe.model.scope import Scope
from eunoe.model.stream import PRESETS, Target
from eunoe.model.turn import Turn

FRIDAY = datetime(2026, 5, 8, 9, 0, tzinfo=UTC)


def said(text: str, name: str = "Anna", time: datetime | None = FRIDAY, others: tuple[str, ...] = ()) -> list[Source]:
    return [Source(text, (name,), time, others)]


@pytest.mark.parametrize(
    ("claim", "sources"),
    [
        ("Anna lives in Turin.", said("I live in Turin.")),
        ("Anna's landlady Fru Haugen has two cats.", said("My landlady, fru Haugen, has 2 cats.")),
        ("Anna pays 1,850 pounds for the gearbox.", said("Eighteen hundred and fifty pounds. For a gearbox.")),
        ("Anna gets up at 16:30.", said("I always get up at half past four in the afternoon.")),
        ("Anna flies to Oslo on 9 May 2026.", said("I fly to Oslo tomorrow.")),
        ("Anna flies to Oslo on 2026-05-09.", said("I fly to Oslo tomorrow.")),
        ("Anna saw the dentist on Monday 4 May 2026.", said("I saw the dentist on Monday.")),
        ("Anna meets the bank on 15 May 2026.", said("I'm meeting the bank on the 15th.")),
        ("Anna moved to Rome in 2025.", said("I moved to Rome last year.")),
        ("Ben bakes carrot cake.", said("You bake a great carrot cake.", others=("Ben",))),
        ("The user prefers short answers.", said("Short answers please, I prefer them.")),
        ("Anna wohnt seit 2024 in Graz und hat zwei Hunde.", said("Seit 2024 wohne ich in Graz, mit meinen 2 Hunden.")),
        ("Анна работает в Москве.", said("Я работаю в Москва-Сити, это Москва.", "Анна")),
        ("安娜住在都灵，养了2只猫。", said("我住在都灵，养了两只猫。", "安娜")),
        ("アンナは東京でカフェを開く予定です。", said("東京でカフェを開く予定なんです。", "アンナ")),
    ],
)
def test_a_paraphrase_is_borne_out(claim: str, sources: list[Source]) -> None:
    assert is_borne_out(claim, sources), compare(claim, sources)


@pytest.mark.parametrize(
    ("claim", "sources"),
    [
        ("Anna's PIN is 4711.", said("Hello everybody, nice to meet you all here.")),
        ("Anna's PIN is 4711.", said("My PIN is 4712.")),
        ("Anna lives in Rome.", said("I live in Turin.")),
        ("Ben lives in Turin.", said("I live in Turin.")),
        ("Ben lives in Turin.", said("I live in Turin.", others=("Ben",))),
        ("Anna flies to Oslo on 19 May 2026.", said("I fly to Oslo tomorrow.")),
        ("Anna was born on 3 March 1980.", said("I fly to Oslo tomorrow.")),
        ("Anna has three children.", said("I have two children.")),
        ("Anna is afraid of dogs and horses.", said("I love the summer in the mountains.")),
        ("Anna wohnt in Graz.", said("Ich habe heute Kopfschmerzen.")),
        ("安娜对花生过敏。", said("我今天很忙，明天再说吧。", "安娜")),
        ("アンナはピーナッツアレルギーです。", said("今日は忙しいので、また明日。", "アンナ")),
        ("x" * 5000, said("x" * 5000)),
    ],
)
def test_a_lie_is_not(claim: str, sources: list[Source]) -> None:
    assert not is_borne_out(claim, sources), compare(claim, sources)


def test_plain_texts_bear_out_too() -> None:
    assert is_borne_out("Anna is allergic to nuts.", ["Anna lives in Turin. She is allergic to nuts."])
    assert not is_borne_out("Anna is allergic to nuts.", ["null"])
    assert not is_borne_out("Anna is allergic to nuts.", [])


def test_numbers_are_read_in_digits_and_in_words() -> None:
    assert [number.values for number in find_numbers("thirty-five and 40k")] == [{"35"}, {"40000"}]
    assert {"1200", "1.2"} <= all_values("1,200")
    assert "120" in all_values("一百二十")
    assert all_values("due at noon, sei") == frozenset()
    assert "2" in all_values("ho due figli", is_english=False)


def turn(number: int, text: str, user: str = "anna") -> Turn:
    return Turn(f"m{number}", text, "user" if user else "assistant", user.title(), user, FRIDAY)


TALK = [
    turn(1, "My sister Maria came over."),
    turn(2, "She is a nurse in Lugano."),
    turn(3, "How nice! Do you get on?", ""),
    turn(4, "We do. I keep 3 bees, by the way."),
    turn(5, "My PIN at the bank is 4711."),
]


def sources_of(claim: str, *cited: int, before: int = 0) -> list[str]:
    evidence = TurnEvidence(TALK[before:], TALK[:before])
    return [each.id for each in evidence.find_sources(claim, {f"m{number}" for number in cited}, lambda turn: True)]


def test_the_sources_of_a_claim_are_the_turns_that_bear_it_out() -> None:
    assert sources_of("Anna keeps three bees.", 4) == ["m4"]
    assert sources_of("Anna keeps three bees.", 1) == ["m4"], "the wrong turn was cited"
    assert sources_of("Anna keeps three bees.") == ["m4"], "none was"
    assert sources_of("Anna's sister Maria is a nurse in Lugano.", 2) == ["m1", "m2"], "one is not enough"
    assert sources_of("Anna's PIN is 4711.", 1) == ["m5"]
    assert sources_of("Anna's PIN is 4712.", 5) == []
    assert sources_of("Anna has a yacht in Monaco.", 1, 2, 3, 4, 5) == []


def test_a_name_may_come_from_a_turn_before_which_is_then_a_source() -> None:
    assert sources_of("Anna's sister Maria is a nurse in Lugano.", 2, before=1) == ["m1", "m2"]
    assert sources_of("Anna keeps three bees.", before=4) == [], "what was said before is not said again"


def test_turns_that_may_not_be_cited_bear_nothing_out() -> None:
    evidence = TurnEvidence(TALK)
    assert evidence.find_sources("Anna keeps three bees.", {"m4"}, lambda turn: turn.user == "ben") == []


def target(preset: str, owner: str = "", **keys: str) -> Target:
    return Target(preset, Scope(agent="cook", **keys), PRESETS[preset], owner)


ALONE = target("session", session="s1", user="anna")
TOGETHER = target("session", session="s2")
OWN = target("user", "anna", user="anna")
OTHER = target("user", "ben", user="ben")
EVERYBODYS = target("agent", shard="kitchen")


@pytest.mark.parametrize(
    ("shown", "others", "conversation", "is_group", "expected"),
    [
        (OWN, [ALONE, OWN], ALONE, False, True),
        (ALONE, [ALONE, OWN], ALONE, False, True),
        (OWN, [ALONE, OWN], ALONE, True, False),
        (OWN, [ALONE, OWN, EVERYBODYS], ALONE, False, False),
        (EVERYBODYS, [ALONE, OWN, EVERYBODYS], ALONE, False, True),
        (OWN, [TOGETHER, OWN], TOGETHER, False, False),
        (OWN, [OWN, OTHER], TOGETHER, True, False),
        (TOGETHER, [TOGETHER, OWN, OTHER], TOGETHER, True, True),
        (TOGETHER, [TOGETHER, EVERYBODYS], TOGETHER, True, False),
    ],
)
def test_a_stream_is_shown_beside_those_whose_readers_may_read_it(
    shown: Target, others: list[Target], conversation: Target, is_group: bool, expected: bool
) -> None:
    assert shows_beside(shown, others, conversation.scope, is_group) is expected


@pytest.mark.parametrize(
    ("text", "is_plan", "dated"),
    [
        ("I fly to Oslo tomorrow.", True, "I fly to Oslo tomorrow (2026-05-09)."),
        ("I saw Eva yesterday.", False, "I saw Eva yesterday (2026-05-07)."),
        ("We meet on Monday at five.", True, "We meet on Monday (2026-05-11) at five."),
        ("We met on Monday at five.", False, "We met on Monday at five."),
        ("I fell last Monday.", True, "I fell last Monday."),
        ("I fly on 9 May.", True, "I fly on 9 May."),
        ("I fly this summer.", True, "I fly this summer."),
    ],
)
def test_a_day_told_from_today_gets_its_date(text: str, is_plan: bool, dated: str) -> None:
    assert add_dates(text, FRIDAY, is_plan) == dated
    assert add_dates(text, None, is_plan) == text


@pytest.mark.parametrize(
    "day",
    [
        "on Saturday the 12th of April",
        "on Saturday, the 12th of April",
        "on Saturday, April 12",
        "on Saturday 12 April",
        "on Saturday (12 April)",
        "on Sat 12 Apr",
        "on Saturday 10 May 2025",
        "on Saturday, 2025-05-10",
        "on Saturday the 12th",
        "on Saturday 12/4",
        "on 12 April, on Saturday",
        "on 12 April next Saturday",
        "on Saturday next week",
    ],
)
def test_a_weekday_whose_date_stands_beside_it_gets_no_other(day: str) -> None:
    assert add_dates(f"We launch {day}.", FRIDAY, is_plan=True) == f"We launch {day}."
    assert add_dates(f"Tomorrow I paint, we launch {day}.", FRIDAY, True).count("(2026-05-") == 1


@pytest.mark.parametrize(
    ("text", "dated"),
    [
        ("We launch on Saturday.", "We launch on Saturday (2026-05-09)."),
        ("We launch on Saturday with 12 people.", "We launch on Saturday (2026-05-09) with 12 people."),
        ("We launch on Saturday at 9:25.", "We launch on Saturday (2026-05-09) at 9:25."),
        ("We rest on Monday, tomorrow we sail.", "We rest on Monday (2026-05-11), tomorrow (2026-05-09) we sail."),
        ("We launch on Saturday and rest until 12 June.", "We launch on Saturday (2026-05-09) and rest until 12 June."),
    ],
)
def test_a_weekday_with_its_date_further_away_is_the_next_one(text: str, dated: str) -> None:
    assert add_dates(text, FRIDAY, is_plan=True) == dated
