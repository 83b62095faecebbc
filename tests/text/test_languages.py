"""Which language a text is in, for the index and for people; plurals that no stemmer brings together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunoe.text.languages import (
    ENGLISH,
    LANGUAGES,
    STOP_WORDS,
    detect_language,
    guess_language,
    is_stop_word,
    language_votes,
    name_language,
    other_numbers,
    stop_words,
    stop_words_and_english,
)
from eunoe.text.normalize import fold


@pytest.mark.parametrize(
    ("sentence", "language"),
    [
        ("Where did you put the keys?", "english"),
        ("Ich habe das nicht gesehen", "german"),
        ("Je ne sais pas où il est", "french"),
        ("¿Dónde está el perro de mi hermana?", "spanish"),
        ("Non so che cosa è successo", "italian"),
        ("Ik heb het niet gezien", "dutch"),
        ("Привет, как дела", "russian"),
        ("Sushi!", "english"),
        ("", "english"),
    ],
)
def test_the_language_of_a_text(sentence: str, language: str) -> None:
    assert LANGUAGES[detect_language(sentence)] == language


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_every_text_has_a_language(text: str) -> None:
    assert 0 <= detect_language(text) < len(LANGUAGES)


def test_a_word_votes_for_the_languages_whose_stop_word_or_script_it_is() -> None:
    votes = dict(language_votes(["Sushi,", "unter", "Москвы"]))
    assert {LANGUAGES[language] for language in votes[1].languages} == {"german"}
    assert [LANGUAGES[language] for language in votes[2].languages] == ["russian", "ukrainian"]
    assert 0 not in votes


@pytest.mark.parametrize("name", LANGUAGES)
def test_stop_words_are_compared_folded(name: str) -> None:
    language = LANGUAGES.index(name)
    assert len(STOP_WORDS[name]) > 20
    assert all(is_stop_word(fold(word), language) for word in STOP_WORDS[name])
    assert stop_words_and_english(language) == stop_words(language) | stop_words(ENGLISH)


# ruff: noqa: RUF001


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Where did I leave the key?", "English"),
        ("Wo habe ich den Schlüssel gelassen?", "German"),
        ("Wann kommt Anna?", "German"),
        ("¿Dónde vive Ana?", "Spanish"),
        ("Qu'est-ce que Julien a dit ?", "French"),
        ("Quando arriva la nonna?", "Italian"),
        ("Onde mora a Ana?", "Portuguese"),
        ("Quando é a reunião?", "Portuguese"),
        ("Que pão comprei?", "Portuguese"),
        ("Que compré ayer?", "Spanish"),
        ("Waar woont Jan?", "Dutch"),
        ("Hur många katter har de?", "Swedish"),
        ("Gdzie mieszka Ania?", "Polish"),
        ("Kde bydlí Anna?", "Czech"),
        ("Где живёт Аня?", "Cyrillic script"),
        ("Де живе Оля?", "Cyrillic script"),
        ("Πού μένει η Άννα;", "Greek"),
        ("أين تعيش آنا؟", "Arabic script"),
        ("היכן גרה אנה?", "Hebrew script"),
        ("अन्ना कहाँ रहती है?", "Devanagari script"),
        ("我住在哪里?", "Chinese"),
        ("iPhone 15 多少钱", "Chinese"),
        ("どこに住んでいますか?", "Japanese"),
        ("어디에 살아요?", "Korean"),
        ("แอนนาอยู่ที่ไหน", "Thai"),
        ("გამარჯობა როგორ ხარ", "another script"),
    ],
)
def test_a_language_is_named(text: str, name: str) -> None:
    assert name_language(text) == name


ENGLISH_OR_UNCLEAR = """
ok?|OK|hm|x||yes|Sushi!|come on|Take care, bye!|war room|Die Hard|Dan Brown|Bo likes tea|Cat food?|Kim birthday?|Wen Li?
Who is Jürgen Müller?|Where is Café de la Paix?|What does 'Schadenfreude' mean?|What did he mean by 'ich liebe dich'?
Los Angeles trip|Las Vegas hotel|De la Cruz|Uma Thurman movies|Der Spiegel subscription|Van Gogh museum|El Niño|El Paso
Rio de Janeiro|São Paulo office|Côte d'Azur hotel|Lago di Como villa|crème de la crème|C'est la vie|naïve résumé café
Dr. Van der Berg's clinic|Beyoncé concert|Jean-Luc Picard|Cirque du Soleil tickets|La La Land|Des Moines flight|déjà vu
SELECT id FROM t WHERE a = 1|for i in range(10): print(i)|def main(): return None|npm install --save-dev|git rebase -i
err_42|https://example.com/de/la/el|a1b2c3d4-e5f6|C:\\Users\\die\\der.txt|src/de/es.py|ERR_CONNECTION_REFUSED|user=anna
π|what is the value of π and μ?|Ω resistor|μm|😀😀|𝕳𝖊𝖑𝖑𝖔 there|ＡＢＣ hello|12:30|C++|1,000 €|wat happened?
Who is Анна?|Where is Владимир Петров?|Who is 山田太郎?|What does Прaвда write?
"""


@pytest.mark.parametrize("text", ENGLISH_OR_UNCLEAR.strip().replace("\n", "|").split("|"))
def test_names_quotations_codes_and_short_texts_are_no_other_language(text: str) -> None:
    assert name_language(text) in ("", "English")


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=200))
def test_every_text_can_be_asked(text: str) -> None:
    assert isinstance(name_language(text), str)
    assert guess_language(text) in (None, *range(len(LANGUAGES)))
    assert name_language(text) == name_language(text)


@given(st.text(max_size=100))
def test_folding_twice_changes_nothing(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@pytest.mark.parametrize(
    ("language", "one", "many"),
    [
        ("portuguese", "reuniao", "reunioes"),
        ("portuguese", "pao", "paes"),
        ("portuguese", "hotel", "hoteis"),
        ("spanish", "luz", "luces"),
        ("italian", "lago", "laghi"),
        ("french", "travail", "travaux"),
        ("dutch", "kind", "kinderen"),
    ],
)
def test_each_number_gives_the_other(language: str, one: str, many: str) -> None:
    number = LANGUAGES.index(language)
    assert many in other_numbers(one, number)
    assert one in other_numbers(many, number)


@pytest.mark.parametrize(("language", "ending"), [("portuguese", "ao"), ("portuguese", "oes"), ("spanish", "z")])
def test_an_ending_alone_is_no_word(language: str, ending: str) -> None:
    assert other_numbers(ending, LANGUAGES.index(language)) == ()


def test_english_has_none() -> None:
    assert other_numbers("faces", ENGLISH) == ()
