"""Which statements say the same, which give another value to the same thing, and which only share a word."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunoe.embed import load_embedder
from eunoe.form.likeness import is_duplicate, is_opposed, is_rival, says_more, similarity

ALIKE = [
    ("Anna: I love green tea.", "Anna: I really love green tea!"),
    ("Anna: I have two cats and a dog.", "Anna: I've got two cats and a dog"),
    ("Anna: I work at the Heron hotel.", "Anna: I'm working at the Heron hotel."),
    ("My sister's wedding is on 12 May.", "my sister’s wedding is on 12 May"),
    ("Ich wohne in Berlin.", "Ich wohne jetzt in Berlin"),
    ("Anna: I cannot sleep without a candle.", "Anna: I really cannot sleep without a candle!"),
]
DIFFERENT = [
    ("Anna: I have two cats and a dog.", "Anna: I have three cats and a dog."),
    ("The rent is 950 pounds a month.", "The rent is 1,200 pounds a month."),
    ("The wedding is on 12 May at noon.", "The wedding is on 13 May at noon."),
    ("The wedding of my sister is in May.", "The wedding of my sister is in June."),
    ("We meet on Monday in the office.", "We meet on Tuesday in the office."),
    ("Anna: I like green tea with milk.", "Anna: I don't like green tea with milk."),
    ("Anna: I eat meat on weekdays.", "Anna: I never eat meat on weekdays."),
    ("Anna: I love the long winter evenings here.", "Anna: I hate the long winter evenings here."),
    ("Yesterday Tom lent Ida the car.", "Yesterday Ida lent Tom the car."),
    ("I moved into the house with Tom last May.", "I moved into the house with Ben last May."),
    ("Anna: I live in Rome.", "Ben: I live in Rome."),
    ("The flat is cheap and near the station.", "The flat is expensive and near the station."),
    ("Anna: I moved to Rome.", "Anna: I moved to Milan."),
    ("Anna: I arrived before the storm.", "Anna: I arrived after the storm."),
    ("version 1.2.3 is out", "version 1.2.4 is out"),
]


@pytest.mark.parametrize(("first", "second"), ALIKE)
def test_what_says_the_same_in_almost_the_same_words_is_the_same(first: str, second: str) -> None:
    assert is_duplicate(first, second)
    assert is_duplicate(second, first)
    assert similarity(first, second) >= 0.8


@pytest.mark.parametrize(("first", "second"), DIFFERENT)
def test_one_telling_difference_makes_another_statement(first: str, second: str) -> None:
    assert not is_duplicate(first, second)
    assert not is_duplicate(second, first)
    assert similarity(first, second) < 0.8


@pytest.mark.parametrize(
    "pair", ["love/hate", "like/dislike", "like/hate", "accepted/refused", "arrived/left", "more/less", "his/her"]
)
def test_opposites_make_another_statement_however_long_it_is(pair: str) -> None:
    """Also words that have several opposites."""
    first, second = (f"Anna {word} the dark snowy winter evenings in the quiet valley." for word in pair.split("/"))
    assert not is_duplicate(first, second)
    assert not is_duplicate(first, second, cosine=0.99)
    assert similarity(first, second) == similarity(second, first) <= 0.5


@given(st.text(max_size=80), st.text(max_size=80))
def test_likeness_is_the_same_both_ways_and_between_none_and_all(first: str, second: str) -> None:
    found = similarity(first, second)
    assert 0.0 <= found <= 1.0
    assert found == similarity(second, first)
    assert is_duplicate(first, second) == is_duplicate(second, first)


@given(st.text(max_size=80))
def test_every_text_is_like_itself(text: str) -> None:
    assert is_duplicate(text, text)
    assert similarity(text, text) == 1.0


UPDATES = [
    ("anna/home", "Anna lives in Turin.", "Anna lives in Rome."),
    ("anna/home", "Anna lives in Turin.", "Anna moved to Rome."),
    ("anna/home", "Anna lives in Turin with her wife Eva.", "Anna moved to Rome in May 2026."),
    ("anna/home", "Anna's home is in Turin.", "Anna has moved to Rome."),
    ("anna/home", "Anna is based in Berlin.", "Anna relocated to Lisbon last month."),
    ("anna/address", "Anna's address is 12 Mill Lane.", "Anna's new address is 4 Hill Road."),
    ("anna/job", "Anna works as a nurse.", "Anna works as a teacher."),
    ("anna/job", "Anna is a nurse.", "Anna is now a teacher."),
    ("anna/job", "Anna works as a nurse at Gradenigo.", "Anna started a new job as a teacher at the Rossi school."),
    ("anna/employer", "Anna works at Fiat.", "Anna works for Ferrari now."),
    ("anna/favourite colour", "Anna's favourite colour is green.", "Anna's favourite colour is blue."),
    ("anna/favourite colour", "Green is Anna's favourite colour.", "Anna says blue is her favourite colour now."),
    ("anna/favourite food", "Anna's favourite food is pizza.", "Anna's favourite food is now ramen."),
    ("anna/phone number", "Anna's phone number is 555-0101.", "Anna's phone number is 555-0199."),
    ("anna/phone", "Anna can be reached at 555-0101.", "Anna has a new phone number, 555-0199."),
    ("anna/email", "Anna's email is anna@old.example.", "Anna's email address is anna@new.example."),
    ("anna/car", "Anna drives a Fiat.", "Anna drives a Tesla."),
    ("anna/car", "Anna's car is a red Fiat.", "Anna's car is a blue Tesla."),
    ("anna/age", "Anna is 34 years old.", "Anna turned 35."),
    ("anna/birthday", "Anna's birthday is on 3 May.", "Anna's birthday is on 5 May."),
    ("anna/marital status", "Anna is engaged to Ben.", "Anna got married to Ben."),
    ("anna/diet", "Anna eats meat.", "Anna is a vegetarian."),
    ("anna/diet", "Anna is a vegetarian.", "Anna is vegan now."),
    ("anna/flight to oslo", "Anna flies to Oslo on 3 May 2026.", "Anna flies to Oslo on 9 May 2026."),
    (
        "anna/dentist appointment",
        "Anna's dentist appointment is on Monday at 10.",
        "Anna's dentist appointment was moved to Friday at 9.",
    ),
    ("anna/wedding date", "Anna's wedding is planned for June 2026.", "Anna's wedding was put off to September 2026."),
    ("anna/dog's name", "Anna's dog is called Rex.", "Anna's dog is called Bruno."),
    ("anna/manager", "Anna's manager is Carla.", "Anna's manager is Dario."),
    ("anna/attitude to tea", "Anna likes tea.", "Anna does not like tea any more."),
    ("anna/attitude to coffee", "Anna loves coffee.", "Anna hates coffee."),
    ("anna/allergy to nuts", "Anna is allergic to nuts.", "Anna is no longer allergic to nuts."),
    ("project/deadline", "The deadline of the project is 1 June.", "The deadline of the project is 15 June."),
    ("project/database", "The project uses PostgreSQL as its database.", "The project uses SQLite as its database."),
    ("anna/language of answers", "Anna wants answers in English.", "Anna wants answers in German from now on."),
    ("anna/weight", "Anna weighs 70 kg.", "Anna weighs 66 kg."),
    ("anna/rent", "Anna's rent is 900 euros.", "Anna's rent went up to 980 euros."),
    ("anna/home", "Anna wohnt in Turin.", "Anna ist nach Rom gezogen."),
    ("anna/home", "Anna lebt in Berlin.", "Anna wohnt jetzt in Hamburg."),
    ("anna/job", "Anna arbeitet als Krankenschwester.", "Anna arbeitet jetzt als Lehrerin."),
    ("anna/lieblingsfarbe", "Annas Lieblingsfarbe ist grün.", "Annas Lieblingsfarbe ist blau."),
    ("anna/home", "Anna habite à Turin.", "Anna a déménagé à Rome."),
    ("anna/job", "Anna travaille comme infirmière.", "Anna travaille comme professeure."),
    ("anna/couleur préférée", "La couleur préférée d'Anna est le vert.", "La couleur préférée d'Anna est le bleu."),
    ("anna/home", "Anna vive en Madrid.", "Anna se mudó a Sevilla."),
    ("anna/job", "Anna trabaja como enfermera.", "Anna trabaja como profesora."),
    ("anna/home", "Anna vive a Torino.", "Anna si è trasferita a Roma."),
    ("anna/telefono", "Il telefono di Anna è 555-0101.", "Il telefono di Anna è 555-0199."),
    ("anna/home", "Anna mora em Lisboa.", "Anna mudou-se para o Porto."),
    ("anna/home", "Anna woont in Utrecht.", "Anna is naar Leiden verhuisd."),
    ("anna/home", "安娜住在上海。", "安娜搬到了北京。"),
    ("anna/favourite colour", "安娜最喜欢的颜色是绿色。", "安娜最喜欢的颜色是蓝色。"),
    ("anna/home", "アンナは東京に住んでいます。", "アンナは大阪に引っ越しました。"),
    ("anna/home", "Анна живёт в Москве.", "Анна переехала в Казань."),
    ("marta/home", "Marta lives in Oslo.", "Marta has moved to Bergen."),
    ("user/home", "The user lives in Chicago.", "The user relocated to Denver in March."),
    ("tom/job", "Tom works as a chef.", "Tom now works as a driver."),
    ("tom/job", "Tom is a software engineer.", "Tom is an architect."),
    ("tom/employer", "Tom works for Siemens.", "Tom works at Bosch."),
    ("user/favorite movie", "The user's favorite movie is Alien.", "The user's favorite movie is Heat."),
    ("user/favourite season", "Autumn is the user's favourite season.", "The user's favourite season is spring."),
    ("tom/car", "Tom drives a Volvo.", "Tom drives a Mini now."),
    ("tom/phone", "Tom's mobile number is 0171 555 010.", "Tom's mobile number is 0171 555 099."),
    ("marta/wifi password", "Marta's wifi password is bluefish.", "Marta's wifi password is redfox."),
    ("tom/shoe size", "Tom's shoe size is 42.", "Tom's shoe size is 43."),
    ("tom/age", "Tom is 51 years old.", "Tom is 52 years old."),
    ("team/meeting day", "The team's weekly meeting is on Tuesday.", "The team's weekly meeting is on Thursday."),
    ("project/release date", "The release is planned for 3 July.", "The release is planned for 10 July."),
    ("marta/flight", "Marta's flight to Oslo leaves at 9:10.", "Marta's flight to Oslo leaves at 11:40."),
    ("marta/diet", "Marta is vegan.", "Marta eats meat again."),
    ("tom/relationship", "Tom is single.", "Tom got married in June."),
    ("tom/gym", "Tom's gym is FitOne.", "Tom's gym is PureGym."),
    ("tom/doctor", "Tom's doctor is Dr. Hall.", "Tom's doctor is Dr. Moss."),
    ("tom/attitude to olives", "Tom hates olives.", "Tom likes olives."),
    ("tom/smoking", "Tom smokes.", "Tom does not smoke."),
    ("tom/boat", "Tom owns a boat.", "Tom's boat was sold."),
    ("tom/office", "Tom's office is on the third floor.", "Tom's office is on the fifth floor."),
    ("tom/budget", "Tom's budget for the trip is 900 dollars.", "Tom's budget for the trip is 1200 dollars."),
    ("marta/home", "Marta wohnt in Köln.", "Marta lebt jetzt in Bremen."),
    ("marta/arzt", "Martas Arzt ist Dr. Kern.", "Martas Arzt ist Dr. Wolf."),
    ("marta/home", "Marta habite à Lyon.", "Marta habite maintenant à Nice."),
    ("marta/job", "Marta trabaja como cocinera.", "Marta trabaja de periodista."),
    ("marta/home", "Marta abita a Pisa.", "Marta vive a Milano."),
    ("marta/home", "Marta mora em Braga.", "Marta mora em Faro."),
    ("li/home", "李明住在广州。", "李明搬到了深圳。"),
]

OTHERS = [
    ("anna/preference", "Anna likes tea.", "Anna likes running."),
    ("anna/preference", "Anna prefers short answers.", "Anna prefers window seats."),
    ("anna/preference", "Anna loves jazz.", "Anna hates loud music."),
    ("anna/preference", "Anna likes tea.", "Anna is allergic to nuts."),
    ("anna/home", "Anna works at Fiat.", "Anna lives in Rome."),
    ("anna/home", "Anna lives in Turin.", "Anna likes tea."),
    ("anna/home", "Anna lives in Turin.", "Anna works as a nurse."),
    ("anna/home", "Anna lives in Turin.", "Anna flew to Rome for a week."),
    ("anna/pet", "Anna has a dog.", "Anna has a cat."),
    ("anna/pet", "Anna has a dog called Rex.", "Anna has a cat called Tom."),
    ("anna/pet name", "Anna's dog is called Rex.", "Anna's cat is called Tom."),
    ("anna/allergy", "Anna is allergic to nuts.", "Anna is allergic to milk."),
    ("anna/health", "Anna is allergic to penicillin.", "Anna has a bad knee."),
    ("anna/hobby", "Anna plays the piano.", "Anna plays tennis."),
    ("anna/hobby", "Anna plays the cello on Sundays.", "Anna runs on Mondays."),
    ("anna/language", "Anna speaks French.", "Anna speaks German."),
    ("anna/family", "Anna's brother is called Marco.", "Anna's sister is called Lea."),
    ("anna/family", "Anna's brother lives in Milan.", "Anna's sister lives in Paris."),
    ("anna/plan", "Anna plans a trip to Norway in August.", "Anna plans to buy a bike."),
    ("anna/plan", "Anna wants to learn Spanish.", "Anna wants to visit Japan."),
    ("anna/travel", "Anna visited Rome in 2024.", "Anna visited Oslo in 2025."),
    ("anna/event", "Anna ran a marathon in May.", "Anna met Ben in June."),
    ("anna/event", "Anna works with Ben.", "Anna met Ben in Rome."),
    ("anna/purchase", "Anna bought a bike.", "Anna bought a house."),
    ("anna/food", "Anna eats fish on Fridays.", "Anna cooks pasta for friends."),
    ("anna/favourite", "Anna's favourite colour is green.", "Anna's favourite food is pizza."),
    ("anna/favourite", "Anna's favourite book is Emma.", "Anna's favourite film is Alien."),
    ("anna/info", "Anna's phone number is 555-0101.", "Anna's shoe size is 39."),
    ("anna/info", "Anna is 34 years old.", "Anna has 2 children."),
    ("anna/children", "Anna's son Leo is 4.", "Anna's daughter Mia is 7."),
    ("anna/work", "Anna's manager is Carla.", "Anna's colleague is Dario."),
    ("anna/instruction", "Anna wants answers in English.", "Anna wants answers to be short."),
    ("anna/medication", "Anna takes metformin.", "Anna takes ibuprofen."),
    ("anna/meeting", "Anna has a meeting with the bank on 3 May.", "Anna has a meeting with the school on 4 May."),
    ("project/tools", "The project uses PostgreSQL as its database.", "The project uses Redis as its cache."),
    ("project/decision", "The team decided to use Rust.", "The team decided to meet on Mondays."),
    ("anna/preference", "Anna mag Tee.", "Anna mag Laufen."),
    ("anna/preference", "Anna mag kurze Antworten.", "Anna ist gegen Nüsse allergisch."),
    ("anna/home", "Anna arbeitet bei Fiat.", "Anna wohnt in Rom."),
    ("anna/preference", "Anna aime le thé.", "Anna aime courir."),
    ("anna/pet", "Anna a un chien.", "Anna a un chat."),
    ("anna/preference", "A Anna le gusta el té.", "A Anna le gusta correr."),
    ("anna/home", "Anna trabaja en Fiat.", "Anna vive en Roma."),
    ("anna/pet", "Anna ha un cane.", "Anna ha un gatto."),
    ("anna/preference", "Anna gosta de chá.", "Anna gosta de correr."),
    ("anna/preference", "安娜喜欢茶。", "安娜喜欢跑步。"),
    ("anna/home", "安娜在菲亚特工作。", "安娜住在北京。"),
    ("anna/preference", "アンナはお茶が好きです。", "アンナは走るのが好きです。"),
    ("anna/preference", "Анна любит чай.", "Анна любит бегать."),
    ("anna/home", "Anna lives in Rome.", "Anna lives in Rome near the station."),
    ("anna/home", "Anna's mother lives in Turin.", "Anna lives in Rome."),
    ("anna/job", "Anna is a nurse.", "Anna is allergic to nuts."),
    ("anna/car", "Anna's car is red.", "Anna's car is in the garage."),
    ("tom/preference", "Tom likes jazz.", "Tom likes cycling."),
    ("tom/preference", "Tom prefers tea over coffee.", "Tom prefers trains over planes."),
    ("tom/likes", "Tom enjoys hiking.", "Tom enjoys chess."),
    ("tom/home", "Tom lives in Leeds.", "Tom has a cat."),
    ("tom/home", "Tom lives in Leeds.", "Tom was born in York."),
    ("tom/home", "Tom lives in Leeds.", "Tom's parents live in York."),
    ("tom/home", "Tom lives in Leeds.", "Tom's appointment was moved to Monday."),
    ("tom/home", "Tom lives in Leeds.", "Tom sold his bike in Leeds."),
    ("tom/home", "Tom lives in Leeds.", "Tom never eats out in Leeds."),
    ("tom/job", "Tom works as a chef.", "Tom works from home on Fridays."),
    ("tom/job", "Tom is a chef.", "Tom is tired."),
    ("tom/employer", "Tom works for Siemens.", "Tom works at night."),
    ("tom/allergy", "Tom is allergic to cats.", "Tom is allergic to dust."),
    ("tom/pet", "Tom has a parrot called Kiko.", "Tom has a hamster called Bo."),
    ("tom/sport", "Tom plays football on Saturdays.", "Tom swims on Wednesdays."),
    ("tom/instrument", "Tom plays the violin.", "Tom plays the drums."),
    ("tom/family", "Tom's brother is Max.", "Tom's sister is Ida."),
    ("tom/family", "Tom's daughter is 6.", "Tom's son is 9."),
    ("tom/goal", "Tom wants to lose weight.", "Tom wants to learn guitar."),
    ("tom/plan", "Tom plans to visit Rome in May.", "Tom plans to paint the kitchen in June."),
    ("tom/purchase", "Tom bought a camera.", "Tom bought a tent."),
    ("tom/trip", "Tom went to Crete in 2023.", "Tom went to Malta in 2024."),
    ("tom/food", "Tom cannot eat gluten.", "Tom loves spicy food."),
    ("tom/health", "Tom broke his arm in March.", "Tom takes aspirin."),
    ("tom/favourite", "Tom's favourite band is Blur.", "Tom's favourite city is Bath."),
    ("tom/contact", "Tom's email is tom@a.example.", "Tom's phone number is 555 0100 22."),
    ("tom/email", "Tom's work email is tom@a.example.", "Tom's private email is tom@b.example."),
    ("tom/meeting", "Tom has a meeting with the bank.", "Tom has a meeting with the school."),
    ("tom/skill", "Tom knows Python.", "Tom knows Rust."),
    ("tom/schedule", "Tom gets up at 6.", "Tom goes to bed at 10."),
    ("project/rule", "Tests must not sleep.", "Names must be plain."),
    ("project/api", "The API returns JSON.", "The API requires a key."),
    ("project/decision", "We decided to use SQLite.", "We decided to drop Redis."),
    ("tom/car", "Tom drives a Volvo.", "Tom washed the Volvo."),
    ("tom/preference", "Tom mag Jazz.", "Tom mag Schach."),
    ("tom/familie", "Toms Bruder wohnt in Bonn.", "Tom wohnt in Kiel."),
    ("tom/preference", "Tom aime le jazz.", "Tom aime les échecs."),
    ("tom/idioma", "Tom habla francés.", "Tom habla ruso."),
    ("li/preference", "李明喜欢茶。", "李明喜欢狗。"),
    ("tom/work", "Tom works with Ben.", "Tom dislikes Ben."),
]

PEOPLE = ("Anna", "Tom", "Marta", "user")


@pytest.mark.parametrize(("key", "old", "new"), UPDATES)
def test_another_value_of_the_same_thing_is_a_rival_in_both_orders(key, old, new):
    assert is_rival(old, new, key, PEOPLE)
    assert is_rival(new, old, key, PEOPLE)


@pytest.mark.parametrize(("key", "old", "new"), OTHERS)
def test_statements_that_share_a_key_alone_are_no_rivals(key, old, new):
    assert not is_rival(old, new, key, PEOPLE)
    assert not is_rival(new, old, key, PEOPLE)
    assert not is_rival(old, new, "", PEOPLE)


@pytest.mark.parametrize(("key", "old", "new"), UPDATES)
def test_a_statement_is_no_rival_of_itself_or_of_a_longer_form_of_it(key, old, new):
    assert not is_rival(old, old, key, PEOPLE)
    assert not is_rival(new, f"{new[:-1]} near the station.", key, PEOPLE)


def test_most_updates_are_seen_without_a_key_too():
    found = [row for row in UPDATES if is_rival(row[1], row[2], "", PEOPLE)]
    assert len(found) >= 0.85 * len(UPDATES)


def test_a_key_of_one_thing_makes_no_rivals_of_others():
    """Every statement under every key, beside every other one: only those that are about the same thing are rivals."""
    facts = ["Anna lives in Turin.", "Anna works as a nurse.", "Anna likes tea.", "Anna is allergic to nuts."]
    facts += ["Anna's dog is called Rex.", "Anna's sister lives in Milan.", "Anna's favourite colour is green."]
    facts += ["Anna plays the cello.", "Anna's phone number is 555-0101.", "Anna plans a trip to Norway in August."]
    keys = ["", *{key for key, _, _ in UPDATES + OTHERS}]
    wrong = [(a, b, key) for a in facts for b in facts for key in keys if is_rival(a, b, key, PEOPLE)]
    assert wrong == []


@pytest.mark.parametrize(
    ("old", "new", "more"),
    [
        ("Anna: I live in Turin with my wife Eva.", "Anna: We moved to Rome.", True),
        ("Anna lives in Turin and plays the cello.", "Anna lives in Rome.", True),
        ("Anna wohnt in Turin mit ihrer Frau Eva.", "Anna ist nach Rom gezogen.", True),
        ("Anna habite à Turin avec sa femme Eva.", "Anna habite à Rome.", True),
        ("Anna lives in Turin with Eva.", "Anna lives in Rome with Eva.", False),
        ("Anna lives in Turin.", "Anna lives in Rome.", False),
        ("Anna vive en Madrid.", "Anna vive en Sevilla.", False),
        ("Anna: Turin. (asked: Where do you live?)", "Anna: We moved to Rome.", False),
    ],
)
def test_what_else_a_statement_says_is_seen(old, new, more):
    assert says_more(old, new) is more


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Anna is allergic to nuts.", "Anna is not allergic to nuts."),
        ("Anna likes tea.", "Anna doesn’t like tea."),
        ("Anna aime le thé.", "Anna n'aime plus le thé."),
        ("Anna loves coffee.", "Anna hates coffee."),
        ("Anna isst Fleisch.", "Anna isst kein Fleisch."),
    ],
)
def test_a_denial_is_seen(one, other):
    assert is_opposed(one, other)
    assert is_opposed(other, one)
    assert not is_opposed(one, one)


@pytest.mark.parametrize(
    "text", ["", "...", "_" * 20_000, "a@" * 20_000, "with " * 20_000, "is 1 " * 20_000, "猫" * 20_000]
)
def test_odd_texts_are_rivals_of_nothing(text):
    assert not is_rival(text, "Anna lives in Turin.", "anna/home", PEOPLE)
    assert not is_rival("Anna lives in Turin.", text, "anna/home", PEOPLE)
    says_more(text, text)


PAIRS = [
    tuple(part.strip() for part in line.split("|"))
    for line in (Path(__file__).parent / "data" / "paraphrases.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
]


def test_paraphrases_are_one_and_others_are_two() -> None:
    embedder = load_embedder()
    assert embedder is not None
    vectors = np.asarray(embedder.embed([f"Anna: {text}" for _, *texts in PAIRS for text in texts]), np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = (vectors[::2] * vectors[1::2]).sum(axis=1).tolist()
    merged = [
        mark
        for (mark, one, other), cosine in zip(PAIRS, cosines, strict=True)
        if is_duplicate(f"Anna: {one}", f"Anna: {other}", cosine)
    ]
    same = [mark for mark, *_ in PAIRS].count("=")
    assert merged.count("/") == 0
    assert merged.count("=") >= 0.8 * same
