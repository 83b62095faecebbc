"""Names in a sentence, and which ones somebody may have meant who mistyped one."""

from __future__ import annotations

import pytest

from eunoe.index.passage import parse_passage
from eunoe.text.entities import find_full_names, group_names
from eunoe.text.names import LIKELY, find_similar_names, is_identifier, load_name_model


def likely(text: str) -> set[str]:
    """The names that would be shown for a text."""
    return {key for key, score in parse_passage(text).scores.items() if score >= LIKELY}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Thanks, Caroline! Hey Mel, good to see you.", {"caroline", "mel"}),
        ("Wow! That's amazing. Yeah, I'd love to.", set()),
        ("Without it nothing works. Chosen by the bench. One of them is slow.", set()),
        ("You're right. They've left. Anything else? Sounds good!", set()),
        ("Friday I went home. Glad I did.", set()),
        ("I AM SO HAPPY ANNA CAME TO BERLIN", {"anna", "berlin"}),
        ("hey anna u coming to berlin tmrw lol", set()),
        ("Ich habe gestern mit Anna im Garten einen Hund gesehen.", {"anna"}),
        ("🎉🎉 Congrats Maria 🎉", {"maria"}),
        ("**Note:** ask Greta Lindqvist.", {"greta lindqvist"}),
    ],
)
def test_a_capital_alone_makes_no_name(text: str, names: set[str]) -> None:
    assert likely(text) == names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Will Smith came by.", {"will smith"}),
        ("Later Will and Grace came.", {"will", "grace"}),
        ("Mark said he would call.", {"mark"}),
        ("May is a warm month.", set()),
        ("Will you call me?", set()),
    ],
)
def test_a_name_that_is_also_a_word_is_told_by_what_is_around_it(text: str, names: set[str]) -> None:
    assert likely(text) == names


def test_identifiers_and_files_are_not_joined_with_names_beside_them() -> None:
    found = likely("The HTTPServer Anna wrote calls parse_passage in src/app/main.py. Read cart.py too.")
    assert found == {"httpserver", "anna", "parse passage", "src app main py", "cart py"}


def test_identifiers_are_not_joined_as_people_are() -> None:
    text = "Call `memory.summaries.write`, then `memory.write`. See locomo_dev.json and _dev.json, GPT-4 Turbo and GPT."
    found = ("memory summaries write", "memory write", "locomo dev json", "dev json", "gpt 4 turbo", "gpt")
    passage = parse_passage(text)
    assert set(passage.labels) == set(found)
    assert passage.about == ("memory summaries write",)
    assert parse_passage(f"memory.summaries.write\n\n{text}").labels.keys() == set(found)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *((name, True) for name in ("memory.write", "_dev.json", "src/cart", "System.Text.Json", "anna@berg.example")),
        *((name, True) for name in ("IPv4 Router", "Eunoe v2.1")),
        *((name, False) for name in ("J.R.R. Tolkien", "Anna Berg Ph.D", "Louis 14", "20th Century Fox", "O'Brien")),
    ],
)
def test_an_identifier_is_told_from_a_name(name: str, expected: bool) -> None:
    assert is_identifier(name) is expected


@pytest.mark.parametrize(
    "text", ["see you tomorrow.bring snacks", "he/she and/or they", "at 7pm, 20min, a 20th-century 3kg"]
)
def test_words_without_a_blank_between_them_are_no_identifiers(text: str) -> None:
    assert likely(text) == set()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("In Sept. Anna Berg met Prof. Meyer Dr. Klein.", {"anna berg", "prof meyer", "dr klein"}),
        ("They called Anna Sept. 3 from Rome.", {"anna", "rome"}),
        ("I told Greta Monday that Prof. Dr. Ada Novak is ill.", {"greta", "ada novak"}),
        ("She buys at Lowe & Sons in Leeds.", {"lowe sons", "leeds"}),
    ],
)
def test_titles_and_dates_neither_split_a_name_nor_join_two(text: str, names: set[str]) -> None:
    assert likely(text) == names


def test_one_person_is_one_entity_with_title_and_initials_and_without() -> None:
    text = "Dr. Robert J. Oppenheimer met Ada Novak. Then Oppenheimer left. Later Robert Oppenheimer wrote."
    assert likely(text) == {"robert j oppenheimer", "ada novak"}


def test_spellings_of_one_name_are_one_entity() -> None:
    assert likely("They use Postgres.") == likely("They use PostgreSQL.") == {"postgresql"}


def test_a_surname_that_two_people_have_is_neither() -> None:
    passage = parse_passage("They met Anna Meyer and Tom Meyer. Then they saw Meyer again.")
    assert passage.sentences[1].entities == ("meyer",)


@pytest.mark.parametrize(
    ("names", "groups"),
    [
        (["robert j oppenheimer", "oppenheimer", "robert oppenheimer"], 1),
        (["anna meyer", "tom meyer", "meyer"], 3),
        (["george w bush", "george h w bush", "bush"], 3),
        (["mr pargeter", "mrs pargeter", "pargeter"], 3),
        (["dr meyer", "anna meyer"], 1),
        (["ines varga", "ines"], 1),
    ],
)
def test_names_of_a_stream_are_grouped_where_they_mean_one_person(names: list[str], groups: int) -> None:
    same = group_names(dict.fromkeys(names, 1), bool)
    assert len({same.get(name, name) for name in names}) == groups


def test_a_first_name_that_is_far_more_frequent_stands_for_itself() -> None:
    assert group_names({"paris": 40, "paris hilton": 1}, bool) == {}


def test_an_acronym_stands_for_the_name_it_is_made_of() -> None:
    assert find_full_names(["world health organization", "who"])["who"] == "world health organization"


def test_the_same_text_has_the_same_scores() -> None:
    text = "Dreadful weather, said Anna to Will. Hope it ends."
    assert parse_passage(text) == parse_passage(text)
    assert load_name_model() is load_name_model()


NAMES = ["greta lindqvist", "nordwind shipping company", "felix cole", "bergen", "東京都", "the house of lords"]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("gerta lindqvist", "greta lindqvist"),
        ("lindqvst", "greta lindqvist"),
        ("nordwnd", "nordwind shipping company"),
        ("filex cole", "felix cole"),
        ("felixcole", "felix cole"),
        ("brgen", "bergen"),
        ("felix coleman", "felix cole"),
        ("東京", "東京都"),
    ],
)
def test_the_name_that_was_meant_comes_first(typed: str, meant: str) -> None:
    assert find_similar_names(typed, NAMES, 3)[0] == meant


@pytest.mark.parametrize("typed", ["", "x", "the", "zzzz", "the bank of england", "a" * 10_000, " ".join("abcdefgh")])
def test_what_is_like_none_gets_none(typed: str) -> None:
    assert find_similar_names(typed, NAMES, 3) == []


def test_at_most_so_many_come() -> None:
    assert find_similar_names("anna berk", [f"anna berg {number}" for number in range(100)], 3) == [
        *("anna berg 0", "anna berg 1", "anna berg 2")
    ]
