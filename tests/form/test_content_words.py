"""What one text has of another, in many languages and scripts."""

from __future__ import annotations

import pytest

from eunoe.form.evidence import content_words, covered_share, kept_share, language_or_script, names_and_numbers

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


def test_a_text_without_words_lacks_nothing() -> None:
    assert covered_share("", ["Anna"]) == covered_share("the and of", ["Anna"]) == 1.0
    assert covered_share("Anna", []) == 0.0
    assert covered_share("42", ["42"]) == 1.0


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


def test_scripts_without_spaces_are_told_apart() -> None:
    assert language_or_script("我喜欢茶。") == language_or_script("アンナは京都に住んでいます。") == -1
    assert language_or_script("Anna likes tea, the green one.") == 0
    assert language_or_script("Anna mag Tee und auch den grünen.") > 0
