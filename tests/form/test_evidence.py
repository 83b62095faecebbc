"""What is claimed is borne out by what was said: names, numbers, dates and enough of the words, in many languages."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from eunoe.form.chunk import shows_beside
from eunoe.form.claims import TurnEvidence
from eunoe.form.evidence import (
    Source,
    all_values,
    compare,
    content_words,
    covered_share,
    find_numbers,
    is_borne_out,
    kept_share,
    names_and_numbers,
)
from eunoe.form.extractive import add_dates
from eunoe.model.scope import Scope
from eunoe.model.stream import PRESETS, Target
from eunoe.model.turn import Turn

# ruff: noqa: RUF001


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


OLD = (
    "Anna is a nurse who lives in Turin with her sister Lea. She prefers short answers and dislikes small talk. She is "
    "allergic to peanuts and avoids dairy products. In spring she began to learn the cello and practises on Sundays."
)
PARAPHRASES = {
    "english": (
        ["I hate long mails.", "My daughter Mia starts school in September.", "I work night shifts in Bergen."],
        "Tom works nights in Bergen. He dislikes lengthy emails. His daughter, Mia, will begin school in September.",
    ),
    "german": (
        ["Anna ist am 3. Mai nach Rom gezogen.", "Ihre Katze Miso ist krank und bekommt Tabletten."],
        "Seit dem 3. Mai lebt Anna in Rom. Um die Katze Miso sorgt sie sich: Sie ist krank und braucht Tabletten.",
    ),
    "french": (
        ["Claire s'est blessée au genou et ne court plus.", "Paul a trouvé un poste à Grenoble."],
        "Une blessure au genou empêche Claire de courir. Paul, son mari, vient d'obtenir un poste à Grenoble.",
    ),
    "russian": (
        ["Анна живёт в Казани и работает врачом.", "Анна купила собаку по имени Рекс."],
        "Анна — врач из Казани, где она и живёт. Появилась собака Рекс.",
    ),
    "chinese": (
        ["王芳五月三日搬到了北京。", "王芳取消了去挪威的旅行。", "米索生病了、每天吃两次药。"],
        "王芳五月三日起在北京居住。去挪威的旅行已经取消。她的猫米索病了、一天要吃两次药。",
    ),
    "japanese": (
        ["アンナは京都に住んでいます。", "アンナは来月、大阪へ引っ越す予定です。"],
        "アンナさんは京都在住で、来月大阪に引っ越す予定である。",
    ),
    "finnish": (
        ["Anna asuu Turussa ja työskentelee sairaanhoitajana.", "Anna on allerginen pähkinöille."],
        "Anna on turkulainen sairaanhoitaja, jolla on pähkinäallergia.",
    ),
}
OTHERS = {
    "english": "The history of the steam engine begins in the eighteenth century, when a pump was built for mines.",
    "german": "Es war einmal ein kleines Mädchen, das mit seiner Mutter in einem Dorf wohnte und gern im Wald war.",
    "chinese": "今年第一季度国内生产总值同比增长百分之五点三。工业生产稳步回升。消费市场持续恢复。",
    "japanese": "申し訳ありませんが、この会話を要約することはできません。個人情報が含まれているためです。",
    "russian": "Извините, но как языковая модель я не могу обобщить этот разговор.",
}


@pytest.mark.parametrize("tongue", PARAPHRASES)
def test_a_paraphrase_shares_what_another_text_does_not(tongue: str) -> None:
    parts, text = PARAPHRASES[tongue]
    assert covered_share(text, parts) >= 0.3
    assert all(covered_share(other, parts) < 0.2 for other in OTHERS.values())


def test_how_often_a_word_comes_counts_for_nothing() -> None:
    assert covered_share("tea " * 500 + "lorem ipsum dolor", ["Anna likes tea."]) == 0.25


def test_stems_are_found_in_a_text_of_two_languages() -> None:
    assert (
        covered_share("She paints houses.", ["Sie malt gern und oft, und die Bilder sind gut.", "She painted a house."])
        == 1
    )


def test_what_a_text_keeps_of_another_is_counted_by_content_or_names() -> None:
    assert kept_share(OLD, [], OLD) == 1.0
    assert kept_share(OLD, [], "The weather was fine.") == 0.0
    assert 0.3 < kept_share(OLD, [], OLD[: len(OLD) // 2]) < 0.7
    names = "Miso met Rosa, Clara and Paul in Bergen, Oslo and Turin on 3 June."
    assert kept_share(names, [], "Rosa, Clara, Paul; Bergen, Oslo, Turin; 3 June.") == 1.0


def test_what_is_not_true_any_more_need_not_be_kept() -> None:
    assert kept_share("Anna lives in Rome.", ["Anna lives in Rome."], "Bob sings.") == 1.0
    assert kept_share("Anna lives in Rome. She sings.", ["Anna lives in Rome."], "She sings.") == 1.0


def test_names_and_numbers_are_told_from_words_that_begin_a_sentence() -> None:
    assert names_and_numbers("Then Bob said that Clara had 2 cats.") == {"bob", "clara", "2"}
    assert "then" not in names_and_numbers("Then Bob went.")
    assert "the" not in names_and_numbers("He went. The end.")
    assert content_words("我喜欢茶。") >= {"茶", "喜欢"}
