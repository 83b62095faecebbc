"""Entities found without a model."""

import sys
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunoe.errors import InputError
from eunoe.index.passage import parse_passage, term_number
from eunoe.text.entities import (
    Heading,
    entity_key,
    find_entities,
    load_extractor,
    lowercase_words,
    main_keys,
    split_heading,
    title_keys,
)
from eunoe.text.languages import detect_language


@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        ("The daughter of Lothair II of Lotharingia left.", "lothair ii of lotharingia; lothair ii; lotharingia"),
        ("J.R.R. Tolkien's wife lived near St. Maurice's Abbey.", "j r r tolkien; st maurice abbey"),
        ('She played in "The Deep Blue Sea" in 1955.', "deep blue sea"),
        ("Ludwig van Beethoven never met Bertha.", "ludwig van beethoven; ludwig; beethoven; bertha"),
        ("The build fails with ERR_42 in src/app/main.py since v2.3.1.", "err 42; src app main py; v2 3 1"),
        ("We use a StreamIndex class.", "streamindex"),
        ("Über Müller sprach Königin Élise.", "muller; konigin elise"),
        ("Anna Berg met Ben Cole in Rome.", "anna berg; ben cole; rome"),
        ("Толстой жил в Москве.", "толстой; москве"),
        ("東京タワーはパリにない。", "東京; タワー; パリ"),
        ("On Monday, 3 May 2020, nothing happened.", ""),
        ("In 1994 they left. 1994 was cold.", ""),
    ],
)  # fmt: skip
def test_names_are_what_is_written_like_one(sentence: str, found: str) -> None:
    assert list(find_entities(sentence, language=detect_language(sentence))) == ([] if not found else found.split("; "))


def test_a_name_that_begins_with_a_small_word_is_known_with_it_and_without() -> None:
    assert list(find_entities("No Path Through Fire is a film."))[:2] == ["no path through fire", "path through fire"]


def test_a_word_that_a_text_also_has_in_lower_case_is_no_name() -> None:
    text = "Bread is cheap. He sells bread to Bertha."
    assert [list(find_entities(part, lowercase_words(text))) for part in text.split(". ")] == [[], ["bertha"]]


def test_names_keep_the_writing_of_the_text() -> None:
    found = find_entities("We met Aldri Annet Enn Bråk's director.")
    assert {key: mention.label for key, mention in found.items()} == {"aldri annet enn brak": "Aldri Annet Enn Bråk"}


def test_keys_have_neither_case_nor_possessive_nor_article() -> None:
    assert entity_key("The God'S Gift To Women") == entity_key("god’s gift to women") == "god gift to women"
    assert entity_key("Ж. Верн") == "ж верн"
    assert entity_key("...") == ""


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Port Blair\n\nIt is a town.", "Port Blair"),
        ("# Port Blair.\nIt is a town.", "Port Blair."),
        ("src/main.py\nThe entry point.", "src/main.py"),
        ("It is a town.\nIt lies by the sea.", ""),
        ("Port Blair", ""),
        ("", ""),
    ],
)
def test_a_heading_stands_above_a_text(text: str, title: str) -> None:
    assert split_heading(text).title == title


def test_a_text_without_heading_is_all_body() -> None:
    assert split_heading("It is a town.") == Heading("", "It is a town.")


def test_a_title_is_known_without_its_bracket_and_up_to_its_comma() -> None:
    assert title_keys("Theodred II (Bishop of Elmham)") == ["theodred ii bishop of elmham", "theodred ii"]
    assert title_keys("Lambert, Margrave of Tuscany")[-1] == "lambert"
    assert title_keys("(?)") == []


def test_without_a_title_a_text_is_about_the_name_it_begins_with() -> None:
    first = "Charles Edward Anderson Berry, better known as Chuck Berry, was an American singer."
    about = main_keys(first, find_entities(first))
    assert {"charles edward anderson berry", "chuck berry", "charles berry"} <= set(about)
    assert "american" not in about
    assert parse_passage("It rains.").about == ()


def test_a_short_name_stands_for_the_long_one_where_it_can_mean_one_only() -> None:
    clear = parse_passage("Bob Smith came. Then Smith left.")
    unclear = parse_passage("Bob Smith and Ann Smith came. Then Smith left.")
    assert clear.sentences[1].entities == ("bob smith",)
    assert unclear.sentences[1].entities == ("smith",)


def test_terms_are_numbers_that_are_the_same_everywhere() -> None:
    assert term_number("kayak") == 1459392718
    assert term_number("kayak") in parse_passage("He has two kayaks.").sentences[0].terms


def test_a_function_can_find_the_names() -> None:
    def uppercase_words(sentence: str) -> Iterator[tuple[str, int]]:
        for word in sentence.split():
            if word.isupper():
                yield word, sentence.index(word)

    assert list(parse_passage("The KAYAK of Bertha", load_extractor(uppercase_words)).labels) == ["kayak"]
    assert load_extractor() is None


@pytest.mark.parametrize("spec", ["nltk", 3, None])
def test_an_unknown_extractor_is_refused(spec: object) -> None:
    with pytest.raises(InputError, match="builtin"):
        load_extractor(spec)


def test_spacy_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(InputError, match="nlp"):
        load_extractor("spacy")


@given(st.text(max_size=300))
def test_any_text_can_be_read(text: str) -> None:
    passage = parse_passage(text)
    mentioned = {name for sentence in passage.sentences for name in sentence.entities}
    assert mentioned | set(passage.about) == set(passage.labels)
    assert all(name == entity_key(name) and name for name in passage.labels)
    assert all(0 < term < 2**32 for sentence in passage.sentences for term in sentence.terms)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Ticket: Stone Harbour is dark.", "stone harbour"),
        ("Ticket: Slow search. Added an index in Postgres.", "postgresql"),
        ("It is done.\nRoot Cause: the clock of Greta Lindqvist", "greta lindqvist"),
        ("Ticket: Webhooks retry. Failed webhooks come again. Another one did not.", ""),
        ("Rebuilt the index with Greta Lindqvist.", "greta lindqvist"),
        ("Ticket: mail. They read Ticket in Rome.", "ticket; rome"),
        ("Gaby: A True Story is a film.", "gaby; true story"),
        ("Hugh the Black left.", "hugh the black"),
        ("New York is large.", "new york"),
        ("Anna likes Rome.", "anna; rome"),
        ("ERR_42: the disk is full.", "err 42"),
    ],
)
def test_labels_and_words_that_merely_begin_a_sentence_are_no_names(text: str, found: str) -> None:
    assert list(parse_passage(text).labels) == ([] if not found else found.split("; "))


@pytest.mark.parametrize("text", ["I'd love to.", "On Monday I’ll go.", "here I'm, and I've come."])
def test_what_one_says_of_oneself_is_no_name(text: str) -> None:
    assert set(find_entities(text)) <= {"monday"}
